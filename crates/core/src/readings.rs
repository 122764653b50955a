//! Readings of the machine over one step: their names, units and sources, and who used the CPU.

use std::collections::{BTreeMap, btree_map};
use std::ops::Index;

use serde::{Deserialize, Serialize};

/// A number a collector read, or why it could not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The value, in the unit its name says.
    Ok(f64),
    /// The reason there is none.
    Unavailable(String),
}

impl Reading {
    /// The value, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Ok(value) => Some(*value),
            Self::Unavailable(_) => None,
        }
    }
}

impl From<f64> for Reading {
    fn from(value: f64) -> Self {
        Self::Ok(value)
    }
}

impl From<Result<f64, String>> for Reading {
    fn from(answer: Result<f64, String>) -> Self {
        answer.map_or_else(Self::Unavailable, Self::Ok)
    }
}

/// One line per reading: the variant, the name in stored files, the unit, the source, the meaning.
/// `docs/formats/events.md` has the same table; a test compares them.
macro_rules! host_readings {
    ($($variant:ident $name:literal, $unit:literal, $source:literal, $meaning:literal;)*) => {
        /// A reading that a step can have of its host.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum HostReading {
            $(#[doc = $meaning] $variant,)*
        }

        impl HostReading {
            /// Every reading, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The key in `events.jsonl`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            pub fn unit(self) -> &'static str {
                match self { $(Self::$variant => $unit),* }
            }

            /// Where it is read.
            pub fn source(self) -> &'static str {
                match self { $(Self::$variant => $source),* }
            }

            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

host_readings! {
    Seconds "seconds", "s", "monotonic clock",
        "length of the operations; with a wait at the step's end, from the first sample to the \
         last";
    Late "late_s", "s", "monotonic clock",
        "after a warm-up: how long after its end the server's CPU was first read; readings are \
         scaled to make up for it";
    Cpus "cpus", "CPUs", "/proc/stat",
        "CPUs online at the end";
    CpuUser "cpu_user_s", "s", "/proc/stat",
        "CPU time of the whole host: user and nice";
    CpuSystem "cpu_system_s", "s", "/proc/stat",
        "CPU time of the whole host: system, irq and softirq";
    CpuIowait "cpu_iowait_s", "s", "/proc/stat",
        "CPU time of the whole host: idle while a task waited for storage";
    CpuSteal "cpu_steal_s", "s", "/proc/stat",
        "CPU time that the hypervisor gave to other guests";
    CpuIdle "cpu_idle_s", "s", "/proc/stat",
        "CPU time of the whole host: idle";
    CpuTotal "cpu_total_s", "s", "/proc/stat",
        "CPU time of the whole host: the sum of all states";
    ContextSwitches "context_switches", "switches", "/proc/stat",
        "context switches of the whole host";
    DiskReads "disk_reads", "reads", "/proc/diskstats",
        "reads completed by the data directory's device, for all processes";
    DiskReadBytes "disk_read_bytes", "bytes", "/proc/diskstats",
        "bytes read from the data directory's device, by all processes";
    DiskWrites "disk_writes", "writes", "/proc/diskstats",
        "writes completed by the data directory's device, for all processes";
    DiskWriteBytes "disk_write_bytes", "bytes", "/proc/diskstats",
        "bytes written to the data directory's device, by all processes";
    PsiCpuSome "psi_cpu_some_s", "s", "/proc/pressure/cpu",
        "time in which some task waited for a CPU";
    PsiIoSome "psi_io_some_s", "s", "/proc/pressure/io",
        "time in which some task waited for storage";
    PsiMemorySome "psi_memory_some_s", "s", "/proc/pressure/memory",
        "time in which some task waited for memory";
    ClientCpu "client_cpu_s", "s", "process clock",
        "CPU time of the trial's process, the collector included, and of client hosts that are \
         this machine; unavailable with an embedded engine";
    ServerCpu "server_cpu_s", "s", "process clocks, /proc/PID/stat",
        "CPU time of the server's process trees, children that ended included; unavailable with an \
         embedded engine or an external server";
    ServerVoluntarySwitches "server_voluntary_switches", "switches", "/proc/PID/task/TID/status",
        "voluntary context switches of the server's threads; of threads that ended before the last \
         look nothing is known. With an embedded engine those of the trial's process, from \
         getrusage";
    ServerInvoluntarySwitches "server_involuntary_switches", "switches",
        "/proc/PID/task/TID/status",
        "the same of involuntary context switches";
    ServerReadCalls "server_read_calls", "calls", "/proc/PID/io",
        "system calls that read, of the server's process trees, children that ended included; with \
         an embedded engine those of the trial's process";
    ServerWriteCalls "server_write_calls", "calls", "/proc/PID/io",
        "the same of system calls that write";
    ServerReadBytes "server_read_bytes", "bytes", "/proc/PID/io",
        "bytes that the same processes had fetched from storage";
    ServerWriteBytes "server_write_bytes", "bytes", "/proc/PID/io",
        "bytes that the same processes sent to storage, at once or through the page cache";
    ProcessCpu "process_cpu_s", "s", "process clock; of db_bench getrusage",
        "CPU time of the one process that holds client and embedded engine; unavailable with a \
         server";
    RssMax "rss_max_bytes", "bytes", "/proc/PID/status",
        "largest sampled resident size: of the trial's process with an embedded engine, else of \
         the server's process trees: each process's own memory, and what they share once";
    DataDir "data_dir_bytes", "bytes", "directory walk",
        "sizes of the files in the data directory at the end";
    Database "database_bytes", "bytes", "engine",
        "size of the database at the end, as the engine reports it";
    VoluntarySwitches "voluntary_switches", "switches", "getrusage",
        "voluntary context switches of the trial's process, all threads";
    InvoluntarySwitches "involuntary_switches", "switches", "getrusage",
        "involuntary context switches of the trial's process, all threads";
    ClientMajorFaults "client_major_faults", "faults", "getrusage",
        "major page faults of the trial's process, all threads";
    OwnUser "own_user_s", "s", "getrusage",
        "user CPU time of the trial's process, all threads; of db_bench: of its process";
    OwnSystem "own_system_s", "s", "getrusage",
        "system CPU time of the trial's process, all threads; of db_bench: of its process";
    CollectorCpu "collector_cpu_s", "s", "thread clock",
        "CPU time of the sampling thread";
    SeriesRows "series", "rows", "host series",
        "rows written to the host series, if there is one";
}

impl HostReading {
    /// Those of the device and the folder that hold the data. They are meaningless if the data is
    /// on another machine.
    pub const OF_DATA_DISK: [Self; 5] = [
        Self::DiskReads,
        Self::DiskReadBytes,
        Self::DiskWrites,
        Self::DiskWriteBytes,
        Self::DataDir,
    ];

    /// What the server's processes did besides using the CPU. An external server has none here.
    pub const OF_SERVER_PROCESSES: [Self; 6] = [
        Self::ServerVoluntarySwitches,
        Self::ServerInvoluntarySwitches,
        Self::ServerReadCalls,
        Self::ServerWriteCalls,
        Self::ServerReadBytes,
        Self::ServerWriteBytes,
    ];
}

/// The readings of one step. Names that this version does not know are kept as they were stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Readings(BTreeMap<String, Reading>);

impl Readings {
    pub fn get(&self, name: HostReading) -> Option<&Reading> {
        self.0.get(name.name())
    }

    pub fn contains(&self, name: HostReading) -> bool {
        self.get(name).is_some()
    }

    pub fn get_mut(&mut self, name: HostReading) -> Option<&mut Reading> {
        self.0.get_mut(name.name())
    }

    pub fn value(&self, name: HostReading) -> Option<f64> {
        self.get(name).and_then(Reading::value)
    }

    /// # Errors
    /// The reason there is no value.
    pub fn answer(&self, name: HostReading) -> Result<f64, String> {
        match self.get(name) {
            Some(Reading::Ok(value)) => Ok(*value),
            Some(Reading::Unavailable(reason)) => Err(reason.clone()),
            None => Err(format!("{} was not recorded", name.name())),
        }
    }

    pub fn put(&mut self, name: HostReading, reading: impl Into<Reading>) {
        self.0.insert(name.name().to_owned(), reading.into());
    }

    pub fn remove(&mut self, name: HostReading) -> Option<Reading> {
        self.0.remove(name.name())
    }

    /// By stored name, in its order.
    pub fn iter(&self) -> btree_map::Iter<'_, String, Reading> {
        self.0.iter()
    }

    /// Puts all three CPU readings; those that cannot exist get their reason.
    pub fn put_cpu(&mut self, cpu: CpuShare<Result<f64, String>>) {
        let shared = || Err("shares the process with the engine".to_owned());
        let [client, server, process] = match cpu {
            CpuShare::Server { client, server } => [
                client,
                server,
                Err("the engine has processes of its own".to_owned()),
            ],
            CpuShare::Embedded { process } => [shared(), shared(), process],
        };
        self.put(HostReading::ClientCpu, client);
        self.put(HostReading::ServerCpu, server);
        self.put(HostReading::ProcessCpu, process);
    }

    /// The CPU seconds of client and engine.
    ///
    /// # Errors
    /// The reason of the one that is missing; if nothing was read at all, that of the process.
    pub fn cpu(&self) -> Result<CpuShare<f64>, String> {
        let process = match self.answer(HostReading::ProcessCpu) {
            Ok(process) => return Ok(CpuShare::Embedded { process }),
            Err(reason) => reason,
        };
        let client = self.answer(HostReading::ClientCpu);
        let server = self.answer(HostReading::ServerCpu);
        if client.is_err() && server.is_err() {
            // An embedded engine whose one clock failed.
            return Err(process);
        }
        Ok(CpuShare::Server {
            client: client?,
            server: server?,
        })
    }
}

