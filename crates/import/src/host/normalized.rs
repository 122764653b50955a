//! Costs per operation from vmstat and iostat, as the sysbench scripts compute and print them.

use super::{iostat, vmstat};
use crate::sysbench::metrics::Metrics;

/// The file `sb.met` that the scripts make of these averages. `op_rate` is printed as it was given;
/// it is what costs are divided by.
pub fn classic(io: &iostat::Averages, vm: &vmstat::Averages, op_rate: &str) -> Option<Metrics> {
    let rate: f64 = op_rate.parse().ok().filter(|rate| *rate > 0.0)?;
    let iostat::Rates {
        reads,
        read_kib,
        writes,
        written_kib,
    } = io.rates;
    Some(Metrics {
        io: [
            io.samples.to_string(),
            format!("{reads:.1}"),
            format!("{:.1}", read_kib / 1024.0),
            format!("{writes:.1}"),
            format!("{:.1}", written_kib / 1024.0),
            format!("{:.3}", reads / rate),
            format!("{:.3}", read_kib / rate),
            format!("{:.3}", written_kib / rate),
            op_rate.to_owned(),
        ],
        vm: [
            vm.samples.to_string(),
            format!("{:.0}", vm.cs),
            format!("{:.1}", vm.cpu),
            format!("{:.3}", vm.cs / rate),
            format!("{:.6}", vm.cpu / rate),
        ],
    })
}
