//! Which of iostat's devices holds the database.

use super::import::Options;
use crate::host::iostat::{Averages, Iostat};
use crate::sysbench::metrics::Metrics;

/// The device that the metrics are of: the one that was named, the only one, or the one that gives
/// the printed averages.
pub(super) fn device(
    iostat: &Iostat,
    metrics: Option<&Metrics>,
    options: &Options,
) -> Result<(String, Averages), String> {
    if let Some(name) = &options.device {
        let averages = iostat
            .matching(name)
            .ok_or_else(|| format!("no device of it contains \"{name}\""))?;
        return Ok((name.clone(), averages));
    }
    let means = |name: &String| Some((name.clone(), iostat.matching(name)?));
    let candidates: Vec<(String, Averages)> = iostat.devices.keys().filter_map(means).collect();
    if let [only] = &candidates[..] {
        return Ok(only.clone());
    }
    let print = |rate: f64| format!("{rate:.1}");
    let is_printed = |averages: &Averages| {
        let r = averages.rates;
        metrics.is_some_and(|metrics| {
            metrics.io[..5]
                == [
                    averages.samples.to_string(),
                    print(r.reads),
                    print(r.read_kib / 1024.0),
                    print(r.writes),
                    print(r.written_kib / 1024.0),
                ]
        })
    };
    let names: Vec<&str> = iostat.devices.keys().map(String::as_str).collect();
    candidates
        .into_iter()
        .find(|(_, averages)| is_printed(averages))
        .ok_or_else(|| {
            format!(
                "which of {} holds the database is not known: name it with --device",
                names.join(", ")
            )
        })
}
