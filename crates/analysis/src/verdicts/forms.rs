//! Whether a ratio depends on turns: on how long they are, or on how many candidates have them.
//!
//! A start has rounds of more than one form. What they say of a ratio differs by noise alone, or
//! the ratio is that of servers in turns and not that of servers.

use itertools::Itertools as _;
use plimsoll_stats::{benjamini_hochberg, mean};

use super::estimates::{Class, Levels, Priors, estimate};
use super::finding::{Basis, Call, Finding, LEAST};
use super::measured::Role;
use super::pairs::{Form, Meetings, Pairs, Shapes, StartPairs};

/// The level of the test, over all questions of a form: rarely wrong, because it takes a verdict
/// away.
const LEVEL: f64 = 0.01;

const FORMS: [Form; 2] = [Form::Longer, Form::Alone];

/// What is counted turn by turn, and what its priors are called.
const ROLES: [(Role, &str); 2] = [
    (Role::Throughput, "throughput moved"),
    (Role::Cpu, "CPU moved"),
];

/// What is asked for every cell and step.
pub(crate) struct OfForms<'q, 'a> {
    /// Index into the view's cells.
    pub cell: usize,
    pub step: &'q str,
    pub is_writing: bool,
    pub meetings: &'q Meetings<'a, 'a>,
}

impl OfForms<'_, '_> {
    /// The log ratios of starts in plain rounds, and in those of each other form that there is.
    fn by_form(&self, role: Role) -> Vec<Vec<f64>> {
        let starts = FORMS.map(|form| self.starts(form, role));
        let mut plain: Vec<(u32, f64)> = starts
            .iter()
            .flatten()
            .map(|&(start, plain, _)| (start, plain))
            .collect();
        plain.sort_by_key(|of| of.0);
        plain.dedup_by_key(|of| of.0);
        let plain = plain.into_iter().map(|of| of.1).collect();
        let others = starts.map(|of| of.into_iter().map(|(_, _, ratio)| ratio).collect());
        let all = std::iter::once(plain).chain(others);
        all.filter(|of: &Vec<f64>| !of.is_empty()).collect()
    }

    fn starts(&self, form: Form, role: Role) -> Vec<OfStart> {
        self.meetings.by_form(form, role == Role::Throughput)
    }
}

/// A start, its log ratio over plain rounds, and that over rounds of a form.
type OfStart = (u32, f64, f64);

/// A ratio that is another one in another form of turns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moved {
    form: Form,
    /// Means over starts of log ratios.
    plain: f64,
    of_form: f64,
}

/// Takes the verdict away from throughputs and CPU per operation that depend on turns by more than
/// their error, and reports what they are either way.
pub(crate) fn mark_dependent(all: &mut [Finding], asked: &[OfForms<'_, '_>]) {
    for (form, (role, class)) in FORMS.into_iter().cartesian_product(ROLES) {
        let starts: Vec<(Class, Vec<OfStart>)> = asked
            .iter()
            .map(|of| ((of.is_writing, class), of.starts(form, role)))
            .collect();
        for (of, moved) in asked.iter().zip(moved(form, &starts)) {
            let Some(moved) = moved else { continue };
            let is_of = |finding: &&mut Finding| {
                let is_same = finding.cell == of.cell && finding.step == of.step;
                is_same && finding.role == role && finding.verdict().is_some()
            };
            let Some(finding) = all.iter_mut().find(is_of) else {
                continue;
            };
            let interval = finding.estimate.and_then(|of| of.log_interval());
            let error = interval.map_or(0.0, |interval| interval.half_width());
            if (moved.of_form - moved.plain).abs() > error.max(LEAST) {
                finding.call = Call::DependsOnTurns;
                finding.forms = of.by_form(role);
                finding.reason = moved.words(&of.meetings.shapes());
            }
        }
    }
}

