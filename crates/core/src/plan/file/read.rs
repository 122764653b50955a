//! A plan of a workload file: steps of its mixes and events, sizes checked, every error with its
//! place.

use std::ops::Range;

use toml::Spanned;

use super::steps;
use crate::name::check_label;
use crate::plan::document::{Document, Sizes, StepOverride};
use crate::plan::read::{MOST_CLIENTS, Source, span};
use crate::plan::{Ends, FileWorkload, LoadMode, PlanError, Rate, Step, WaitRule};
use crate::suggest;
use crate::units::SECOND_NS;
use crate::workload_file::WorkloadFile;

/// The step that makes the tables.
const LOAD: &str = "load";
/// What a step lasts where nothing says otherwise.
const DURATION_NS: u64 = 60 * SECOND_NS;

/// A step's name, and where the plan has it.
type NamedStep = (String, Option<Range<usize>>);

/// A workload file that was read.
pub(in crate::plan) struct ReadFile {
    path: String,
    text: String,
    file: WorkloadFile,
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
        read: &ReadFile,
        sizes: &Sizes,
    ) -> Result<FileWorkload, PlanError> {
        let keys = [
            ("tables", span(&sizes.tables)),
            ("rows", span(&sizes.rows)),
            ("write_rows", span(&sizes.write_rows)),
            ("end", span(&sizes.end)),
            ("deletes", span(&sizes.deletes)),
            ("partitions", span(&sizes.partitions)),
            ("write_duration", span(&sizes.write_duration)),
            ("distribution", span(&sizes.distribution)),
            ("zipfian_exponent", span(&sizes.zipfian_exponent)),
            ("pareto_h", span(&sizes.pareto_h)),
        ];
        self.refuse(&keys, "a plan of a workload file")?;
        self.refuse_rocksdb_sizes(sizes, "a plan of a workload file")?;
        if let Some(first) = document.tests.as_ref().and_then(|tests| tests.first()) {
            return Err(self.error(
                Some(first.span()),
                "a workload file has no \"tests\": name its steps in \"steps\"",
            ));
        }
        let file = &read.file;
        let clients = self.ranged(sizes.clients.as_ref(), 1, MOST_CLIENTS, "clients")?;
        let is_poisson = self.is_poisson(sizes.arrival.as_ref(), "a workload file")?;
        let rate = |rate: Option<&Spanned<u64>>| -> Result<Option<Rate>, PlanError> {
            rate.map(|rate| {
                Ok(Rate {
                    per_s: self.rate(rate)?,
                    is_poisson,
                })
            })
            .transpose()
        };
        let arrival = rate(sizes.rate.as_ref())?;
        let ns = self.test_duration(sizes.duration.as_ref(), DURATION_NS)?;
        let warm_up_ns = sizes
            .warm_up
            .as_ref()
            .map_or(0, |warm_up| warm_up.get_ref().0);
        let load = sizes
            .load
            .as_ref()
            .map_or(LoadMode::Fast, |load| *load.get_ref());
        let mut steps = vec![Step {
            drain_after: true,
            ..steps::fill(LOAD, file.tables.len() as u32, file.rows(), load)
        }];
        let ramp = self.ramp(sizes)?;
        for (name, place) in self.step_names(document, file)? {
            let change = document
                .step
                .iter()
                .find(|(key, _)| key.get_ref() == &name)
                .map(|(_, change)| change);
            let events = self.events_of(file, &name, place, change)?;
            let mut step = Step {
                clients,
                arrival,
                ..steps::mix(&name, events, Ends::Time { ns, warm_up_ns })
            };
            if let Some(change) = change {
                if let Some(wanted) = rate(change.rate.as_ref())? {
                    step.arrival = Some(wanted);
                }
                let warm_up_ns = change.warm_up.as_ref().map(|warm_up| warm_up.get_ref().0);
                step.set_duration(
                    self.test_duration(change.duration.as_ref(), ns)?,
                    warm_up_ns,
                );
                if change.clients.is_some() {
                    step.clients = self.ranged(
                        change.clients.as_ref(),
                        1,
                        MOST_CLIENTS,
                        &format!("clients of {name}"),
                    )?;
                }
                self.override_drain(&mut step, change)?;
            }
            let share = change
                .and_then(|change| change.max_failed.as_ref())
                .or(document.max_failed.as_ref());
            step.max_failed = share.map(|share| share.get_ref().0);
            match ramp {
                None => steps.push(step),
                Some(ramp) => {
                    if let Some(clients) = change.and_then(|change| change.clients.as_ref()) {
                        let message = format!(
                            "{name} has the clients that the ramp gives it: leave this out, or \
                            leave out \"ramp\""
                        );
                        return Err(self.error(Some(clients.span()), message));
                    }
                    steps.extend(ramp.iter().map(|&clients| step.at_clients(clients)));
                }
            }
        }
        self.override_load(document, &mut steps)?;
        let wait = document
            .wait
            .as_ref()
            .map_or(WaitRule::Classic, |wait| wait.get_ref().rule());
        Ok(FileWorkload {
            workload_file: read.path.clone(),
            title: file.name.clone(),
            text: read.text.clone(),
            clients,
            tables: file.tables.len() as u32,
            rows: file.rows(),
            prepared: sizes
                .prepared
                .as_ref()
                .is_none_or(|prepared| *prepared.get_ref()),
            wait,
            steps,
        })
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
        change: Option<&StepOverride>,
    ) -> Result<Vec<(String, u32)>, PlanError> {
        let (wanted, wants_mix, wants_event, place) =
            match change.map(|change| (&change.mix, &change.event)) {
                Some((Some(_), Some(event))) => {
                    return Err(self.error(
                        Some(event.span()),
                        format!("step \"{name}\" has \"mix\" and \"event\": keep one of them"),
                    ));
                }
                Some((Some(mix), None)) => (mix.get_ref().as_str(), true, false, Some(mix.span())),
                Some((None, Some(event))) => {
                    (event.get_ref().as_str(), false, true, Some(event.span()))
                }
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
        let mixes = file
            .mixes
            .iter()
            .map(|mix| mix.name.as_str())
            .filter(|_| wants_mix);
        let events = file
            .events
            .iter()
            .map(|event| event.name.as_str())
            .filter(|_| wants_event);
        let known: Vec<&str> = mixes.chain(events).collect();
        let what = if wants_mix && wants_event {
            "mix or event"
        } else if wants_mix {
            "mix"
        } else {
            "event"
        };
        let hint = suggest::hint(wanted, known.iter().copied());
        let way_out = if wants_mix && wants_event {
            format!(", or say what it does: [step.{name}] mix = \"...\"")
        } else {
            String::new()
        };
        Err(self.error(
            place,
            format!(
                "the workload has no {what} \"{wanted}\"{hint}; it has {}{way_out}",
                known.join(", ")
            ),
        ))
    }

    /// What the plan says about the load, and names of steps that it does not run.
    fn override_load(&self, document: &Document, steps: &mut [Step]) -> Result<(), PlanError> {
        for (name, change) in &document.step {
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
                self.override_drain(&mut steps[0], change)?;
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
        let read = |path: &str| {
            if path == "shop.toml" {
                Ok(FILE.to_owned())
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
                "t.toml:6:8: a plan of a workload file has no \"rows\"",
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
