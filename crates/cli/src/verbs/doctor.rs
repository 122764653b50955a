//! `doctor`: what disturbs measuring here, what mends it, and what that which cannot be mended does
//! to verdicts.

use std::path::Path;

use plimsoll_host::{Check, Proc, Remedy, Status, check_machine, remedy};
use serde::Serialize;

use crate::arguments::Places;
use crate::failure::{MACHINE, VerbResult};
use crate::output::print_json;

const SYS: &str = "/sys";
/// What fetches builds, and of which engines.
const CLIENTS: [(&str, &str); 3] = [
    ("apt-get", "builds of Debian"),
    ("mvn", "most builds of MySQL, PostgreSQL and RocksDB"),
    ("npm", "MySQL 5.6.24"),
];

/// One check and what can be done about it.
#[derive(Serialize)]
struct Finding {
    #[serde(flatten)]
    check: Check,
    remedy: Option<Remedy>,
}

pub fn doctor(places: &Places, is_json: bool) -> VerbResult {
    let sys = Path::new(SYS);
    let checks = check_machine(Proc::new(), sys, &places.data_dir()?, None);
    let findings: Vec<Finding> = checks
        .into_iter()
        .map(|check| Finding {
            remedy: remedy(&check, sys),
            check,
        })
        .collect();
    let has_failed = findings
        .iter()
        .any(|finding| finding.check.status == Status::Fail);
    if is_json {
        print_json(&findings)?;
    } else {
        show(&findings);
    }
    Ok(if has_failed { MACHINE } else { 0 })
}

fn show(findings: &[Finding]) {
    let with_remedy = |can_be_mended: bool| {
        findings.iter().filter_map(move |finding| {
            let remedy = finding.remedy.as_ref()?;
            (remedy.commands.is_empty() != can_be_mended).then_some((&finding.check, remedy))
        })
    };
    section("To mend (until the next boot)", with_remedy(true));
    section("Cannot be mended here", with_remedy(false));
    let named = |status: Status| -> Vec<&str> {
        let of = findings
            .iter()
            .filter(|finding| finding.check.status == status);
        of.map(|finding| finding.check.name).collect()
    };
    let fine = named(Status::Ok);
    anstream::println!("Fine ({}): {}", fine.len(), fine.join(", "));
    let unknown = named(Status::Unavailable);
    if !unknown.is_empty() {
        anstream::println!("Not known here ({}): {}", unknown.len(), unknown.join(", "));
    }
    let missing: Vec<String> = CLIENTS
        .iter()
        .filter(|(client, _)| !is_in_path(client))
        .map(|(client, what)| format!("{client} ({what})"))
        .collect();
    if !missing.is_empty() {
        anstream::println!(
            "Not installed, for builds to be fetched: {}",
            missing.join(", ")
        );
    }
    anstream::println!(
        "\n`plimsoll run` compares two configs of SQLite in about 90 s, and shows how sure one can be here."
    );
}

fn section<'f>(title: &str, findings: impl Iterator<Item = (&'f Check, &'f Remedy)>) {
    // A remedy of several checks stands once, below all of them.
    let mut by_remedy: Vec<(&Remedy, Vec<&Check>)> = Vec::new();
    for (check, remedy) in findings {
        match by_remedy.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, checks)) => checks.push(check),
            None => by_remedy.push((remedy, vec![check])),
        }
    }
    if by_remedy.is_empty() {
        return;
    }
    anstream::println!("\x1b[1m{title}\x1b[0m");
    for (remedy, checks) in by_remedy {
        for check in checks {
            let colour = if check.status == Status::Fail {
                "\x1b[31m"
            } else {
                "\x1b[33m"
            };
            anstream::println!("  {colour}{}\x1b[0m: {}", check.name, check.finding);
        }
        anstream::println!("      {}", remedy.effect);
        for command in &remedy.commands {
            anstream::println!("      $ {command}");
        }
    }
    anstream::println!();
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
