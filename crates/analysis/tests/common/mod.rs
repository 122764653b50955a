//! Campaigns made by hand: the folders of a store, with numbers that follow from a few rates.

#![allow(dead_code, reason = "each test file uses a part of this")]

pub mod confirm;
pub mod rocksdb;
pub mod servers;

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::histogram::empty;
use plimsoll_core::plan::{Ends, Operation, Plan, Step};
use plimsoll_core::readings::{HostReading, Reading, Readings};
use plimsoll_core::record::{ClientRecord, EncodedHistogram, OperationRecord, Pacing, TableCheck};
use plimsoll_core::schedule::ScheduledTrial;
pub use plimsoll_core::units::SECOND_NS;
use plimsoll_store::event::*;
use plimsoll_store::header::{CampaignHeader, CellHeader, FORMAT};
use plimsoll_store::series::{host_path, operations_path, write_host, write_operations};
use plimsoll_store::{
    CampaignDir, CampaignRecord, Confirm, DEFAULT_STORE, EventWriter, HostSeries, OperationSecond,
    Store, write_json_atomically,
};
use serde_json::json;
use tempfile::TempDir;

/// Ten steps of the Insert Benchmark on SQLite, short.
pub fn plan_text(configs: &[&str], duration_s: u64, extra: &str) -> String {
    let configs: Vec<String> = configs.iter().map(|config| format!("{config:?}")).collect();
    format!(
        "name = \"sample\"\ndescription = \"SQLite, four journal settings\"\nworkload = \
        \"insert-benchmark\"\ncomparable = false\n\
         builds = [\"sqlite\"]\nconfigs = [{}]\nwait = \"2s\"\nverify = \"full\"\n{extra}\n\
         [sizes]\nclients = 2\nrows = \"400K\"\nwrite_rows = \"100K\"\nduration = \
        \"{duration_s}s\"\n",
        configs.join(", ")
    )
}

pub fn histogram(values_ns: impl IntoIterator<Item = (u64, u64)>) -> EncodedHistogram {
    let mut histogram = empty::<u64>();
    for (value_ns, count) in values_ns {
        histogram.record_n(value_ns, count).unwrap();
    }
    EncodedHistogram::of(&histogram)
}

/// A campaign's folder while it is made.
pub struct Campaign {
    pub dir: TempDir,
    pub folder: CampaignDir,
}

impl Campaign {
    pub fn new(id: &str, plan_text: &str) -> Self {
        Self::with_labels(id, plan_text, |label| label.to_owned())
    }

    /// `relabel` may give cells labels that a plan would refuse.
    pub fn with_labels(id: &str, plan_text: &str, relabel: impl Fn(&str) -> String) -> Self {
        let edit = |plan: &mut Plan| {
            plan.cells
                .iter_mut()
                .for_each(|cell| cell.label = relabel(&cell.label))
        };
        Self::with_plan(id, plan_text, None, edit)
    }

    /// `edit` may make a plan that no text can state.
    pub fn with_plan(
        id: &str,
        plan_text: &str,
        confirm: Option<Confirm>,
        edit: impl FnOnce(&mut Plan),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = Plan::parse("sample.toml", plan_text).unwrap();
        edit(&mut plan);
        let cells = plan.cells.iter().map(|cell| CellHeader {
            label: cell.label.clone(),
            version: "3.50.4".to_owned(),
            origin: "built in".to_owned(),
            build: None,
            missing_build: None,
            config_source: "shipped".to_owned(),
            settings: BTreeMap::from([(
                "journal_mode".to_owned(),
                if cell.label.contains("delete") {
                    "delete"
                } else {
                    "wal"
                }
                .to_owned(),
            )]),
        });
        // The plan's order, so that trial n is cell n: real schedules are shuffled.
        let parts: Vec<Option<u32>> = match plan.parts() {
            None => vec![None],
            Some(parts) => (1..=parts).map(Some).collect(),
        };
        let units =
            (1..=plan.blocks).flat_map(|block| parts.iter().map(move |part| (block, *part)));
        let places =
            units.flat_map(|unit| (0..plan.cells.len()).map(move |cell| (unit.0, unit.1, cell)));
        let schedule = (1..)
            .zip(places)
            .map(|(number, (block, part, cell))| ScheduledTrial {
                number,
                block,
                part,
                cell,
            })
            .collect();
        let header = CampaignHeader {
            format: FORMAT,
            id: id.to_owned(),
            created: "2026-11-21T08:00:00Z".to_owned(),
            plimsoll_version: "0.1.0".to_owned(),
            methodology_version: 1,
            seed: 42,
            plan_text: plan_text.to_owned(),
            cells: cells.collect(),
            schedule,
            plan,
            data_dir: "data".to_owned(),
            confirm,
            fleet: None,
            client_hosts: None,
        };
        let folder = Store::new(dir.path()).create(&header).unwrap();
        Self { dir, folder }
    }

