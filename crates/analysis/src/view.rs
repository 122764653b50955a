//! The one view model: everything any output shows, computed once.

use std::collections::BTreeMap;

use plimsoll_core::metric::Metric;
use plimsoll_core::plan::{PublishedPosition, TestGroup};
use plimsoll_core::record::TableCheck;
use plimsoll_core::toolchain::Caveat;

use crate::classic::Class;
use crate::metrics::value::Measure;
use crate::verdicts::Findings;
use crate::words::waiting;

/// What a report shows. The base cell comes first in `cells` and in every table.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// One line.
    pub title: String,
    /// Whether the numbers may be set beside those of full runs.
    pub is_comparable: bool,
    /// The campaigns, in the order they were given.
    pub campaigns: Vec<CampaignInfo>,
    /// The cells shown; index 0 is the base.
    pub cells: Vec<CellInfo>,
    /// Every cell x step x block x attempt, finished or not, in the order of cells, steps, blocks
    /// and attempts.
    pub results: Vec<StepResult>,
    /// The three classic tables.
    pub summary: Summary,
    /// Tables with a row per test, as results of many tests are published. Empty where `summary`
    /// has columns.
    pub published: Vec<PublishedTable>,
    /// Per step, in the order of the plan.
    pub steps: Vec<StepView>,
    /// RocksDB: its versions side by side, config by config. A/A controls are in none.
    pub version_groups: Vec<VersionGroup>,
    /// Facts of machine and program, by cell.
    pub environment: Differences,
    /// Settings the engines really ran with, by cell.
    pub settings: Settings,
    /// Why cells are not ok.
    pub reasons: Vec<Reason>,
    /// What a reader must know before the numbers.
    pub notes: Vec<String>,
    /// What is said of each cell against the base.
    pub findings: Findings,
    /// Profiles of servers, where there are any.
    pub profiles: Vec<crate::profiles::Profiled>,
}

/// A campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignInfo {
    /// Its id.
    pub id: String,
    /// The plan's name.
    pub plan: String,
    /// The plan's description.
    pub description: String,
    /// The plan as it was written.
    pub plan_text: String,
    /// Seed of schedule and data.
    pub seed: u64,
    /// When it was made, RFC 3339.
    pub created: String,
    /// `running`, `complete`, `decided` (it ended before its last block, because all was decided)
    /// or `broken`.
    pub state: &'static str,
    /// What the numbers mean: see the changelog.
    pub methodology_version: u32,
    /// The program that made it.
    pub plimsoll_version: String,
    /// Runs planned per cell.
    pub blocks: u32,
    /// How rows were verified: `full`, `end` or `counters`.
    pub verify: &'static str,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellInfo {
    /// `build.config[.shape]`; with the campaign behind it where several campaigns have the same.
    pub label: String,
    /// Index into the campaigns.
    pub campaign: usize,
    /// The build's name.
    pub build: String,
    /// The version it states.
    pub version: String,
    /// Where it comes from.
    pub origin: String,
    /// The config's name.
    pub config: String,
    /// Where the config comes from.
    pub config_source: String,
    /// The settings the config asks for.
    pub config_settings: BTreeMap<String, String>,
    /// The shape's name.
    pub shape: String,
    /// `4 clients, a table each, 20M rows loaded per client`.
    pub workload: String,
    /// Whether the engine lives in the client's process; unknown before its first start.
    pub is_embedded: Option<bool>,
    /// Compiler and compile options, as the engine states them.
    pub build_options: Vec<String>,
    /// sha256 of the server binary; `None` for an engine inside this program.
    pub server_sha256: Option<String>,
    /// Packager, compiler and flags, under the names of [`plimsoll_core::toolchain`]. Empty for an
    /// engine inside this program.
    pub toolchain: BTreeMap<String, String>,
    /// Why its build and the base's are not strictly comparable.
    pub caveat: Option<Caveat>,
    /// What tells its machine from others, by name; empty where that is not known.
    pub machine: BTreeMap<&'static str, String>,
    /// How its machine differs from the base's.
    pub other_machine: Option<String>,
    /// Index into the view's cells of the one that its numbers are divided by: the first, among
    /// RocksDB's versions the base of its group.
    pub base: usize,
}

