//! What processes used.

use nix::sys::resource::{UsageWho, getrusage};
use plimsoll_core::readings::HostReading;
use plimsoll_host::{Collector, Looks, Proc};

use crate::Failed;
use crate::server::Target;

/// What a client used while it ran, and the server meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU of the client in seconds, in the kernel and outside.
    pub client_s: f64,
    /// CPU of the server in seconds.
    pub server_s: f64,
    /// How often a thread of the client went to sleep.
    pub voluntary_switches: f64,
}

/// The client's CPU.
#[derive(Clone, Copy, Debug)]
pub enum Client {
    /// This process.
    Own,
    /// Processes that it starts and waits for.
    Children,
}

impl Usage {
    /// Runs `work` and says what it used.
    pub fn of<T>(
        client: Client,
        target: &Target,
        work: impl FnOnce() -> Result<T, Failed>,
    ) -> Result<(T, Self), Failed> {
        let who = match client {
            Client::Own => UsageWho::RUSAGE_SELF,
            Client::Children => UsageWho::RUSAGE_CHILDREN,
        };
        let collector = Collector::start(Proc::new(), target.watch(), Looks::EachSecond);
        let before = own(who)?;
        let done = work()?;
        let after = own(who)?;
        let server_s = collector
            .stop()
            .value(HostReading::ServerCpu)
            .ok_or("no reading of the server's CPU")?;
        Ok((
            done,
            Self {
                client_s: after.0 - before.0,
                server_s,
                voluntary_switches: after.1 - before.1,
            },
        ))
    }
}

/// CPU seconds and voluntary context switches.
fn own(who: UsageWho) -> Result<(f64, f64), Failed> {
    let usage = getrusage(who)?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok((
        seconds(usage.user_time()) + seconds(usage.system_time()),
        usage.voluntary_context_switches() as f64,
    ))
}
