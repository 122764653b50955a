//! Builds, configuration, hardware and the benchmark: what the campaign recorded, and nothing else.

use std::collections::BTreeMap;

use itertools::Itertools;
use plimsoll_core::toolchain::{COMPILER, FLAGS, OPTIMISATION, PACKAGER};
use plimsoll_core::units::BYTES_PER_GIB;

use super::material::Subject;
use super::text::{count, list};
use super::value::{Part, Section, Sentence};
use crate::view::{CellInfo, View};

/// Said where the campaign does not hold a fact.
const NOT_RECORDED: &str = "not recorded";

/// `Builds, configuration and hardware`.
pub(crate) fn builds(view: &View, subjects: &[Subject]) -> Section {
    let mut bullets = Vec::new();
    for subject in subjects {
        let names: Vec<String> = subject.releases.iter().map(|of| of.name.clone()).collect();
        let title = match subject.title() {
            title if title.is_empty() => "builds".to_owned(),
            title => title,
        };
        let versions = format!("{title}: {}", list(&names));
        bullets.push(Sentence::plain(versions));
    }
    let cells: Vec<&CellInfo> = subjects
        .iter()
        .flat_map(|subject| subject.releases.iter().map(|of| &view.cells[of.cell]))
        .collect();
    bullets.extend(toolchains(&cells).into_iter().map(Sentence::plain));
    bullets.push(Sentence::plain(configs(&cells)));
    if !view.beyond_build.is_empty() {
        let labels: Vec<&str> = view.cells.iter().map(|cell| cell.label.as_str()).collect();
        let lines = view.beyond_build.iter().map(|of| of.line(&labels));
        bullets.push(Sentence::plain(format!(
            "differs beyond the build, and every ratio has it in it: {}",
            lines.collect::<Vec<_>>().join("; ")
        )));
    }
    bullets.push(Sentence::plain(hardware(view)));
    Section {
        title: "Builds, configuration and hardware".to_owned(),
        parts: vec![Part::bullets("", bullets)],
    }
}

/// Who compiled the builds and how: a bullet for each way.
fn toolchains(cells: &[&CellInfo]) -> Vec<String> {
    let told: Vec<String> = cells
        .iter()
        .map(|info| toolchain(&info.toolchain))
        .collect();
    let ways = told.iter().unique().map(|way| {
        let of_way = cells.iter().zip(&told).filter(|(_, other)| *other == way);
        let names: Vec<String> = of_way.map(|(info, _)| info.label.clone()).collect();
        match (way.as_str(), names.len() == cells.len()) {
            ("", true) => format!("who compiled them, compiler and flags: {NOT_RECORDED}"),
            ("", false) => format!("{}: {NOT_RECORDED}", list(&names)),
            (way, true) => format!("all builds: {way}"),
            (way, false) => format!("{}: {way}", list(&names)),
        }
    });
    ways.collect()
}

/// Packager, compiler and flags; warnings that were asked for say nothing of the program.
fn toolchain(known: &BTreeMap<String, String>) -> String {
    let facts = [PACKAGER, COMPILER, OPTIMISATION].into_iter();
    let facts = facts.filter_map(|name| known.get(name).cloned());
    let is_told = |flag: &&str| {
        !flag.starts_with("-W") && known.get(OPTIMISATION).is_none_or(|level| level != flag)
    };
    let flags = known.get(FLAGS).map(|flags| {
        let flags = flags.split_whitespace().filter(is_told);
        flags.unique().join(" ")
    });
    let flags = flags.filter(|flags| !flags.is_empty());
    facts.chain(flags).join(", ")
}

fn configs(cells: &[&CellInfo]) -> String {
    let names: Vec<&str> = cells
        .iter()
        .map(|info| info.config.as_str())
        .filter(|config| !config.is_empty())
        .unique()
        .collect();
    let settings = cells.iter().all(|info| info.config_settings.is_empty());
    let contents = match settings {
        true => format!("; what is in it: {NOT_RECORDED}"),
        false => String::new(),
    };
    match names[..] {
        [] => format!("configuration: {NOT_RECORDED}"),
        _ => format!("configuration: {}{contents}", names.join(", ")),
    }
}

