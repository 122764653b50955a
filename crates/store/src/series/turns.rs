//! What was done in each turn of a step by slices (`series/<step>.turns.tsv`).

use std::borrow::Borrow;
use std::path::Path;
use std::str::FromStr;

use super::table::{Table, TableWriter};
use crate::StoreError;

const COLUMNS: [&str; 18] = [
    "round",
    "position",
    "begin_ns",
    "active_ns",
    "operations",
    "errors",
    "server_cpu_ns",
    "client_cpu_ns",
    "speed",
    "foreign_cpu_ns",
    "other_servers_cpu_ns",
    "left_cpu_ns",
    "length_ns",
    "all_operations",
    "stolen_ns",
    "inflight",
    "planned_ns",
    "candidates",
];
/// The columns that campaigns before methodology versions 7, 8, 9 and 10 have.
const OLD_COLUMNS: [usize; 4] = [11, 12, 13, 16];
/// A cell without a value.
const UNAVAILABLE: &str = "-";

/// One turn of one candidate. The members from `active_ns` to `left_cpu_ns`, `foreign_cpu_ns`
/// aside, leave out what was discarded of the turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// The round within the step and start, from 1.
    pub round: u32,
    /// The turn's place in the round's order, from 1.
    pub position: u32,
    /// Its beginning, from the step's start on the trial's clock.
    pub begin_ns: u64,
    /// The time that its operations took: from when the worker went on behind what was discarded,
    /// or from the turn's beginning where nothing was, to the end of its last; of several workers
    /// from the end of each one's first; the mean over the step's workers. For workers with a
    /// schedule from the discarded part to the turn's end.
    pub active_ns: u64,
    /// Operations of the step's primary kind that were done in that time, whole ones.
    pub operations: u64,
    /// Tries that were retried or failed.
    pub errors: u64,
    /// CPU of the candidate's server processes; of an embedded engine that of the trial's process,
    /// which is both.
    pub server_cpu_ns: Option<u64>,
    /// CPU of the trial's process; none where the engine is in it.
    pub client_cpu_ns: Option<u64>,
    /// Iterations per microsecond of a fixed integer loop just before the turn.
    pub speed: Option<f64>,
    /// CPU of processes that are not part of the campaign, over the whole turn. Where the kernel
    /// tells the whole machine's CPU in ticks alone, a turn's may be far off and negative, and only
    /// the sum over turns says something.
    pub foreign_cpu_ns: Option<i64>,
    /// CPU of the other candidates' servers: leakage.
    pub other_servers_cpu_ns: Option<u64>,
    /// CPU of the candidate's server in others' turns since its own before, which was leakage there,
    /// of it the share of all the time of a turn that counts. None in campaigns before methodology
    /// version 7.
    pub left_cpu_ns: Option<u64>,
    /// The whole turn, until the last worker was parked. None in campaigns before methodology
    /// version 8.
    pub length_ns: Option<u64>,
    /// Operations of the whole turn: with those of the discarded part. What is counted once for a
    /// whole step is divided by their sum. None in campaigns before methodology version 9, as are
    /// the members below.
    pub all_operations: Option<u64>,
    /// CPU time that the hypervisor gave to other guests in the whole turn, over all CPUs of the
    /// machine: in ticks of 10 ms, so only the sum over turns says something.
    pub stolen_ns: Option<u64>,
    /// Requests that the data directory's device was at work on just before the server went on:
    /// what others left to it. None where the folder is on no block device.
    pub inflight: Option<u64>,
    /// How long the turn was to be. None in campaigns before methodology version 10, as is the
    /// member below.
    pub planned_ns: Option<u64>,
    /// How many candidates have a turn in this round.
    pub candidates: Option<u64>,
}

/// Writes the turns of a step, see [`super::turns_path`].
pub fn write_turns(
    path: impl AsRef<Path>,
    turns: impl IntoIterator<Item = impl Borrow<Turn>>,
) -> Result<(), StoreError> {
    let mut table = TableWriter::create(path.as_ref(), &COLUMNS)?;
    for turn in turns {
        let turn = turn.borrow();
        table.append([
            turn.round.to_string(),
            turn.position.to_string(),
            turn.begin_ns.to_string(),
            turn.active_ns.to_string(),
            turn.operations.to_string(),
            turn.errors.to_string(),
            cell(turn.server_cpu_ns),
            cell(turn.client_cpu_ns),
            cell(turn.speed.filter(|speed| speed.is_finite())),
            cell(turn.foreign_cpu_ns),
            cell(turn.other_servers_cpu_ns),
            cell(turn.left_cpu_ns),
            cell(turn.length_ns),
            cell(turn.all_operations),
            cell(turn.stolen_ns),
            cell(turn.inflight),
            cell(turn.planned_ns),
            cell(turn.candidates),
        ])?;
    }
    table.finish()
}

fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(|| UNAVAILABLE.to_owned(), |value| value.to_string())
}

/// Reads what [`write_turns`] wrote.
pub fn read_turns(path: impl AsRef<Path>) -> Result<Vec<Turn>, StoreError> {
    let table = Table::read(path.as_ref())?;
    if table.columns() != COLUMNS
        && OLD_COLUMNS
            .iter()
            .all(|&count| table.columns() != COLUMNS[..count])
    {
        return Err(table.corrupt(1, &format!("the columns are not {}", COLUMNS.join(", "))));
    }
    table
        .rows()
        .map(|row| {
            let (line, cells) = row?;
            let row = Row {
                table: &table,
                line,
                cells: &cells,
            };
            Ok(Turn {
                round: row.number(0)?,
                position: row.number(1)?,
                begin_ns: row.number(2)?,
                active_ns: row.number(3)?,
                operations: row.number(4)?,
                errors: row.number(5)?,
                server_cpu_ns: row.available(6, Row::number)?,
                client_cpu_ns: row.available(7, Row::number)?,
                speed: row.available(8, Row::finite)?,
                foreign_cpu_ns: row.available(9, Row::number)?,
                other_servers_cpu_ns: row.available(10, Row::number)?,
                left_cpu_ns: row.available_where_present(11)?,
                length_ns: row.available_where_present(12)?,
                all_operations: row.available_where_present(13)?,
                stolen_ns: row.available_where_present(14)?,
                inflight: row.available_where_present(15)?,
                planned_ns: row.available_where_present(16)?,
                candidates: row.available_where_present(17)?,
            })
        })
        .collect()
}

struct Row<'a> {
    table: &'a Table,
    line: usize,
    cells: &'a [&'a str],
}

