//! Whether the counts of a step agree, wherever they were written: a campaign that does not add up
//! says so itself.

use plimsoll_core::histogram::EncodedHistogram;
use plimsoll_core::plan::Driver;
use plimsoll_core::record::OperationRecord;
use plimsoll_core::suggest::first_few;
use plimsoll_store::OperationSecond;
use plimsoll_store::event::StepDone;

use crate::runs::cell_runs::CellRuns;

/// Counts of a campaign that have to be equal, and were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Pairs.
    pub compared: u64,
    /// Of those.
    pub unequal: u64,
}

/// The books of all cells, and a note on each cell whose counts do not add up.
pub(crate) fn audit<'a>(
    cells: impl Iterator<Item = (&'a str, &'a CellRuns<'a>)>,
) -> (Books, Vec<String>) {
    let mut books = Books::default();
    let notes = cells.filter_map(|(label, cell)| books.enter(label, cell));
    let notes = notes.collect();
    (books, notes)
}

impl Books {
    /// Compares the counts of a cell's steps. A note, if some do not add up.
    fn enter(&mut self, label: &str, cell: &CellRuns<'_>) -> Option<String> {
        // What db_bench prints is rounded.
        if cell.cell.config.driver == Driver::DbBench {
            return None;
        }
        let mut found: Vec<String> = Vec::new();
        for run in cell.runs.iter().filter(|run| run.is_used) {
            let Some(done) = run.done else {
                continue;
            };
            for pair in pairs(done, run.series.as_deref().ok()) {
                self.compared += 1;
                if pair.is_unequal() {
                    self.unequal += 1;
                    found.push(format!("{}: {}", run.step.name, pair.words()));
                }
            }
        }
        found.dedup();
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        (!found.is_empty()).then(|| {
            format!(
                "{label}: counts that should be equal are not: {}. This is a bug in Plimsoll or a \
                changed file: believe none of the step's numbers, and report it.",
                first_few(&found)
            )
        })
    }
}

/// A count, and what it has to be. Files may say what they like: sums do not overflow.
struct Pair<'a> {
    /// The kind of operation, or the table.
    of: &'a str,
    what: &'static str,
    found: u128,
    wanted: u128,
    were: &'static str,
}

impl Pair<'_> {
    fn is_unequal(&self) -> bool {
        self.found != self.wanted
    }

    fn words(&self) -> String {
        let Self {
            of,
            what,
            found,
            wanted,
            were,
        } = self;
        format!("{of}: {what} are {found}, and {wanted} {were}")
    }
}

/// All that has to be equal in a step.
fn pairs<'a>(done: &'a StepDone, series: Option<&[OperationSecond]>) -> Vec<Pair<'a>> {
    // By slices histograms are of recorded turns, and counts of all.
    let has_turns = done.clients.iter().any(|client| client.turns.is_some());
    let mut pairs = Vec::new();
    for operation in &done.operations {
        pairs.extend(pairs_of_counts(operation, done, series));
        if !has_turns {
            pairs.extend(pairs_of_histograms(operation));
        }
    }
    pairs.extend(done.tables.iter().map(|table| Pair {
        of: &table.table,
        what: "its rows",
        found: table.found_rows.into(),
        wanted: table.expected_rows.into(),
        were: "were expected",
    }));
    pairs
}

fn pairs_of_counts<'a>(
    operation: &'a OperationRecord,
    done: &StepDone,
    series: Option<&[OperationSecond]>,
) -> impl Iterator<Item = Pair<'a>> + use<'a> {
    let kind = &operation.kind;
    let [ok, retried, failed] = [operation.ok, operation.retried, operation.failed].map(u128::from);
    let of_clients = done.clients.iter().filter(|client| client.kind == *kind);
    let of_clients = of_clients.map(|client| u128::from(client.ok)).sum();
    let of_seconds = series.map(|series| {
        let of_kind = series.iter().filter(|row| row.kind == *kind);
        of_kind.map(|row| u128::from(row.ok)).sum()
    });
    let was_done = |what, found| Pair {
        of: kind,
        what,
        found,
        wanted: ok,
        were: "were done",
    };
    let tries = Pair {
        of: kind,
        what: "ok, retried and failed",
        found: ok + retried + failed,
        wanted: operation.attempts.into(),
        were: "attempts",
    };
    let clients = was_done("the clients' operations", of_clients);
    let seconds = of_seconds.map(|sum| was_done("the seconds' operations", sum));
    [tries, clients].into_iter().chain(seconds)
}