impl CellInfo {
    /// What stands behind a cell's name wherever its numbers are divided by the base's.
    pub fn mark(&self) -> &'static str {
        match (self.caveat.is_some(), self.other_machine.is_some()) {
            (true, true) => " †‡",
            (true, false) => " †",
            (false, true) => " ‡",
            (false, false) => "",
        }
    }
}

/// How a step of a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As planned.
    Ok,
    /// Finished, but under 95 % of the rate that was due.
    SlaMissed,
    /// Finished, but a witness saw the machine disturbed from outside.
    Suspect,
    /// It ended with an error.
    Failed,
    /// The trial's process or the server died in it.
    Crashed,
    /// The engine stopped answering, and the watchdog ended the step.
    Hung,
    /// There is no result.
    Missing,
}

impl Status {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::SlaMissed => "sla_missed",
            Self::Suspect => "suspect",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
            Self::Hung => "hung",
            Self::Missing => "missing",
        }
    }

    /// What a table puts behind a number. With several blocks there can be a number although one of
    /// them failed.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Ok | Self::Missing => "",
            Self::SlaMissed => "*",
            Self::Suspect => "?",
            Self::Failed | Self::Crashed | Self::Hung => "!",
        }
    }

    /// What a table puts in place of a number.
    pub fn in_place(self) -> &'static str {
        match self {
            Self::Failed | Self::Crashed | Self::Hung => self.name(),
            _ => "-",
        }
    }

    /// What it means.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "finished as planned",
            Self::SlaMissed => {
                "missed its SLA: less than 95 % of the rate that was due, and a ratio with it \
                proves nothing"
            }
            Self::Suspect => "suspect: the machine was disturbed from outside",
            Self::Failed => "failed: it ended with an error",
            Self::Crashed => "crashed: the process or the server died",
            Self::Hung => {
                "hung: the engine did nothing for so long that the watchdog ended the step"
            }
            Self::Missing => "no result",
        }
    }

    /// Whether the step came to its end, so that it has numbers.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Ok | Self::SlaMissed | Self::Suspect)
    }
}

/// One kind of operation in one step of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationCount {
    /// `insert`, `delete`, `query` or `index`.
    pub kind: String,
    /// Tries: `ok + retried + failed`.
    pub attempts: u64,
    /// Operations done.
    pub ok: u64,
    /// Tries given up and tried again.
    pub retried: u64,
    /// Operations given up for good.
    pub failed: u64,
    /// Operations that were due and never sent.
    pub unsent: u64,
    /// Rows of the operations done.
    pub rows: u64,
    /// Retried and failed tries by class.
    pub errors: BTreeMap<String, u64>,
    /// Statements of the operations done, where they are counted.
    pub statements: Option<u64>,
    /// Seconds of all clients in tries that were tried again, and in the pauses after them.
    pub wait_s: f64,
}

/// One step of one attempt at one scheduled trial.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResult {
    /// Index into the view's cells.
    pub cell: usize,
    /// The step.
    pub step: String,
    /// The block, from 1.
    pub block: u32,
    /// The trial's number in the schedule.
    pub trial: u32,
    /// The trial's attempt, from 1; 0 when it never started.
    pub attempt: u32,
    /// Whether the tables are made from this attempt.
    pub is_used: bool,
    /// How it ended.
    pub status: Status,
    /// Why it is not ok.
    pub reason: Option<String>,
    /// Per kind of operation; empty when nothing was counted.
    pub operations: Vec<OperationCount>,
    /// Kinds of events that a step of a workload file draws.
    pub events: Vec<EventRow>,
    /// Every metric of the catalogue, in its order; empty unless the step finished.
    pub measures: Vec<Measure>,
}