impl FromIterator<(HostReading, Reading)> for Readings {
    fn from_iter<I: IntoIterator<Item = (HostReading, Reading)>>(readings: I) -> Self {
        let named = readings
            .into_iter()
            .map(|(name, reading)| (name.name().to_owned(), reading));
        Self(named.collect())
    }
}

impl<const N: usize> From<[(HostReading, Reading); N]> for Readings {
    fn from(readings: [(HostReading, Reading); N]) -> Self {
        readings.into_iter().collect()
    }
}

impl FromIterator<(String, Reading)> for Readings {
    fn from_iter<I: IntoIterator<Item = (String, Reading)>>(readings: I) -> Self {
        Self(readings.into_iter().collect())
    }
}

/// # Panics
/// When there is no such reading.
impl Index<HostReading> for Readings {
    type Output = Reading;

    fn index(&self, name: HostReading) -> &Reading {
        &self.0[name.name()]
    }
}

impl<'a> IntoIterator for &'a Readings {
    type Item = (&'a String, &'a Reading);
    type IntoIter = btree_map::Iter<'a, String, Reading>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Who used the CPU: client and server each have processes, or one process is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuShare<T> {
    Server { client: T, server: T },
    Embedded { process: T },
}

impl CpuShare<f64> {
    /// Of client and engine together.
    pub fn total(self) -> f64 {
        match self {
            Self::Server { client, server } => client + server,
            Self::Embedded { process } => process,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = HostReading::ALL.iter().map(|name| name.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), HostReading::ALL.len());
    }

