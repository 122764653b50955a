//! CPU, context switches and I/O of a sysbench test: classic from the raw samples if there are any,
//! else as printed; clean next to it.

use std::collections::BTreeMap;

use plimsoll_analysis::metrics::{self, imported};

use super::builder::{Builder, ByMetric, Values, both, clean, printed};
use super::device::device;
use super::import::Options;
use super::sysbench::TestFiles;
use crate::host::{iostat, normalized, vmstat};
use crate::sysbench::metrics::Metrics;

/// What costs follow from.
pub(super) struct Costs<'a> {
    pub files: &'a TestFiles<'a>,
    /// The operation rate as printed, and in full precision.
    pub op_rate: &'a str,
    pub rate: f64,
    /// CPUs, as the output of the test notes them.
    pub cpus: Option<u32>,
    pub options: &'a Options,
}

impl Costs<'_> {
    pub fn add(
        &self,
        builder: &mut Builder,
        values: &mut Values,
        facts: &mut BTreeMap<String, String>,
    ) {
        let io = self.io(builder, facts);
        let vm = self
            .files
            .vmstat
            .and_then(|vmstat| Some((vmstat.classic()?, vmstat.clean()?)));
        let raw = match (&io, &vm) {
            (Some((io, _)), Some((vm, _))) => normalized::classic(io, vm, self.op_rate),
            _ => None,
        };
        let Some(classic) = raw.as_ref().or(self.files.metrics) else {
            return;
        };
        if let (Some(raw), Some(metrics)) = (&raw, self.files.metrics)
            && raw != metrics
        {
            builder.note(format!(
                "Metrics computed from raw samples differ from those in sb.met.{}: the samples are \
                used.",
                facts["file"]
            ));
        }
        facts.insert("io_samples".to_owned(), classic.io[0].clone());
        facts.insert("vm_samples".to_owned(), classic.vm[0].clone());
        self.add_io(values, classic, io.map(|(_, clean)| clean.rates));
        self.add_cpu(values, classic, vm.map(|(_, clean)| clean));
    }

    /// Averages of the database's device, classic and clean.
    fn io(
        &self,
        builder: &mut Builder,
        facts: &mut BTreeMap<String, String>,
    ) -> Option<(iostat::Averages, iostat::Averages)> {
        let (path, iostat) = self.files.iostat?;
        match device(iostat, self.files.metrics, self.options) {
            Ok((name, averages)) => {
                facts.insert("device".to_owned(), name.clone());
                Some((averages, iostat.of(&name).unwrap_or(averages)))
            }
            Err(reason) => {
                builder.leave_out(path, reason);
                None
            }
        }
    }

    fn add_io(&self, values: &mut Values, classic: &Metrics, clean: Option<iostat::Rates>) {
        let rate = self.rate;
        for (metric, column, value) in [
            (metrics::RPS, 1, clean.map(|r| r.reads)),
            (metrics::RMBPS, 2, clean.map(|r| r.read_kib / 1024.0)),
            (metrics::WPS, 3, clean.map(|r| r.writes)),
            (metrics::WMBPS, 4, clean.map(|r| r.written_kib / 1024.0)),
            (metrics::RPQ, 5, clean.map(|r| r.reads / rate)),
            (metrics::RKBPQ, 6, clean.map(|r| r.read_kib / rate)),
            (imported::WKBPQ, 7, clean.map(|r| r.written_kib / rate)),
        ] {
            let text = &classic.io[column];
            values.put(
                metric,
                value.map_or_else(|| printed(text), |value| both(value, text.clone())),
            );
        }
    }

    fn add_cpu(&self, values: &mut Values, classic: &Metrics, clean_vm: Option<vmstat::Averages>) {
        // Without raw samples what counted banners took can be given back, because their number is
        // known; the sample since boot cannot.
        let counted: f64 = classic.vm[0].parse().unwrap_or(0.0);
        let factor = if counted > 0.0 {
            counted / vmstat::samples_without_banners(counted as u64) as f64
        } else {
            1.0
        };
        let corrected = |column: usize| {
            classic.vm[column]
                .parse::<f64>()
                .map_or(f64::NAN, |printed| printed * factor)
        };
        let [cs, cpu, cs_per_op, cpu_per_op] = match clean_vm {
            Some(clean) => [
                clean.cs,
                clean.cpu,
                clean.cs / self.rate,
                clean.cpu / self.rate,
            ],
            None => [1, 2, 3, 4].map(corrected),
        };
        for (metric, column, value) in [
            (metrics::CSPS, 1, cs),
            (metrics::CPUPS, 2, cpu),
            (metrics::CSPQ, 3, cs_per_op),
            (imported::CPUPO, 4, cpu_per_op),
        ] {
            values.put(metric, both(value, classic.vm[column].clone()));
        }
        // iostat counts hardware threads, as vmstat's percentages do; what the scripts note may be
        // cores.
        let cpus = self.files.iostat.and_then(|(_, iostat)| iostat.cpus);
        if let Some(cpus) = cpus.or(self.cpus) {
            let cpu_us = cpu_per_op / 100.0 * f64::from(cpus) * 1e6;
            values.put(metrics::CPUPQ, clean(cpu_us));
        }
    }
}