impl Row<'_> {
    fn number<T: FromStr + ToString>(&self, column: usize) -> Result<T, StoreError> {
        let cell = self.cells[column];
        let number = cell
            .parse::<T>()
            .ok()
            .filter(|number| number.to_string() == cell);
        number.ok_or_else(|| self.corrupt(column, "a whole number that fits"))
    }

    fn finite(&self, column: usize) -> Result<f64, StoreError> {
        let number = self.cells[column]
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        number.ok_or_else(|| self.corrupt(column, "a number"))
    }

    fn available<T>(
        &self,
        column: usize,
        read: impl Fn(&Self, usize) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.cells[column] == UNAVAILABLE {
            Ok(None)
        } else {
            read(self, column).map(Some)
        }
    }

    /// A column that campaigns of an earlier version do not have.
    fn available_where_present(&self, column: usize) -> Result<Option<u64>, StoreError> {
        if column < self.cells.len() {
            self.available(column, Row::number)
        } else {
            Ok(None)
        }
    }

    fn corrupt(&self, column: usize, wanted: &str) -> StoreError {
        self.table.corrupt(
            self.line,
            &format!(
                "the {} {:?} is not {wanted}",
                COLUMNS[column], self.cells[column]
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn turns() -> impl Strategy<Value = Vec<Turn>> {
        let speed = {
            use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
            proptest::option::of(NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE)
        };
        let turn = (
            any::<[u32; 2]>(),
            any::<[u64; 4]>(),
            any::<[Option<u64>; 10]>(),
            any::<Option<i64>>(),
            speed,
        );
        let turn = turn.prop_map(
            |(
                [round, position],
                [begin_ns, active_ns, operations, errors],
                cpu,
                foreign_cpu_ns,
                speed,
            )| {
                let [
                    server_cpu_ns,
                    client_cpu_ns,
                    other_servers_cpu_ns,
                    left_cpu_ns,
                    length_ns,
                    all_operations,
                    stolen_ns,
                    inflight,
                    planned_ns,
                    candidates,
                ] = cpu;
                Turn {
                    round,
                    position,
                    begin_ns,
                    active_ns,
                    operations,
                    errors,
                    server_cpu_ns,
                    client_cpu_ns,
                    speed,
                    foreign_cpu_ns,
                    other_servers_cpu_ns,
                    left_cpu_ns,
                    length_ns,
                    all_operations,
                    stolen_ns,
                    inflight,
                    planned_ns,
                    candidates,
                }
            },
        );
        proptest::collection::vec(turn, 0..20)
    }

    proptest! {
        #[test]
        fn round_trip(turns in turns()) {
            let dir = tempfile::tempdir().unwrap();
            let path = super::super::turns_path(dir.path(), "point-query");
            write_turns(&path, &turns).unwrap();
            prop_assert_eq!(read_turns(&path).unwrap(), turns);
        }
    }

    fn sample() -> Turn {
        Turn {
            round: 1,
            position: 2,
            begin_ns: 30,
            active_ns: 18,
            operations: 5,
            server_cpu_ns: Some(9),
            speed: Some(512.5),
            left_cpu_ns: Some(7),
            length_ns: Some(20),
            all_operations: Some(6),
            stolen_ns: Some(0),
            inflight: Some(3),
            planned_ns: Some(19),
            candidates: Some(4),
            ..Turn::default()
        }
    }

    const SAMPLE: &str = "round\tposition\tbegin_ns\tactive_ns\toperations\terrors\t\
        server_cpu_ns\tclient_cpu_ns\tspeed\tforeign_cpu_ns\tother_servers_cpu_ns\tleft_cpu_ns\t\
        length_ns\tall_operations\tstolen_ns\tinflight\tplanned_ns\tcandidates\n\
        1\t2\t30\t18\t5\t0\t9\t-\t512.5\t-\t-\t7\t20\t6\t0\t3\t19\t4\n";

    #[test]
    fn the_text_is_as_documented() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        write_turns(&path, [sample()]).unwrap();
        let expected = SAMPLE;
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        for (bad, reason) in [
            (
                expected.replace("\t18\t", "\t-\t"),
                "line 2: the active_ns \"-\" is not a whole number",
            ),
            (
                expected.replace("\t18\t", "\t018\t"),
                "is not a whole number",
            ),
            (
                expected.replace("\n1\t2\t", "\n4294967296\t2\t"),
                "the round \"4294967296\" is not a whole number that fits",
            ),
            (
                expected.replace("512.5", "inf"),
                "the speed \"inf\" is not a number",
            ),
            (expected.replace("\t-\t512.5", "\t512.5"), "it has 17 cells"),
            (
                expected.replace("\tspeed\t", "\tpace\t"),
                "line 1: the columns are not",
            ),
            (
                expected.trim_end().to_owned(),
                "line 2: the last line has no end",
            ),
        ] {
            fs::write(&path, bad).unwrap();
            let error = read_turns(&path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("x.tsv"), "{error}");
        }
    }

    #[test]
    fn files_of_earlier_versions_lack_columns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        let of_9 = SAMPLE
            .replace("\tplanned_ns\tcandidates", "")
            .replace("\t19\t4\n", "\n");
        let of_8 = of_9
            .replace("\tall_operations\tstolen_ns\tinflight", "")
            .replace("\t6\t0\t3\n", "\n");
        let of_7 = of_8.replace("\tlength_ns", "").replace("\t20\n", "\n");
        let of_6 = of_7.replace("\tleft_cpu_ns", "").replace("\t7\n", "\n");
        let turn_of_9 = Turn {
            planned_ns: None,
            candidates: None,
            ..sample()
        };
        let turn_of_8 = Turn {
            all_operations: None,
            stolen_ns: None,
            inflight: None,
            ..turn_of_9.clone()
        };
        let turn_of_7 = Turn {
            length_ns: None,
            ..turn_of_8.clone()
        };
        let turn_of_6 = Turn {
            left_cpu_ns: None,
            ..turn_of_7.clone()
        };
        for (text, turn) in [
            (of_9.clone(), turn_of_9),
            (of_8, turn_of_8),
            (of_7, turn_of_7),
            (of_6, turn_of_6),
        ] {
            fs::write(&path, &text).unwrap();
            assert_eq!(read_turns(&path).unwrap(), [turn], "{text}");
        }
        // Of two columns that came together one alone is damage.
        let cut = of_9.replace("\tinflight", "").replace("\t3\n", "\n");
        fs::write(&path, cut).unwrap();
        assert!(read_turns(&path).is_err());
    }
}
