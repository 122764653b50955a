//! From a workload and the steps that somebody wants confirmed to what runs once and what runs in
//! every trial.

use super::{Effect, Step, Workload};

/// A workload's steps, divided for a confirm campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// They make the data that every trial begins with. They run once per cell; their data is
    /// copied.
    pub before: Vec<Step>,
    /// They run in every trial: the wanted ones, and between them those that change the data for
    /// good.
    pub steps: Vec<Step>,
}

/// Divides a workload. There are two data states to begin with: after the indexes were made and
/// after the last step that writes only, its debt worked off; sysbench has one, after its load;
/// RocksDB's benchmark has them after its load and after `overwritesome`. The last one that all
/// wanted steps come after is taken; where one of them makes the data itself, trials begin with
/// nothing.
///
/// # Errors
/// When a wanted step is not one of the workload's, or none is wanted: a sentence for people.
pub fn divide(workload: &Workload, wanted: &[String]) -> Result<Division, String> {
    let all = workload.steps();
    if let Some(unknown) = wanted
        .iter()
        .find(|wanted| all.iter().all(|step| step.name != **wanted))
    {
        let known: Vec<&str> = all.iter().map(|step| step.name.as_str()).collect();
        let hint = crate::suggest::hint(unknown, known.iter().copied());
        return Err(format!(
            "there is no step {unknown}{hint}; the steps are {}",
            known.join(", ")
        ));
    }
    let is_wanted = |step: &Step| wanted.contains(&step.name);
    let Some(first) = all.iter().position(is_wanted) else {
        return Err("no step is requested; name one with --step, or use --all".to_owned());
    };
    let last = all.iter().rposition(is_wanted).unwrap_or(first);
    // A state to begin with: all indexes are there for the first time, or nothing is added any
    // more.
    let is_state = |step: &Step| {
        matches!(
            step.effect,
            Effect::MakesData {
                is_indexed: true,
                ..
            }
        )
    };
    let (indexed, written) = (
        all.iter().position(is_state),
        all.iter().rposition(is_state),
    );
    let state = [indexed, written]
        .into_iter()
        .flatten()
        .filter(|&state| state < first)
        .max();
    let begin = state.map_or(0, |state| state + 1);
    // Steps between them that only read leave nothing.
    let mut before: Vec<Step> = all[..begin]
        .iter()
        .filter(|step| step.makes_data())
        .cloned()
        .collect();
    if let Some(state) = before.last_mut() {
        // What it leaves to do must not be done while something is measured.
        state.drain_after = true;
    }
    let is_run = |step: &&Step| is_wanted(step) || step.makes_data();
    Ok(Division {
        before,
        steps: all[begin..=last].iter().filter(is_run).cloned().collect(),
    })
}

/// The steps that are results, which is all but those that make the data and those that only warm
/// up.
pub fn results(workload: &Workload) -> Vec<String> {
    let steps = workload
        .steps()
        .iter()
        .filter(|step| !step.makes_data() && step.is_reported);
    steps.map(|step| step.name.clone()).collect()
}

/// Those of these steps that can be cut into turns.
pub fn in_turns(workload: &Workload, wanted: &[String]) -> Vec<String> {
    let steps = workload
        .steps()
        .iter()
        .filter(|step| wanted.contains(&step.name) && step.can_take_turns());
    steps.map(|step| step.name.clone()).collect()
}

/// The steps of a start by slices in the order in which they run: tests of sysbench that write come
/// behind those that read. What updates leave to do is done before deletes and inserts, whichever of
/// the updates are in the start.
pub fn order_in_turns(mut steps: Vec<Step>) -> Vec<Step> {
    steps.sort_by_key(Step::is_late_in_turns);
    if let Some(last) = steps.iter().rposition(Step::is_early_write) {
        steps[last].drain_after = true;
    }
    steps
}

