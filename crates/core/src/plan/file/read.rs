//! A plan of a workload file: steps of its mixes and events, sizes checked, every error with its
//! place.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::{FileWorkload, steps};
use crate::name::check_label;
use crate::plan::document::{Document, Wait};
use crate::plan::keys::{DrainKeys, MOST_CLIENTS};
use crate::plan::sizes::{Benchmark, Own, value};
use crate::plan::{Effect, Ends, LoadMode, PlanError, Rate, Step, WaitRule, WriteArrival};
use crate::source::{Source, span};
use crate::suggest;
use crate::units::SECOND_NS;
use crate::workload_file::WorkloadFile;
use crate::written::{Duration, Share};

/// The step that makes the tables.
const LOAD: &str = "load";
/// What a step lasts where nothing says otherwise.
const DURATION_NS: u64 = 60 * SECOND_NS;

/// `[sizes]` of a workload file, which has its tables and rows itself.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::plan) struct Sizes {
    clients: Option<Spanned<u32>>,
    duration: Option<Spanned<Duration>>,
    warm_up: Option<Spanned<Duration>>,
    arrival: Option<Spanned<WriteArrival>>,
    rate: Option<Spanned<u64>>,
    ramp: Option<Spanned<Vec<u32>>>,
    prepared: Option<Spanned<bool>>,
    load: Option<Spanned<LoadMode>>,
}

/// `[step.NAME]` of a workload file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::plan) struct Change {
    clients: Option<Spanned<u32>>,
    duration: Option<Spanned<Duration>>,
    wait: Option<Spanned<Wait>>,
    drain: Option<Spanned<bool>>,
    rate: Option<Spanned<u64>>,
    warm_up: Option<Spanned<Duration>>,
    max_failed: Option<Spanned<Share>>,
    mix: Option<Spanned<String>>,
    event: Option<Spanned<String>>,
}

impl Benchmark for FileWorkload {
    type Sizes = Sizes;
    type Change = Change;
    const NAME: &'static str = "a plan of a workload file";
    const STEP: &'static str = "a step of a workload file";
}

/// A step's name, and where the plan has it.
type NamedStep = (String, Option<Range<usize>>);

/// A workload file that was read.
pub(in crate::plan) struct ReadFile {
    path: String,
    text: String,
    file: WorkloadFile,
}

/// What the plan says about every step of events.
struct Common {
    clients: u32,
    ns: u64,
    warm_up_ns: u64,
    is_poisson: bool,
    arrival: Option<Rate>,
    max_failed: Option<f64>,
}

