//! The decoded histograms of a step's operation.

use hdrhistogram::Histogram;
use plimsoll_core::record::{EncodedHistogram, OperationRecord};

use super::value::{Answer, Value};
use crate::runs::histogram;

/// Which histogram of a step's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Service,
    Response,
    Lag,
}

type Decoded = Result<Histogram<u64>, String>;

pub(crate) struct Latencies {
    service: Decoded,
    response: Decoded,
    lag: Decoded,
    /// Of the operations that were due and never sent; these are in response and lag.
    unsent: Option<Histogram<u64>>,
}

impl Latencies {
    pub(super) fn decode(operation: Result<&OperationRecord, String>) -> Self {
        let read = |pick: fn(&OperationRecord) -> Option<&EncodedHistogram>| {
            let encoded = pick(operation.clone()?).ok_or("closed loop: no response time")?;
            let histogram = histogram::decode(encoded)?;
            if histogram.is_empty() {
                Err("no operation was done".to_owned())
            } else {
                Ok(histogram)
            }
        };
        Self {
            service: read(|operation| Some(&operation.service)),
            response: read(|operation| operation.response.as_ref()),
            lag: read(|operation| operation.lag.as_ref()),
            unsent: read(|operation| operation.unsent_response.as_ref()).ok(),
        }
    }

    /// For metrics that need none: decoding is what takes long.
    pub(super) fn unread() -> Self {
        let unread = || Err("it was not read".to_owned());
        Self {
            service: unread(),
            response: unread(),
            lag: unread(),
            unsent: None,
        }
    }

    /// Microseconds at a quantile; of response times and lag the least that it may be, if
    /// operations were never sent.
    pub(super) fn quantile_us(&self, clock: Clock, quantile: f64) -> Value {
        let histogram = self.of(clock);
        let ns = histogram.as_ref().map(|histogram| match quantile {
            1.0 => histogram.max(),
            quantile => histogram.value_at_quantile(quantile),
        });
        let is_lower_bound = clock != Clock::Service
            && histogram.as_ref().is_ok_and(|histogram| {
                histogram::is_lower_bound(histogram, self.unsent.as_ref(), quantile)
            });
        Value {
            is_lower_bound,
            ..Value::from(ns.map(|ns| ns as f64 / 1e3).map_err(String::clone))
        }
    }

    pub(super) fn longest_service_ns(&self) -> Answer {
        let histogram = self.service.as_ref().map_err(String::clone)?;
        Ok(histogram.max() as f64)
    }

    pub(super) fn mean_service_ns(&self) -> Answer {
        Ok(self.service.as_ref().map_err(String::clone)?.mean())
    }

    fn of(&self, clock: Clock) -> &Decoded {
        match clock {
            Clock::Service => &self.service,
            Clock::Response => &self.response,
            Clock::Lag => &self.lag,
        }
    }
}