    #[test]
    fn cpu_comes_back_as_it_was_put() {
        let mut readings = Readings::default();
        readings.put_cpu(CpuShare::Server {
            client: Ok(2.0),
            server: Ok(3.0),
        });
        assert_eq!(readings.cpu().unwrap().total(), 5.0);
        assert_eq!(readings.answer(HostReading::ServerCpu), Ok(3.0));
        assert!(readings.answer(HostReading::ProcessCpu).is_err());
        readings.put_cpu(CpuShare::Server {
            client: Ok(2.0),
            server: Err("it was restarted".to_owned()),
        });
        assert_eq!(readings.cpu(), Err("it was restarted".to_owned()));
        readings.put_cpu(CpuShare::Embedded { process: Ok(4.0) });
        assert_eq!(readings.cpu(), Ok(CpuShare::Embedded { process: 4.0 }));
        assert!(readings.answer(HostReading::ServerCpu).is_err());
        readings.put_cpu(CpuShare::Embedded {
            process: Err("no clock".to_owned()),
        });
        assert_eq!(readings.cpu(), Err("no clock".to_owned()));
    }

    #[test]
    fn a_name_of_another_version_is_kept() {
        let text = r#"{"brand_new_s":{"ok":1.5},"seconds":{"unavailable":"no clock"}}"#;
        let readings: Readings = serde_json::from_str(text).unwrap();
        assert_eq!(
            readings.answer(HostReading::Seconds),
            Err("no clock".to_owned())
        );
        assert_eq!(serde_json::to_string(&readings).unwrap(), text);
    }
}
