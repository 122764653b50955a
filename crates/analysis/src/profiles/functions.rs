//! The functions whose own CPU time per operation moved most.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_stats::{
    KnownVariance, StartRatio, StartsPrior, StartsVariance, benjamini_hochberg, mean, over_starts,
};
use plimsoll_store::Profile;

use super::{Profiled, us_per_sample};

/// A function with fewer samples than this in all passes is not asked about.
const LEAST_SAMPLES: u64 = 10;
/// The level of the test, over all functions that are asked about.
const LEVEL: f64 = 0.05;

#[derive(Clone, Debug, PartialEq)]
pub struct FunctionChange {
    pub name: String,
    /// Its own CPU time per operation in the base, without what it calls, in microseconds: the mean
    /// over passes.
    pub base_us: f64,
    /// The same in the cell.
    pub cell_us: f64,
    /// What passes say of the difference; none of one pass, and of rare functions.
    pub shown: Option<Shown>,
}

/// A difference over passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// The 95 % interval of the difference in microseconds per operation.
    pub interval: (f64, f64),
    /// Whether it is there, with all functions corrected for.
    pub is_different: bool,
}

impl FunctionChange {
    /// How much more the cell uses, in microseconds per operation.
    pub fn difference_us(&self) -> f64 {
        self.cell_us - self.base_us
    }

    /// Whether passes do not show a difference. One pass cannot.
    pub fn is_chance(&self) -> bool {
        self.shown.is_some_and(|shown| !shown.is_different)
    }
}

/// The functions that moved most, most first, over all passes of both. Those that have too few
/// samples to be judged come last: one sample of a slow pass may stand for more time per operation
/// than anything that moved.
pub(super) fn moved(bases: &[&Profile], cells: &[&Profile], most: usize) -> Vec<FunctionChange> {
    let (of_base, of_cell): (Vec<Own>, Vec<Own>) = (
        bases.iter().map(|profile| Own::of(profile)).collect(),
        cells.iter().map(|profile| Own::of(profile)).collect(),
    );
    let names: BTreeSet<&str> = of_base
        .iter()
        .chain(&of_cell)
        .flat_map(|own| own.samples.keys().copied())
        .collect();
    let mean_us =
        |all: &[Own], name: &str| mean(&all.iter().map(|own| own.us(name)).collect::<Vec<f64>>());
    let mut moved: Vec<FunctionChange> = names
        .into_iter()
        .map(|name| FunctionChange {
            name: name.to_owned(),
            base_us: mean_us(&of_base, name),
            cell_us: mean_us(&of_cell, name),
            shown: None,
        })
        .collect();
    show(&mut moved, &of_base, &of_cell);
    let moved_by = |function: &FunctionChange| function.difference_us().abs();
    moved.sort_by(|a, b| {
        let judged_first = b.shown.is_some().cmp(&a.shown.is_some());
        judged_first.then(moved_by(b).total_cmp(&moved_by(a)))
    });
    moved.truncate(most);
    moved
}

/// Judges each function that has enough samples over the passes that both have: a start of both
/// servers each. How far passes lie apart is moderated over functions, which expect at least the
/// error of their samples.
fn show(moved: &mut [FunctionChange], bases: &[Own], cells: &[Own]) {
    let pairs: Vec<(&Own, &Own)> = bases
        .iter()
        .filter_map(|base| Some((base, cells.iter().find(|cell| cell.pass == base.pass)?)))
        .collect();
    if pairs.len() < 2 {
        return;
    }
    let asked: Vec<(usize, Vec<StartRatio>)> = moved
        .iter()
        .enumerate()
        .filter(|(_, function)| {
            let samples = |own: &Own| own.samples.get(function.name.as_str()).copied();
            let all = pairs
                .iter()
                .flat_map(|(base, cell)| [samples(base), samples(cell)]);
            all.flatten().sum::<u64>() >= LEAST_SAMPLES
        })
        .map(|(at, function)| {
            let of_pass = |(base, cell): &(&Own, &Own)| StartRatio {
                ratio: cell.us(&function.name) - base.us(&function.name),
                within: Some(KnownVariance::of_error(
                    cell.error(&function.name).hypot(base.error(&function.name)),
                    f64::INFINITY,
                )),
                load: 1,
            };
            (at, pairs.iter().map(of_pass).collect())
        })
        .collect();
    let variances: Vec<StartsVariance> = asked
        .iter()
        .filter_map(|(_, passes)| StartsVariance::of(passes))
        .collect();
    let prior = StartsPrior::of_class(&variances);
    let found: Vec<(usize, (f64, f64), f64)> = asked
        .iter()
        .filter_map(|(at, passes)| {
            let over = over_starts(passes, prior)?;
            let interval = over.interval(1.0 - LEVEL);
            Some((*at, (interval.low, interval.high), over.p))
        })
        .collect();
    let p: Vec<f64> = found.iter().map(|(.., p)| *p).collect();
    for ((at, interval, _), p) in found.iter().zip(benjamini_hochberg(&p)) {
        moved[*at].shown = Some(Shown {
            interval: *interval,
            is_different: p <= LEVEL,
        });
    }
}

