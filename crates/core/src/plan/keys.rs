//! Keys that several benchmarks have: numbers within their bounds, rates, ramps, and what a plan
//! says about single steps.

use toml::Spanned;

use super::document::Wait;
use super::{PlanError, Step, WriteArrival};
use crate::source::Source;
use crate::suggest;
use crate::units::{SECOND_NS, format_grouped};
use crate::written::Duration;

/// Rows a client may ask for: transaction ids stay far inside 63 bits.
pub(super) const MOST_ROWS: u64 = 1_000_000_000_000;
pub(super) const MOST_CLIENTS: u32 = 4096;
const MOST_RATE: u64 = 100_000_000;

/// The drain after a step and its wait, which any step may have.
#[derive(Clone, Copy)]
pub(super) struct DrainKeys<'a> {
    pub wait: Option<&'a Spanned<Wait>>,
    pub drain: Option<&'a Spanned<bool>>,
}

impl Source<'_> {
    /// How the operations of an open loop arrive.
    pub(super) fn is_poisson(
        &self,
        arrival: Option<&Spanned<WriteArrival>>,
        what: &str,
    ) -> Result<bool, PlanError> {
        match arrival.map(|arrival| (arrival, *arrival.get_ref())) {
            None | Some((_, WriteArrival::Even)) => Ok(false),
            Some((_, WriteArrival::Poisson)) => Ok(true),
            Some((arrival, WriteArrival::ClassicBurst)) => Err(self.error(
                Some(arrival.span()),
                format!("{what} has no bursts: write arrival = \"even\" or \"poisson\""),
            )),
        }
    }

    pub(super) fn test_duration(
        &self,
        value: Option<&Spanned<Duration>>,
        default_ns: u64,
    ) -> Result<u64, PlanError> {
        match value {
            None => Ok(default_ns),
            Some(value) if value.get_ref().0 >= SECOND_NS / 10 => Ok(value.get_ref().0),
            Some(value) => Err(self.error(
                Some(value.span()),
                "the duration of a test or step must be at least 100ms",
            )),
        }
    }

    /// The numbers of clients at which each test or step runs. They are the clients: beside them
    /// none can be set.
    pub(super) fn ramp<'s>(
        &self,
        ramp: Option<&'s Spanned<Vec<u32>>>,
        clients: Option<&Spanned<u32>>,
    ) -> Result<Option<&'s [u32]>, PlanError> {
        let Some(ramp) = ramp else {
            return Ok(None);
        };
        let levels = ramp.get_ref();
        let is_rising = levels.windows(2).all(|pair| pair[0] < pair[1]);
        if levels.is_empty()
            || !is_rising
            || levels[0] == 0
            || levels.iter().any(|&level| level > MOST_CLIENTS)
        {
            let message = format!(
                "ramp must be rising numbers of clients from 1 to {}",
                format_grouped(MOST_CLIENTS.into())
            );
            return Err(self.error(Some(ramp.span()), message));
        }
        if let Some(clients) = clients {
            let line = self.line_of(ramp.span());
            let message = format!(
                "clients and ramp (line {line}) exclude each other: the ramp's numbers are the \
                clients; keep one of them"
            );
            return Err(self.error(Some(clients.span()), message));
        }
        Ok(Some(levels))
    }

    pub(super) fn rate(&self, rate: &Spanned<u64>) -> Result<u64, PlanError> {
        match *rate.get_ref() {
            per_s @ 1..=MOST_RATE => Ok(per_s),
            _ => Err(self.error(
                Some(rate.span()),
                format!("rate must be 1 to {} per second", format_grouped(MOST_RATE)),
            )),
        }
    }

    /// The drain after a step and its wait, which any step may have.
    pub(super) fn override_drain(
        &self,
        step: &mut Step,
        change: DrainKeys<'_>,
    ) -> Result<(), PlanError> {
        if let Some(value) = change.wait {
            let Wait::Ns(ns) = value.get_ref() else {
                return Err(self.error(
                    Some(value.span()),
                    "the wait of a single step is a duration such as \"2s\"",
                ));
            };
            step.wait_ns = Some(*ns);
            step.drain_after = true;
        }
        match change.drain {
            Some(drain) if !drain.get_ref() && change.wait.is_some() => {
                let message =
                    "a wait is a part of the drain: leave \"wait\" or \"drain = false\" out";
                return Err(self.error(Some(drain.span()), message));
            }
            Some(drain) => step.drain_after = *drain.get_ref(),
            None => {}
        }
        Ok(())
    }

    pub(super) fn no_step<'k>(
        &self,
        name: &Spanned<String>,
        known: impl Iterator<Item = &'k str>,
    ) -> PlanError {
        let known: Vec<&str> = known.collect();
        let hint = suggest::hint(name.get_ref(), known.iter().copied());
        let message = format!(
            "this plan runs no step \"{}\"{hint}; steps: {}",
            name.get_ref(),
            suggest::first_few(&known)
        );
        self.error(Some(name.span()), message)
    }

    /// The step that a table `[step.NAME]` is about.
    pub(super) fn find_step<'s>(
        &self,
        steps: &'s mut [Step],
        name: &Spanned<String>,
    ) -> Result<&'s mut Step, PlanError> {
        match steps.iter().position(|step| step.is_called(name.get_ref())) {
            Some(position) => Ok(&mut steps[position]),
            None => Err(self.no_step(name, steps.iter().map(|step| step.name.as_str()))),
        }
    }

    /// A prefix of the sequence keeps its meaning; a hole in it does not, but for `optional` steps:
    /// every other needs the state that the earlier ones leave.
    pub(super) fn select_steps(
        &self,
        steps: Vec<Step>,
        wanted: &[Spanned<String>],
        is_optional: impl Fn(&Step) -> bool,
        optional: &str,
    ) -> Result<Vec<Step>, PlanError> {
        let known: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        let mut last = None;
        for name in wanted {
            let Some(position) = steps.iter().position(|step| step.is_called(name.get_ref()))
            else {
                return Err(self.no_step(name, known.iter().copied()));
            };
            // Every other step works on what the first one loads.
            let skips_load = last.is_none() && position > 0;
            if skips_load || last.is_some_and(|last| position <= last) {
                return Err(self.error(
                    Some(name.span()),
                    format!(
                        "steps run in the order {} and begin with the load",
                        known.join(", ")
                    ),
                ));
            }
            if let Some(hole) = steps[last.map_or(0, |last| last + 1)..position]
                .iter()
                .find(|step| !is_optional(step))
            {
                return Err(self.error(
                    Some(name.span()),
                    format!(
                        "\"{}\" needs \"{}\" before it; only {optional} can be left out",
                        name.get_ref(),
                        hole.name
                    ),
                ));
            }
            last = Some(position);
        }
        Ok(steps
            .into_iter()
            .filter(|step| wanted.iter().any(|name| step.is_called(name.get_ref())))
            .collect())
    }
}
