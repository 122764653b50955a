//! Builds, configuration, hardware and the benchmark: what the campaign recorded, and nothing else.

use std::collections::BTreeMap;

use itertools::Itertools;
use plimsoll_core::plan::TestName;
use plimsoll_core::toolchain::{COMPILER, FLAGS, OPTIMISATION, PACKAGER};
use plimsoll_core::units::BYTES_PER_GIB;

use super::imported_ramps;
use super::material::{Kind, Subject, Test};
use super::tables::file_name;
use super::text::{count, list};
use super::value::{Part, Section, Sentence};
use crate::view::{CampaignInfo, CellInfo, View};

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
    let cells: Vec<(String, usize)> = subjects
        .iter()
        .flat_map(|subject| {
            let releases = subject.releases.iter();
            releases.map(|of| (named(subjects, subject, &of.name), of.cell))
        })
        .collect();
    bullets.extend(toolchains(view, &cells).into_iter().map(Sentence::plain));
    bullets.extend(configs(view, &cells).into_iter().map(Sentence::plain));
    if !view.beyond_build.is_empty() {
        let labels: Vec<&str> = view.cells.iter().map(|cell| cell.label.as_str()).collect();
        let lines = view.beyond_build.iter().map(|of| of.line(&labels));
        bullets.push(Sentence::plain(format!(
            "differs beyond the build, and every ratio has it in it: {}",
            lines.collect::<Vec<_>>().join("; ")
        )));
    }
    bullets.extend(machines(view, &cells).into_iter().map(Sentence::plain));
    Section {
        title: "Builds, configuration and hardware".to_owned(),
        parts: vec![Part::bullets("", bullets)],
    }
}

/// A release's name, behind its product where there are several.
fn named(subjects: &[Subject], subject: &Subject, name: &str) -> String {
    match subjects.len() {
        1 => name.to_owned(),
        _ => format!("{} {name}", subject.title())
            .trim_start()
            .to_owned(),
    }
}