    pub fn steps(&self) -> &[Step] {
        self.folder.header.plan.cells[0].workload.steps()
    }

    pub fn load(&self) -> CampaignRecord {
        self.folder.load().unwrap()
    }

    /// Starts an attempt: its first two events are written.
    pub fn attempt(&self, trial: u32, attempt: u32, settings: &[(&str, &str)]) -> Trial {
        let header = &self.folder.header;
        let scheduled = header
            .schedule
            .iter()
            .find(|scheduled| scheduled.number == trial)
            .unwrap();
        let cell = header.plan.cells[scheduled.cell].label.clone();
        let dir = self.folder.trial_dir(trial, &cell, attempt);
        let mut events = EventWriter::create(dir.join("events.jsonl")).unwrap();
        let start = TrialStart {
            trial,
            attempt,
            cell,
            block: scheduled.block,
            part: scheduled.part,
            campaign: Some(header.id.clone()),
            seed: header.seed,
            methodology_version: 1,
            pid: 4242,
            pid_start_ticks: 99,
            load: None,
            boot_id: "00000000-0000-4000-8000-000000000000".to_owned(),
            host: None,
            link: None,
            steps: Vec::new(),
            machine_id: None,
        };
        events.append(&Event::TrialStart(start)).unwrap();
        let ready = ServerReady {
            version: "3.50.4".to_owned(),
            build_options: vec!["COMPILER=gcc-12.2.0".to_owned(), "THREADSAFE=1".to_owned()],
            embedded: true,
            effective_settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            session: Some(session(settings)),
            held: None,
            seconds: 0.01,
        };
        events.append(&Event::ServerReady(ready)).unwrap();
        std::fs::create_dir_all(dir.join("series")).unwrap();
        let environment = json!({
            "cpu_model": {"known": "Example CPU"}, "cpus_online": {"known": "4"}, "kernel": {"known": "6.1.0"},
            "cpu_governor": {"unavailable": "no such file"}, "now_load_average": {"known": format!("0.{trial}{attempt}")},
            "data_device": {"known": if trial == 3 { "sdb" } else { "sda" }},
        });
        write_json_atomically(dir.join("env.json"), &environment).unwrap();
        Trial { dir, events }
    }
}

/// The same as if it were in the store that commands look into by themselves.
pub fn in_default_store(mut record: CampaignRecord) -> CampaignRecord {
    record.path = Path::new(DEFAULT_STORE).join(&record.header.id);
    record
}

/// What a session of these settings tells.
fn session(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mode = settings.iter().find(|(name, _)| *name == "journal_mode");
    let mode = mode.map_or("delete", |(_, mode)| mode);
    [("journal_mode", mode), ("tls", "none")]
        .map(|(name, fact)| (name.to_owned(), fact.to_owned()))
        .into()
}

/// An attempt at a trial while it is written.
pub struct Trial {
    pub dir: std::path::PathBuf,
    pub events: EventWriter,
}

impl Trial {
    pub fn event(&mut self, event: Event) {
        self.events.append(&event).unwrap();
    }

