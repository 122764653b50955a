//! Throughput over rising numbers of users: the peak, and the gain before it.

use super::imported_ramps;
use super::material::Subject;
use super::summary::nest;
use super::tables::file_name;
use super::text::{count, list};
use super::value::{Bullet, Figure, Form, Line, List, Part, Said, Section, Sentence};
use crate::runs::status::Status;
use crate::verdicts::Finding;
use crate::view::{Ramp, RampCell, RampLevel, View};

/// Throughput follows response time where every version has at most this share of its peak.
const UNSATURATED: f64 = 0.5;
/// From this share of the peak on more users add little.
const KNEE: f64 = 0.9;
/// More tests than this are not all in the tl;dr.
const MOST_TESTS: usize = 5;
/// From here on a gain is a factor.
const FACTOR: f64 = 1.3;
/// Peaks that differ by less are the same in whole percent.
const SAME: f64 = 0.005;
/// Longer times are printed in milliseconds.
const US_PER_MS: f64 = 1000.0;

/// A section per test that was run over several numbers of users. The base of a cell is that of the
/// subject that has it: the oldest version, or what somebody asked for.
pub(super) fn sections(view: &View, subjects: &[Subject]) -> Vec<Section> {
    let all = imported_ramps::all(view);
    let ramps = all
        .iter()
        .map(|(ramp, names)| Over::of(view, subjects, ramp, names));
    let ramps = ramps.filter(|over| !over.cells.is_empty());
    ramps.map(|over| over.section(view)).collect()
}

/// The peaks for the tl;dr: of each test the highest one, of many tests those that differ most.
pub(super) fn headlines(view: &View, subjects: &[Subject]) -> Option<Bullet> {
    let all = imported_ramps::all(view);
    let highest = |(ramp, names): &(Ramp, Vec<String>)| {
        let over = Over::of(view, subjects, ramp, names);
        let rate = |cell: &usize| over.peak_rate(*cell);
        let best = over.cells.iter().copied().max_by(|a, b| {
            let [a, b] = [a, b].map(|cell| rate(cell).unwrap_or(0.0));
            a.total_cmp(&b)
        })?;
        let sentence = over.peak(best)?;
        Some(Sentence {
            text: format!("{}: {}", ramp.test, sentence.text),
            ..sentence
        })
    };
    let mut told: Vec<Sentence> = all.iter().filter_map(highest).collect();
    if told.len() <= MOST_TESTS {
        return nest("peaks over users", told);
    }
    let tests = told.len();
    let distance = |of: &Sentence| of.cells.first().map_or(0.0, |said| said.ratio.ln().abs());
    told.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    told.truncate(MOST_TESTS);
    let heading = format!("peaks over users, the {MOST_TESTS} of {tests} tests that differ most");
    nest(&heading, told)
}

/// A test over users, with who is compared with whom.
struct Over<'a> {
    ramp: &'a Ramp,
    /// Cells with a peak, without those that control the base.
    cells: Vec<usize>,
    /// The base of each cell of the view; `None` where it has no peak.
    bases: Vec<Option<usize>>,
    names: &'a [String],
}

impl<'a> Over<'a> {
    fn of(view: &View, subjects: &[Subject], ramp: &'a Ramp, names: &'a [String]) -> Self {
        let has_peak = |cell: usize| peak_of(ramp, cell).is_some();
        let cells = 0..view.cells.len();
        let is_shown = |cell: &usize| has_peak(*cell) && !view.cells[*cell].label.contains('#');
        let base = |cell: usize| {
            let is_in = |of: &&Subject| of.releases.iter().any(|release| release.cell == cell);
            let subject = subjects.iter().find(is_in);
            let base = subject.map_or(0, |of| of.releases[of.base].cell);
            has_peak(base).then_some(base)
        };
        Self {
            ramp,
            cells: cells.clone().filter(is_shown).collect(),
            bases: cells.map(base).collect(),
            names,
        }
    }

    fn cell(&self, cell: usize) -> &RampCell {
        &self.ramp.cells[cell]
    }

    fn rate(&self, cell: usize, level: usize) -> Option<f64> {
        claimed(self.cell(cell).levels.get(level)?)
    }

    fn peak_rate(&self, cell: usize) -> Option<f64> {
        Some(peak_of(self.ramp, cell)?.1)
    }

    /// The base that a cell is compared with; none for a base itself.
    fn other_base(&self, cell: usize) -> Option<usize> {
        self.bases[cell].filter(|base| *base != cell)
    }

    fn said(&self, base: usize, cell: usize, ratio: f64) -> Said {
        Said {
            test: self.ramp.test.clone(),
            metric: self.ramp.rate.name,
            from: self.names[base].clone(),
            to: self.names[cell].clone(),
            ratio,
        }
    }

