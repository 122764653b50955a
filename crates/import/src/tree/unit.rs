//! Which files belong to one campaign, by their paths alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::names::folder::CellName;

/// What a campaign is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The folder that holds its cells.
    pub dir: PathBuf,
    /// The set of tables within the folder, where it holds several.
    pub set: String,
    /// Its files.
    pub files: Vec<PathBuf>,
}

/// Groups files. A folder that names a build with its config is a cell, and the folder above it is the campaign's; the Insert Benchmark has
/// a folder per step between cell and files, `db_bench` a folder `bm.*` between campaign and cell; merged tables lie in `res.*`.
pub(crate) fn units(files: Vec<PathBuf>) -> Vec<Unit> {
    let mut units: BTreeMap<(PathBuf, String), Vec<PathBuf>> = BTreeMap::new();
    for file in files {
        units.entry((unit_dir(&file).to_owned(), table_set(&file).unwrap_or_default())).or_default().push(file);
    }
    units.into_iter().map(|((dir, set), files)| Unit { dir, set, files }).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether a folder is a step of the Insert Benchmark: `l.i0`, `l.x`, `qr100.L1`, `q.L3.ips1000`, `end`.
pub(crate) fn is_step_folder(name: &str) -> bool {
    matches!(name, "l.i0" | "l.x" | "l.i1" | "l.i2" | "l" | "scan" | "end") || (name.starts_with('q') && name.contains(".L"))
}

fn unit_dir(file: &Path) -> &Path {
    let dir = file.parent().unwrap_or(file);
    let above = |path: &Path| -> Option<PathBuf> { path.parent().map(Path::to_owned) };
    // A version's own files lie in a folder of its name, under `bm.*` or not.
    let is_of_version = name(file) == "report.tsv" || (name(file).starts_with("benchmark_") && name(file).ends_with(".log"));
    if is_of_version && !dir.parent().is_some_and(|above| name(above).starts_with("bm.")) {
        return dir.parent().unwrap_or(dir);
    }
    for folder in dir.ancestors() {
        let of = name(folder);
        if CellName::of_sysbench(of).is_some() || CellName::of_insert_benchmark(of).is_some() {
            return folder.parent().unwrap_or(folder);
        }
        if is_step_folder(of) {
            let cell = folder.parent().unwrap_or(folder);
            let is_named = CellName::of_insert_benchmark(name(cell)).is_some();
            return if is_named { cell.parent().unwrap_or(cell) } else { cell };
        }
        if of.starts_with("bm.") || (of.starts_with("res.") && is_merged(name(file)) && above(folder).is_some()) {
            return folder.parent().unwrap_or(folder);
        }
    }
    dir
}

fn is_merged(file: &str) -> bool {
    file.starts_with("mrg.") || file.starts_with("rel.")
}

/// `byrx.8x` of `sum.byrx.8x.txt`, `abs.byrx.8x.tsv` and `rel2.byrx.8x.csv`: each set of `db_bench` results is a campaign.
pub(crate) fn table_set(file: &Path) -> Option<String> {
    let (stem, end) = name(file).rsplit_once('.')?;
    let (kind, set) = stem.split_once('.')?;
    let is_table = matches!(kind, "sum" | "sum2" | "abs" | "rel" | "rel2" | "csum" | "csum2") && matches!(end, "txt" | "tsv" | "csv");
    (is_table && !set.is_empty()).then(|| set.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_find_their_campaign() {
        for (file, dir, set) in [
            ("/r/dop1/x.my9500_rel.z12a.pk1/sb.o.scan.range100.pk1.dop1", "/r/dop1", ""),
            ("/r/dop1/qps.abs.all.tsv", "/r/dop1", ""),
            ("/r/24u.1tno/480m.my8033_rel.cz10a/l.i0/o.ib.dop24.1", "/r/24u.1tno", ""),
            ("/r/one_run/l.i0/o.ib.dop1.1", "/r/one_run", ""),
            ("/r/20m/res.in/mrg.l.i0", "/r/20m", ""),
            ("/r/20m/o.sum.t.20m.my5649.cx6d", "/r/20m", ""),
            ("/r/u5/sum.byrx.8x.txt", "/r/u5", "byrx.8x"),
            ("/r/u5/rel2.byrx.8x.csv", "/r/u5", "byrx.8x"),
            ("/r/res.byrx/bm.lc.nt24.d0/8.9.fb/report.tsv", "/r/res.byrx", ""),
            ("/r/out/8.9.fb/report.tsv", "/r/out", ""),
            ("/r/pgbench.txt", "/r", ""),
        ] {
            let units = units(vec![PathBuf::from(file)]);
            assert_eq!((units[0].dir.to_str().unwrap(), units[0].set.as_str()), (dir, set), "{file}");
        }
    }
}
