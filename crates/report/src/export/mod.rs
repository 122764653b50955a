//! Files of the original tools, in their layout and with their rounding.
//!
//! Imported results come out with the digits they came in with; native ones are clean values in the
//! same layout.

mod insert_benchmark;
mod rocksdb;
mod rocksdb_native;
mod sysbench;
pub(crate) mod sysbench_layout;
mod sysbench_native;

use plimsoll_core::plan;
use plimsoll_store::CampaignRecord;
use plimsoll_store::imported;

use plimsoll_analysis::selection::{Candidate, choose, find};
use plimsoll_analysis::{AnalysisError, Options, analyse};

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Below the export's folder.
    pub path: String,
    pub text: String,
}

/// An entry among the builds that ends a group: what follows is compared with the first after it.
pub const BREAK: &str = "-";

/// The originals' files of a campaign: of the builds that are named, else of all. Columns and lines
/// are in the order of versions, the base first.
pub fn to_classic_files(
    record: &CampaignRecord,
    options: &Options,
) -> Result<Vec<ExportFile>, AnalysisError> {
    let Some(imported) = &record.imported else {
        let names: Vec<String> = options
            .builds
            .iter()
            .filter(|name| *name != BREAK)
            .cloned()
            .collect();
        let view = analyse(
            std::slice::from_ref(record),
            &Options {
                base: options.base.clone(),
                builds: names,
            },
        )?;
        return Ok(match view.steps.first().and_then(|step| step.family) {
            // No original runs a workload that the user wrote.
            Some(plan::Family::File) => Vec::new(),
            Some(plan::Family::Sysbench) => sysbench_native::export(&view),
            Some(plan::Family::Rocksdb) => rocksdb_native::files(&view),
            Some(plan::Family::InsertBenchmark) | None => insert_benchmark::of_native(&view),
        });
    };
    let candidates: Vec<Candidate> = imported
        .cells
        .iter()
        .map(|cell| Candidate {
            label: cell.label.clone(),
            build: cell.build.clone(),
        })
        .collect();
    let groups = groups(&candidates, options, imported.base)?;
    Ok(match imported.family {
        imported::Family::Sysbench => sysbench::files(imported, &groups.concat()),
        imported::Family::InsertBenchmark => insert_benchmark::of_imported(imported, &groups),
        imported::Family::Rocksdb => rocksdb::files(imported, &groups.concat()),
        imported::Family::Other => Vec::new(),
    })
}

/// Indices of the cells, each group with its base first and then in the order of versions.
fn groups(
    candidates: &[Candidate],
    options: &Options,
    base: usize,
) -> Result<Vec<Vec<usize>>, AnalysisError> {
    let named: Vec<&[String]> = options
        .builds
        .split(|name| name == BREAK)
        .filter(|names| !names.is_empty())
        .collect();
    if named.len() < 2 {
        let names: Vec<String> = named.concat();
        let mut chosen = choose(candidates, options.base.as_deref(), &names, base)?;
        if let Some((_, others)) = chosen.split_first_mut() {
            others.sort_unstable();
        }
        // Without a base by name the oldest version that was chosen is the base.
        if options.base.is_none() && !names.is_empty() && !chosen.contains(&base) {
            chosen.sort_unstable();
        }
        return Ok(vec![chosen]);
    }
    let group = |names: &&[String]| -> Result<Vec<usize>, AnalysisError> {
        let mut cells: Vec<usize> = Vec::new();
        for name in *names {
            cells.extend(find(name, candidates)?);
        }
        cells.sort_unstable();
        cells.dedup();
        Ok(cells)
    };
    named.iter().map(group).collect()
}

/// `%.6g`: six significant digits without trailing zeros.
fn six_digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let exponent = format!("{number:.5e}")
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse::<i32>().ok())
        .unwrap_or(0);
    let trim = |text: String| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    };
    if (-4..6).contains(&exponent) {
        return trim(format!("{number:.*}", (5 - exponent) as usize));
    }
    let text = format!("{number:.5e}");
    let (mantissa, _) = text.split_once('e').unwrap_or((&text, ""));
    format!(
        "{}e{}{:02}",
        trim(mantissa.to_owned()),
        if exponent < 0 { '-' } else { '+' },
        exponent.abs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_significant_digits() {
        for (number, text) in [
            (0.0, "0"),
            (0.005, "0.005"),
            (1.236, "1.236"),
            (1234.567, "1234.57"),
            (123_456.7, "123457"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_012_345_6, "1.23456e-05"),
            (0.000_123_456_78, "0.000123457"),
            (999_999.96, "1e+06"),
            (70.021, "70.021"),
        ] {
            assert_eq!(six_digits(number), text);
        }
    }

    #[test]
    fn groups_keep_the_order_of_versions() {
        let candidates: Vec<Candidate> = ["a", "b", "c", "d"]
            .map(|name| Candidate {
                label: format!("{name}.z"),
                build: name.to_owned(),
            })
            .into();
        let of = |base: Option<&str>, builds: &str| {
            let builds = builds
                .split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect();
            groups(
                &candidates,
                &Options {
                    base: base.map(str::to_owned),
                    builds,
                },
                0,
            )
            .unwrap()
        };
        assert_eq!(of(None, ""), [[0, 1, 2, 3]]);
        assert_eq!(of(Some("c"), ""), [[2, 0, 1, 3]]);
        assert_eq!(of(None, "d,b"), [[1, 3]]);
        assert_eq!(of(None, "c,a,-,d,b"), [[0, 2], [1, 3]]);
    }
}