impl Source<'_> {
    pub(in crate::plan) fn read_workload(
        &self,
        document: &Document,
        path: &str,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<ReadFile, PlanError> {
        let place = Some(document.workload.span());
        let text = read(path).map_err(|problem| {
            self.error(place, format!("the workload cannot be read: {problem}"))
        })?;
        let file = WorkloadFile::parse(path, &text)?;
        Ok(ReadFile {
            path: path.to_owned(),
            text,
            file,
        })
    }

    pub(in crate::plan) fn file_workload(
        &self,
        document: &Document,
        own: &Own<FileWorkload>,
        sizes: &Sizes,
        read: &ReadFile,
    ) -> Result<FileWorkload, PlanError> {
        self.refuse_list(
            &document.tests,
            "a workload file has no \"tests\": name its steps in \"steps\"",
        )?;
        let file = &read.file;
        let common = self.common_of_file(document, sizes)?;
        let (tables, rows) = (file.tables.len() as u32, file.rows());
        let load = value(&sizes.load).unwrap_or(LoadMode::Fast);
        let mut steps = vec![Step {
            // What the load leaves to flush and merge is not work of the first measured step.
            drain_after: true,
            ..steps::fill(LOAD, tables, rows, load)
        }];
        let ramp = self.ramp(sizes.ramp.as_ref(), sizes.clients.as_ref())?;
        for (name, place) in self.step_names(document, file)? {
            let change = own
                .step
                .iter()
                .find(|(key, _)| key.get_ref() == &name)
                .map(|(_, change)| change);
            let events = self.events_of(file, &name, place, change)?;
            let only_reads = events.iter().all(|(event, _)| file.only_reads(event));
            let effect = match only_reads {
                true => Effect::Reads,
                false => Effect::Writes,
            };
            let step = steps::mix(&name, events, effect, Ends::Rows);
            let step = self.mix_step(step, change, &common)?;
            let Some(ramp) = ramp else {
                steps.push(step);
                continue;
            };
            if let Some(clients) = change.and_then(|change| change.clients.as_ref()) {
                let message = format!(
                    "{name} has the clients that the ramp gives it: leave this out, or leave out \
                    \"ramp\""
                );
                return Err(self.error(Some(clients.span()), message));
            }
            steps.extend(ramp.iter().map(|&clients| step.at_clients(clients)));
        }
        self.change_load(own, &mut steps)?;
        Ok(FileWorkload {
            workload_file: read.path.clone(),
            title: file.name.clone(),
            text: read.text.clone(),
            clients: common.clients,
            tables,
            rows,
            prepared: value(&sizes.prepared).unwrap_or(true),
            wait: document
                .wait
                .as_ref()
                .map_or(WaitRule::Classic, |wait| wait.get_ref().rule()),
            steps,
        })
    }

    fn common_of_file(&self, document: &Document, sizes: &Sizes) -> Result<Common, PlanError> {
        let is_poisson = self.is_poisson(sizes.arrival.as_ref(), "a workload file")?;
        Ok(Common {
            clients: self.ranged(sizes.clients.as_ref(), 1, MOST_CLIENTS, "clients")?,
            ns: self.test_duration(sizes.duration.as_ref(), DURATION_NS)?,
            warm_up_ns: value(&sizes.warm_up).map_or(0, |warm_up| warm_up.0),
            is_poisson,
            arrival: self.arrival(sizes.rate.as_ref(), is_poisson)?,
            max_failed: value(&document.max_failed).map(|share| share.0),
        })
    }

    fn arrival(
        &self,
        rate: Option<&Spanned<u64>>,
        is_poisson: bool,
    ) -> Result<Option<Rate>, PlanError> {
        let rate = rate.map(|rate| self.rate(rate)).transpose()?;
        Ok(rate.map(|per_s| Rate { per_s, is_poisson }))
    }

    /// The step with what the plan says about all of them, and about this one.
    fn mix_step(
        &self,
        step: Step,
        change: Option<&Change>,
        common: &Common,
    ) -> Result<Step, PlanError> {
        let mut step = Step {
            clients: common.clients,
            arrival: common.arrival,
            max_failed: common.max_failed,
            ends: Ends::Time {
                ns: common.ns,
                warm_up_ns: common.warm_up_ns,
            },
            ..step
        };
        let Some(change) = change else {
            return Ok(step);
        };
        if let Some(rate) = self.arrival(change.rate.as_ref(), common.is_poisson)? {
            step.arrival = Some(rate);
        }
        let ns = self.test_duration(change.duration.as_ref(), common.ns)?;
        step.set_duration(ns, value(&change.warm_up).map(|warm_up| warm_up.0));
        if change.clients.is_some() {
            let what = format!("clients of {}", step.name);
            step.clients = self.ranged(change.clients.as_ref(), 1, MOST_CLIENTS, &what)?;
        }
        if let Some(share) = &change.max_failed {
            step.max_failed = Some(share.get_ref().0);
        }
        self.override_drain(&mut step, change.drain_keys())?;
        Ok(step)
    }

    /// The names of the steps after the load: the plan's, else the file's mixes, else its events.
    fn step_names(
        &self,
        document: &Document,
        file: &WorkloadFile,
    ) -> Result<Vec<NamedStep>, PlanError> {
        let Some(wanted) = &document.steps else {
            let mixes = file.mixes.iter().map(|mix| mix.name.clone());
            let names: Vec<String> = if file.mixes.is_empty() {
                file.events.iter().map(|event| event.name.clone()).collect()
            } else {
                mixes.collect()
            };
            return Ok(names.into_iter().map(|name| (name, None)).collect());
        };
        let mut names: Vec<NamedStep> = Vec::new();
        for name in wanted {
            check_label(name.get_ref(), "step")
                .map_err(|error| self.error(Some(name.span()), error.to_string()))?;
            let problem = match name.get_ref().as_str() {
                LOAD => "the load comes first by itself: leave it out",
                known if names.iter().any(|(other, _)| other == known) => "the step is named twice",
                _ => {
                    names.push((name.get_ref().clone(), Some(name.span())));
                    continue;
                }
            };
            return Err(self.error(
                Some(name.span()),
                format!("step \"{}\": {problem}", name.get_ref()),
            ));
        }
        if names.is_empty() {
            return Err(self.error(
                Some(document.name.span()),
                "\"steps\" is empty: name at least one, or leave it out",
            ));
        }
        Ok(names)
    }

    /// What a step does: the mix or event that its table names, else the one that is called as it
    /// is.
    fn events_of(
        &self,
        file: &WorkloadFile,
        name: &str,
        place: Option<Range<usize>>,
        change: Option<&Change>,
    ) -> Result<Vec<(String, u32)>, PlanError> {
        let (wanted, wants_mix, wants_event, place) = match change.map(|c| (&c.mix, &c.event)) {
            Some((Some(_), Some(event))) => {
                let message =
                    format!("step \"{name}\" has \"mix\" and \"event\": keep one of them");
                return Err(self.error(Some(event.span()), message));
            }
            Some((Some(mix), None)) => (mix.get_ref().as_str(), true, false, Some(mix.span())),
            Some((None, Some(event))) => {
                (event.get_ref().as_str(), false, true, Some(event.span()))
            }
            // A step that says nothing does what it is called.
            _ => (name, true, true, place),
        };
        if let Some(mix) = file
            .mixes
            .iter()
            .find(|mix| wants_mix && mix.name == wanted)
        {
            return Ok(mix
                .events
                .iter()
                .map(|(event, weight)| (file.events[*event].name.clone(), *weight))
                .collect());
        }
        if file
            .events
            .iter()
            .any(|event| wants_event && event.name == wanted)
        {
            return Ok(vec![(wanted.to_owned(), 1)]);
        }
        let mixes = file.mixes.iter().map(|mix| mix.name.as_str());
        let events = file.events.iter().map(|event| event.name.as_str());
        let known: Vec<&str> = match (wants_mix, wants_event) {
            (true, false) => mixes.collect(),
            (false, _) => events.collect(),
            (true, true) => mixes.chain(events).collect(),
        };
        let (what, way_out) = match (wants_mix, wants_event) {
            (true, false) => ("mix", String::new()),
            (false, _) => ("event", String::new()),
            (true, true) => (
                "mix or event",
                format!(", or say what it does: [step.{name}] mix = \"...\""),
            ),
        };
        let hint = suggest::hint(wanted, known.iter().copied());
        let message = format!(
            "the workload has no {what} \"{wanted}\"{hint}; it has {}{way_out}",
            known.join(", ")
        );
        Err(self.error(place, message))
    }

    /// What the plan says about the load, and names of steps that it does not run.
    fn change_load(&self, own: &Own<FileWorkload>, steps: &mut [Step]) -> Result<(), PlanError> {
        for (name, change) in &own.step {
            if name.get_ref() == LOAD {
                let keys = [
                    ("duration", span(&change.duration)),
                    ("rate", span(&change.rate)),
                    ("warm_up", span(&change.warm_up)),
                    ("max_failed", span(&change.max_failed)),
                    ("mix", span(&change.mix)),
                    ("event", span(&change.event)),
                ];
                self.refuse(&keys, "the load, which ends when all rows are there,")?;
                if change.clients.is_some() {
                    steps[0].clients =
                        self.ranged(change.clients.as_ref(), 1, MOST_CLIENTS, "clients of load")?;
                }
                self.override_drain(&mut steps[0], change.drain_keys())?;
                continue;
            }
            let base = |step: &Step| step.name.split('@').next().map(str::to_owned);
            if !steps
                .iter()
                .any(|step| base(step).as_ref() == Some(name.get_ref()))
            {
                return Err(self.no_step(name, steps.iter().map(|step| step.name.as_str())));
            }
        }
        Ok(())
    }
}

