//! The machine's memory, from `/proc/meminfo`.

use crate::parse::kib_field;
use crate::{Answer, Proc};

/// Sizes in bytes, each with the reason if it is missing.
#[derive(Clone, Debug)]
pub struct Memory {
    pub total: Answer<u64>,
    /// What programs can take without swapping, by the kernel's estimate.
    pub available: Answer<u64>,
    pub swap_total: Answer<u64>,
    pub swap_free: Answer<u64>,
}

impl Memory {
    /// As it is now.
    pub fn read(proc_: &Proc) -> Self {
        let text = proc_.read("meminfo");
        let field = |name: &str| kib_field(text.as_ref().map_err(String::clone)?, name);
        Self {
            total: field("MemTotal"),
            available: field("MemAvailable"),
            swap_total: field("SwapTotal"),
            swap_free: field("SwapFree"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_is_read_or_has_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        let text = "MemTotal: 8 kB\nMemAvailable: 4 kB\nSwapTotal: 0 kB\n";
        std::fs::write(dir.path().join("meminfo"), text).unwrap();
        let memory = Memory::read(&Proc::at(dir.path()));
        assert_eq!((memory.total, memory.available), (Ok(8192), Ok(4096)));
        assert_eq!(memory.swap_total, Ok(0));
        assert_eq!(memory.swap_free, Err("no line SwapFree".to_owned()));
        let nowhere = Memory::read(&Proc::at(dir.path().join("none")));
        assert!(nowhere.total.unwrap_err().contains("/proc/meminfo"));
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = Memory::read(&Proc::new());
        assert!(memory.available.unwrap() < memory.total.unwrap());
    }
}