/// By question: whether its ratio is another one in this form, the family corrected for.
fn moved(form: Form, asked: &[(Class, Vec<OfStart>)]) -> Vec<Option<Moved>> {
    let pairs: Vec<(Class, Pairs)> = asked
        .iter()
        .map(|(class, starts)| (*class, differences(starts)))
        .collect();
    let priors = Priors::new(
        Basis::Slices,
        pairs.iter().map(|(class, pairs)| (*class, "", pairs)),
        [],
    );
    let levels = Levels {
        shown: 1.0 - LEVEL,
        look: LEVEL,
    };
    let p = |(class, pairs): &(Class, Pairs)| {
        estimate(
            Basis::Slices,
            pairs,
            priors.of_cell((*class, "", pairs)),
            levels,
        )?
        .p
    };
    let p: Vec<Option<f64>> = pairs.iter().map(p).collect();
    let known: Vec<f64> = p.iter().copied().flatten().collect();
    let mut adjusted = benjamini_hochberg(&known).into_iter();
    asked
        .iter()
        .zip(p)
        .map(|((_, starts), p)| {
            let is_shown = p.is_some() && adjusted.next()? <= LEVEL;
            let mean_of =
                |part: fn(&OfStart) -> f64| mean(&starts.iter().map(part).collect::<Vec<f64>>());
            is_shown.then(|| Moved {
                form,
                plain: mean_of(|start| start.1),
                of_form: mean_of(|start| start.2),
            })
        })
        .collect()
}

/// One number per start: by how much the log ratio differs in the form.
fn differences(starts: &[OfStart]) -> Pairs {
    let of_start = |&(start, plain, of_form): &OfStart| StartPairs::plain(start, of_form - plain);
    Pairs {
        starts: starts.iter().map(of_start).collect(),
        done: starts.len(),
        ..Pairs::default()
    }
}

impl Moved {
    /// `-9.0 % in its turns, -14.1 % in turns twice as long: ...`.
    fn words(&self, shapes: &Shapes) -> String {
        let percent = |ratio: f64| super::lines::percent(ratio.exp());
        let (plain, of_form) = (percent(self.plain), percent(self.of_form));
        let seen = match self.form {
            Form::Longer => {
                format!("{plain} in its turns, {of_form} in turns twice as long")
            }
            Form::Alone => format!(
                "{plain} in turns of {} candidates, {of_form} with only {} of them",
                shapes.most, shapes.fewest
            ),
        };
        format!("{seen}: --blocks measures one server at a time")
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::Stream;

    use super::*;

    /// 24 questions with so many starts; the first is another one by `effect`.
    fn asked(starts: u32, effect: f64, stream: &mut Stream) -> Vec<(Class, Vec<OfStart>)> {
        (0..24)
            .map(|question| {
                let effect = if question == 0 { effect } else { 0.0 };
                let start = |start| {
                    let plain = 0.02 * stream.normal();
                    (start, plain, plain + effect + 0.02 * stream.normal())
                };
                ((true, "moved"), (1..=starts).map(start).collect())
            })
            .collect()
    }

    #[test]
    fn what_moves_is_found_and_noise_is_not() {
        let mut stream = Stream::new(20);
        let (mut found, mut wrong) = (0, 0);
        for _ in 0..200 {
            for (effect, starts) in [(0.0, 6), (-0.08, 6)] {
                let moved = moved(Form::Longer, &asked(starts, effect, &mut stream));
                found += usize::from(effect < 0.0 && moved[0].is_some());
                wrong += usize::from(moved[1..].iter().any(Option::is_some));
            }
        }
        assert!(found >= 190, "{found} of 200");
        assert!(wrong <= 10, "{wrong} of 400 campaigns");
    }

    #[test]
    fn without_such_rounds_nothing_is_concluded() {
        assert_eq!(moved(Form::Alone, &[((true, "moved"), Vec::new())]), [None]);
        let one = vec![(4, 0.0, 0.5)];
        assert_eq!(moved(Form::Alone, &[((true, "moved"), one)]), [None]);
    }

    #[test]
    fn both_ratios_are_reported() {
        let moved = Moved {
            form: Form::Longer,
            plain: 0.9f64.ln(),
            of_form: 0.8f64.ln(),
        };
        let shapes = Shapes { fewest: 3, most: 5 };
        assert_eq!(
            moved.words(&shapes),
            "-10.0 % in its turns, -20.0 % in turns twice as long: --blocks measures one server \
            at a time"
        );
        let alone = Moved {
            form: Form::Alone,
            ..moved
        };
        assert_eq!(
            alone.words(&shapes),
            "-10.0 % in turns of 5 candidates, -20.0 % with only 3 of them: --blocks measures one \
            server at a time"
        );
    }
}
