//! A workload file on a real SQLite: its tables, the values of its statements, and what they leave.

mod shop_support;
mod sysbench_support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plimsoll_engine::{StartOptions, engine};
use plimsoll_workload::{SharedServer, WorkloadRun};
use shop_support::{rows, run_shop, workload};

fn start(dir: &Path) -> SharedServer {
    let settings = BTreeMap::from([
        ("journal_mode".to_owned(), "wal".to_owned()),
        ("synchronous".to_owned(), "off".to_owned()),
    ]);
    let engine = engine(&"sqlite".parse().unwrap(), None).unwrap();
    Arc::new(engine.start(&StartOptions::new(dir, settings)).unwrap())
}

#[test]
fn the_example_runs_on_sqlite_prepared_and_in_text() {
    for (text, clients) in [
        ("", 1),
        (
            "[sizes]\nclients = 3\nprepared = false\nload = \"classic\"\n",
            3,
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let server = start(dir.path());
        run_shop(
            &server,
            &format!("steps = [\"day\", \"reads\", \"buy\", \"pay\"]\n{text}"),
        );
        // Steps go on where the numbers of the ones before ended.
        let sold = rows(
            &server,
            "select count(*), count(distinct id), min(id) from purchase where id > 5000",
        )
        .remove(0);
        let counts: Vec<u64> = sold
            .split('|')
            .map(|count| count.parse().unwrap())
            .collect();
        // An event that is tried again has new numbers.
        assert!(
            counts[0] > 60 * clients && counts[0] == counts[1] && counts[2] >= 5001,
            "{sold}"
        );
        assert!(clients > 1 || counts[2] == 5001, "{sold}");
        // A purchase has the customer that its event has looked at, and its line what was taken.
        assert_eq!(
            rows(
                &server,
                "select count(*) from line where purchase_id > 5000 and number = 1"
            )[0],
            counts[0].to_string()
        );
        let taken = rows(
            &server,
            "select sum(amount) from line where purchase_id > 5000",
        )
        .remove(0);
        assert_eq!(
            rows(&server, "select 1000 * count(*) - sum(stock) from item")[0],
            taken
        );
    }
}

#[test]
fn the_same_seed_makes_the_same_rows_and_the_same_events() {
    let run = |text: &str| {
        let dir = tempfile::tempdir().unwrap();
        run_shop(
            &start(dir.path()),
            &format!("steps = [\"day\", \"buy\"]\n{text}"),
        )
    };
    let first = run("");
    assert_eq!(run(""), first);
    assert_eq!(
        run("[sizes]\nprepared = false\nload = \"classic\"\n"),
        first
    );
}

const VALUES: &str = r##"name = "t"
[table.a]
rows = 100
columns = [{ name = "id", type = "integer" }]
[table.seen]
rows = 1
columns = [
  { name = "id", type = "integer", auto = true },
  { name = "one", type = "integer" }, { name = "two", type = "integer" }, { name = "three", type = "integer" },
  { name = "t", type = "varchar(30)", values = { pattern = "@" } }, { name = "u", type = "varchar(30)", values = { pattern = "#" } },
]
[statement.ask]
sql = "SELECT id FROM a WHERE id = :x AND id >= :x AND :word <> ''"
parameters.x = { id = "a" }
parameters.word = { pattern = "<@@@-##>" }
[statement.note]
sql = "INSERT INTO seen (one, two, three, t, u) VALUES (:x, :more, :once, :word, :word)"
parameters.x = { same = "x" }
parameters.more = { after = "n", plus = 7 }
parameters.once = { sequence = 100 }
parameters.word = { same = "word" }
parameters.n = { integer = [1, 3] }
[event.e]
statements = [{ statement = "ask", times = 3 }, { statement = "note", times = 2 }]
"##;

#[test]
fn values_are_those_of_earlier_parameters() {
    // `after` needs its parameter before it.
    let text = VALUES.replace(
        "(one, two, three, t, u) VALUES (:x, :more, :once,",
        "(one, three, two, t, u) VALUES (:x + 0 * :n, :once, :more,",
    );
    for sizes in ["clients = 2", "clients = 2\nprepared = false"] {
        let dir = tempfile::tempdir().unwrap();
        let server = start(dir.path());
        let workload = workload(&text, &format!("[sizes]\n{sizes}\n"));
        let mut run = WorkloadRun::new(&workload, server.clone(), 7).unwrap();
        for step in workload.steps() {
            sysbench_support::run_one(&mut run, step, 50);
        }
        let found = rows(
            &server,
            "select one, two, three, t, u from seen where id > 1 order by three",
        );
        assert_eq!(
            rows(
                &server,
                "select count(distinct three) from seen where id > 1"
            ),
            ["200"]
        );
        assert_eq!(found.len(), 200);
        for (at, row) in found.iter().enumerate() {
            let columns: Vec<&str> = row.split('|').collect();
            assert!(
                (1..=100).contains(&columns[0].parse::<i64>().unwrap()),
                "{row}"
            );
            assert!(["8", "9", "10"].contains(&columns[1]), "{row}");
            // Two clients take turns in one sequence: only an event that is tried again leaves a
            // gap.
            assert!(columns[2].parse::<usize>().unwrap() >= 100 + at, "{row}");
            assert!(
                columns[3].len() == 8 && columns[3] == columns[4] && columns[3].starts_with('<'),
                "{row}"
            );
        }
        // Both notes of an event have the last of its three questions.
        let mut pairs = BTreeMap::new();
        found
            .iter()
            .for_each(|row| *pairs.entry(row.rsplit('|').next().unwrap()).or_insert(0) += 1);
        assert!(pairs.values().all(|count| *count >= 2), "{pairs:?}");
    }
}

#[test]
fn what_the_engine_refuses_is_told_before_the_load() {
    let text = "name = \"t\"\n[table.a]\nrows = 100\ncolumns = \
               [{ name = \"id\", type = \"integer\" }]\n[statement.bad]\n\
                sql = \"SELECT id + absent FROM a\"\n[event.e]\nstatements = [\"bad\"]\n";
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let workload = workload(text, "");
    let run = WorkloadRun::new(&workload, server.clone(), 7).unwrap();
    let Err(error) = run.tasks(&workload.steps()[0]) else {
        panic!("a load began")
    };
    assert!(
        error
            .to_string()
            .contains("statement bad of f.toml is refused: no such column: absent"),
        "{error}"
    );
    assert_eq!(rows(&server, "select count(*) from a"), ["0"]);
}

/// Numbers that are there already are refused, in the middle of a transaction: such an event is
/// none, and neither are its statements.
#[test]
fn statements_of_tries_in_vain_are_not_those_of_events() {
    let text = r#"name = "t"
[table.a]
rows = 100
columns = [{ name = "id", type = "integer" }]
[statement.ask]
sql = "SELECT id FROM a WHERE id = :x"
parameters.x = { id = "a" }
[statement.add]
sql = "INSERT INTO a (id) VALUES (:n)"
parameters.n = { integer = [1, 200] }
[event.e]
transaction = true
statements = [{ statement = "ask", times = 3 }, "add"]
"#;
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let workload = workload(text, "[step.e]\nmax_failed = \"99%\"\n");
    let mut run = WorkloadRun::new(&workload, server.clone(), 7).unwrap();
    for step in workload.steps() {
        let (outcome, notes) = sysbench_support::run_one(&mut run, step, 100);
        if step.name == "load" {
            continue;
        }
        let events = &outcome.operations[0];
        assert!(events.ok > 10 && events.failed > 10, "{events:?}");
        let statements = ["statements_read", "statements_write", "statements_other"]
            .map(|name| notes[name] as u64);
        assert_eq!(statements, [3 * events.ok, events.ok, 2 * events.ok]);
        assert_eq!(
            notes["statements_in_vain"] as u64,
            4 * events.failed,
            "BEGIN and three questions"
        );
        assert!(
            run.verify(false)
                .unwrap()
                .iter()
                .all(|check| check.found_rows == check.expected_rows)
        );
    }
}