/// What cannot be decoded is reported where its values are missed.
fn pairs_of_histograms(operation: &OperationRecord) -> impl Iterator<Item = Pair<'_>> {
    let length = |histogram: &EncodedHistogram| Some(histogram.decode().ok()?.len());
    let (ok, unsent) = (u128::from(operation.ok), u128::from(operation.unsent));
    let service = length(&operation.service).map(|found| Pair {
        of: &operation.kind,
        what: "the service times",
        found: found.into(),
        wanted: ok,
        were: "were done",
    });
    let response = operation.response.as_ref().and_then(length);
    let response = response.map(|found| Pair {
        of: &operation.kind,
        what: "the response times",
        found: found.into(),
        wanted: ok + unsent,
        were: "were due",
    });
    service.into_iter().chain(response)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::record::{ClientRecord, TableCheck, TurnSums};

    use super::*;

    fn histogram(values: u64) -> EncodedHistogram {
        let mut histogram = plimsoll_core::histogram::empty::<u64>();
        histogram.record_n(1000, values).unwrap();
        EncodedHistogram::of(&histogram)
    }

    /// Seven operations of two clients, one retried and one never sent.
    fn step() -> (StepDone, Vec<OperationSecond>) {
        let operation = OperationRecord {
            kind: "insert".into(),
            attempts: 8,
            ok: 7,
            retried: 1,
            unsent: 1,
            service: histogram(7),
            response: Some(histogram(8)),
            ..OperationRecord::default()
        };
        let client = |ok| ClientRecord {
            client: 1,
            kind: "insert".into(),
            ok,
            rows: 0,
            from_ns: 0,
            to_ns: 1,
            turns: None,
        };
        let second = |ok| OperationSecond {
            kind: "insert".into(),
            ok,
            ..OperationSecond::default()
        };
        let done = StepDone {
            operations: vec![operation],
            clients: vec![client(3), client(4)],
            tables: vec![TableCheck {
                table: "pi1".into(),
                expected_rows: 700,
                found_rows: 700,
                checksum: None,
            }],
            ..StepDone::default()
        };
        (done, vec![second(5), second(2)])
    }

    fn unequal(done: &StepDone, series: &[OperationSecond]) -> Vec<String> {
        let pairs = pairs(done, Some(series)).into_iter();
        pairs
            .filter(Pair::is_unequal)
            .map(|pair| pair.words())
            .collect()
    }

    #[test]
    fn what_adds_up_is_counted_and_not_spoken_of() {
        let (mut done, series) = step();
        assert_eq!(unequal(&done, &series), [""; 0]);
        assert_eq!(pairs(&done, Some(&series)).len(), 6);
        assert_eq!(pairs(&done, None).len(), 5, "a step without its seconds");
        // Of turns some are discarded, with their times.
        done.operations[0].service = histogram(2);
        done.clients[0].turns = Some(TurnSums {
            operations: 2,
            active_ns: 1,
        });
        assert_eq!(unequal(&done, &series), [""; 0]);
        assert_eq!(pairs(&done, Some(&series)).len(), 4);
    }

    #[test]
    fn what_does_not_add_up_is_said() {
        type Break = fn(&mut StepDone, &mut Vec<OperationSecond>);
        let cases: [(Break, &str); 6] = [
            (
                |done, _| done.operations[0].attempts = 9,
                "insert: ok, retried and failed are 8, and 9 attempts",
            ),
            (
                |done, _| done.clients.truncate(1),
                "insert: the clients' operations are 3, and 7 were done",
            ),
            (
                |_, series| drop(series.remove(0)),
                "insert: the seconds' operations are 2, and 7 were done",
            ),
            (
                |done, _| done.operations[0].service = histogram(6),
                "insert: the service times are 6, and 7 were done",
            ),
            (
                |done, _| done.operations[0].response = Some(histogram(7)),
                "insert: the response times are 7, and 8 were due",
            ),
            (
                |done, _| done.tables[0].found_rows = 699,
                "pi1: its rows are 699, and 700 were expected",
            ),
        ];
        for (break_it, wanted) in cases {
            let (mut done, mut series) = step();
            break_it(&mut done, &mut series);
            assert_eq!(unequal(&done, &series), [wanted]);
        }
    }

    #[test]
    fn sums_of_files_that_say_what_they_like_do_not_overflow() {
        let (mut done, series) = step();
        done.operations[0].ok = u64::MAX;
        done.operations[0].attempts = 0;
        let found = unequal(&done, &series);
        assert!(
            found[0].contains("18446744073709551616, and 0 attempts"),
            "{found:?}"
        );
    }
}