/// Why steps of a cell are not ok.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Index into the view's cells.
    pub cell: usize,
    /// The steps.
    pub steps: Vec<String>,
    /// How they ended.
    pub status: Status,
    /// Why, in one line.
    pub text: String,
    /// What else was said: the rest of a long message, the end of the server's log.
    pub more: Option<String>,
}

/// The three classic tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Operations per second: rows inserted in `l` steps, rows indexed in `l.x`, queries in `q`
    /// steps.
    pub absolute: ClassicTable,
    /// The same divided by the base.
    pub relative: ClassicTable,
    /// Rows inserted per second in the background of the `q` steps, and the targets.
    pub insert_rate: ClassicTable,
    /// Seconds of index creation, and below them the ratios to the base. Without columns unless the
    /// plan is about that step.
    pub index_seconds: ClassicTable,
    /// The tables of the microbenchmarks: relative throughput, throughput, and what an operation
    /// costs.
    pub tests: Vec<TestTable>,
    /// Tests over rising numbers of clients.
    pub ramps: Vec<Ramp>,
}

/// A classic table: a row per cell, a column per step.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassicTable {
    /// Its heading.
    pub title: &'static str,
    /// What the numbers are.
    pub caption: &'static str,
    /// The steps.
    pub columns: Vec<String>,
    /// The base first.
    pub rows: Vec<ClassicRow>,
}

/// A row of a classic table.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassicRow {
    /// The cell's label, or `target`.
    pub label: String,
    /// Whether this is the base's row.
    pub is_base: bool,
    /// Of ratios: what [`CellInfo::mark`] says; empty elsewhere.
    pub mark: &'static str,
    /// One per column.
    pub cells: Vec<ClassicCell>,
}

/// A cell of a classic table.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassicCell {
    /// The number as it is printed; `None` where there is none.
    pub number: Option<String>,
    /// How it is coloured.
    pub class: Class,
    /// How the step ended; ok for targets.
    pub status: Status,
    /// Why it is not ok.
    pub reason: Option<String>,
}

impl ClassicCell {
    /// The number with its status mark, or what stands in its place.
    pub fn text(&self) -> String {
        self.number.as_ref().map_or_else(
            || self.status.in_place().to_owned(),
            |number| format!("{number}{}", self.status.mark()),
        )
    }
}

/// A test's place in the tables of the microbenchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPlace {
    /// The section; none for a step of a workload file.
    pub group: Option<TestGroup>,
    /// The order of the published tables, or of the plan.
    pub position: PublishedPosition,
    /// Clients, where it is one level of a ramp.
    pub level: Option<u32>,
}

/// Microbenchmarks, or steps of a workload file: a row per test, a column per cell, in the
/// published sections.
#[derive(Clone, Debug, PartialEq)]
pub struct TestTable {
    /// Its heading.
    pub title: &'static str,
    /// What the numbers are.
    pub caption: String,
    /// What it is about.
    pub subject: TestSubject,
    /// The sections that have a row.
    pub sections: Vec<TestSection>,
}

/// What a table of microbenchmarks is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestSubject {
    /// Ratios of throughput to the base.
    Relative,
    /// Throughput.
    Throughput,
    /// Response times of open loops, which is what these are run for.
    Response,
    /// What a statement costs.
    Cost,
}

/// A section of such a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TestSection {
    /// Its heading.
    pub title: &'static str,
    /// The rows, in the published order.
    pub rows: Vec<TestRow>,
}

/// A test in such a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TestRow {
    /// The step.
    pub step: String,
    /// One per cell of the view.
    pub cells: Vec<ClassicCell>,
}

/// A test over rising numbers of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramp {
    /// The test, without its level.
    pub test: String,
    /// What the rate is.
    pub rate: &'static Metric,
    /// What `tps` counts: `transactions`, or `events` of a workload file.
    pub events: &'static str,
    /// The levels, rising.
    pub users: Vec<u32>,
    /// One per cell of the view.
    pub cells: Vec<RampCell>,
}