    fn section(&self, view: &View) -> Section {
        let mut sentences: Vec<Sentence> = Vec::new();
        sentences.extend(self.unsaturated());
        sentences.extend(self.cells.iter().filter_map(|cell| self.peak(*cell)));
        sentences.extend(
            self.cells
                .iter()
                .filter_map(|cell| self.verdicts(view, *cell)),
        );
        let bullets: Vec<Bullet> = sentences.into_iter().map(Bullet::from).collect();
        let alt = bullets.first().map(|bullet| bullet.sentence.text.clone());
        let test = &self.ramp.test;
        let unit = self.ramp.rate.unit;
        let mut parts = vec![
            Part::List(List {
                heading: "Summary".to_owned(),
                bullets,
            }),
            Part::Figure(Figure {
                name: file_name(&["users", test]),
                title: format!("{test}: throughput over users"),
                caption: format!("{test}, {unit} over users; median of the runs per line."),
                alt: alt.unwrap_or_else(|| test.clone()),
                form: self.lines(unit.to_owned(), 1.0, |level| level.rate),
            }),
        ];
        parts.extend(self.latency().map(Part::Figure));
        Section {
            title: format!("Results: {test} over users"),
            parts,
        }
    }

    fn lines(
        &self,
        y_label: String,
        divisor: f64,
        value: impl Fn(&RampLevel) -> Option<f64>,
    ) -> Form {
        let line = |cell: &usize| {
            let levels = &self.cell(*cell).levels;
            Line {
                name: self.names[*cell].clone(),
                values: levels
                    .iter()
                    .map(|level| value(level).map(|value| value / divisor))
                    .collect(),
                intervals: vec![None; levels.len()],
            }
        };
        Form::Lines {
            x_label: "users".to_owned(),
            y_label,
            x: self.ramp.users.iter().map(|of| f64::from(*of)).collect(),
            series: self.cells.iter().map(line).collect(),
        }
    }

    /// The 99th percentile of response times where users had a schedule, else of service times,
    /// else the 95th. `None` where no level has one.
    fn latency(&self) -> Option<Figure> {
        type Time = fn(&RampLevel) -> Option<f64>;
        let times: [(Time, &str); 3] = [
            (
                |level| level.p99_response_us.filter(|_| !level.is_lower_bound),
                "99th percentile of response time",
            ),
            (
                |level| level.service_us[2],
                "99th percentile of service time",
            ),
            (
                |level| level.service_us[1],
                "95th percentile of service time",
            ),
        ];
        let levels = || {
            let cells = self.cells.iter();
            cells.flat_map(|cell| &self.cell(*cell).levels)
        };
        let has_any = |time: &Time| levels().any(|level| time(level).is_some());
        let (time, words) = times.into_iter().find(|(time, _)| has_any(time))?;
        let longest = levels().filter_map(time).fold(0.0, f64::max);
        let (unit, divisor) = match longest {
            us if us >= US_PER_MS => ("ms", US_PER_MS),
            _ => ("us", 1.0),
        };
        let test = &self.ramp.test;
        let most = self.ramp.users.last().copied().unwrap_or(0);
        let last = |cell: &usize| {
            let value = time(self.cell(*cell).levels.last()?)? / divisor;
            Some(format!("{} {value:.2} {unit}", self.names[*cell]))
        };
        let known: Vec<String> = self.cells.iter().filter_map(last).collect();
        Some(Figure {
            name: file_name(&["latency", test]),
            title: format!("{test}: {words} over users, shorter is better"),
            caption: format!("{test}, {words} in {unit} over users; median of the runs per line."),
            alt: format!("The {words} with {most} users: {}", known.join(", ")),
            form: self.lines(format!("{words}, {unit}"), divisor, time),
        })
    }

    /// `8.0.4 peaks at over 1.8M queries/s with 1024 users (90% of it from 512 on): 1.5X ...`.
    fn peak(&self, cell: usize) -> Option<Sentence> {
        let (at, own) = peak_of(self.ramp, cell)?;
        let base = self.other_base(cell);
        let against = base.and_then(|base| Some((base, own / self.peak_rate(base)?)));
        let words = match against {
            None => String::new(),
            Some((base, ratio)) => {
                let name = &self.names[base];
                match ratio {
                    _ if (ratio - 1.0).abs() < SAME => format!(": as much as {name}"),
                    _ if ratio >= FACTOR => format!(": {ratio:.1}X the peak of {name}"),
                    _ if ratio >= 1.0 => {
                        format!(": {:.0}% more than {name}", 100.0 * (ratio - 1.0))
                    }
                    _ => format!(": {:.0}% less than {name}", 100.0 * (1.0 - ratio)),
                }
            }
        };
        let users = &self.ramp.users;
        let is_near = |level: &usize| {
            self.rate(cell, *level)
                .is_some_and(|rate| rate >= KNEE * own)
        };
        let knee = match (0..at).find(is_near) {
            Some(knee) => format!(" (90% of it or more from {} on)", users[knee]),
            // It may still rise.
            None if at + 1 == users.len() && at > 0 => " (the most that were run)".to_owned(),
            None => String::new(),
        };
        let cells = against.map(|(base, ratio)| self.said(base, cell, ratio));
        Some(Sentence {
            text: format!(
                "{} peaks at {} {} with {}{knee}{words}",
                self.names[cell],
                over(own),
                self.ramp.rate.unit,
                count(users[at] as usize, "user")
            ),
            cells: cells.into_iter().collect(),
        })
    }