/// The samples of functions themselves, of one profile.
struct Own<'p> {
    pass: u32,
    us_per_sample: f64,
    samples: BTreeMap<&'p str, u64>,
}

impl<'p> Own<'p> {
    fn of(profile: &'p Profile) -> Self {
        let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, count) in &profile.stacks {
            *samples.entry(own(stack)).or_default() += count;
        }
        Self {
            pass: profile.pass,
            us_per_sample: us_per_sample(profile),
            samples,
        }
    }

    /// Microseconds per operation.
    fn us(&self, name: &str) -> f64 {
        self.samples.get(name).copied().unwrap_or(0) as f64 * self.us_per_sample
    }

    /// The standard error of that, from the number of samples (Poisson); of none that of one.
    fn error(&self, name: &str) -> f64 {
        let samples = self.samples.get(name).copied().unwrap_or(0).max(1);
        (samples as f64).sqrt() * self.us_per_sample
    }
}

/// The function that was running.
fn own(stack: &str) -> &str {
    stack.rsplit(';').next().unwrap_or(stack)
}

/// Functions that a sentence names.
const TOLD: usize = 5;
/// Below this share of the base's CPU per operation there is no change to tell about.
const LEAST_CHANGE: f64 = 0.02;

impl Profiled {
    /// How the server's CPU per operation changed, and which functions' own time went the same way
    /// most; `None` where it hardly changed.
    pub fn where_it_went(&self) -> Option<String> {
        let change = self.tree.cell_us - self.tree.base_us;
        if self.reason.is_some() || change.abs() < LEAST_CHANGE * self.tree.base_us {
            return None;
        }
        let is_told = |function: &FunctionChange| match function.shown {
            Some(shown) => shown.is_different,
            None => !self.is_judged,
        };
        let told: Vec<&FunctionChange> = self
            .functions
            .iter()
            .filter(|function| function.difference_us() * change > 0.0 && is_told(function))
            .take(TOLD)
            .collect();
        let sum: f64 = told.iter().map(|function| function.difference_us()).sum();
        let names: Vec<String> = told
            .iter()
            .map(|function| format!("{} {:+.1}", function.name, function.difference_us()))
            .collect();
        let functions = match names.is_empty() {
            true => "no function's own time is shown to have moved that way".to_owned(),
            false => format!(
                "functions whose own time moved most that way: {} (together {sum:+.1})",
                names.join(", ")
            ),
        };
        Some(format!(
            "Server CPU {change:+.1} us/op ({:.1} to {:.1}); {functions}.",
            self.tree.base_us, self.tree.cell_us
        ))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::Stream;
    use plimsoll_store::ProfileAbout;

    use super::super::pair;
    use super::*;

    /// A pass with 60 functions of about 50 samples of 0.1 us each, and one with 300.
    fn pass(pass: u32, hot: f64, stream: &mut Stream) -> Profile {
        let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
        let mut draw = |expected: f64| (expected + expected.sqrt() * stream.normal()).max(0.0);
        for function in 0..60 {
            stacks.insert(format!("main;f{function}"), draw(50.0).round() as u64);
        }
        stacks.insert("main;hot".to_owned(), draw(hot).round() as u64);
        let samples: u64 = stacks.values().sum();
        Profile {
            about: ProfileAbout {
                samples,
                server_cpu_us_per_op: Some(0.1 * samples as f64),
                ..ProfileAbout::default()
            },
            pass,
            stacks,
        }
    }

    #[test]
    fn what_moved_is_told_from_what_scatters() {
        let mut stream = Stream::new(3);
        let (mut found, mut wrong) = (0, 0);
        for _ in 0..50 {
            let mut three = |hot: f64| -> Vec<Profile> {
                (1..=3)
                    .map(|number| pass(number, hot, &mut stream))
                    .collect()
            };
            let (base, cell) = (three(300.0), three(390.0));
            let all = moved(
                &base.iter().collect::<Vec<_>>(),
                &cell.iter().collect::<Vec<_>>(),
                100,
            );
            let is_different =
                |function: &&FunctionChange| function.shown.is_some_and(|shown| shown.is_different);
            found += all
                .iter()
                .filter(is_different)
                .filter(|f| f.name == "hot")
                .count();
            wrong += usize::from(all.iter().filter(is_different).any(|f| f.name != "hot"));
            let hot = all.iter().find(|function| function.name == "hot").unwrap();
            let (low, high) = hot.shown.unwrap().interval;
            assert!(low < hot.difference_us() && hot.difference_us() < high);
        }
        assert!(found >= 45, "{found} of 50");
        assert!(wrong <= 6, "{wrong} of 50 profiles");
    }

    #[test]
    fn a_function_too_rare_to_be_judged_comes_last() {
        let mut stream = Stream::new(3);
        let base: Vec<Profile> = (1..=3).map(|at| pass(at, 300.0, &mut stream)).collect();
        let mut cell: Vec<Profile> = (1..=3).map(|at| pass(at, 300.0, &mut stream)).collect();
        // Operations of this pass were slow, so that a sample is much time of each.
        cell[1].stacks.insert("main;rare".to_owned(), 3);
        cell[1].about.server_cpu_us_per_op = Some(100_000.0);
        let all = moved(
            &base.iter().collect::<Vec<_>>(),
            &cell.iter().collect::<Vec<_>>(),
            100,
        );
        assert!(all[0].shown.is_some(), "{:?}", all[0]);
        let last = all.last().unwrap();
        assert!(last.name == "rare" && last.shown.is_none(), "{last:?}");
    }

    #[test]
    fn a_sentence_names_no_function_too_rare_to_be_judged() {
        let sentence = |passes: u32, hot: u64, rare: u64| {
            let of = |cell: &str, rare: u64| -> Vec<Profile> {
                (1..=passes)
                    .map(|number| {
                        let about = ProfileAbout {
                            cell: cell.to_owned(),
                            samples: hot + rare,
                            server_cpu_us_per_op: Some((hot + rare) as f64),
                            ..ProfileAbout::default()
                        };
                        let stacks = [("main;hot".to_owned(), hot), ("main;rare".to_owned(), rare)];
                        Profile {
                            about,
                            pass: number,
                            stacks: stacks.into(),
                        }
                    })
                    .collect()
            };
            let profiles: Vec<Profile> = [of("base", 0), of("cell", rare)].concat();
            let profiled = pair(&profiles, "", "base", "cell").unwrap();
            profiled.where_it_went().unwrap()
        };
        assert!(sentence(1, 100, 3).contains("rare +3.0"));
        assert!(sentence(3, 100, 3).contains("no function's own"));
        // None of its functions has samples enough.
        assert!(sentence(3, 1, 1).contains("no function's own"));
    }

    #[test]
    fn one_pass_shows_nothing() {
        let mut stream = Stream::new(3);
        let (base, cell) = (pass(1, 300.0, &mut stream), pass(1, 600.0, &mut stream));
        let all = moved(&[&base], &[&cell], 3);
        assert!(all[0].name == "hot" && all[0].shown.is_none() && !all[0].is_chance());
    }
}