/// A cell's part in a ramp.
#[derive(Clone, Debug, PartialEq)]
pub struct RampCell {
    /// One per level, in its order.
    pub levels: Vec<RampLevel>,
    /// The highest rate: its place in the levels.
    pub peak: Option<usize>,
    /// The first level with at least 90 % of the highest rate: more clients gain little.
    pub knee: Option<usize>,
}

/// A level of a ramp in a cell. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampLevel {
    /// How the step ended.
    pub status: Status,
    /// The rate.
    pub rate: Option<f64>,
    /// Transactions per second.
    pub tps: Option<f64>,
    /// Service times: mean, 95th and 99th percentile, longest.
    pub service_us: [Option<f64>; 4],
    /// The 99th percentile of response times, where events were due at a rate.
    pub p99_response_us: Option<f64>,
    /// Seconds of waiting that the service times do not have, where it is more than next to
    /// nothing.
    pub excluded_wait_s: Option<f64>,
    /// That percentile is the least that it may be.
    pub is_lower_bound: bool,
}

impl Ramp {
    /// Whether any level had a schedule, and so response times.
    pub fn is_open_loop(&self) -> bool {
        self.cells
            .iter()
            .flat_map(|cell| &cell.levels)
            .any(|level| level.p99_response_us.is_some())
    }
}

/// A table in published form: a row per test, a column per cell.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedTable {
    /// Its heading.
    pub title: &'static str,
    /// What the numbers are.
    pub caption: &'static str,
    /// What relative tables divide by.
    pub base: Option<String>,
    /// The cells, the base first; without it in relative tables.
    pub columns: Vec<String>,
    /// Groups of tests.
    pub sections: Vec<Section>,
}

/// A group of tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its heading; empty where the table has no groups.
    pub title: String,
    /// The tests.
    pub rows: Vec<PublishedRow>,
}

/// A test.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// Its name.
    pub label: String,
    /// One per column.
    pub cells: Vec<ClassicCell>,
}

/// Cells of one config and shape, set side by side as versions.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionGroup {
    /// Config and, where there are several, shape.
    pub title: String,
    /// Indices of its cells; what the others are divided by is first.
    pub cells: Vec<usize>,
    /// The tests, in the order of the plan.
    pub tests: Vec<VersionRow>,
}

/// A test over versions.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionRow {
    /// The step.
    pub step: String,
    /// Rate / rate of the first, one per cell of the group.
    pub ratios: Vec<Option<f64>>,
}

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

/// One step over all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct StepView {
    /// Its name.
    pub name: String,
    /// What it does, one line.
    pub description: String,
    /// Clients of the step, in the first cell that has it.
    pub clients: u32,
    /// Of a sysbench test: its place in their tables.
    pub test: Option<TestPlace>,
    /// The metric of the throughput table: `ips` or `qps`.
    pub rate: &'static Metric,
    /// What one operation is, for what is told per operation: `inserted row`, `indexed row`,
    /// `query`.
    pub operation: &'static str,
    /// One per cell of the view.
    pub outcomes: Vec<Outcome>,
    /// Classic response time tables, per kind of operation.
    pub responses: Vec<ResponseTable>,
    /// Percentiles, per kind of operation.
    pub latencies: Vec<LatencyTable>,
    /// Kinds of events that a step of a workload file draws, by kind and cell.
    pub events: Vec<EventRow>,
    /// What changed from second to second.
    pub charts: Vec<Chart>,
    /// RocksDB: the shape of the tree over time.
    pub shapes: Vec<LevelShape>,
    /// Growth of the engine's counters during the step, one value per cell, those of
    /// [`CounterKind::Front`] first. Counters that stayed zero everywhere are left out.
    pub counters: Vec<Counter>,
}

