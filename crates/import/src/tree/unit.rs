//! Which files belong to one campaign, by their paths alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::names::folder::CellName;

/// What a campaign is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The folder that holds its cells.
    pub dir: PathBuf,
    /// The set of tables within the folder, where it holds several.
    pub set: String,
    pub files: Vec<PathBuf>,
}

/// Groups files below `root`. A folder that names a build with its config is a cell, and the folder
/// above it is the campaign's; the Insert Benchmark has a folder per step between cell and files,
/// `db_bench` a folder `bm.*` between campaign and cell; merged tables lie in `res.*`, other tables
/// beside the cells. Files without such a place belong to the campaign in whose folder they lie, or
/// else their folder is a cell.
pub(crate) fn units(files: Vec<PathBuf>, root: &Path) -> Vec<Unit> {
    let mut units: BTreeMap<(PathBuf, String), Vec<PathBuf>> = BTreeMap::new();
    let mut others: Vec<PathBuf> = Vec::new();
    let listed: BTreeSet<PathBuf> = files
        .iter()
        .filter(|file| name(file) == LIST)
        .filter_map(|file| Some(file.parent()?.to_owned()))
        .collect();
    for file in files {
        // What follows from a list belongs to the campaign of the versions beside it.
        let is_listed =
            file.parent().is_some_and(|dir| listed.contains(dir)) && follows_from_list(&file);
        let set = if is_listed {
            String::new()
        } else {
            table_set(&file).unwrap_or_default()
        };
        match unit_dir(&file, root).map(|dir| if is_listed { above_versions(dir) } else { dir }) {
            Some(dir) => units.entry((dir.to_owned(), set)).or_default().push(file),
            None => others.push(file),
        }
    }
    let known: BTreeSet<PathBuf> = units
        .keys()
        .filter(|(_, set)| set.is_empty())
        .map(|(dir, _)| dir.clone())
        .collect();
    for file in others {
        let dir = file.parent().unwrap_or(&file);
        let is_own = known.contains(dir) || !dir.starts_with(root) || dir == root;
        let dir = if is_own {
            dir
        } else {
            dir.parent().unwrap_or(dir)
        }
        .to_owned();
        units.entry((dir, String::new())).or_default().push(file);
    }
    units
        .into_iter()
        .map(|((dir, set), files)| Unit { dir, set, files })
        .collect()
}

/// A list of all versions, which lies beside their folders.
const LIST: &str = "summary.tsv";

/// Whether a file is the list, or one of the tables without names that its numbers are in once
/// more.
fn follows_from_list(file: &Path) -> bool {
    let is_without_names = ["abs.", "rel.", "rel2."]
        .iter()
        .any(|start| name(file).starts_with(start));
    name(file) == LIST || is_without_names && table_set(file).is_some()
}

/// The folder that versions under `bm.*` belong to, and with them what lies beside them.
fn above_versions(dir: &Path) -> &Path {
    dir.parent()
        .filter(|_| name(dir).starts_with("bm."))
        .unwrap_or(dir)
}

fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// Whether a folder is a step of the Insert Benchmark: `l.i0`, `l.x`, `qr100.L1`, `q.L3.ips1000`,
/// `end`.
pub(crate) fn is_step_folder(name: &str) -> bool {
    matches!(
        name,
        "l.i0" | "l.x" | "l.i1" | "l.i2" | "l" | "scan" | "end"
    ) || (name.starts_with('q') && name.contains(".L"))
}

/// The campaign's folder, if names give it. What lies above `root` has no say, but for the
/// folder of a single file.
fn unit_dir<'a>(file: &'a Path, root: &Path) -> Option<&'a Path> {
    let dir = file.parent()?;
    if table_set(file).is_some() || TABLES.iter().any(|start| name(file).starts_with(start)) {
        return Some(dir);
    }
    // A version's own files lie in a folder of its name, under `bm.*` or not.
    let is_of_version = name(file) == "report.tsv"
        || (name(file).starts_with("benchmark_") && name(file).ends_with(".log"));
    if is_of_version
        && !dir
            .parent()
            .is_some_and(|above| name(above).starts_with("bm."))
    {
        return dir.parent();
    }
    for folder in dir
        .ancestors()
        .take_while(|folder| folder.starts_with(root) || *folder == dir)
    {
        let of = name(folder);
        if CellName::of_sysbench(of).is_some() || CellName::of_insert_benchmark(of).is_some() {
            return folder.parent();
        }
        if is_step_folder(of) && name(file).starts_with("o.") {
            let cell = folder.parent()?;
            let is_named = CellName::of_insert_benchmark(name(cell)).is_some();
            return if is_named { cell.parent() } else { Some(cell) };
        }
        if of.starts_with("bm.") || (of.starts_with("res.") && is_merged(name(file))) {
            return folder.parent();
        }
    }
    is_merged(name(file)).then_some(dir)
}

/// How files begin that hold several cells.
const TABLES: [&str; 4] = ["qps.", "o.met", "o.sum.t", LIST];

