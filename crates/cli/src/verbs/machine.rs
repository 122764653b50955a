//! `machine check`.

use std::path::Path;

use plimsoll_host::{Proc, Status, check_machine};

use crate::arguments::{MachineVerb, Places};
use crate::failure::{Failure, MACHINE, VerbResult};

pub fn machine(places: &Places, verb: &MachineVerb) -> VerbResult {
    let MachineVerb::Check { json } = verb;
    let checks = check_machine(Proc::new(), Path::new("/sys"), &places.data_dir()?, None);
    if *json {
        let text = serde_json::to_string_pretty(&checks)
            .map_err(|error| Failure::bug(error.to_string()))?;
        anstream::println!("{text}");
    } else {
        let width = checks
            .iter()
            .map(|check| check.name.len())
            .max()
            .unwrap_or(0);
        for check in &checks {
            let (status, colour) = match check.status {
                Status::Ok => ("ok", "\x1b[32m"),
                Status::Warn => ("warn", "\x1b[33m"),
                Status::Fail => ("fail", "\x1b[31m"),
                Status::Unavailable => ("unavailable", "\x1b[2m"),
            };
            anstream::println!(
                "{colour}{status:<11}\x1b[0m  {:width$}  {}",
                check.name,
                check.finding
            );
            if let Some(advice) = &check.advice {
                anstream::println!("{:11}  {:width$}  -> {advice}", "", "");
            }
        }
    }
    Ok(if checks.iter().any(|check| check.status == Status::Fail) {
        MACHINE
    } else {
        0
    })
}