/// What one kind of event came to in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Index into the view's cells.
    pub cell: usize,
    /// The event.
    pub kind: String,
    /// Events done.
    pub ok: u64,
    /// Tries that were given up and tried again.
    pub retried: u64,
    /// Events given up for good.
    pub failed: u64,
    /// Events done per second of the step.
    pub per_s: Option<f64>,
    /// Statements of an event, `BEGIN` and `COMMIT` included.
    pub statements: Option<f64>,
    /// Service times.
    pub service: Option<Quantiles>,
    /// Response times, where events were due at a rate.
    pub response: Option<Quantiles>,
}

impl StepView {
    /// Whether it is a step of RocksDB's benchmark, native.
    pub fn is_of_rocksdb(&self) -> bool {
        plimsoll_core::rocksdb_report::OPERATIONS.contains(&self.operation)
    }

    /// Seconds of waiting that the service times of a kind of operation in a cell do not have;
    /// `None` where it is next to nothing.
    pub fn excluded_wait_s(&self, cell: usize, kind: &str) -> Option<f64> {
        let operation = self
            .outcomes
            .get(cell)?
            .operations
            .iter()
            .find(|operation| operation.kind == kind)?;
        waiting::worth_telling(operation.wait_s)
    }

    /// Whether any of its kinds of events had a schedule, and so response times.
    pub fn has_event_responses(&self) -> bool {
        self.events.iter().any(|row| row.response.is_some())
    }
}

impl EventRow {
    /// Whether the last of the numbers is the least that it may be.
    pub fn is_response_lower_bound(&self) -> bool {
        self.response
            .as_ref()
            .is_some_and(|quantiles| quantiles.lower_bounds().contains(&"p99"))
    }

    /// Name, unit and value of what a line of numbers tells of a kind of event. The last one is
    /// there in open loops only.
    pub fn numbers(&self) -> [(&'static str, &'static str, Option<f64>); 11] {
        let time = |pick: fn(&Quantiles) -> f64| {
            self.service.as_ref().map(|quantiles| pick(quantiles) / 1e3)
        };
        [
            ("events", "events", Some(self.ok as f64)),
            ("events_retried", "events", Some(self.retried as f64)),
            ("events_failed", "events", Some(self.failed as f64)),
            ("events_per_s", "events/s", self.per_s),
            ("statements_per_event", "statements", self.statements),
            ("mean_service_us", "us", time(|quantiles| quantiles.mean_ns)),
            (
                "p50_service_us",
                "us",
                time(|quantiles| quantiles.p50_ns as f64),
            ),
            (
                "p99_service_us",
                "us",
                time(|quantiles| quantiles.p99_ns as f64),
            ),
            (
                "p999_service_us",
                "us",
                time(|quantiles| quantiles.p999_ns as f64),
            ),
            (
                "max_service_us",
                "us",
                time(|quantiles| quantiles.max_ns as f64),
            ),
            (
                "p99_response_us",
                "us",
                self.response
                    .as_ref()
                    .map(|quantiles| quantiles.p99_ns as f64 / 1e3),
            ),
        ]
    }
}

/// What a step came to in one cell, over its blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The worst of the blocks that started; missing when none did.
    pub status: Status,
    /// Why it is not ok.
    pub reason: Option<String>,
    /// Blocks whose values are in `measures`.
    pub blocks_used: u32,
    /// Blocks of the schedule.
    pub blocks_planned: u32,
    /// Rows per second that the background writers of all clients should insert together.
    pub target_per_s: Option<f64>,
    /// Medians over the used blocks, in the catalogue's order; empty without any.
    pub measures: Vec<Measure>,
    /// The step's rate in each used block that has one; empty in imports.
    pub rate_of_blocks: Vec<f64>,
    /// The rate as sysbench counts it, with the statements of tries that were refused or failed;
    /// the median over the used blocks.
    pub classic_rate: Option<f64>,
    /// The step's rate by the base's as the verdict has it, from pairs; `None` where there are
    /// none, and in a screen.
    pub paired_ratio: Option<f64>,
    /// Operations of the used blocks, summed per kind; the step's own first.
    pub operations: Vec<OperationCount>,
    /// Seconds of the first used block's measured window.
    pub elapsed_s: Option<f64>,
    /// What the server left when it crashed.
    pub crash: Option<Crash>,
    /// The drain after the step in the first used block.
    pub drain: Option<Drain>,
    /// Row counts of the first used block, where the step verified them.
    pub checks: Vec<TableCheck>,
    /// Facts the workload noted in the first used block.
    pub notes: BTreeMap<String, f64>,
}

