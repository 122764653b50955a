//! The shape of RocksDB's tree over the seconds of a step.

use std::collections::BTreeSet;

use plimsoll_store::series::LevelSample;

use crate::runs::attempts::Run;

/// The tree of one cell over the seconds of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelShape {
    /// Index into the view's cells.
    pub cell: usize,
    /// How many seconds one column stands for.
    pub seconds_per_column: u32,
    /// The levels that had files at any time, rising.
    pub levels: Vec<u32>,
    /// Per level and column: files and bytes at the column's last look.
    pub columns: Vec<Vec<(u64, u64)>>,
}

/// More columns than this cannot be told apart.
const MOST_COLUMNS: u32 = 240;

/// Of one run per cell: those that looked at their levels.
pub(crate) fn shapes(runs: &[Option<&Run<'_>>]) -> Vec<LevelShape> {
    let of_run = |(cell, run): (usize, &Option<&Run<'_>>)| {
        let run = run.as_ref()?;
        shape(cell, &run.record?.levels(&run.step.name).ok()?)
    };
    runs.iter().enumerate().filter_map(of_run).collect()
}

fn shape(cell: usize, samples: &[LevelSample]) -> Option<LevelShape> {
    let last = samples.iter().map(|sample| sample.second).max()?;
    let seconds_per_column = (last + 1).div_ceil(MOST_COLUMNS);
    let count = (last / seconds_per_column + 1) as usize;
    let levels: Vec<u32> = samples
        .iter()
        .filter(|sample| sample.bytes > 0)
        .map(|sample| sample.level)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    // A second in which a level has no row found it empty; a column without any look has none.
    let mut looks: Vec<Option<u32>> = vec![None; count];
    for sample in samples {
        let look = &mut looks[(sample.second / seconds_per_column) as usize];
        *look = Some(look.map_or(sample.second, |known| known.max(sample.second)));
    }
    let column = |level: u32, at: usize| {
        let of_look =
            |sample: &&LevelSample| sample.level == level && Some(sample.second) == looks[at];
        samples
            .iter()
            .find(of_look)
            .map_or((0, 0), |sample| (sample.files, sample.bytes))
    };
    let columns = levels
        .iter()
        .map(|level| (0..count).map(|at| column(*level, at)).collect())
        .collect();
    (!levels.is_empty()).then_some(LevelShape {
        cell,
        seconds_per_column,
        levels,
        columns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_step_is_thinned_to_the_last_look_of_each_column() {
        let sample = |second, level, files, bytes| LevelSample {
            second,
            level,
            files,
            bytes,
        };
        let short = [
            sample(0, 0, 2, 20),
            sample(1, 0, 3, 30),
            sample(1, 6, 1, 5),
            sample(2, 6, 4, 50),
        ];
        let shape_of = shape(7, &short).unwrap();
        assert_eq!(
            (
                shape_of.cell,
                shape_of.seconds_per_column,
                shape_of.levels.as_slice()
            ),
            (7, 1, &[0, 6][..])
        );
        assert_eq!(
            shape_of.columns,
            [
                vec![(2, 20), (3, 30), (0, 0)],
                vec![(0, 0), (1, 5), (4, 50)]
            ]
        );
        let long: Vec<LevelSample> = (0..1000)
            .map(|second| sample(second, 0, u64::from(second), 1))
            .collect();
        let shape_of = shape(0, &long).unwrap();
        assert_eq!(
            (shape_of.seconds_per_column, shape_of.columns[0].len()),
            (5, 200)
        );
        assert_eq!(
            (shape_of.columns[0][0], shape_of.columns[0][199]),
            ((4, 1), (999, 1))
        );
        assert_eq!(shape(0, &[]), None);
        assert_eq!(shape(0, &[sample(0, 0, 0, 0)]), None);
    }
}
