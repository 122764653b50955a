//! Servers that write down the statements they get, and the benchmark on them.

// Each test binary uses a part of this.
#![allow(dead_code)]

#[path = "../../../engine/tests/mysql_support/mod.rs"]
pub mod mysql_support;
#[path = "../../../engine/tests/postgres_support/mod.rs"]
pub mod postgres_support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::plan::{Plan, Step};
use plimsoll_engine::{Server, SessionClient, StartOptions};
use plimsoll_load::{Control, Ended, MonotonicClock, Progress, StepOutputs, no_series, run_step};
use plimsoll_workload::SharedServer;
use plimsoll_workload::insert_benchmark::InsertBenchmarkRun;
use regex::Regex;

/// One statement of the log.
#[derive(Debug)]
pub struct Logged {
    pub session: u32,
    pub text: String,
}

/// A server's statement log.
pub struct Log {
    file: PathBuf,
    read: usize,
}

impl Log {
    pub fn new(file: PathBuf) -> Self {
        Self { file, read: 0 }
    }

    /// What the server has logged since the last call.
    pub fn take(&mut self) -> String {
        let bytes = std::fs::read(&self.file).unwrap();
        let new = String::from_utf8_lossy(&bytes[self.read..]).into_owned();
        self.read = bytes.len();
        new
    }
}

/// The benchmark with these sizes on a server, and its steps.
pub fn benchmark(
    server: &SharedServer,
    workload: &str,
    sizes: &str,
) -> (InsertBenchmarkRun, Vec<Step>) {
    let text = format!(
        "name = \"t\"\nworkload = \"{workload}\"\nbuilds = [\"mysql\"]\nconfigs = [\"any\"]\nwait \
        = \"0s\"\n[sizes]\n{sizes}"
    );
    let settings = Plan::parse("t.toml", &text)
        .unwrap()
        .cells
        .remove(0)
        .workload
        .insert_benchmark()
        .unwrap()
        .clone();
    let steps = settings.steps.clone();
    (
        InsertBenchmarkRun::new(settings, server.clone(), 42).unwrap(),
        steps,
    )
}

/// Runs a step to its end.
pub fn perform(run: &mut InsertBenchmarkRun, step: &Step) {
    let tasks = run
        .tasks(step, step.work.insert_benchmark().unwrap())
        .unwrap();
    let control = Arc::new(Control::default());
    let outcome = run_step(
        &Arc::new(MonotonicClock),
        &tasks.kinds,
        tasks.tasks,
        &control,
        &tasks.options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut |_: &Progress| {},
            seconds: &mut no_series,
        },
    )
    .unwrap();
    assert_eq!(outcome.ended, Ended::Finished, "{}", step.name);
    run.book(step, &outcome);
}

/// An entry of the general log begins with a time or with blanks in its place, then the session and
/// the command; its text may go on for lines.
pub fn parse_mysql(text: &str) -> Vec<Logged> {
    let entry = Regex::new(
        r"^(?:\d{4}-\d\d-\d\dT\S+|\d{6} [ \d]\d:\d\d:\d\d|\t)?\t *(\d+) ([A-Z][A-Za-z ]+)\t?(.*)$",
    )
    .unwrap();
    let mut statements: Vec<Logged> = Vec::new();
    let mut is_in_query = false;
    for line in text.lines() {
        let Some(found) = entry.captures(line) else {
            if is_in_query {
                let last = statements.last_mut().expect("a query has begun");
                last.text += "\n";
                last.text += line;
            }
            continue;
        };
        is_in_query = !["Connect", "Quit", "Init DB"].contains(&&found[2]);
        if is_in_query {
            // Statements go as text: a prepared one would be told from it here.
            let command = if &found[2] == "Query" {
                String::new()
            } else {
                format!("{} ", &found[2])
            };
            statements.push(Logged {
                session: found[1].parse().unwrap(),
                text: command + &found[3],
            });
        }
    }
    statements
}

