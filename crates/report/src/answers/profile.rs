//! The profile of a server: where its CPU went, drawn.

use std::fmt::Write as _;

use plimsoll_analysis::{FunctionChange, Profiled, nameless_percent};
use plimsoll_core::readings::Reading;
use plimsoll_store::ProfileAbout;
use serde_json::{Value, json};

use super::Draw;

/// Names longer than this are cut in text.
const NAME_WIDTH: usize = 52;

impl Draw for Profiled {
    fn to_text(&self) -> String {
        if let Some(reason) = &self.reason {
            return format!("\nNo profile of {}\n", reason);
        }
        let told = self.doubt.clone().or_else(|| self.where_it_went());
        let mut text = told.map_or_else(String::new, |told| format!("\n{told}\n"));
        let _ = writeln!(
            text,
            "\n{:<NAME_WIDTH$} {:>9} {:>9} {:>9}  95 %",
            "server CPU by function, us/op", "base", "cell", "change"
        );
        for function in &self.functions {
            let name: String = function.name.chars().take(NAME_WIDTH).collect();
            let _ = writeln!(
                text,
                "{name:<NAME_WIDTH$} {:>9.3} {:>9.3} {:>+9.3}  {}",
                function.base_us,
                function.cell_us,
                function.difference_us(),
                interval(function)
            );
        }
        let counters: Vec<String> = self
            .about
            .counters
            .iter()
            .filter_map(|(name, cell)| {
                let (base, cell) = (self.base.counters.get(name)?.value()?, cell.value()?);
                Some(format!(
                    "{}: {base:.2} to {cell:.2}",
                    name.replace('_', " ")
                ))
            })
            .collect();
        if counters.is_empty() {
            let reason = self
                .about
                .counters
                .values()
                .find_map(|reading| match reading {
                    Reading::Unavailable(reason) => Some(reason.as_str()),
                    Reading::Ok(_) => None,
                });
            let _ = writeln!(
                text,
                "Counters of the processor: unavailable: {}",
                reason.unwrap_or("none were read")
            );
        } else {
            let _ = writeln!(text, "{}", counters.join(", "));
        }
        let _ = writeln!(text, "{}", self.trust());
        text
    }

    fn to_json(&self) -> Value {
        let about = |about: &ProfileAbout| {
            json!({
                "cell": about.cell,
                "event": about.event,
                "samples": about.samples,
                "nameless_percent": nameless_percent(about),
                "server_cpu_us_per_op": about.server_cpu_us_per_op,
                "counters": about.counters,
            })
        };
        let functions = self.functions.iter().map(|function| {
            json!({
                "function": function.name,
                "base_us_per_op": function.base_us,
                "cell_us_per_op": function.cell_us,
                "difference_us_per_op": function.difference_us(),
                "interval": function.shown.map(|shown| [shown.interval.0, shown.interval.1]),
                "is_different": function.shown.map(|shown| shown.is_different),
            })
        });
        json!({
            "unavailable": self.reason,
            "doubt": self.doubt,
            "base": about(&self.base),
            "cell": about(&self.about),
            "functions": functions.collect::<Vec<_>>(),
        })
    }
}

