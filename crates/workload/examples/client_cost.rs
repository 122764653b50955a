//! What a prepared point select by primary key costs the client, beside what it costs the server: one line of JSON.
//!
//!     cargo run --release -p plimsoll-workload --example client_cost -- mysql@9.7 16 100000
//!
//! A fourth argument, `bare`, leaves the readings out: for callgrind. Arguments: the beginning of a build's name in the cache, connections, operations in all. The server is started for it, with
//! sysbench's table of 100,000 rows, on a unix socket.
//!
//! With `wait` in the place of the operations it prints the server's socket and processes, and leaves it up until its standard input
//! closes: so other clients can be measured on the same server.

use std::env;
use std::error::Error;
use std::io::{Read, stdin};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::name::EngineName;
use plimsoll_core::seed::Draw;
use plimsoll_engine::{Dialect, InstalledBuild, Prepared, Server, Settings, SqlSession, StartOptions, engine};
use plimsoll_host::{Collector, Proc, Watch};
use plimsoll_load::{Arrival, Control, Ended, Failure, MonotonicClock, Next, Outcome, Progress, StepOptions, Stop, Task, Worker, run_step};
use plimsoll_testkit::cached_build;
use serde_json::{Value, json};

const ROWS: i64 = 100_000;
const ROWS_PER_INSERT: i64 = 1000;
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let ([build, connections, operations], is_bare) = match &arguments[..] {
        [build, connections, operations] => ([build, connections, operations], false),
        [build, connections, operations, bare] if bare == "bare" => ([build, connections, operations], true),
        _ => return Err("write: client_cost BUILD CONNECTIONS OPERATIONS|wait [bare]".into()),
    };
    let (data, logs) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let server = start(build, data.path(), logs.path())?;
    load(&*server)?;
    let server: Arc<Box<dyn Server>> = Arc::new(server);
    if operations == "wait" {
        println!("{}", json!({ "data": data.path(), "pids": server.processes() }));
        stdin().read_to_end(&mut Vec::new())?;
    } else {
        println!("{}", measure(&server, data.path(), connections.parse()?, operations.parse()?, is_bare)?);
    }
    Arc::into_inner(server).ok_or("a session is still open")?.stop(STOP_TIMEOUT)?;
    Ok(())
}

/// A build of the cache, under settings that keep the server out of the way: everything in memory, nothing synced.
fn start(wanted: &str, data: &Path, logs: &Path) -> Result<Box<dyn Server>, Box<dyn Error>> {
    let found = cached_build("client_cost", wanted).ok_or("the build is not in the cache")?;
    let folder = found.cache.join(&found.name);
    let record = std::fs::read_to_string(folder.join("build.json"))?;
    let build: InstalledBuild = serde_json::from_str(&record.replace("{build}", &folder.display().to_string()))?;
    let settings: &[(&str, &str)] = if build.engine == EngineName::Postgres {
        &[("shared_buffers", "512MB"), ("synchronous_commit", "off"), ("max_connections", "1100")]
    } else {
        &[
            ("innodb_buffer_pool_size", "512M"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("performance_schema", "0"),
            ("max_connections", "1100"),
        ]
    };
    let settings: Settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = StartOptions { log_dir: logs.to_owned(), ..StartOptions::new(data, settings) };
    Ok(engine(&found.name.parse()?, Some(&build))?.start(&options)?)
}

/// The table of sysbench's oltp tests, filled.
fn load(server: &dyn Server) -> Result<(), Box<dyn Error>> {
    let mut session = server.connect()?;
    let suffix = server.table_suffix();
    session.define(&format!(
        "create table sbtest1 (id int primary key, k int not null, c char(120) not null, pad char(60) not null){suffix}"
    ))?;
    for first in (1..=ROWS).step_by(ROWS_PER_INSERT as usize) {
        let tuples: Vec<String> = (first..first + ROWS_PER_INSERT)
            .map(|id| format!("({id},{},'{}','{}')", id * 7 % ROWS, "c".repeat(119), "p".repeat(59)))
            .collect();
        session.write(&format!("insert into sbtest1 values {}", tuples.join(",")), ROWS_PER_INSERT as u64)?;
    }
    if let Dialect::Postgres { .. } = server.dialect() {
        session.define("vacuum analyze sbtest1")?;
    }
    Ok(())
}

/// One connection's closed loop.
struct PointSelect {
    server: Arc<Box<dyn Server>>,
    session: Option<(Box<dyn SqlSession>, Prepared)>,
    draw: Draw,
    id: i64,
}

impl Worker for PointSelect {
    fn open(&mut self) -> Result<(), String> {
        let mut session = self.server.connect().map_err(|error| error.to_string())?;
        let statement = session.prepare("select c from sbtest1 where id = ?").map_err(|error| error.to_string())?;
        self.session = Some((session, statement));
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        self.id = 1 + self.draw.below(ROWS as u64) as i64;
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        let (session, statement) = self.session.as_mut().expect("the session is open");
        match session.query_prepared(*statement, &[self.id]) {
            Ok(1) => Outcome::Done { rows: 1 },
            Ok(rows) => Outcome::Failed(Failure { class: "rows", message: format!("id {} has {rows} rows", self.id) }),
            Err(error) => Outcome::Failed(Failure { class: "statement", message: error.to_string() }),
        }
    }
}

/// Without `is_bare` with the readings that a step of a campaign takes, once a second; an instrumented process is too slow for these.
fn measure(server: &Arc<Box<dyn Server>>, data: &Path, connections: u32, operations: u64, is_bare: bool) -> Result<Value, Box<dyn Error>> {
    let each = operations / u64::from(connections);
    let task = |client: u32| {
        let worker = PointSelect { server: server.clone(), session: None, draw: Draw::new(u64::from(client), &["client-cost"]), id: 0 };
        Task { client, kinds: vec![0], arrival: Arrival::Closed, stop: Stop::Operations(each), worker: Box::new(worker) }
    };
    let watch = Watch { data_dir: data, server_pids: server.processes(), is_embedded: false };
    let collector = (!is_bare).then(|| Collector::start(Proc::new(), watch, None));
    let outcome = run_step(
        &Arc::new(MonotonicClock),
        &["select"],
        (1..=connections).map(task).collect(),
        &Arc::new(Control::default()),
        &StepOptions::default(),
        &mut std::io::sink(),
        &mut |_: &Progress| {},
    )?;
    let readings = collector.map(Collector::stop).unwrap_or_default();
    if outcome.ended != Ended::Finished {
        return Err(format!("{:?}", outcome.ended).into());
    }
    let done: u64 = outcome.operations.iter().map(|operation| operation.ok).sum();
    let per_operation =
        |name: &str, scale: f64| readings.get(name).and_then(|reading| reading.value()).map(|value| value * scale / done as f64);
    Ok(json!({
        "operations": done,
        "qps": done as f64 * 1e9 / outcome.elapsed_ns as f64,
        "client_cpu_us_per_op": per_operation("client_cpu_s", 1e6),
        "server_cpu_us_per_op": per_operation("server_cpu_s", 1e6),
        "voluntary_switches_per_op": per_operation("voluntary_switches", 1.0),
    }))
}
