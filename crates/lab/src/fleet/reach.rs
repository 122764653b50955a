//! This end of connections, and who answers at the other: the same program, a clock that is right,
//! a machine of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::hosts::Host;
use super::link::Link;
use super::push::program_on;
use super::wire::Hello;
use crate::builds::file_sha256;
use crate::error::LabError;

/// Wall clocks that are further apart disagree about when a trial ran.
const MOST_SKEW: Duration = Duration::from_secs(1);

/// This end of all connections.
#[derive(Clone, Debug)]
pub struct Desk {
    /// This program.
    pub program: PathBuf,
    /// Its SHA-256.
    pub sha256: String,
    /// Its version.
    pub version: String,
    /// A host that says nothing for this long is lost.
    pub patience: Duration,
    /// Whether hosts may have other wall clocks.
    pub allows_skew: bool,
}

impl Desk {
    /// # Errors
    /// When the program's file cannot be read.
    pub fn new(program: &Path, version: &str, patience: Duration) -> Result<Self, LabError> {
        Ok(Self {
            program: program.to_owned(),
            sha256: file_sha256(program)?,
            version: version.to_owned(),
            patience,
            allows_skew: false,
        })
    }

    /// Connects to a host and looks at who answers, until `is_stopped`.
    pub(super) fn connect(
        &self,
        host: &Host,
        campaign: Option<PathBuf>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Link, String> {
        let program = program_on(host, &self.sha256);
        let program = program.to_string_lossy();
        let link = Link::open(host, &program, self.patience, campaign, is_stopped)?;
        let hello = &link.hello;
        if (&hello.version, &hello.program_sha256) != (&self.version, &self.sha256) {
            return Err(format!(
                "it has plimsoll {} ({:.12}) and the desk {} ({:.12}): `plimsoll host push {}` \
                copies the desk's",
                hello.version, hello.program_sha256, self.version, self.sha256, host.name
            ));
        }
        let skew = skew(hello, link.greeted_after);
        if skew.unsigned_abs() > MOST_SKEW.as_nanos() && !self.allows_skew {
            return Err(format!(
                "its clock is {:+.1} s from the desk's: set both by NTP, or pass --allow-skew",
                skew as f64 / 1e9
            ));
        }
        Ok(link)
    }
}

/// How far the host's wall clock is ahead, in nanoseconds: known to the time that the greeting took.
fn skew(hello: &Hello, greeted_after: Duration) -> i128 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i128);
    // The greeting was written between the asking and now: what lies between does not count as skew.
    let ahead = i128::from(hello.unix_ns) - now;
    match ahead < 0 {
        true => (ahead + greeted_after.as_nanos() as i128).min(0),
        false => ahead,
    }
}

/// What was found out about a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// What the host says of itself.
    pub hello: Hello,
    /// From the asking to its greeting.
    pub greeted_after: Duration,
    /// How far its wall clock is ahead, known to `greeted_after`.
    pub skew_s: f64,
}

/// Connects to a host once.
///
/// # Errors
/// [`LabError::Machine`] when it cannot be used, with the reason.
pub fn check_host(desk: &Desk, host: &Host) -> Result<Reach, LabError> {
    let link = desk
        .connect(host, None, &|| false)
        .map_err(|reason| LabError::Machine(format!("{}: {reason}", host.name)))?;
    let reach = Reach {
        hello: link.hello.clone(),
        greeted_after: link.greeted_after,
        skew_s: skew(&link.hello, link.greeted_after) as f64 / 1e9,
    };
    link.end();
    Ok(reach)
}

/// Connects to all hosts once.
///
/// # Errors
/// [`LabError::Machine`] with a line for each host that cannot be used, or with the names of hosts
/// that are one machine.
pub fn check_hosts(desk: &Desk, hosts: &[Host]) -> Result<(), LabError> {
    let found: Vec<Result<Reach, String>> = std::thread::scope(|scope| {
        let check = |host| scope.spawn(move || check_host(desk, host));
        let threads: Vec<_> = hosts.iter().map(check).collect();
        let join = |thread: ScopedJoinHandle<'_, Result<Reach, LabError>>| match thread.join() {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(_) => Err("its thread died".to_owned()),
        };
        threads.into_iter().map(join).collect()
    });
    let reasons: Vec<&str> = found
        .iter()
        .filter_map(|found| found.as_ref().err())
        .map(String::as_str)
        .collect();
    if !reasons.is_empty() {
        return Err(LabError::Machine(reasons.join("\n")));
    }
    let ids = hosts.iter().zip(&found).filter_map(|(host, found)| {
        let id = found.as_ref().ok()?.hello.machine_id.as_deref()?;
        Some((host.name.as_str(), id))
    });
    check_machines(ids)
}

/// Refuses hosts that are one machine, by names and machine ids: two blocks at once would disturb
/// each other, and a verdict would hold on more hosts than there are.
pub(super) fn check_machines<'a>(
    hosts: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<(), LabError> {
    let mut known = BTreeMap::new();
    for (host, id) in hosts {
        if let Some(other) = known.insert(id, host) {
            return Err(LabError::Machine(format!(
                "{other} and {host} are one machine (machine id {id}): name one of them. If they \
                are two that were copied from one image, give one a new id: `rm /etc/machine-id && \
                systemd-machine-id-setup` there"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_of_one_machine_are_refused() {
        let check = |hosts: &[(&str, &str)]| check_machines(hosts.iter().copied());
        check(&[("a", "1"), ("b", "2")]).unwrap();
        let error = check(&[("a", "1"), ("b", "2"), ("c", "1")]).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("a and c are one machine (machine id 1): name one"),
            "{error}"
        );
    }
}
