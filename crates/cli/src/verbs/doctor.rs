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
    let groups = by_commands(findings);
    if groups.is_empty() {
        return;
    }
    anstream::println!("\x1b[1m{title}\x1b[0m");
    for group in groups {
        for check in group.checks {
            let colour = if check.status == Status::Fail {
                "\x1b[31m"
            } else {
                "\x1b[33m"
            };
            anstream::println!("  {colour}{}\x1b[0m: {}", check.name, check.finding);
        }
        for effect in group.effects {
            anstream::println!("      {effect}");
        }
        for command in group.commands {
            anstream::println!("      $ {command}");
        }
    }
    anstream::println!();
}

/// What the same commands mend, and what it does to verdicts.
#[derive(Debug, PartialEq)]
struct Group<'f> {
    checks: Vec<&'f Check>,
    effects: Vec<&'f str>,
    commands: &'f [String],
}

/// Commands stand once, below all checks that they help with; where there are none, each effect is a
/// group of its own.
fn by_commands<'f>(findings: impl Iterator<Item = (&'f Check, &'f Remedy)>) -> Vec<Group<'f>> {
    let mut groups: Vec<Group<'f>> = Vec::new();
    for (check, remedy) in findings {
        let (effect, commands) = (remedy.effect, remedy.commands.as_slice());
        let is_like = |group: &&mut Group<'f>| {
            group.commands == commands && (!commands.is_empty() || group.effects == [effect])
        };
        match groups.iter_mut().find(is_like) {
            Some(group) => {
                group.checks.push(check);
                if !group.effects.contains(&effect) {
                    group.effects.push(effect);
                }
            }
            None => groups.push(Group {
                checks: vec![check],
                effects: vec![effect],
                commands,
            }),
        }
    }
    groups
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str) -> Check {
        Check {
            name,
            status: Status::Warn,
            finding: name.to_owned(),
            advice: None,
        }
    }

    fn remedy(effect: &'static str, commands: &[&str]) -> Remedy {
        Remedy {
            effect,
            commands: commands.iter().map(|of| (*of).to_owned()).collect(),
        }
    }

    /// On a busy machine `ps` stood below other processes, and again below late sleeps.
    #[test]
    fn a_command_stands_once_whatever_it_is_for() {
        let checks = ["foreign_cpu", "smt", "timer", "virtual_machine", "pressure"].map(check);
        let remedies = [
            remedy("wider intervals", &["ps"]),
            remedy("siblings share a core", &[]),
            remedy("late operations", &["ps"]),
            remedy("neighbours", &[]),
            remedy("wider intervals", &["ps"]),
        ];
        let groups = by_commands(checks.iter().zip(&remedies));
        let seen: Vec<(Vec<&str>, &[&str])> = groups
            .iter()
            .map(|group| {
                let names = group.checks.iter().map(|check| check.name).collect();
                (names, group.effects.as_slice())
            })
            .collect();
        assert_eq!(
            seen,
            [
                (
                    vec!["foreign_cpu", "timer", "pressure"],
                    &["wider intervals", "late operations"][..]
                ),
                (vec!["smt"], &["siblings share a core"]),
                (vec!["virtual_machine"], &["neighbours"]),
            ]
        );
    }
}