/// Who compiled the builds and how: a bullet for each way. Cells have their names with them.
fn toolchains(view: &View, cells: &[(String, usize)]) -> Vec<String> {
    let told: Vec<String> = cells
        .iter()
        .map(|(_, cell)| toolchain(&view.cells[*cell].toolchain))
        .collect();
    let ways = told.iter().unique().map(|way| {
        let of_way = cells.iter().zip(&told).filter(|(_, other)| *other == way);
        let names: Vec<String> = of_way.map(|((name, _), _)| name.clone()).collect();
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

/// More settings than this are counted, and are in a file.
const FEW_SETTINGS: usize = 8;

/// The configs by name, each with its settings where they are recorded: a bullet for each.
fn configs(view: &View, cells: &[(String, usize)]) -> Vec<String> {
    let all = cells.iter().map(|(_, cell)| &view.cells[*cell]);
    let named = all.filter(|info| !info.config.is_empty());
    let named: Vec<&CellInfo> = named.unique_by(|info| &info.config).collect();
    let names: Vec<String> = named.iter().map(|info| info.config.clone()).collect();
    if names.is_empty() {
        vec![format!("configuration: {NOT_RECORDED}")]
    } else if named.iter().all(|info| info.config_settings.is_empty()) {
        vec![format!(
            "configuration: {}; what is in it: {NOT_RECORDED}",
            names.join(", ")
        )]
    } else {
        named
            .iter()
            .map(|info| format!("configuration {}: {}", info.config, settings(info)))
            .collect()
    }
}

/// Where the settings of a config are.
fn config_file(info: &CellInfo) -> String {
    format!("{}.txt", file_name(&["config", &info.config]))
}

/// `fsync = off, shared_buffers = 1GB`, of many how many there are and where they are.
fn settings(info: &CellInfo) -> String {
    let all = &info.config_settings;
    match all.len() {
        0 => "the engine's own defaults".to_owned(),
        few if few <= FEW_SETTINGS => {
            let settings = all.iter().map(|(name, value)| format!("{name} = {value}"));
            settings.collect::<Vec<_>>().join(", ")
        }
        many => format!(
            "{many} settings, in {} next to this post",
            config_file(info)
        ),
    }
}

/// The machines: a bullet for each, with the cells that ran there if there are several.
fn machines(view: &View, cells: &[(String, usize)]) -> Vec<String> {
    let told: Vec<String> = cells
        .iter()
        .map(|(_, cell)| hardware(view, *cell))
        .collect();
    let distinct: Vec<&String> = told.iter().unique().collect();
    let one = |way: &&String| {
        let of_way = cells.iter().zip(&told).filter(|(_, other)| other == way);
        let names: Vec<String> = of_way.map(|((name, _), _)| name.clone()).collect();
        match distinct.len() {
            1 => (*way).clone(),
            _ => format!("{}: {way}", list(&names)),
        }
    };
    match distinct.is_empty() {
        true => vec![hardware(view, 0)],
        false => distinct.iter().map(one).collect(),
    }
}

/// CPU, memory, storage and kernel of a cell's machine, as its trials recorded them.
fn hardware(view: &View, cell: usize) -> String {
    let fact = |name: &str| {
        let mut known = view.environment.of_cell(cell);
        let (_, value) = known.find(|(known, _)| *known == name)?;
        (!value.starts_with("unavailable")).then(|| value.to_owned())
    };
    let memory = fact("memory_bytes").and_then(|bytes| bytes.parse::<f64>().ok());
    let parts = [
        fact("cpu_model"),
        fact("cpus_online").map(|cpus| format!("{cpus} CPUs online")),
        fact("smt").map(|control| smt(&control)),
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

/// Simultaneous multithreading in words, of what the kernel's `smt/control` says.
fn smt(control: &str) -> String {
    match control {
        "notsupported" => "no SMT".to_owned(),
        "notimplemented" => "SMT not known to the kernel".to_owned(),
        "forceoff" => "SMT off".to_owned(),
        state => format!("SMT {state}"),
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
    let first = subjects.first().filter(|subject| !subject.tests.is_empty());
    sentences.extend(first.map(|subject| Sentence::plain(steps(view, subject))));
    let ramps = imported_ramps::all(view);
    sentences.extend(ramps.iter().map(|(ramp, _)| {
        let users: Vec<String> = ramp.users.iter().map(u32::to_string).collect();
        Sentence::plain(format!("{} with {} users", ramp.test, list(&users)))
    }));
    let purposes = subjects.iter().filter_map(|subject| purpose(view, subject));
    sentences.extend(purposes.unique().map(Sentence::plain));
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

/// What a benchmark is for, where its author has said it. Of a user's own statements nobody has.
fn purpose(view: &View, subject: &Subject) -> Option<&'static str> {
    let is_of_sysbench = |test: &Test| {
        let step = &view.steps[test.step];
        step.test.is_some_and(|place| place.group.is_some())
            || TestName::parse(&test.name).is_some()
    };
    let is_ramp = |test: &str| TestName::parse(test).is_some();
    let mut ramps = view.summary.ramps.iter();
    match subject.kind {
        Kind::InsertBenchmark => Some(
            "the Insert Benchmark is about inserts into a table with secondary indexes, and about \
             queries while rows are inserted at a fixed rate",
        ),
        Kind::Statements
            if subject.tests.iter().all(is_of_sysbench)
                && ramps.all(|ramp| is_ramp(&ramp.test)) =>
        {
            Some(
                "the purpose of these tests is to search for regressions from new CPU overhead \
                 and mutex contention",
            )
        }
        Kind::Statements | Kind::Rocksdb => None,
    }
}

/// Steps below this many seconds have them with a decimal.
const SHORT_S: f64 = 10.0;

/// How many tests in which groups, and how long one took.
fn steps(view: &View, subject: &Subject) -> String {
    let groups = subject.groups.iter();
    let groups = groups.map(|group| format!("{} ({})", group.title, group.tests.len()));
    let groups: Vec<String> = groups.collect();
    let mut seconds: Vec<f64> = subject
        .tests
        .iter()
        .flat_map(|test| &view.steps[test.step].outcomes)
        .filter_map(|outcome| outcome.elapsed_s)
        .collect();
    seconds.sort_by(f64::total_cmp);
    let long = match (seconds.first(), seconds.last()) {
        (Some(least), Some(most)) if format!("{least:.1}") == format!("{most:.1}") => {
            format!("{least:.1} s each").replace(".0 s", " s")
        }
        (Some(least), Some(most)) if *most < SHORT_S => {
            format!("{least:.1} to {most:.1} s each")
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

/// The file of the plan of a campaign, by its place in the view.
fn plan_file(place: usize) -> String {
    match place {
        0 => "plan.toml".to_owned(),
        later => format!("plan-{}.toml", later + 1),
    }
}

/// The plans as they were written, for a user may have a file of their own, and what is in configs
/// of many settings: name and text.
pub(crate) fn files(view: &View) -> Vec<(String, String)> {
    let large = view.cells.iter();
    let large = large.filter(|info| info.config_settings.len() > FEW_SETTINGS);
    let configs = large.unique_by(|info| &info.config).map(|info| {
        let settings = info.config_settings.iter();
        let lines = settings.map(|(name, value)| format!("{name} = {value}\n"));
        (config_file(info), lines.collect())
    });
    let native = view
        .campaigns
        .iter()
        .enumerate()
        .filter(|(_, campaign)| campaign.state != "imported" && !campaign.plan_text.is_empty());
    native
        .map(|(place, campaign)| (plan_file(place), campaign.plan_text.clone()))
        .chain(configs)
        .collect()
}

/// How to run it again, and where its numbers are.
pub(crate) fn repeat(view: &View) -> Section {
    let sentence = |(place, campaign): (usize, &CampaignInfo)| {
        let text = match campaign.state {
            "imported" => format!(
                "campaign {}: imported results of another tool; the command that made them is not \
                 recorded",
                campaign.id
            ),
            _ => {
                let (id, progress, plan, seed) = (
                    &campaign.id,
                    &campaign.progress,
                    &campaign.plan,
                    campaign.seed,
                );
                let file = plan_file(place);
                let command = match campaign.plan_text.is_empty() {
                    true => String::new(),
                    false => {
                        format!(
                            "; the plan is next to this post: plimsoll run {file} --seed {seed}"
                        )
                    }
                };
                format!("campaign {id}, {progress}: plan {plan}, seed {seed}{command}")
            }
        };
        Sentence::plain(text)
    };
    let mut sentences: Vec<Sentence> = view.campaigns.iter().enumerate().map(sentence).collect();
    sentences.push(Sentence::plain(
        "the tables of this post are next to it as files, as Markdown, TSV and CSV".to_owned(),
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
    fn smt_is_told_in_words() {
        for (control, words) in [
            ("on", "SMT on"),
            ("off", "SMT off"),
            ("forceoff", "SMT off"),
            ("notsupported", "no SMT"),
        ] {
            assert_eq!(smt(control), words);
        }
    }

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
