//! Clients that finished nothing while others worked: what they waited for is in no latency.

use std::collections::BTreeMap;

use plimsoll_core::plan::{Family, Step};
use plimsoll_core::record::ClientRecord;
use plimsoll_core::suggest::first_few;

use crate::runs::cell_runs::CellRuns;

/// A note on a cell's steps with such clients; none where there are none.
pub(crate) fn starved_clients(label: &str, cell: &CellRuns<'_>) -> Option<String> {
    let runs = cell
        .runs
        .iter()
        .filter(|run| run.is_used && is_of_events(run.step));
    let steps =
        runs.filter_map(|run| Some((run.step.name.as_str(), idle_of_all(&run.done?.clients))));
    note(label, steps)
}

/// Whether clients go through events of their own, so that one may do none.
fn is_of_events(step: &Step) -> bool {
    matches!(step.family(), Family::Sysbench | Family::File) && !step.makes_data()
}

fn note<'a>(label: &str, steps: impl Iterator<Item = (&'a str, (usize, usize))>) -> Option<String> {
    let starved: Vec<String> = steps
        .filter(|(_, (idle, _))| *idle > 0)
        .map(|(step, (idle, all))| format!("{idle} of {all} in {step}"))
        .collect();
    let starved: Vec<&str> = starved.iter().map(String::as_str).collect();
    (!starved.is_empty()).then(|| {
        format!(
            "{label}: clients that finished nothing: {}. What they waited for is in no latency.",
            first_few(&starved)
        )
    })
}

/// How many clients finished no operation of any kind, and how many there were.
fn idle_of_all(clients: &[ClientRecord]) -> (usize, usize) {
    let mut finished: BTreeMap<u32, u64> = BTreeMap::new();
    clients
        .iter()
        .for_each(|of_kind| *finished.entry(of_kind.client).or_default() += of_kind.ok);
    (
        finished.values().filter(|ok| **ok == 0).count(),
        finished.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(client: u32, kind: &str, ok: u64) -> ClientRecord {
        ClientRecord {
            client,
            kind: kind.to_owned(),
            ok,
            ..ClientRecord::default()
        }
    }

    #[test]
    fn a_client_that_did_one_kind_of_event_has_not_starved() {
        let clients = [
            client(1, "read", 3),
            client(1, "write", 0),
            client(2, "read", 0),
            client(2, "write", 0),
        ];
        assert_eq!(idle_of_all(&clients), (1, 2));
        assert_eq!(idle_of_all(&clients[..2]), (0, 1));
        assert_eq!(idle_of_all(&[]), (0, 0));
    }

    #[test]
    fn starved_clients_are_counted_by_step() {
        assert_eq!(note("a", [("scan", (0, 4))].into_iter()), None);
        let text = note("a", [("scan", (0, 4)), ("scan@8", (3, 8))].into_iter()).unwrap();
        assert_eq!(
            text,
            "a: clients that finished nothing: 3 of 8 in scan@8. What they waited for is in no \
            latency."
        );
    }
}