/// CPU, memory, storage and kernel of the machine, as the trials recorded them.
fn hardware(view: &View) -> String {
    let fact = |name: &str| {
        let mut known = view.environment.of_cell(0);
        let (_, value) = known.find(|(known, _)| *known == name)?;
        (!value.starts_with("unavailable")).then(|| value.to_owned())
    };
    let memory = fact("memory_bytes").and_then(|bytes| bytes.parse::<f64>().ok());
    let parts = [
        fact("cpu_model"),
        fact("cpus_online").map(|cpus| format!("{cpus} CPUs online")),
        fact("smt").map(|smt| format!("SMT {smt}")),
        memory.map(|bytes| format!("{:.0} GiB RAM", bytes / BYTES_PER_GIB)),
        fact("data_filesystem").map(|filesystem| format!("data on {filesystem}")),
        fact("os"),
        fact("kernel").map(|kernel| format!("kernel {kernel}")),
        fact("hypervisor")
            .filter(|is_virtual| is_virtual == "yes")
            .map(|_| "a virtual machine".to_owned()),
    ];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    match known.is_empty() {
        true => format!("hardware, operating system and kernel: {NOT_RECORDED}"),
        false => format!("hardware: {}", known.join(", ")),
    }
}

/// What was run, for how long and why.
pub(crate) fn benchmark(view: &View, subjects: &[Subject]) -> Section {
    let mut sentences = Vec::new();
    let cells = subjects.iter().flat_map(|subject| &subject.releases);
    let loads: Vec<&str> = cells
        .map(|release| view.cells[release.cell].workload.as_str())
        .filter(|load| !load.is_empty())
        .unique()
        .collect();
    sentences.push(Sentence::plain(match loads[..] {
        [] => format!("clients, tables and rows: {NOT_RECORDED}"),
        _ => loads.join("; "),
    }));
    sentences.extend(
        subjects
            .first()
            .map(|subject| Sentence::plain(steps(view, subject))),
    );
    sentences.push(Sentence::plain(
        "the purpose is to search for regressions from new CPU overhead and mutex contention"
            .to_owned(),
    ));
    let mut parts = vec![Part::bullets("", sentences)];
    let native = view
        .campaigns
        .iter()
        .filter(|campaign| campaign.state != "imported");
    let descriptions = native.map(|campaign| &campaign.description);
    let known = descriptions.filter(|text| !text.is_empty()).unique();
    parts.extend(known.map(|text| Part::Text(Sentence::plain(text.clone()))));
    Section {
        title: "Benchmark".to_owned(),
        parts,
    }
}

/// How many tests in which groups, and how long one took.
fn steps(view: &View, subject: &Subject) -> String {
    let groups = subject.groups.iter();
    let groups = groups.map(|group| format!("{} {}", group.tests.len(), group.title));
    let groups: Vec<String> = groups.collect();
    let mut seconds: Vec<f64> = subject
        .tests
        .iter()
        .flat_map(|test| &view.steps[test.step].outcomes)
        .filter_map(|outcome| outcome.elapsed_s)
        .collect();
    seconds.sort_by(f64::total_cmp);
    let long = match (seconds.first(), seconds.last()) {
        (Some(least), Some(most)) if format!("{least:.0}") == format!("{most:.0}") => {
            format!("{least:.0} s each")
        }
        (Some(least), Some(most)) => format!("{least:.0} to {most:.0} s each"),
        _ => format!("seconds of each {NOT_RECORDED}"),
    };
    let groups = match groups.len() {
        1 => String::new(),
        _ => format!(": {}", list(&groups)),
    };
    format!(
        "{}{groups}; {long}",
        count(subject.tests.len(), subject.noun())
    )
}

/// How to run it again, and where its numbers are.
pub(crate) fn repeat(view: &View) -> Section {
    let sentence = |campaign: &crate::view::CampaignInfo| {
        let text = match campaign.state {
            "imported" => format!(
                "campaign {}: imported results of another tool; the command that made them is not \
                 recorded",
                campaign.id
            ),
            _ => format!(
                "campaign {}, {}: plan {}, seed {}: plimsoll run {} --seed {}",
                campaign.id,
                campaign.progress,
                campaign.plan,
                campaign.seed,
                campaign.plan,
                campaign.seed
            ),
        };
        Sentence::plain(text)
    };
    let mut sentences: Vec<Sentence> = view.campaigns.iter().map(sentence).collect();
    sentences.push(Sentence::plain(
        "the tables of this post are beside it as files, as Markdown, TSV and CSV".to_owned(),
    ));
    Section {
        title: "How to repeat it, and the data".to_owned(),
        parts: vec![Part::bullets("", sentences)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_told_without_its_warnings() {
        let known = [
            (COMPILER, "gcc 7.5.0"),
            (OPTIMISATION, "-Os"),
            (FLAGS, "-Wall -Wformat-security -fwrapv -g -Os -fwrapv"),
        ];
        let known = known.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(toolchain(&known.into()), "gcc 7.5.0, -Os, -fwrapv -g");
        assert_eq!(toolchain(&BTreeMap::new()), "");
    }
}