    pub fn step(&mut self, made: Made) {
        self.event(Event::StepStart(StepStart {
            step: made.done.step.clone(),
        }));
        write_operations(operations_path(&self.dir, &made.done.step), &made.series).unwrap();
        write_host(host_path(&self.dir, &made.done.step), &made.host).unwrap();
        let name = made.done.step.clone();
        self.event(Event::StepDone(Box::new(made.done)));
        if name == "l.i2" {
            let action = DrainStep {
                action: "PRAGMA wal_checkpoint(TRUNCATE)".to_owned(),
                seconds: 0.25,
                result: "0|0|0".to_owned(),
            };
            self.event(Event::DrainDone(DrainDone {
                step: name,
                actions: vec![action],
                drained_s: 0.25,
                waited_s: 1.75,
            }));
        }
    }

    pub fn complete(mut self) {
        self.event(Event::TrialDone(TrialDone {
            seconds: 60.0,
            stop_problem: None,
        }));
    }

    /// What a kill leaves: half a line.
    pub fn tear(self) {
        drop(self.events);
        append(&self.dir.join("events.jsonl"), "{\"v\":1,\"seq\":");
    }
}

fn append(path: &Path, text: &str) {
    use std::io::Write as _;
    std::fs::OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// A finished step with its series.
#[derive(Clone)]
pub struct Made {
    pub done: StepDone,
    pub series: Vec<OperationSecond>,
    pub host: HostSeries,
}

/// How fast a cell is.
#[derive(Clone, Copy)]
pub struct Speed {
    /// Of writes, against the sample's base.
    pub writes: f64,
    /// Of queries, against the sample's base.
    pub queries: f64,
    /// Share of the background rate that is reached.
    pub paced: f64,
    /// Share of CPU time stolen.
    pub steal: f64,
    /// Shortens the longest operations.
    pub tail: f64,
}

impl Default for Speed {
    fn default() -> Self {
        Self {
            writes: 1.0,
            queries: 1.0,
            paced: 1.0,
            steal: 0.0,
            tail: 1.0,
        }
    }
}

/// Numbers that look alike in every run and like nothing in particular.
struct Noise(u64);

impl Noise {
    /// In 0..1.
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 31)
    }
}

/// One kind of operation of a step as it should come out.
struct Kind {
    name: &'static str,
    /// Operations per second and client.
    per_s: f64,
    rows_per_operation: u64,
    typical_ns: f64,
    target_per_s: Option<f64>,
}