impl Division {
    /// Why these wanted steps cannot be cut into turns together, a sentence for people; none where
    /// they can.
    pub fn why_no_turns(&self, wanted: &[String]) -> Option<String> {
        let fixed = |step: &Step| {
            format!(
                "{} does a fixed number of things and cannot be cut into turns",
                step.name
            )
        };
        if let Some(step) = self
            .steps
            .iter()
            .find(|step| wanted.contains(&step.name) && !step.can_take_turns())
        {
            return Some(fixed(step));
        }
        let between = self.steps.iter().position(|step| !step.can_take_turns())?;
        let names = |steps: &[Step]| -> Vec<String> {
            steps
                .iter()
                .map(|step| step.name.clone())
                .filter(|name| wanted.contains(name))
                .collect()
        };
        let (before, after) = (names(&self.steps[..between]), names(&self.steps[between..]));
        Some(format!(
            "{} and {} begin with different data: {}, and lies between them; for slices confirm \
            them one by one, --step {} and then --step {}",
            before.join(", "),
            after.join(", "),
            fixed(&self.steps[between]),
            before.join(","),
            after.join(",")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Ends, Plan};

    fn workload(name: &str) -> Workload {
        let (build, size) = match name {
            "rocksdb" => ("rocksdb@8.9.1", ""),
            "insert-benchmark" => ("sqlite", "write_rows = 1000\n"),
            _ => ("sqlite", "tables = 1\n"),
        };
        let text = format!(
            "name = \"x\"\nworkload = \"{name}\"\nbuilds = [\"{build}\"]\nconfigs = \
            [\"wal_full\"]\n[sizes]\nrows = \"50K\"\nclients = 1\nduration = \"2s\"\n{size}"
        );
        Plan::parse("x.toml", &text)
            .unwrap()
            .cells
            .remove(0)
            .workload
    }

    const FILLSEQ: &str = "fillseq.wal_disabled.v400";
    const SOME: &str = "overwritesome.t1.s0";

    fn names(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| step.name.as_str()).collect()
    }

    /// With fewer updates than the plan has nothing was drained before deletes.
    #[test]
    fn in_turns_what_updates_leave_is_done_before_deletes() {
        let all = workload("sysbench-2025").steps().to_vec();
        let of = |wanted: &[&str]| -> Vec<(String, bool)> {
            let steps = all
                .iter()
                .filter(|step| wanted.contains(&step.name.as_str()));
            let steps = order_in_turns(steps.cloned().collect());
            let facts = steps.into_iter().map(|step| (step.name, step.drain_after));
            facts.collect()
        };
        let expected = |steps: &[(&str, bool)]| -> Vec<(String, bool)> {
            let own = steps
                .iter()
                .map(|(name, drains)| (name.to_string(), *drains));
            own.collect()
        };
        assert_eq!(
            of(&["update-index", "update-one", "delete", "hot-points"]),
            expected(&[
                ("hot-points", false),
                ("update-index", false),
                ("update-one", true),
                ("delete", false)
            ])
        );
        assert_eq!(
            of(&["hot-points", "delete"]),
            expected(&[("hot-points", false), ("delete", false)])
        );
    }

    #[test]
    fn trials_begin_with_the_last_state_before_the_first_wanted_step() {
        let loaded = ["l.i0", "l.x"];
        let written = ["l.i0", "l.x", "l.i1", "l.i2"];
        for (name, wanted, before, steps) in [
            (
                "insert-benchmark",
                &["qr100"][..],
                &written[..],
                &["qr100"][..],
            ),
            (
                "insert-benchmark",
                &["qp500", "qr100"],
                &written,
                &["qr100", "qp500"],
            ),
            ("insert-benchmark", &["l.i2"], &loaded, &["l.i1", "l.i2"]),
            (
                "insert-benchmark",
                &["l.i1", "qr100"],
                &loaded,
                &["l.i1", "l.i2", "qr100"],
            ),
            ("insert-benchmark", &["l.x"], &[], &["l.i0", "l.x"]),
            ("insert-benchmark", &["l.i0"], &[], &["l.i0"]),
            (
                "sysbench-2025",
                &["insert", "point-query"],
                &["prepare"],
                &["point-query", "insert"],
            ),
            (
                "sysbench-2025",
                &["prepare", "scan"],
                &[],
                &["prepare", "scan"],
            ),
            (
                "rocksdb",
                &["readrandom.t1"],
                &[FILLSEQ],
                &["readrandom.t1"],
            ),
            (
                "rocksdb",
                &["readwhilewriting.t1", "overwriteandwait.t1.s0"],
                &[FILLSEQ, SOME],
                &["readwhilewriting.t1", "overwriteandwait.t1.s0"],
            ),
            (
                "rocksdb",
                &["fwdrange.t1", "readwhilewriting.t1"],
                &[FILLSEQ],
                &["fwdrange.t1", SOME, "readwhilewriting.t1"],
            ),
            ("rocksdb", &[FILLSEQ], &[], &[FILLSEQ]),
        ] {
            let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
            let division = divide(&workload(name), &wanted).unwrap();
            assert_eq!(
                (names(&division.before), names(&division.steps)),
                (before.to_vec(), steps.to_vec()),
                "{wanted:?}"
            );
            assert!(
                division.before.last().is_none_or(|step| step.drain_after),
                "{wanted:?}"
            );
        }
    }

    #[test]
    fn steps_of_rocksdb_that_end_by_time_take_turns() {
        let rocksdb = workload("rocksdb");
        let turning: Vec<&str> = rocksdb
            .steps()
            .iter()
            .filter(|step| step.can_take_turns())
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(turning.len(), 7);
        assert!(!turning.contains(&FILLSEQ) && !turning.contains(&SOME));
        let mut step = rocksdb.steps()[1].clone();
        step.set_duration(5, Some(3));
        assert_eq!(
            step.ends,
            Ends::Time {
                ns: 5,
                warm_up_ns: 3
            }
        );
        assert_eq!(
            (step.duration_ns(), rocksdb.steps()[0].duration_ns()),
            (Some(5), None)
        );
        let mut fill = rocksdb.steps()[0].clone();
        fill.set_duration(5, Some(3));
        assert_eq!(fill, rocksdb.steps()[0]);
    }

    #[test]
    fn what_cannot_be_cut_into_turns_together_is_told() {
        let why = |name: &str, wanted: &[String]| {
            divide(&workload(name), wanted)
                .unwrap()
                .why_no_turns(wanted)
        };
        let texts =
            |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        assert_eq!(
            why("sysbench-2025", &texts(&["point-query", "insert"])),
            None
        );
        assert_eq!(
            why(
                "rocksdb",
                &texts(&["readwhilewriting.t1", "overwriteandwait.t1.s0"])
            ),
            None
        );
        let fixed = why("insert-benchmark", &texts(&["l.i1", "qr100"])).unwrap();
        assert_eq!(
            fixed,
            "l.i1 does a fixed number of things and cannot be cut into turns"
        );
        let all = results(&workload("rocksdb"));
        assert_eq!(all.len(), 7);
        let apart = why("rocksdb", &all).unwrap();
        let words = [
            "multireadrandom.t1 and revrangewhilewriting.t1, ",
            "begin with different data: overwritesome.t1.s0 does a fixed number of things and \
            cannot be cut into turns, and lies between them; for slices",
            "one by one, --step readrandom.t1,fwdrange.t1,multireadrandom.t1 and then --step \
            revrangewhilewriting.t1,",
        ];
        assert!(words.iter().all(|words| apart.contains(words)), "{apart}");
    }

    #[test]
    fn results_that_cannot_take_turns_are_told_apart() {
        let text = "name = \"x\"\nworkload = \"insert-benchmark-2017\"\nbuilds = \
                   [\"sqlite\"]\nconfigs = [\"wal_full\"]\n[sizes]\nclients = 1\n";
        let workload = Plan::parse("x.toml", text)
            .unwrap()
            .cells
            .remove(0)
            .workload;
        let all = results(&workload);
        assert_eq!(all, ["scan", "q1000", "q100"]);
        assert_eq!(in_turns(&workload, &all), ["q1000", "q100"]);
    }

    #[test]
    fn a_step_that_is_not_there_is_named() {
        let error = divide(&workload("sysbench-2025"), &["point-qery".to_owned()]).unwrap_err();
        assert!(
            error.contains("no step point-qery") && error.contains("point-query"),
            "{error}"
        );
        assert!(
            divide(&workload("sysbench-2025"), &[])
                .unwrap_err()
                .contains("--all")
        );
    }
}
