//! Idle CPUs that do not sleep.

use std::fs::File;
use std::io::Write;

/// The kernel's request that no CPU sleeps so deeply that waking it takes longer than a number of
/// microseconds; it holds while the file is open (kernel documentation, power/pm_qos_interface).
const LATENCY_REQUEST: &str = "/dev/cpu_dma_latency";

/// Idle CPUs wait in a loop instead of sleeping while this lives, in all processes. The kernel
/// takes the request back when the process ends, however it ends.
///
/// Client and server of a closed loop wait for each other once per operation. In a virtual machine
/// a CPU that sleeps is taken away by the host, and getting it back can cost more than the
/// operation, and another time each time.
#[derive(Debug)]
pub struct AwakeCpus {
    _request: File,
}

impl AwakeCpus {
    /// # Errors
    /// The reason why it cannot be had: a kernel without it, or a user who may not ask for it.
    pub fn keep() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{LATENCY_REQUEST}: {error}");
        let mut request = File::options()
            .write(true)
            .open(LATENCY_REQUEST)
            .map_err(failed)?;
        request.write_all(&0i32.to_ne_bytes()).map_err(failed)?;
        Ok(Self { _request: request })
    }
}