/// A finished step of a cell that is this fast.
pub fn step(plan: &Step, speed: Speed) -> Made {
    let batch = u64::from(plan.batch);
    // Only the busiest range queries keep the background writers from their rate.
    let speed = Speed {
        paced: if plan.name == "qr1000" {
            speed.paced
        } else {
            1.0
        },
        ..speed
    };
    let writer = |name: &'static str, rows_per_s: f64| Kind {
        name,
        per_s: rows_per_s / batch as f64,
        rows_per_operation: batch,
        typical_ns: 60_000.0 + 9_000.0 * batch as f64,
        target_per_s: None,
    };
    let inserted = plan.inserted_rows() as f64;
    let (kinds, seconds) = match plan.operation {
        Operation::Insert if plan.is_load() => (
            vec![writer("insert", 90_000.0 * speed.writes)],
            inserted / (90_000.0 * speed.writes),
        ),
        Operation::Index => {
            let index = Kind {
                name: "index",
                per_s: 1.0,
                rows_per_operation: 400_100,
                typical_ns: 2e7 / speed.writes,
                target_per_s: None,
            };
            // One batch before it.
            (
                vec![index, writer("insert", 100.0 * speed.writes)],
                1.0 / speed.writes,
            )
        }
        Operation::Insert => {
            let rate = if batch > 10 { 11_000.0 } else { 2_500.0 } * speed.writes;
            (
                vec![writer("insert", rate), writer("delete", rate)],
                inserted / rate,
            )
        }
        Operation::Query => {
            let rate = plan.background.unwrap().amount as f64;
            let paced = |name| Kind {
                target_per_s: Some(2.0 * rate / batch as f64),
                ..writer(name, rate * speed.paced)
            };
            let is_point = plan.name.starts_with("qp");
            let per_s = if is_point { 14_000.0 } else { 8_000.0 } * speed.queries - rate;
            let query = Kind {
                name: "query",
                per_s,
                rows_per_operation: 10,
                typical_ns: 1e9 / per_s,
                target_per_s: None,
            };
            (
                vec![query, paced("insert"), paced("delete")],
                plan.duration_ns().unwrap() as f64 / 1e9,
            )
        }
        Operation::Put | Operation::Get | Operation::MultiGet | Operation::Range => {
            let of = |name, per_s: f64, target_per_s| Kind {
                name,
                per_s,
                rows_per_operation: 1,
                typical_ns: 1e9 / per_s,
                target_per_s,
            };
            let per_s = if plan.is_writing() {
                40_000.0 * speed.writes
            } else {
                60_000.0 * speed.queries
            };
            let keys = f64::from(plan.operation.keys());
            let own = of(plan.operation.as_str(), per_s / keys, None);
            let beside = plan.background.map(|writers| {
                let bytes = writers.amount as f64;
                of("put", bytes / 840.0, Some(bytes / 420.0))
            });
            let seconds = match plan.ends {
                Ends::Operations { per_client } => per_client as f64 / own.per_s,
                ends => ends.duration_ns().unwrap() as f64 / 1e9,
            };
            (std::iter::once(own).chain(beside).collect(), seconds)
        }
        other => unreachable!("the sample has no {other}"),
    };
    let mut noise = Noise(plan.name.len() as u64 * 7919 + (speed.writes * 1000.0) as u64);
    let to_ns = (seconds * 1e9) as u64;
    let mut done = StepDone {
        step: plan.name.clone(),
        primary: plan.operation,
        elapsed_ns: to_ns,
        ..Default::default()
    };
    let mut series = Vec::new();
    for kind in &kinds {
        let ok_per_client = (kind.per_s * seconds).round().max(1.0) as u64;
        for client in 1..=2 {
            done.clients.push(ClientRecord {
                client,
                kind: kind.name.to_owned(),
                ok: ok_per_client,
                rows: ok_per_client * kind.rows_per_operation,
                from_ns: 0,
                to_ns,
                turns: None,
            });
            let first = series.len();
            for second in 0..seconds.ceil() as u32 {
                let share = (seconds - f64::from(second)).min(1.0);
                let dip = if second % 13 == 7 { 0.6 } else { 1.0 };
                let ok = if kind.target_per_s.is_some() {
                    kind.per_s
                } else {
                    kind.per_s * share * dip * (0.95 + noise.next() / 10.0)
                };
                let ok = ok.round() as u64;
                let longest_ns =
                    (kind.typical_ns * (8.0 + 40.0 * noise.next()) * speed.tail) as u64;
                series.push(OperationSecond {
                    second,
                    client,
                    kind: kind.name.to_owned(),
                    ok,
                    unsuccessful: 0,
                    rows: ok * kind.rows_per_operation,
                    service_sum_ns: ok * kind.typical_ns as u64,
                    service_max_ns: longest_ns,
                    response_max_ns: if kind.target_per_s.is_some() {
                        longest_ns * 2
                    } else {
                        0
                    },
                });
            }
            add_up(&mut series[first..], kind, ok_per_client);
        }
        done.operations
            .push(operation(kind, 2 * ok_per_client, seconds, speed));
    }
    done.host = host_readings(seconds, speed);
    done.engine_counters = BTreeMap::from([
        (
            "page_cache_hits".to_owned(),
            (4_000_000.0 * speed.queries) as i64,
        ),
        ("page_cache_misses".to_owned(), 1234),
        ("page_cache_spills".to_owned(), 0),
    ]);
    if plan.name.starts_with('q') {
        done.notes.insert("fetched_per_query".to_owned(), 9.997);
        if speed.paced < 0.95 {
            done.sla_missed = Some(speed.paced);
        }
    }
    let check = TableCheck {
        table: "pi1".to_owned(),
        expected_rows: 400_100,
        found_rows: 400_100,
        checksum: Some("9f86d081".to_owned()),
    };
    done.tables = vec![check];
    let host = HostSeries {
        columns: [
            "second",
            "cpu_busy_pct",
            "write_kib",
            "context_switches",
            "read_kib",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: (1..=seconds.ceil() as u32)
            .map(|second| {
                let writes = 20_000.0 * speed.writes * (0.8 + 0.4 * noise.next());
                vec![
                    Some(f64::from(second)),
                    Some(48.0 + 10.0 * noise.next()),
                    Some(writes.round()),
                    Some(5_000.0),
                    Some(0.0),
                ]
            })
            .collect(),
    };
    Made { done, series, host }
}