/// `[+0.12, +0.31]`, `[-0.05, +0.31] not shown`; `-` of one pass.
pub(crate) fn interval(function: &FunctionChange) -> String {
    function.shown.map_or_else(
        || "-".to_owned(),
        |shown| {
            let (low, high) = shown.interval;
            let doubt = if shown.is_different { "" } else { " not shown" };
            format!("[{low:+.3}, {high:+.3}]{doubt}")
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_analysis::Change;
    use plimsoll_analysis::profiles::pair;
    use plimsoll_store::Profile;

    use super::*;

    fn profile(cell: &str, us: Option<f64>, stacks: &[(&str, u64)]) -> Profile {
        let samples = stacks.iter().map(|(_, samples)| samples).sum();
        let counters =
            BTreeMap::from([("ipc".to_owned(), Reading::Unavailable("no PMU".to_owned()))]);
        let about = ProfileAbout {
            cell: cell.to_owned(),
            step: "qr100".to_owned(),
            event: "cpu-clock".to_owned(),
            samples,
            nameless_samples: samples / 4,
            server_cpu_us_per_op: us,
            counters,
            ..ProfileAbout::default()
        };
        Profile {
            about,
            pass: 1,
            stacks: stacks
                .iter()
                .map(|(stack, samples)| ((*stack).to_owned(), *samples))
                .collect(),
        }
    }

    #[test]
    fn functions_are_told_in_microseconds_per_operation() {
        // 100 samples are 50 us: half a microsecond each. Then 100 samples are 80 us.
        let base = profile(
            "a",
            Some(50.0),
            &[("main;parse", 40), ("main;run;read", 40), ("main;run", 20)],
        );
        let cell = profile(
            "b",
            Some(80.0),
            &[
                ("main;parse", 25),
                ("main;run;read", 25),
                ("main;log;write", 50),
            ],
        );
        let found = pair(&[base, cell], "qr100", "a", "b").unwrap();
        let rows: Vec<(&str, f64, f64)> = found
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.base_us, f.cell_us))
            .collect();
        assert_eq!(
            rows,
            [
                ("write", 0.0, 40.0),
                ("run", 10.0, 0.0),
                ("parse", 20.0, 20.0),
                ("read", 20.0, 20.0)
            ]
        );
        let text = found.to_text();
        assert!(text.contains("write") && text.contains("+40.000"), "{text}");
        assert!(
            text.starts_with(
                "\nServer CPU +30.0 us/op (50.0 to 80.0); functions whose own time moved most that \
                way: write +40.0 (together +40.0).\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("symbols missing for 25 % of them")
                && text.contains("unavailable: no PMU"),
            "{text}"
        );
        assert_eq!(
            found.to_json()["functions"][1]["difference_us_per_op"],
            -10.0
        );
    }

    #[test]
    fn a_pass_that_contradicts_the_measurement_says_so_instead_of_naming_functions() {
        let base = profile("a", Some(50.0), &[("main;parse", 40)]);
        let cell = profile("b", Some(80.0), &[("main;parse", 40)]);
        let measured = |ratio: f64| Change {
            name: "server_cpu_us_per_op".to_owned(),
            is_counter: false,
            ratio,
            standardised: 1.0,
            pairs: 5,
        };
        let found = |ratio: f64| {
            pair(&[base.clone(), cell.clone()], "qr100", "a", "b")
                .unwrap()
                .beside(&[measured(ratio)])
        };
        assert!(
            found(1.5).doubt.is_none() && found(2.4).doubt.is_none() && found(3.0).doubt.is_some()
        );
        assert!(found(1.5).to_text().contains("Server CPU +30.0 us/op"));
        let text = found(0.9).to_text();
        assert!(
            text.contains("disagree: server CPU/op +60.0 % in the pass, -10.0 % measured"),
            "{text}"
        );
        assert!(!text.contains("Server CPU +30.0"), "{text}");
    }

    #[test]
    fn a_profile_that_is_not_there_is_told() {
        let base = profile("a", Some(50.0), &[("main", 4)]);
        let mut cell = profile("b", None, &[]);
        let found = pair(&[base.clone(), cell.clone()], "qr100", "a", "b").unwrap();
        assert_eq!(
            found.to_text(),
            "\nNo profile of b: the server's CPU per operation is not known\n"
        );
        cell.about.unavailable = Some("perf may not look at the server".to_owned());
        let found = pair(&[base.clone(), cell], "qr100", "a", "b").unwrap();
        assert!(found.to_text().contains("perf may not") && found.functions.is_empty());
        assert_eq!(pair(&[base], "qr100", "a", "b"), None);
    }
}
