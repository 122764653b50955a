//! All client hosts of a trial.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_core::plan::{Cell, Step};
use plimsoll_core::record::ClientHostRecord;
use plimsoll_engine::process::boot_id;
use plimsoll_engine::{GuestOrder, Guests, Password, Settings};
use plimsoll_load::{
    Control, MonotonicClock, StepError, StepOutcome, StepOutputs, StepPart, Task, interval_s,
    run_step_in_parts,
};
use plimsoll_workload::{ExtraCounts, RunState, SharedServer};

use super::away::{Away, Left};
use super::choice::ClientHosts;
use super::clock::Offset;
use super::link::Link;
use super::share::shares;
use super::wire::StepOrder;

/// A host whose process takes more than this share of its CPUs measures itself.
const MOST_CPU_SHARE: f64 = 0.8;
/// Bytes of a password: 128 bits.
const PASSWORD_BYTES: usize = 16;

/// The client hosts of a trial, connected.
pub(crate) struct Party {
    links: Vec<Arc<Mutex<Link>>>,
    /// By host: where it reaches the server, and where it comes from.
    addresses: Vec<(IpAddr, IpAddr)>,
    password: Password,
}

/// A step that runs on client hosts.
pub(crate) struct PartStep<'a> {
    pub cell: &'a Cell,
    pub seed: u64,
    pub step: &'a Step,
    pub state: RunState,
    pub settings: &'a Settings,
    pub counts: &'a ExtraCounts,
    pub options: &'a plimsoll_load::StepOptions,
    pub kinds: &'a [String],
    pub server: &'a SharedServer,
    pub control: &'a Arc<Control>,
}

/// What hosts leave of a step that has ended.
pub(crate) type Records = Result<Vec<ClientHostRecord>, String>;

impl Party {
    /// Connects to all hosts.
    ///
    /// # Errors
    /// Which one cannot be used, and why.
    pub fn connect(hosts: &ClientHosts) -> Result<Self, String> {
        let patience = Duration::from_nanos(hosts.patience_ns);
        let mut links = Vec::new();
        let mut addresses = Vec::new();
        for (host, program) in &hosts.hosts {
            let of_host = |reason| format!("client host {}: {reason}", host.name);
            let mut link =
                Link::open(host, program, hosts.server_address, patience).map_err(of_host)?;
            let version = &link.hello.version;
            if version != env!("CARGO_PKG_VERSION") {
                return Err(format!(
                    "client host {0} has plimsoll {version}: `plimsoll host push {0}` copies this \
                    one",
                    host.name
                ));
            }
            // Before anything is loaded for it.
            let far = link.offset().map_err(of_host)?.why_too_far();
            far.map_or(Ok(()), |reason| Err(of_host(reason)))?;
            addresses.push((link.hello.server, link.hello.own));
            links.push(Arc::new(Mutex::new(link)));
        }
        Ok(Self {
            links,
            addresses,
            password: random_password()?,
        })
    }

    /// How many they are.
    pub fn count(&self) -> u32 {
        self.links.len() as u32
    }

    /// Whom the server is to let in.
    pub fn guests(&self) -> Guests {
        let mut listen: Vec<IpAddr> = self.addresses.iter().map(|(server, _)| *server).collect();
        let mut from: Vec<IpAddr> = self.addresses.iter().map(|(_, own)| *own).collect();
        for addresses in [&mut listen, &mut from] {
            addresses.sort_unstable();
            addresses.dedup();
        }
        Guests {
            listen,
            from,
            password: self.password.clone(),
        }
    }