impl Change {
    fn drain_keys(&self) -> DrainKeys<'_> {
        DrainKeys {
            wait: self.wait.as_ref(),
            drain: self.drain.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{FileWork, Plan, Work, Workload};

    const FILE: &str = r#"name = "shop"
[table.item]
rows = 100
columns = [{ name = "id", type = "integer" }]
[statement.read]
sql = "SELECT id FROM item WHERE id = :id"
parameters.id = { id = "item" }
[event.one]
statements = ["read"]
[event.ten]
statements = [{ statement = "read", times = 10 }]
[mix.both]
one = 9
ten = 1
"#;
    const PLAN: &str = "name = \"t\"\nworkload = { file = \"shop.toml\" }\nbuilds = \
                       [\"sqlite\"]\nconfigs = [\"wal_off\"]\n";

    fn parse(text: &str) -> Result<FileWorkload, PlanError> {
        parse_of(FILE, text)
    }

    fn parse_of(file: &str, text: &str) -> Result<FileWorkload, PlanError> {
        let read = |path: &str| {
            if path == "shop.toml" {
                Ok(file.to_owned())
            } else {
                Err(format!("there is no {path}"))
            }
        };
        let plan = Plan::parse_with("t.toml", text, &read)?;
        let Workload::File(workload) = plan.cells[0].workload.clone() else {
            panic!()
        };
        Ok(workload)
    }

    fn mix<'a>(workload: &'a FileWorkload, name: &str) -> &'a Step {
        let step = workload.steps.iter().find(|step| step.name == name);
        step.unwrap()
    }

    /// All steps of a workload file counted as steps that write: queries had turns of 50 ms, and
    /// were to be known within 4 %.
    #[test]
    fn steps_that_only_read_are_steps_that_read() {
        let file = format!(
            "{FILE}[statement.lock]\nsql = \"SELECT id FROM item WHERE id = :id\"\nmysql = \
            \"SELECT id FROM item WHERE id = :id FOR UPDATE\"\nparameters.id = {{ id = \"item\" \
            }}\n[statement.write]\nsql = \"UPDATE item SET id = id\"\n[event.lock]\nstatements = \
            [\"read\", \"lock\"]\n[event.write]\nstatements = [\"write\"]\n[mix.some]\none = \
            99\nwrite = 1\n"
        );
        let steps = "steps = [\"one\", \"both\", \"lock\", \"write\", \"some\"]\n";
        let workload = parse_of(&file, &format!("{PLAN}{steps}")).unwrap();
        let effects = workload.steps[1..].iter().map(|step| step.effect);
        assert_eq!(
            effects.collect::<Vec<_>>(),
            [
                Effect::Reads,
                Effect::Reads,
                Effect::Writes,
                Effect::Writes,
                Effect::Writes
            ]
        );
    }

    #[test]
    fn steps_are_the_mixes_or_what_the_plan_says() {
        let workload = parse(PLAN).unwrap();
        assert_eq!(
            workload
                .steps
                .iter()
                .map(|step| step.name.as_str())
                .collect::<Vec<_>>(),
            ["load", "both"]
        );
        assert_eq!(
            mix(&workload, "both").work,
            Work::File(FileWork::Mix {
                events: vec![("one".to_owned(), 9), ("ten".to_owned(), 1)]
            })
        );
        assert_eq!(
            (
                workload.title.as_str(),
                workload.rows,
                workload.text.as_str()
            ),
            ("shop", 100, FILE)
        );

        let text = format!(
            "{PLAN}steps = [\"warm\", \"one\"]\nmax_failed = \"1%\"\n[sizes]\nclients = \
            3\nduration = \"5s\"\n\
             [step.warm]\nmix = \"both\"\nclients = 2\nwarm_up = \"1s\"\nrate = 7\nmax_failed = \
            \"0%\"\n[step.load]\nclients = 2\n"
        );
        let workload = parse(&text).unwrap();
        let warm = mix(&workload, "warm");
        assert_eq!((warm.clients, warm.max_failed), (2, Some(0.0)));
        assert_eq!(
            (warm.ends, warm.arrival),
            (
                Ends::Time {
                    ns: 5 * SECOND_NS,
                    warm_up_ns: SECOND_NS
                },
                Some(Rate {
                    per_s: 7,
                    is_poisson: false
                })
            )
        );
        assert_eq!(
            (
                mix(&workload, "one").clients,
                mix(&workload, "one").max_failed
            ),
            (3, Some(0.01))
        );
        assert_eq!(workload.steps[0].clients, 2);

        let workload = parse(&format!("{PLAN}[sizes]\nramp = [1, 4]\n")).unwrap();
        assert_eq!(
            (
                mix(&workload, "both@1").clients,
                mix(&workload, "both@4").clients
            ),
            (1, 4)
        );
    }

    #[test]
    fn bad_plans_say_where_and_what_to_do() {
        for (text, wanted) in [
            (
                PLAN.replace("shop.toml", "shop.tml"),
                "t.toml:2:12: the workload cannot be read: there is no shop.tml",
            ),
            (
                PLAN.replace("{ file = \"shop.toml\" }", "\"shop.toml\""),
                "a file is named as workload = { file = \"shop.toml\" }",
            ),
            (
                PLAN.replace("file =", "fiel ="),
                "unknown key \"fiel\" (did you mean \"file\"?)",
            ),
            (
                format!("{PLAN}steps = [\"bth\"]\n"),
                "t.toml:5:10: the workload has no mix or event \"bth\" (did you mean \"both\"?)",
            ),
            (
                format!("{PLAN}steps = [\"one\", \"one\"]\n"),
                "step \"one\": the step is named twice",
            ),
            (
                format!("{PLAN}steps = [\"load\"]\n"),
                "the load comes first by itself",
            ),
            (
                format!("{PLAN}[step.both]\nevent = \"on\"\n"),
                "t.toml:6:9: the workload has no event \"on\" (did you mean \"one\"?)",
            ),
            (
                format!("{PLAN}[step.bth]\nclients = 1\n"),
                "this plan runs no step \"bth\" (did you mean \"both\"?)",
            ),
            (
                format!("{PLAN}[step.load]\nrate = 1\n"),
                "the load, which ends when all rows are there, has no \"rate\"",
            ),
            (
                format!("{PLAN}[sizes]\nrows = 5\n"),
                "t.toml:6:1: a plan of a workload file has no \"rows\"",
            ),
            (
                format!("{PLAN}[sizes]\nramp = [1, 2]\nclients = 3\n"),
                "t.toml:7:11: clients and ramp (line 6) exclude each other",
            ),
            (
                format!("{PLAN}[sizes]\nramp = [1, 2]\n[step.both]\nclients = 3\n"),
                "t.toml:8:11: both has the clients that the ramp gives it",
            ),
            (
                format!("{PLAN}max_failed = \"1\"\n"),
                "\"1\" is not a share: write a percentage below 100",
            ),
        ] {
            let found = parse(&text).unwrap_err().to_string();
            assert!(
                found.contains(wanted),
                "{text}: wanted {wanted:?}\nfound  {found:?}"
            );
        }
    }
}