impl Outcome {
    /// A metric's value in full precision.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.measure(name).and_then(|measure| measure.value.value)
    }

    /// A metric.
    pub fn measure(&self, name: &str) -> Option<&Measure> {
        self.measures
            .iter()
            .find(|measure| measure.metric.name == name)
    }
}

/// How a server ended that was not asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The exit status or signal.
    pub status: String,
    /// The end of its log.
    pub log_tail: String,
}

/// Debt reduction after a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Drain {
    /// Action, seconds, answer.
    pub actions: Vec<(String, f64, String)>,
    /// Seconds in those actions.
    pub drained_s: f64,
    /// Seconds waited after them.
    pub waited_s: f64,
}

/// A classic response time table of one kind of operation: service times in ten buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseTable {
    /// The kind of operation.
    pub kind: String,
    /// The cells that did any.
    pub rows: Vec<ResponseRow>,
}

/// A row of a response time table.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseRow {
    /// Index into the view's cells.
    pub cell: usize,
    /// Operations done.
    pub total: u64,
    /// Operations per bucket of [`crate::classic::response::BUCKETS`].
    pub counts: [u64; 10],
    /// The longest, in seconds.
    pub max_s: f64,
    /// The colour of the maximum.
    pub max_class: Class,
}

/// Which of the three times of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// From sending to done.
    Service,
    /// From the planned instant to done.
    Response,
    /// From the planned instant to sending.
    Lag,
}

impl Clock {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Lag => "lag",
        }
    }
}

/// Percentiles of one kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyTable {
    /// The kind of operation.
    pub kind: String,
    /// Whether it had a schedule; a closed loop has no response time.
    pub is_open_loop: bool,
    /// Per cell, then per clock.
    pub rows: Vec<LatencyRow>,
}

/// A row of percentiles, and the curve through them.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyRow {
    /// Index into the view's cells.
    pub cell: usize,
    /// Which time.
    pub clock: Clock,
    /// The percentiles.
    pub quantiles: Quantiles,
    /// The curve.
    pub curve: Vec<CurvePoint>,
}

/// Percentiles of a histogram, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// Operations.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90 % are at most this.
    pub p90_ns: u64,
    /// 99 % are at most this.
    pub p99_ns: u64,
    /// 99.9 % are at most this.
    pub p999_ns: u64,
    /// 99.99 % are at most this.
    pub p9999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Which of these are the least that they may be, from the mean to the longest.
    pub are_lower_bounds: [bool; 7],
}

impl Quantiles {
    /// Name, nanoseconds, and whether it is the least that it may be.
    pub fn values(&self) -> [(&'static str, f64, bool); 7] {
        let [p50, p90, p99, p999, p9999, max] = [
            self.p50_ns,
            self.p90_ns,
            self.p99_ns,
            self.p999_ns,
            self.p9999_ns,
            self.max_ns,
        ]
        .map(|ns| ns as f64);
        let named = [
            ("mean", self.mean_ns),
            ("p50", p50),
            ("p90", p90),
            ("p99", p99),
            ("p999", p999),
            ("p9999", p9999),
            ("max", max),
        ];
        std::array::from_fn(|i| (named[i].0, named[i].1, self.are_lower_bounds[i]))
    }

    /// The names of those that are the least that they may be.
    pub fn lower_bounds(&self) -> Vec<&'static str> {
        self.values()
            .into_iter()
            .filter(|(_, _, is_lower_bound)| *is_lower_bound)
            .map(|(name, ..)| name)
            .collect()
    }
}