/// Lines begin with `<pid>`; those of a statement that goes on, with a tab. The values of a
/// prepared statement follow as its detail.
pub fn parse_postgres(text: &str) -> Vec<Logged> {
    let entry = Regex::new(r"^<(\d+)>([A-Z]+):  (.*)$").unwrap();
    let statement = Regex::new(r"^(?:statement|execute [^:]+): (.*)$").unwrap();
    let argument = Regex::new(r"\$(\d+) = '([^']*)'").unwrap();
    let mut statements: Vec<Logged> = Vec::new();
    let mut is_in_statement = false;
    for line in text.lines() {
        let Some(found) = entry.captures(line) else {
            if is_in_statement {
                let last = statements.last_mut().expect("a statement has begun");
                last.text += "\n";
                last.text += line.strip_prefix('\t').unwrap_or(line);
            }
            continue;
        };
        is_in_statement = false;
        let session = found[1].parse().unwrap();
        if let Some(begun) = statement.captures(&found[3]) {
            is_in_statement = true;
            statements.push(Logged {
                session,
                text: begun[1].to_owned(),
            });
        } else if &found[2] == "DETAIL" {
            let prepared = statements
                .iter_mut()
                .rfind(|logged| logged.session == session)
                .expect("a detail follows its statement");
            // From the last on: $1 is a part of $10.
            let mut arguments: Vec<_> = argument
                .captures_iter(&found[3])
                .map(|found| (found[1].to_owned(), found[2].to_owned()))
                .collect();
            arguments.reverse();
            for (number, value) in arguments {
                prepared.text = prepared.text.replace(&format!("${number}"), &value);
            }
        } else {
            assert_eq!(&found[2], "LOG", "{line}");
        }
    }
    statements
}

/// A server with the settings of the tests that logs every statement, with its folders.
pub type Logging<F> = (F, Box<dyn Server>, Log);

/// A MySQL or MariaDB whose tables are this storage engine's.
pub fn mysql(
    test: &str,
    build: &str,
    engine: &'static str,
) -> Option<Logging<mysql_support::Folders>> {
    mysql_through(SessionClient::default(), test, build, engine)
}

/// The same, and its sessions through this client.
pub fn mysql_through(
    client: SessionClient,
    test: &str,
    build: &str,
    engine: &'static str,
) -> Option<Logging<mysql_support::Folders>> {
    let build = mysql_support::build(test, build)?;
    let folders = mysql_support::Folders::new();
    let settings = [
        ("general_log", "1"),
        ("general_log_file", "statements.log"),
        ("log_output", "FILE"),
        ("storage_engine", engine),
    ];
    let options = StartOptions {
        client,
        ..folders.options(&settings)
    };
    let server = mysql_support::start(&build, &options)
        .unwrap_or_else(|error| panic!("{}: {error}", build.name));
    let log = Log::new(find_file(folders.data.path(), "statements.log"));
    Some((folders, server, log))
}

fn find_file(dir: &Path, name: &str) -> PathBuf {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ if entry.file_name() == name => return entry.path(),
                _ => {}
            }
        }
    }
    panic!("no {name} below {}", dir.display());
}

/// A PostgreSQL.
pub fn postgres_server(test: &str, major: &str) -> Option<Logging<postgres_support::Folders>> {
    postgres_through(SessionClient::default(), test, major)
}

/// The same, and its sessions through this client.
pub fn postgres_through(
    client: SessionClient,
    test: &str,
    major: &str,
) -> Option<Logging<postgres_support::Folders>> {
    let build = postgres_support::build(test, major)?;
    let folders = postgres_support::Folders::new();
    let settings = [("log_statement", "all"), ("log_line_prefix", "<%p>")];
    let options = StartOptions {
        client,
        ..folders.options(&[postgres_support::QUICK, &settings])
    };
    let server = postgres_support::start(&build, &options)
        .unwrap_or_else(|error| panic!("{}: {error}", build.name));
    let log = Log::new(folders.logs.path().join("server.log"));
    Some((folders, server, log))
}
