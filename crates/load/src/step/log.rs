//! The histogram log of a step, and the sums of what is written to it.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, Tag};
use hdrhistogram::{Counter, Histogram};

use super::StepError;
use super::outcome::{Totals, add};
use crate::intervals::ServiceAndResponse;
use plimsoll_core::histogram;

/// The histogram log, and the sums of what is written to it.
pub(super) struct Log<'a, 'b, W: Write> {
    pub writer: IntervalLogWriter<'b, 'b, W, V2DeflateSerializer>,
    pub kinds: &'a [&'a str],
    pub totals: BTreeMap<usize, Totals>,
    /// How often the sums have begun again.
    pub restarts: u64,
}

impl<W: Write> Log<'_, '_, W> {
    /// Lets the sums begin again if they have not yet. What is written stays.
    pub fn restart(&mut self, restarts: u64) {
        if restarts > self.restarts {
            self.restarts = restarts;
            self.totals.clear();
        }
    }

    /// Writes the histograms of an interval that begins `at` after the start.
    pub fn add(
        &mut self,
        at: Duration,
        length: Duration,
        pairs: &BTreeMap<usize, ServiceAndResponse>,
    ) -> Result<(), StepError> {
        for (&kind, pair) in pairs {
            let total = self.totals.entry(kind).or_insert_with(Totals::new);
            add(&mut total.service, &pair.service);
            self.write(kind, "service", at, length, &pair.service)?;
            if let Some(response) = &pair.response {
                let total = self.totals.entry(kind).or_insert_with(Totals::new);
                add(
                    total.response.get_or_insert_with(histogram::empty),
                    response,
                );
                self.write(kind, "response", at, length, response)?;
            }
        }
        Ok(())
    }

    /// Writes the response times of operations that were never sent.
    pub fn add_unsent(
        &mut self,
        at: Duration,
        length: Duration,
        unsent: &BTreeMap<usize, Histogram<u64>>,
    ) -> Result<(), StepError> {
        for (&kind, responses) in unsent {
            let total = self
                .totals
                .entry(kind)
                .or_insert_with(Totals::new)
                .response
                .get_or_insert_with(histogram::empty);
            total
                .add(responses)
                .expect("all histograms have the same bounds");
            self.write(kind, "response", at, length, responses)?;
        }
        Ok(())
    }

    fn write<T: Counter>(
        &mut self,
        kind: usize,
        what: &str,
        at: Duration,
        length: Duration,
        of: &Histogram<T>,
    ) -> Result<(), StepError> {
        let tag = format!("{}.{what}", self.kinds[kind]);
        self.writer
            .write_histogram(of, at, length, Tag::new(&tag))
            .map_err(|error| StepError::Log(error.to_string()))
    }
}