/// Scales the seconds of a client so that they are what it did.
fn add_up(seconds: &mut [OperationSecond], kind: &Kind, ok: u64) {
    let drawn: u64 = seconds.iter().map(|row| row.ok).sum();
    let (mut drawn_before, mut before) = (0, 0);
    for row in seconds {
        drawn_before += row.ok;
        // A second without operations is one of a step that is too slow for its seconds.
        let until = (ok * drawn_before).checked_div(drawn).unwrap_or(ok);
        row.ok = until - before;
        row.rows = row.ok * kind.rows_per_operation;
        row.service_sum_ns = row.ok * kind.typical_ns as u64;
        before = until;
    }
}

fn operation(kind: &Kind, ok: u64, seconds: f64, speed: Speed) -> OperationRecord {
    let quantile =
        |share: f64, times: f64| ((kind.typical_ns * times) as u64, (ok as f64 * share) as u64);
    let tail = speed.tail;
    let mut service = vec![
        quantile(0.5, 0.8),
        quantile(0.3, 1.1),
        quantile(0.15, 1.6),
        quantile(0.04, 4.0 * tail),
        quantile(0.005, 20.0 * tail),
    ];
    let counted: u64 = service.iter().map(|(_, count)| count).sum();
    service.push(((kind.typical_ns * 45.0 * tail) as u64, ok - counted));
    let later = |by: u64| {
        service
            .iter()
            .map(|(value, count)| (value + by, *count))
            .collect::<Vec<_>>()
    };
    let retried = if kind.name == "delete" { 3 } else { 0 };
    OperationRecord {
        kind: kind.name.to_owned(),
        attempts: ok + retried,
        ok,
        retried,
        failed: 0,
        unsent: 0,
        unsent_response: None,
        rows: ok * kind.rows_per_operation,
        statements: None,
        errors: if retried > 0 {
            BTreeMap::from([("busy".to_owned(), retried)])
        } else {
            BTreeMap::new()
        },
        wait_ns: retried * 1_000_000,
        worker_ns: (2.0 * seconds * 1e9) as u64,
        service: histogram(service.iter().copied()),
        response: kind.target_per_s.map(|_| histogram(later(400_000))),
        lag: kind.target_per_s.map(|_| histogram([(400_000, ok)])),
        unsuccessful: (retried > 0).then(|| histogram([(900_000, retried)])),
        pacing: kind.target_per_s.map(|target_per_s| Pacing {
            target_per_s,
            achieved_per_s: target_per_s * speed.paced,
            seconds: seconds as u64,
            seconds_under: if speed.paced < 0.95 {
                seconds as u64
            } else {
                0
            },
            backlog: if speed.paced < 0.95 { 7 } else { 0 },
        }),
    }
}

fn host_readings(seconds: f64, speed: Speed) -> Readings {
    let readings = [
        (HostReading::Seconds, seconds),
        (HostReading::Cpus, 4.0),
        (HostReading::CpuUser, seconds * 1.5),
        (HostReading::CpuSystem, seconds * 0.5),
        (HostReading::CpuSteal, seconds * 4.0 * speed.steal),
        (HostReading::CpuTotal, seconds * 4.0),
        (HostReading::ContextSwitches, seconds * 5_000.0),
        (HostReading::DiskReads, 0.0),
        (HostReading::DiskReadBytes, 0.0),
        (HostReading::DiskWrites, seconds * 120.0),
        (
            HostReading::DiskWriteBytes,
            seconds * 20.0 * 1024.0 * 1024.0 * speed.writes,
        ),
        (HostReading::PsiCpuSome, seconds * 0.02),
        (HostReading::PsiIoSome, seconds * 0.3),
        (HostReading::ProcessCpu, seconds * 1.8),
        (HostReading::RssMax, 64.0 * 1024.0 * 1024.0),
        (HostReading::DataDir, 250.0 * 1024.0 * 1024.0),
        (HostReading::Database, 240.0 * 1024.0 * 1024.0),
    ];
    let mut readings: Readings = readings
        .into_iter()
        .map(|(name, value)| (name, Reading::Ok(value)))
        .collect();
    let unavailable = [
        (
            HostReading::ServerCpu,
            "an embedded engine shares the process",
        ),
        (
            HostReading::ClientCpu,
            "an embedded engine shares the process",
        ),
        (
            HostReading::PsiMemorySome,
            "the kernel has no pressure file",
        ),
    ];
    for (name, reason) in unavailable {
        readings.put(name, Reading::Unavailable(reason.to_owned()));
    }
    readings
}