    /// Runs a step on the hosts: `tasks` are those of all clients. What the workers counted beside
    /// their operations is added to the step's counts. The records are of the hosts that took part;
    /// in their place is why what one of them did is not valid.
    pub fn run(
        &self,
        of: &PartStep<'_>,
        tasks: Vec<Task>,
        outputs: StepOutputs<'_>,
    ) -> (Result<StepOutcome, StepError>, Records) {
        let clients = tasks.iter().map(|task| task.client).max().unwrap_or(0);
        let mut parts = Vec::new();
        let mut all_left = Vec::new();
        let hosts = self.links.iter().zip(&self.addresses);
        for (clients, (link, (address, _))) in
            shares(clients, self.links.len()).into_iter().zip(hosts)
        {
            let (first, last) = (*clients.start(), *clients.end());
            let order = StepOrder {
                workload: of.cell.workload.clone(),
                seed: of.seed,
                step: of.step.clone(),
                state: of.state.clone(),
                clients: (first, last),
                interval_s: interval_s(tasks.len()),
                guest: GuestOrder {
                    engine: of.cell.build.engine,
                    address: *address,
                    port: of.server.guest_port().unwrap_or_default(),
                    password: self.password.clone(),
                    settings: of.settings.clone(),
                    client: of.cell.config.client,
                },
            };
            let left = Arc::new(Mutex::new(left_of(link, (first, last))));
            let name = left_record(&left).host;
            all_left.push(left.clone());
            let host = Box::new(Away {
                link: link.clone(),
                left,
                order: Box::new(order),
                name,
                before: Offset::default(),
                is_there: false,
                is_started: false,
            });
            parts.push(StepPart { clients, host });
        }
        let clock = (&Arc::new(MonotonicClock), of.control);
        let outcome = run_step_in_parts(clock, of.kinds, tasks, parts, of.options, outputs);
        let elapsed_s = outcome
            .as_ref()
            .map_or(0.0, |outcome| outcome.elapsed_ns as f64 / 1e9);
        let records = all_left
            .iter()
            .map(|left| conclude(left, of.counts, elapsed_s))
            .collect();
        (outcome, records)
    }
}

/// What a host leaves before it has done anything.
fn left_of(link: &Mutex<Link>, clients: (u32, u32)) -> Left {
    let link = link.lock().unwrap_or_else(PoisonError::into_inner);
    Left {
        record: ClientHostRecord {
            host: link.host.name.clone(),
            machine_id: link.hello.machine_id.clone(),
            cpu_model: link.hello.cpu_model.clone(),
            cpus: link.hello.cpus,
            shares_machine: !link.hello.boot_id.is_empty() && link.hello.boot_id == boot_id(),
            clients,
            ..ClientHostRecord::default()
        },
        ..Left::default()
    }
}

fn left_record(left: &Mutex<Left>) -> ClientHostRecord {
    let left = left.lock().unwrap_or_else(PoisonError::into_inner);
    left.record.clone()
}

/// Adds what a host's workers counted, and judges whether what they did is a measurement of the
/// server.
fn conclude(
    left: &Mutex<Left>,
    counts: &ExtraCounts,
    elapsed_s: f64,
) -> Result<ClientHostRecord, String> {
    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
    let record = left.record.clone();
    let host = &record.host;
    if let Some(problem) = left.problem.take() {
        return Err(format!("client host {host} {problem}"));
    }
    let Some(of_host) = left.counts.take() else {
        return Err(format!(
            "client host {host} has not said what its workers counted"
        ));
    };
    counts.add(of_host);
    match own_limit(&record, elapsed_s) {
        Some(reason) => Err(reason),
        None => Ok(record),
    }
}

/// Why a host measured itself, if it did.
fn own_limit(record: &ClientHostRecord, elapsed_s: f64) -> Option<String> {
    let share = record.cpu_s / (elapsed_s * f64::from(record.cpus.max(1))).max(1e-9);
    (share > MOST_CPU_SHARE).then(|| {
        format!(
            "client host {} was the limit: its workers took {:.0} % of its {} CPUs, and {:.0} % \
            are the most that measures a server; add a client host, or lower the clients",
            record.host,
            share * 100.0,
            record.cpus,
            MOST_CPU_SHARE * 100.0
        )
    })
}

/// 128 random bits, as 32 digits.
fn random_password() -> Result<Password, String> {
    use std::io::Read;

    let mut bytes = zeroize::Zeroizing::new([0_u8; PASSWORD_BYTES]);
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes[..]))
        .map_err(|error| format!("failed to read /dev/urandom: {error}; look at the machine"))?;
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    Ok(Password::new(digits.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_cpu_to_spare_measures_itself() {
        let record = |cpu_s| ClientHostRecord {
            host: "cl1".into(),
            cpus: 2,
            cpu_s,
            ..ClientHostRecord::default()
        };
        assert_eq!(own_limit(&record(15.9), 10.0), None);
        let reason = own_limit(&record(18.6), 10.0).unwrap();
        assert!(
            reason.starts_with("client host cl1 was the limit: its workers took 93 % of its 2"),
            "{reason}"
        );
    }

    #[test]
    fn passwords_are_of_128_bits_and_no_two_are_alike() {
        let text = || serde_json::to_value(random_password().unwrap()).unwrap();
        let (one, two) = (text(), text());
        let is_digit = |c: char| c.is_ascii_hexdigit();
        let one = one.as_str().unwrap();
        assert!(one.len() == 32 && one.chars().all(is_digit) && *one != two);
    }
}