    /// `verdicts on 18 vs 17 by users: regression with 1 and 8; inconclusive with 16`.
    fn verdicts(&self, view: &View, cell: usize) -> Option<Sentence> {
        if view.findings.is_screen() {
            return None;
        }
        let of_level = |users: &u32| {
            let step = format!("{}@{users}", self.ramp.test);
            Some((*users, view.findings.of_throughput(cell, &step)?))
        };
        let found: Vec<(u32, &Finding)> = self.ramp.users.iter().filter_map(of_level).collect();
        let base = found.first()?.1.base;
        let mut by_word: Vec<(&str, Vec<String>)> = Vec::new();
        for (users, finding) in &found {
            let word = finding.call.word();
            match by_word.iter_mut().find(|(known, _)| *known == word) {
                Some((_, levels)) => levels.push(users.to_string()),
                None => by_word.push((word, vec![users.to_string()])),
            }
        }
        let parts = by_word.iter();
        let parts: Vec<String> = parts
            .map(|(word, levels)| format!("{word} with {}", list(levels)))
            .collect();
        let cells = found.iter().filter_map(|(_, finding)| {
            Some(Said {
                test: finding.step.clone(),
                metric: finding.metric.name,
                from: self.names[base].clone(),
                to: self.names[cell].clone(),
                ratio: finding.estimate?.ratio,
            })
        });
        Some(Sentence {
            text: format!(
                "verdicts on {} vs {} by users: {}",
                self.names[cell],
                self.names[base],
                parts.join("; ")
            ),
            cells: cells.collect(),
        })
    }

    /// The gains where none is near its peak, which are those of response time.
    fn unsaturated(&self) -> Option<Sentence> {
        let is_low = |level: &usize| {
            let mut cells = self.cells.iter();
            cells.all(|cell| {
                let rates = (self.rate(*cell, *level), self.peak_rate(*cell));
                matches!(rates, (Some(rate), Some(peak)) if rate <= UNSATURATED * peak)
            })
        };
        let level = (0..self.ramp.users.len()).rev().find(is_low)?;
        let gain = |cell: &usize| {
            let base = self.other_base(*cell)?;
            let ratio = self.rate(*cell, level)? / self.rate(base, level)?;
            Some(self.said(base, *cell, ratio))
        };
        let cells: Vec<Said> = self.cells.iter().filter_map(gain).collect();
        let gains: Vec<String> = cells
            .iter()
            .map(|of| format!("{} at {:.2} of {}", of.to, of.ratio, of.from))
            .collect();
        (!gains.is_empty()).then(|| Sentence {
            text: format!(
                "at {}, where none is above half of its peak and throughput follows response time: \
                 {}",
                count(self.ramp.users[level] as usize, "user"),
                gains.join(", ")
            ),
            cells,
        })
    }
}

/// The rate of a level that a sentence may be about: neither failed nor disturbed, and not 0.
fn claimed(level: &RampLevel) -> Option<f64> {
    let is_ok = level.status == Status::Ok;
    level.rate.filter(|rate| is_ok && *rate > 0.0)
}

/// The level of a cell with the highest rate, of equal ones the first, and its rate.
fn peak_of(ramp: &Ramp, cell: usize) -> Option<(usize, f64)> {
    let levels = ramp.cells.get(cell)?.levels.iter().enumerate();
    let rates = levels.filter_map(|(place, level)| Some((place, claimed(level)?)));
    rates.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// A rate of at least so much, in two digits: 1837000 is `over 1.8M`.
fn over(rate: f64) -> String {
    let (scaled, unit) = match rate {
        _ if rate >= 1e6 => (rate / 1e6, "M"),
        _ if rate >= 1e3 => (rate / 1e3, "K"),
        _ => (rate, ""),
    };
    // Two digits, cut and not rounded: a hair below a step is that step.
    let step = 10f64.powi(scaled.log10().floor() as i32 - 1);
    let cut = (scaled / step + 1e-9).floor() * step;
    let digits = usize::from(cut < 10.0);
    format!("over {cut:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_cut_to_two_digits() {
        for (rate, words) in [
            (1_837_000.0, "over 1.8M"),
            (1_800_000.0, "over 1.8M"),
            (12_990.0, "over 12K"),
            (987.0, "over 980"),
            (1_000.0, "over 1.0K"),
        ] {
            assert_eq!(over(rate), words);
        }
    }
}