/// Four cells: the base; one whose first attempt was killed and whose second misses its SLA in
/// `qr1000`; one that crashes in `qp100`; one that is disturbed in `l.i1` and fails in `qr500`.
pub fn sample(duration_s: u64) -> Campaign {
    let configs = ["wal_full", "wal_off", "wal_normal", "delete_full"];
    let campaign = Campaign::new(
        "20261121T080000Z-sample",
        &plan_text(&configs, duration_s, ""),
    );
    fill(&campaign, ["base", "killed", "crash", "fail"]);
    campaign
}

/// Writes a trial for each cell by its role.
pub fn fill<const N: usize>(campaign: &Campaign, roles: [&str; N]) {
    let steps = campaign.steps();
    for (number, role) in (1..).zip(roles) {
        match role {
            "base" => {
                let mut trial = campaign.attempt(
                    number,
                    1,
                    &[("synchronous", "FULL"), ("journal_mode", "wal")],
                );
                steps
                    .iter()
                    .for_each(|plan| trial.step(step(plan, Speed::default())));
                trial.complete();
            }
            "killed" => {
                let settings = [("synchronous", "OFF"), ("journal_mode", "wal")];
                let speed = Speed {
                    writes: 2.4,
                    queries: 1.02,
                    paced: 0.93,
                    tail: 0.5,
                    ..Default::default()
                };
                let mut first = campaign.attempt(number, 1, &settings);
                steps[..2]
                    .iter()
                    .for_each(|plan| first.step(step(plan, speed)));
                first.event(Event::StepStart(StepStart {
                    step: "l.i1".to_owned(),
                }));
                first.tear();
                let mut second = campaign.attempt(number, 2, &settings);
                steps.iter().for_each(|plan| second.step(step(plan, speed)));
                second.complete();
            }
            "crash" => {
                let mut trial = campaign.attempt(
                    number,
                    1,
                    &[("synchronous", "NORMAL"), ("journal_mode", "wal")],
                );
                let speed = Speed {
                    writes: 1.3,
                    queries: 0.92,
                    tail: 2.0,
                    ..Default::default()
                };
                steps[..5]
                    .iter()
                    .for_each(|plan| trial.step(step(plan, speed)));
                trial.event(Event::StepStart(StepStart {
                    step: "qp100".to_owned(),
                }));
                let log_tail = "opened\nassertion failed: page <7>\n".to_owned();
                trial.event(Event::ServerCrashed(ServerCrashed {
                    step: Some("qp100".to_owned()),
                    status: "signal 6".to_owned(),
                    log_tail,
                }));
            }
            "fail" => {
                let mut trial = campaign.attempt(
                    number,
                    1,
                    &[("synchronous", "FULL"), ("journal_mode", "delete")],
                );
                let speed = Speed {
                    writes: 0.6,
                    queries: 0.97,
                    tail: 3.0,
                    ..Default::default()
                };
                for plan in &steps[..6] {
                    let steal = if plan.name == "l.i1" { 0.05 } else { 0.0 };
                    trial.step(step(plan, Speed { steal, ..speed }));
                }
                trial.event(Event::StepStart(StepStart {
                    step: "qr500".to_owned(),
                }));
                let reason = "insert into pi1: database is locked after 30s".to_owned();
                trial.event(Event::StepFailed(StepFailed {
                    step: "qr500".to_owned(),
                    reason,
                    operations: Vec::new(),
                }));
            }
            other => panic!("no role {other}"),
        }
    }
}
