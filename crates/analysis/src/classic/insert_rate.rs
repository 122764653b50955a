//! The table of background insert rates.

/// The smallest rate that meets the SLA: 95 % of the rows per second that all clients together
/// should insert, rounded.
pub fn least_rate(target_per_s: f64) -> u64 {
    (0.95 * target_per_s).round() as u64
}

/// Whether a rounded rate misses the SLA.
pub fn is_missed(rate_per_s: u64, target_per_s: f64) -> bool {
    rate_per_s < least_rate(target_per_s)
}
