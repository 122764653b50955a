//! Whether the counts of a step agree, wherever they were written: a campaign that does not add up
//! says so itself.

use plimsoll_core::plan::Driver;
use plimsoll_core::record::{ClientRecord, OperationRecord};
use plimsoll_core::suggest::first_few;
use plimsoll_store::OperationSecond;

use crate::runs::cell_runs::CellRuns;

/// A note on a cell's steps whose counts do not add up; none where all do.
pub(crate) fn books_that_disagree(label: &str, cell: &CellRuns<'_>) -> Option<String> {
    // What db_bench prints is rounded.
    if cell.cell.config.driver == Driver::DbBench {
        return None;
    }
    let mut found: Vec<String> = Vec::new();
    for run in cell.runs.iter().filter(|run| run.is_used) {
        let Some(done) = run.done else {
            continue;
        };
        let series = run.series.as_deref().ok();
        for operation in &done.operations {
            let problem = disagreement(operation, &done.clients, series);
            found.extend(problem.map(|problem| format!("{}: {problem}", run.step.name)));
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

/// What does not add up to the operations done.
fn disagreement(
    operation: &OperationRecord,
    clients: &[ClientRecord],
    series: Option<&[OperationSecond]>,
) -> Option<String> {
    // Files may say what they like: sums do not overflow.
    let (kind, ok) = (&operation.kind, u128::from(operation.ok));
    let of_clients = clients.iter().filter(|client| client.kind == *kind);
    let mut sums = vec![
        (
            "ok, retried and failed",
            ok + u128::from(operation.retried) + u128::from(operation.failed),
            u128::from(operation.attempts),
            "attempts",
        ),
        (
            "the clients' operations",
            of_clients.map(|client| u128::from(client.ok)).sum(),
            ok,
            "were done",
        ),
    ];
    if let Some(series) = series {
        let of_kind = series.iter().filter(|row| row.kind == *kind);
        let sum = of_kind.map(|row| u128::from(row.ok)).sum();
        sums.push(("the seconds' operations", sum, ok, "were done"));
    }
    let wrong = sums.into_iter().find(|(_, sum, wanted, _)| sum != wanted);
    wrong.map(|(what, sum, wanted, were)| format!("{kind}: {what} are {sum}, and {wanted} {were}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_add_up_is_said() {
        let operation = OperationRecord {
            kind: "insert".into(),
            attempts: 8,
            ok: 7,
            retried: 1,
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
        let (clients, series) = ([client(3), client(4)], [second(5), second(2)]);
        let fine = disagreement(&operation, &clients, Some(&series));
        assert_eq!(fine, None);
        assert_eq!(disagreement(&operation, &clients, None), None);
        let greatest = OperationRecord {
            ok: u64::MAX,
            attempts: 0,
            ..operation.clone()
        };
        assert!(
            disagreement(&greatest, &[], None).is_some(),
            "1 more would be 0"
        );
        let attempts = OperationRecord {
            attempts: 9,
            ..operation.clone()
        };
        for (operation, clients, series, wanted) in [
            (
                &attempts,
                &clients[..],
                &series[..],
                "ok, retried and failed are 8, and 9 attempts",
            ),
            (
                &operation,
                &clients[..1],
                &series[..],
                "the clients' operations are 3, and 7 were done",
            ),
            (
                &operation,
                &clients[..],
                &series[1..],
                "the seconds' operations are 2, and 7 were done",
            ),
        ] {
            let found = disagreement(operation, clients, Some(series)).unwrap();
            assert_eq!(found, format!("insert: {wanted}"));
        }
    }
}
