//! Our client beside others on one server, in turn: a raw loop in C, sysbench, and on PostgreSQL
//! pgbench.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_load::Stop;
use regex::Regex;
use tempfile::TempDir;

use crate::select::{Pace, Selects};
use crate::server::{DATABASE, ROWS, Target};
use crate::spread::Spread;
use crate::usage::{Client, Usage};
use crate::{Failed, insert, instructions};

const ROUNDS: usize = 5;
const SECONDS: u64 = 2;
const CONNECTIONS: [u32; 3] = [1, 4, 16];

const PACED_CONNECTIONS: u32 = 16;
const PACED_PER_S: u64 = 1000;
const PACED_SECONDS: u64 = 5;
const MANY_CONNECTIONS: u32 = 1024;

/// Another client that runs the same queries.
pub struct Peer {
    kind: Kind,
    program: PathBuf,
    /// What it runs, where that is a file.
    script: PathBuf,
    /// The number of queries in what it prints.
    queries: Regex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    RawLoop,
    Sysbench,
    Pgbench,
}

/// When a peer has done enough.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Seconds(u64),
    /// Over all connections.
    Operations(u64),
}

/// One run of one client.
#[derive(Clone, Copy, Debug)]
struct Cost {
    queries: f64,
    usage: Usage,
}

/// All of one client's runs with so many connections.
struct Row {
    name: &'static str,
    runs: Vec<Cost>,
}

/// Measures on one build and prints tables.
pub fn compare(build: &str) -> Result<(), Failed> {
    let target = Target::start(build)?;
    let folder = tempfile::tempdir()?;
    let peers = peers(&target, &folder)?;
    println!(
        "{}: prepared point select by primary key, unix socket, {ROUNDS} rounds of {SECONDS} s, \
        clients in turn",
        target.name
    );
    println!(
        "median [smallest..largest], without the start of each client; x raw: client CPU / server \
        CPU of a run, divided by the raw loop's in the same round"
    );
    let mut raw_us = Spread::default();
    for connections in CONNECTIONS {
        let rows = in_turn(&target, &peers, connections)?;
        print_rows(&rows, connections);
        if connections == CONNECTIONS[CONNECTIONS.len() - 1] {
            raw_us = rows[0].runs.iter().map(Cost::client_us).collect();
        }
    }
    print_inserts(&target, &raw_us)?;
    print_paced(&target, &peers)?;
    print_many(&target)?;
    print_instructions(&target, &peers, folder.path())?;
    target.stop()
}

/// The raw loop first, which the others are held against.
fn peers(target: &Target, folder: &TempDir) -> Result<Vec<Peer>, Failed> {
    let raw_loop = folder.path().join("raw_loop");
    let source = folder.path().join("raw_loop.c");
    fs::write(&source, include_str!("raw_loop.c"))?;
    output(
        Command::new("cc")
            .args(["-O2", "-pthread", "-o"])
            .args([&raw_loop, &source]),
    )?;
    let script = folder.path().join("point_select.sql");
    fs::write(
        &script,
        format!("\\set id random(1, {ROWS})\nselect c from sbtest1 where id = :id;\n"),
    )?;
    let found = [
        (Kind::RawLoop, Some(raw_loop), r"queries: (\d+)"),
        (Kind::Sysbench, on_path("sysbench"), r"queries: +(\d+)"),
        (
            Kind::Pgbench,
            pgbench().filter(|_| target.is_postgres()),
            r"actually processed: (\d+)",
        ),
    ];
    let peers = found.into_iter().filter_map(|(kind, program, queries)| {
        if program.is_none() && (kind == Kind::Sysbench || target.is_postgres()) {
            println!("{} is not installed and is left out", kind.name());
        }
        let queries = Regex::new(queries).expect("it is one");
        program.map(|program| Peer {
            kind,
            program,
            script: script.clone(),
            queries,
        })
    });
    Ok(peers.collect())
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Debian's command of that name is a script that looks for this.
fn pgbench() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let installed = versions
        .map(|version| version.path().join("bin/pgbench"))
        .filter(|path| path.is_file());
    installed.max().or_else(|| on_path("pgbench"))
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::RawLoop => "raw loop in C",
            Self::Sysbench => "sysbench, prepared",
            Self::Pgbench => "pgbench -M prepared",
        }
    }
}