fn is_merged(file: &str) -> bool {
    file.starts_with("mrg.") || file.starts_with("rel.")
}

/// `byrx.8x` of `sum.byrx.8x.txt`, `abs.byrx.8x.tsv`, `rel2.byrx.8x.csv`, `fmt.byrx.8x.abs0.tsv` and
/// `sum.abs1.byrx.8x.csv`: each set of `db_bench` results is a campaign.
pub(crate) fn table_set(file: &Path) -> Option<String> {
    let (stem, end) = name(file).rsplit_once('.')?;
    let (kind, rest) = stem.split_once('.')?;
    let is_text = matches!(end, "txt" | "tsv" | "csv");
    let set = match kind {
        "fmt" => ["0", "1"]
            .iter()
            .find_map(|which| rest.strip_suffix(which)?.strip_suffix(".abs"))?,
        "sum" => ["abs0.", "abs1."]
            .iter()
            .find_map(|which| rest.strip_prefix(which))
            .unwrap_or(rest),
        "sum2" | "abs" | "rel" | "rel2" | "csum" | "csum2" => rest,
        _ => return None,
    };
    (is_text && !set.is_empty()).then(|| set.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_find_their_campaign() {
        for (file, dir, set) in [
            (
                "/r/dop1/x.my9500_rel.z12a.pk1/sb.o.scan.range100.pk1.dop1",
                "/r/dop1",
                "",
            ),
            ("/r/dop1/qps.abs.all.tsv", "/r/dop1", ""),
            (
                "/r/24u.1tno/480m.my8033_rel.cz10a/l.i0/o.ib.dop24.1",
                "/r/24u.1tno",
                "",
            ),
            ("/r/one_run/l.i0/o.ib.dop1.1", "/r/one_run", ""),
            ("/r/20m/res.in/mrg.l.i0", "/r/20m", ""),
            ("/r/20m/o.sum.t.20m.my5649.cx6d", "/r/20m", ""),
            ("/r/u5/sum.byrx.8x.txt", "/r/u5", "byrx.8x"),
            ("/r/u5/rel2.byrx.8x.csv", "/r/u5", "byrx.8x"),
            ("/r/byrx/fmt.byrx.both.abs0.tsv", "/r/byrx", "byrx.both"),
            ("/r/byrx/fmt.byrx.hcc.abs1.csv", "/r/byrx", "byrx.hcc"),
            ("/r/8core/sum.abs0.iodir.csv", "/r/8core", "iodir"),
            (
                "/r/res.byrx/bm.lc.nt24.d0/8.9.fb/report.tsv",
                "/r/res.byrx",
                "",
            ),
            ("/r/out/8.9.fb/report.tsv", "/r/out", ""),
            ("/r/pgbench.txt", "/r", ""),
            ("/r/one/pgbench.txt", "/r", ""),
            ("/r/l/end/notes", "/r/l", ""),
        ] {
            let units = units(vec![PathBuf::from(file)], Path::new("/r"));
            assert_eq!(
                (units[0].dir.to_str().unwrap(), units[0].set.as_str()),
                (dir, set),
                "{file}"
            );
        }
    }

    #[test]
    fn other_files_join_the_campaign_they_lie_in() {
        let files = [
            "/r/dop1/x.my9500_rel.z12a.pk1/sb.o.scan.range100.pk1.dop1",
            "/r/dop1/notes",
            "/r/README",
        ]
        .map(PathBuf::from);
        let units = units(files.into(), Path::new("/r"));
        let found: Vec<_> = units
            .iter()
            .map(|unit| (unit.dir.to_str().unwrap(), unit.files.len()))
            .collect();
        assert_eq!(found, [("/r", 1), ("/r/dop1", 2)]);
    }

    #[test]
    fn lists_and_their_tables_join_the_versions_beside_them() {
        for (folder, dir) in [("/r/bm.lc", "/r"), ("/r/out", "/r/out")] {
            let files = [
                "rocksdb@8.0.0/report.tsv",
                "summary.tsv",
                "abs.lc.tsv",
                "rel2.lc.csv",
            ];
            let units = units(
                files.map(|file| Path::new(folder).join(file)).into(),
                Path::new("/r"),
            );
            let found: Vec<_> = units
                .iter()
                .map(|unit| {
                    (
                        unit.dir.to_str().unwrap(),
                        unit.set.as_str(),
                        unit.files.len(),
                    )
                })
                .collect();
            assert_eq!(found, [(dir, "", 4)]);
        }
    }

    #[test]
    fn folders_above_the_tree_have_no_say() {
        let file = PathBuf::from("/home/l/x.my9500_rel.z12a.pk1/results/run.txt");
        let units = units(
            vec![file],
            Path::new("/home/l/x.my9500_rel.z12a.pk1/results"),
        );
        assert_eq!(
            units[0].dir,
            Path::new("/home/l/x.my9500_rel.z12a.pk1/results")
        );
    }
}
