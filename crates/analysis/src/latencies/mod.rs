//! The times of operations of one kind, decoded: of one run for formulas, of several for tables.
//! Nothing above keeps them: a decoded histogram takes some 270 KB, and a view has thousands.

mod histogram;

use hdrhistogram::Histogram;
use plimsoll_core::record::{EncodedHistogram, OperationRecord};

use histogram::{bucket_counts, curve, is_lower_bound, merge, quantiles};

pub use histogram::{CurvePoint, Quantiles};

/// Which of the three times of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// From sending to done.
    Service,
    /// From the planned instant to done.
    Response,
    /// From the planned instant to sending.
    Lag,
}

impl Clock {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Service, Self::Response, Self::Lag];

    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Lag => "lag",
        }
    }
}

/// What to do about a histogram that cannot be decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Damaged {
    /// No number: one without it would not be of the operations it names.
    IsAnError,
    /// Show the others: the step has a metric that says what is damaged.
    IsLeftOut,
}

/// A histogram that has values, or why there is none.
type Decoded = Result<Histogram<u64>, String>;

/// The times of one kind of operation.
pub(crate) struct Latencies {
    service: Decoded,
    response: Decoded,
    lag: Decoded,
    /// Of the operations that were due and never sent; these are in response and lag.
    unsent: Option<Histogram<u64>>,
}

impl Latencies {
    /// Of records that count as one kind of operation. One that is damaged leaves its clock without
    /// a number.
    pub fn of<'a>(records: impl Iterator<Item = &'a OperationRecord> + Clone) -> Self {
        Self::read(records, Damaged::IsAnError)
    }

    /// The same of those that can be decoded.
    pub fn readable<'a>(records: impl Iterator<Item = &'a OperationRecord> + Clone) -> Self {
        Self::read(records, Damaged::IsLeftOut)
    }

    /// None, for this reason.
    pub fn missing(reason: &str) -> Self {
        let missing = || Err(reason.to_owned());
        Self {
            service: missing(),
            response: missing(),
            lag: missing(),
            unsent: None,
        }
    }

    fn read<'a>(
        records: impl Iterator<Item = &'a OperationRecord> + Clone,
        damaged: Damaged,
    ) -> Self {
        let sum = |pick: fn(&OperationRecord) -> Option<&EncodedHistogram>| -> Decoded {
            let mut all = None;
            for encoded in records.clone().filter_map(pick) {
                match encoded.decode() {
                    Ok(histogram) => merge(&mut all, histogram),
                    Err(error) if damaged == Damaged::IsAnError => return Err(error.to_string()),
                    Err(_) => {}
                }
            }
            let all = all.ok_or("closed loop: no response time")?;
            if all.is_empty() {
                Err("no operation was done".to_owned())
            } else {
                Ok(all)
            }
        };
        Self {
            service: sum(|operation| Some(&operation.service)),
            response: sum(|operation| operation.response.as_ref()),
            lag: sum(|operation| operation.lag.as_ref()),
            unsent: sum(|operation| operation.unsent_response.as_ref()).ok(),
        }
    }

    /// Nanoseconds at a quantile, 1 is the longest, and whether they are the least that they may
    /// be, because operations were never sent.
    pub fn at_ns(&self, clock: Clock, quantile: f64) -> Result<(u64, bool), String> {
        let histogram = self.decoded(clock).as_ref().map_err(String::clone)?;
        let ns = match quantile {
            1.0 => histogram.max(),
            quantile => histogram.value_at_quantile(quantile),
        };
        Ok((ns, is_lower_bound(histogram, self.unsent(clock), quantile)))
    }

    /// The mean of the service time in nanoseconds.
    pub fn mean_service_ns(&self) -> Result<f64, String> {
        Ok(self.service.as_ref().map_err(String::clone)?.mean())
    }

    /// What the latency tables show of a clock; `None` without operations.
    pub fn quantiles(&self, clock: Clock) -> Option<Quantiles> {
        let histogram = self.decoded(clock).as_ref().ok()?;
        quantiles(histogram, self.unsent(clock))
    }

    /// The percentile curve of a clock; empty without operations.
    pub fn curve(&self, clock: Clock) -> Vec<CurvePoint> {
        let histogram = self.decoded(clock).as_ref();
        histogram.map_or_else(
            |_| Vec::new(),
            |histogram| curve(histogram, self.unsent(clock)),
        )
    }

    /// Service times in the ten classic buckets; `None` without operations.
    pub fn buckets(&self) -> Option<[u64; 10]> {
        self.service.as_ref().ok().map(bucket_counts)
    }

    fn decoded(&self, clock: Clock) -> &Decoded {
        match clock {
            Clock::Service => &self.service,
            Clock::Response => &self.response,
            Clock::Lag => &self.lag,
        }
    }

    /// What was never sent has no service time.
    fn unsent(&self, clock: Clock) -> Option<&Histogram<u64>> {
        self.unsent.as_ref().filter(|_| clock != Clock::Service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drawn event whose histogram is damaged must not make the percentile of the others stand
    /// for the step.
    #[test]
    fn a_damaged_record_spoils_the_sum_and_not_the_table() {
        let record = |service| OperationRecord {
            service,
            ..OperationRecord::default()
        };
        let mut histogram = plimsoll_core::histogram::empty::<u64>();
        histogram.record(1_000).unwrap();
        let whole = EncodedHistogram::of(&histogram);
        let records = [record(whole), record(EncodedHistogram("AAAA".to_owned()))];
        let sum = Latencies::of(records.iter()).at_ns(Clock::Service, 1.0);
        assert!(
            sum.unwrap_err()
                .starts_with("its histogram cannot be decoded")
        );
        let table = Latencies::readable(records.iter()).quantiles(Clock::Service);
        assert_eq!(table.map(|quantiles| quantiles.count), Some(1));
        let of_none = Latencies::of(records[..1].iter()).at_ns(Clock::Lag, 0.5);
        assert_eq!(of_none.unwrap_err(), "closed loop: no response time");
    }
}