impl Peer {
    /// The command that runs point selects.
    pub fn command(
        &self,
        target: &Target,
        connections: u32,
        limit: Limit,
    ) -> Result<Command, Failed> {
        let socket = target.socket()?;
        let folder = socket
            .parent()
            .ok_or("the socket has no folder")?
            .display()
            .to_string();
        let mut command = Command::new(&self.program);
        match self.kind {
            Kind::RawLoop => for_raw_loop(&mut command, target, &socket, connections, limit),
            Kind::Sysbench => {
                for_sysbench(&mut command, target, &socket, &folder, connections, limit)
            }
            Kind::Pgbench => {
                command.arg("-f").arg(&self.script);
                for_pgbench(&mut command, target, &folder, connections, limit);
            }
        }
        Ok(command)
    }

    fn run(&self, target: &Target, mut command: Command) -> Result<Cost, Failed> {
        let (text, usage) = Usage::of(Client::Children, target, || output(&mut command))?;
        let found = self
            .queries
            .captures(&text)
            .ok_or_else(|| format!("{} does not say how many queries it ran", self.kind.name()))?;
        Ok(Cost {
            queries: found[1].parse()?,
            usage,
        })
    }
}

/// The arguments of the loop in C.
fn for_raw_loop(
    command: &mut Command,
    target: &Target,
    socket: &Path,
    connections: u32,
    limit: Limit,
) {
    let protocol = if target.is_postgres() {
        "postgres"
    } else {
        "mysql"
    };
    command.arg(protocol).arg(socket);
    command.args([target.user(), DATABASE, &connections.to_string()]);
    let (seconds, operations) = match limit {
        Limit::Seconds(seconds) => (seconds.to_string(), None),
        Limit::Operations(all) => ("0".to_owned(), Some(all / u64::from(connections))),
    };
    command.args([seconds, ROWS.to_string()]);
    command.args(operations.map(|operations| operations.to_string()));
}

fn for_sysbench(
    command: &mut Command,
    target: &Target,
    socket: &Path,
    folder: &str,
    connections: u32,
    limit: Limit,
) {
    command.args([
        "oltp_point_select",
        "--tables=1",
        "--rand-type=uniform",
        "--skip-trx",
        "--db-ps-mode=auto",
    ]);
    command.args([
        format!("--table-size={ROWS}"),
        format!("--threads={connections}"),
    ]);
    if target.is_postgres() {
        command.args(["--db-driver=pgsql", "--pgsql-port=5432"]);
        command.args([
            format!("--pgsql-host={folder}"),
            format!("--pgsql-user={}", target.user()),
            format!("--pgsql-db={DATABASE}"),
        ]);
    } else {
        command.args([
            "--db-driver=mysql".to_owned(),
            format!("--mysql-socket={}", socket.display()),
            format!("--mysql-user={}", target.user()),
            format!("--mysql-db={DATABASE}"),
        ]);
    }
    match limit {
        Limit::Seconds(seconds) => command.arg(format!("--time={seconds}")),
        Limit::Operations(all) => command.arg("--time=0").arg(format!("--events={all}")),
    };
    command.arg("run");
}

fn for_pgbench(
    command: &mut Command,
    target: &Target,
    folder: &str,
    connections: u32,
    limit: Limit,
) {
    let connections_text = connections.to_string();
    command.args(["-n", "-M", "prepared", "-p", "5432", "-h", folder]);
    command.args(["-U", target.user()]);
    command.args(["-c", &connections_text, "-j", &connections_text]);
    match limit {
        Limit::Seconds(seconds) => command.args(["-T".to_owned(), seconds.to_string()]),
        Limit::Operations(all) => {
            command.args(["-t".to_owned(), (all / u64::from(connections)).to_string()])
        }
    };
    command.arg(DATABASE);
}