/// A point of a percentile curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// log10(1 / (1 - p)): 0 is the fastest operation, 1 the 90th percentile, 2 the 99th, ...
    pub nines: f64,
    /// Nanoseconds.
    pub value_ns: u64,
}

/// One quantity over the seconds of a step, a line per cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// `query rate`.
    pub title: String,
    /// Its unit.
    pub unit: &'static str,
    /// How many seconds one point stands for; 1 unless the step was long.
    pub seconds_per_point: u32,
    /// The cells with data.
    pub lines: Vec<Line>,
}

/// A cell's line: per point the mean, least and greatest of its seconds. `None` where nothing was
/// measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Index into the view's cells.
    pub cell: usize,
    /// Means; for charts of maxima the greatest.
    pub points: Vec<Option<f64>>,
    /// Least and greatest, when a point stands for several seconds and the chart is not one of
    /// maxima.
    pub band: Option<Band>,
}

/// The least and the greatest of the seconds behind each point.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// The least.
    pub low: Vec<Option<f64>>,
    /// The greatest.
    pub high: Vec<Option<f64>>,
}

/// Where a counter belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterKind {
    /// The field looks at it, or it changes most between the cells.
    Front,
    /// Any other.
    Other,
    /// It goes up and down: what was recorded is how much it changed, and that is no cost of an
    /// operation.
    Level,
}

/// A counter of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The engine's name for it.
    pub name: String,
    /// Where it belongs.
    pub kind: CounterKind,
    /// Its unit, where it is known: `B`, `us`.
    pub unit: &'static str,
    /// What it tells, where that is known.
    pub meaning: &'static str,
    /// Growth during the step, one per cell of the view.
    pub values: Vec<Option<i64>>,
    /// The same by the operations of the step; `None` for levels.
    pub per_operation: Vec<Option<f64>>,
}

/// The settings engines run with, set beside what was asked for and beside each other. Values mean
/// the same when they do after units, switches and lists are read: `1G` and `1073741824`, `on` and
/// `1`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What a config asks for and an engine does not run with.
    pub not_as_asked: Vec<NotAsAsked>,
    /// What a config asks for and no engine tells about.
    pub untold: Vec<String>,
    /// PostgreSQL: names that a config made up for the workload's statements to read, which no
    /// module of the server defines.
    pub custom: Vec<String>,
    /// Settings with different values in the cells that have them; those that a config asks for
    /// first.
    pub differing: Vec<Setting>,
    /// Settings that some cells have with one value and others do not have.
    pub only_in: Vec<OnlyIn>,
    /// Settings that name places, ports, identities and versions: they differ between any two
    /// servers.
    pub places: Vec<Setting>,
    /// Name and value of what is the same in every cell.
    pub equal: Vec<(String, String)>,
    /// Which client the workers' sessions went through, per cell of the view; `None` where there
    /// was no server, or nobody said.
    pub session_clients: Vec<Option<String>>,
}

/// A setting of a config that did not become what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAsAsked {
    /// The setting.
    pub name: String,
    /// The config's value.
    pub asked: String,
    /// The value the engine runs with, or why it has none.
    pub found: Result<String, String>,
    /// Indices of the cells in which it is so.
    pub cells: Vec<usize>,
}

/// One setting in all cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Whether a config asks for it.
    pub is_asked: bool,
    /// One value per cell of the view.
    pub values: Vec<Option<String>>,
    /// Which of them do not mean the same as the base's.
    pub is_other: Vec<bool>,
    /// The same for people: round sizes with a unit, of long lists what differs.
    pub shown: Vec<Option<String>>,
}

/// Settings that only some cells have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyIn {
    /// Indices of those cells.
    pub cells: Vec<usize>,
    /// Names and values.
    pub settings: Vec<(String, String)>,
}

/// Named facts that each cell has: those that differ, and those that do not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differences {
    /// Name and one value per cell of the view.
    pub differing: Vec<(String, Vec<Option<String>>)>,
    /// Name and the value of every cell.
    pub equal: Vec<(String, String)>,
}
