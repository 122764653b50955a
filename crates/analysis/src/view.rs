//! The one view model: everything any output shows, computed once. Each part is defined beside
//! what makes it.

use crate::groups::{Group, RowCost};
use crate::verdicts::Findings;

pub use crate::cells::beyond::{BeyondBuild, FactKind};
pub use crate::cells::campaigns::{CampaignInfo, PartInfo};
pub use crate::cells::cell_info::CellInfo;
pub use crate::cells::differences::Differences;
pub use crate::cells::settings::{NotAsAsked, OnlyIn, Setting, Settings};
pub use crate::cells::version_groups::{VersionGroup, VersionRow};
pub use crate::latencies::{Clock, CurvePoint, Quantiles};
pub use crate::runs::events::EventRow;
pub use crate::runs::results::{OperationCount, StepResult};
pub use crate::runs::status::Status;
pub use crate::steps::charts::{Band, Chart, Line};
pub use crate::steps::classic_table::{ClassicCell, ClassicRow, ClassicTable};
pub use crate::steps::counters::{Counter, CounterKind};
pub use crate::steps::latency::{LatencyRow, LatencyTable, ResponseRow, ResponseTable};
pub use crate::steps::microbenchmarks::{
    Ramp, RampCell, RampLevel, TestRow, TestSection, TestSubject, TestTable,
};
pub use crate::steps::outcome::{Crash, Drain, Outcome};
pub use crate::steps::published::{PublishedRow, PublishedTable, Section};
pub use crate::steps::shapes::LevelShape;
pub use crate::steps::step_view::{StepView, TestPlace};
pub use crate::steps::summary::Summary;
pub use crate::words::books::Books;
pub use crate::words::reasons::Reason;

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
    /// Facts of sessions, machine and program, by cell.
    pub environment: Differences,
    /// What differs between the cells beyond their builds.
    pub beyond_build: Vec<BeyondBuild>,
    /// Settings the engines really ran with, by cell.
    pub settings: Settings,
    /// Why cells are not ok.
    pub reasons: Vec<Reason>,
    /// What a reader must know before the numbers.
    pub notes: Vec<String>,
    /// Counts that have to be equal, wherever they were written. Those that are not have a note.
    pub books: Books,
    /// What is concluded about each cell against the base.
    pub findings: Findings,
    /// What the tests of each section report together.
    pub groups: Vec<Group>,
    /// What statements and rows cost, of tests with several sizes.
    pub row_costs: Vec<RowCost>,
    /// Profiles of servers, where there are any.
    pub profiles: Vec<crate::profiles::Profiled>,
    /// What sessions waited for, where they were looked at.
    pub waits: Vec<crate::waits::Waited>,
    /// What commands that a reader is told to type repeat of the command that was typed, such as
    /// ` --cache DIR`: empty, or each option behind a space.
    pub options: String,
}

impl View {
    /// A view of nothing: what has a section of its own is added to it.
    pub(crate) fn bare(title: String) -> Self {
        Self {
            title,
            is_comparable: true,
            campaigns: Vec::new(),
            cells: Vec::new(),
            results: Vec::new(),
            summary: Summary::none(),
            published: Vec::new(),
            steps: Vec::new(),
            version_groups: Vec::new(),
            environment: Differences::default(),
            beyond_build: Vec::new(),
            settings: Settings::default(),
            reasons: Vec::new(),
            notes: Vec::new(),
            books: Books::default(),
            findings: Findings::none(),
            groups: Vec::new(),
            row_costs: Vec::new(),
            profiles: Vec::new(),
            waits: Vec::new(),
            options: String::new(),
        }
    }
}