impl Cost {
    fn client_us(&self) -> f64 {
        self.usage.client_s * 1e6 / self.queries
    }

    fn server_us(&self) -> f64 {
        self.usage.server_s * 1e6 / self.queries
    }

    /// What a host that is slow for a while makes dearer on both sides.
    fn client_of_server(&self) -> f64 {
        self.usage.client_s / self.usage.server_s
    }

    /// Without what a run of almost no queries used.
    fn without(self, start: &Self) -> Self {
        let usage = Usage {
            client_s: self.usage.client_s - start.usage.client_s,
            server_s: self.usage.server_s - start.usage.server_s,
            voluntary_switches: self.usage.voluntary_switches - start.usage.voluntary_switches,
        };
        Self {
            queries: self.queries - start.queries,
            usage,
        }
    }
}

/// What a command prints, when it ends well.
pub fn output(command: &mut Command) -> Result<String, Failed> {
    let ended = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !ended.status.success() {
        return Err(format!(
            "{command:?}: {}\n{}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr)
        )
        .into());
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

fn ours(target: &Target, connections: u32, stop: Stop) -> Result<Cost, Failed> {
    let selects = Selects {
        connections,
        pace: Pace::Closed(stop),
    };
    let (run, usage) = Usage::of(Client::Own, target, || selects.run(target, false))?;
    Ok(Cost {
        queries: run.operations as f64,
        usage,
    })
}

fn in_turn(target: &Target, peers: &[Peer], connections: u32) -> Result<Vec<Row>, Failed> {
    let start = |peer: &Peer| {
        peer.run(
            target,
            peer.command(target, connections, Limit::Operations(connections.into()))?,
        )
    };
    let starts: Vec<Cost> = peers.iter().map(start).collect::<Result<_, _>>()?;
    let our_start = ours(target, connections, Stop::Operations(1))?;
    let mut rows: Vec<Row> = peers
        .iter()
        .map(|peer| Row {
            name: peer.kind.name(),
            runs: Vec::new(),
        })
        .collect();
    rows.insert(
        1,
        Row {
            name: "plimsoll",
            runs: Vec::new(),
        },
    );
    for _ in 0..ROUNDS {
        for (at, peer) in peers.iter().enumerate() {
            let cost = peer
                .run(
                    target,
                    peer.command(target, connections, Limit::Seconds(SECONDS))?,
                )?
                .without(&starts[at]);
            // Ours comes second.
            rows[if at == 0 { 0 } else { at + 1 }].runs.push(cost);
            if at == 0 {
                rows[1].runs.push(
                    ours(target, connections, Stop::Time(SECONDS * 1_000_000_000))?
                        .without(&our_start),
                );
            }
        }
    }
    Ok(rows)
}

fn print_rows(rows: &[Row], connections: u32) {
    println!("\n{connections} connection(s)");
    let head = [
        "client",
        "queries/s",
        "client CPU us/query",
        "server CPU us/query",
        "switches/query",
        "x raw",
        "plimsoll / it",
    ];
    println!(
        "{:<20} {:>10} {:>24} {:>24} {:>18} {:>18} {:>18}",
        head[0], head[1], head[2], head[3], head[4], head[5], head[6]
    );
    let of_round = |row: &Row, other: &Row| -> Spread {
        row.runs
            .iter()
            .zip(&other.runs)
            .map(|(cost, other)| cost.client_of_server() / other.client_of_server())
            .collect()
    };
    for row in rows {
        let spread = |value: fn(&Cost) -> f64| row.runs.iter().map(value).collect::<Spread>();
        println!(
            "{:<20} {:>10.0} {:>24} {:>24} {:>18} {:>18} {:>18}",
            row.name,
            spread(|cost| cost.queries / SECONDS as f64).median(),
            spread(Cost::client_us).show(2),
            spread(Cost::server_us).show(1),
            spread(|cost| cost.usage.voluntary_switches / cost.queries).show(2),
            of_round(row, &rows[0]).show(2),
            of_round(&rows[1], row).show(2),
        );
    }
}

fn print_inserts(target: &Target, raw_us: &Spread) -> Result<(), Failed> {
    let runs = (0..ROUNDS)
        .map(|_| insert::load(target))
        .collect::<Result<Vec<_>, _>>()?;
    let client: Spread = runs.iter().map(|run| run.0).collect();
    let server: Spread = runs.iter().map(|run| run.1).collect();
    println!("\nInsert Benchmark l.i0, text, 100 rows a statement, 1 connection");
    println!(
        "client CPU us/row {}, server CPU us/row {}, client CPU of a row / that of a query of the \
        raw loop {:.3}",
        client.show(3),
        server.show(2),
        client.median() / raw_us.median()
    );
    Ok(())
}

fn print_paced(target: &Target, peers: &[Peer]) -> Result<(), Failed> {
    let rate = u64::from(PACED_CONNECTIONS) * PACED_PER_S;
    println!(
        "\n{PACED_CONNECTIONS} connections, {PACED_PER_S} queries/s each, {ROUNDS} rounds of \
        {PACED_SECONDS} s"
    );
    let (mut runs, mut sysbench) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let pace = Pace::Open {
            per_s: PACED_PER_S,
            seconds: PACED_SECONDS,
        };
        runs.push(
            Selects {
                connections: PACED_CONNECTIONS,
                pace,
            }
            .run(target, true)?,
        );
        for peer in peers.iter().filter(|peer| peer.kind == Kind::Sysbench) {
            let mut command =
                peer.command(target, PACED_CONNECTIONS, Limit::Seconds(PACED_SECONDS))?;
            command.arg(format!("--rate={rate}"));
            sysbench.push(peer.run(target, command)?);
        }
    }
    let paced = |value: fn(&crate::select::Pacing) -> f64| -> Spread {
        runs.iter()
            .filter_map(|run| run.pacing.as_ref())
            .map(value)
            .collect()
    };
    println!(
        "plimsoll: achieved/target {}, late us p50 {}, p90 {}, p99 {}, client CPU us/query {}",
        paced(|pacing| pacing.achieved_of_target).show(5),
        paced(|pacing| pacing.late_p50_us).show(1),
        paced(|pacing| pacing.late_p90_us).show(1),
        paced(|pacing| pacing.late_p99_us).show(0),
        runs.iter()
            .filter_map(|run| run.client_cpu_us_per_op)
            .collect::<Spread>()
            .show(2)
    );
    if !sysbench.is_empty() {
        println!(
            "sysbench --rate={rate} (Poisson): queries/s {}, client CPU us/query {}",
            sysbench
                .iter()
                .map(|cost| cost.queries / PACED_SECONDS as f64)
                .collect::<Spread>()
                .show(0),
            sysbench
                .iter()
                .map(Cost::client_us)
                .collect::<Spread>()
                .show(2)
        );
    }
    Ok(())
}

fn print_many(target: &Target) -> Result<(), Failed> {
    let pace = Pace::Closed(Stop::Time(PACED_SECONDS * 1_000_000_000));
    let run = Selects {
        connections: MANY_CONNECTIONS,
        pace,
    }
    .run(target, true)?;
    println!(
        "\n{MANY_CONNECTIONS} connections: {:.0} queries/s, {:.1} MiB resident, recording thread \
        {:.2} % of the client's CPU",
        run.qps,
        run.rss_mib,
        run.recording_thread_share.unwrap_or(f64::NAN) * 100.0
    );
    Ok(())
}

fn print_instructions(target: &Target, peers: &[Peer], folder: &Path) -> Result<(), Failed> {
    if on_path("valgrind").is_none() {
        println!("\nvalgrind is not installed: no instructions are counted");
        return Ok(());
    }
    println!("\nuser instructions per query, 1 connection (callgrind)");
    let ours = instructions::of_ours(target, folder)?;
    println!("{:<20} {ours:>8.0}", "plimsoll");
    for peer in peers {
        let count = instructions::of_peer(peer, target, folder)?;
        println!(
            "{:<20} {count:>8.0}  plimsoll / it {:.3}",
            peer.kind.name(),
            ours / count
        );
    }
    Ok(())
}
