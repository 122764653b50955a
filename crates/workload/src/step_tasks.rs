//! What a workload makes of a step: its workers, and what they count.

use std::sync::Arc;

use plimsoll_load::{StepOptions, Task};

use crate::client::StepTotals;
use crate::insert_benchmark::MinIdCost;
use crate::kv::SharedKvTotals;

/// The workers of one step.
pub struct StepTasks {
    /// The kinds of operations; the first is the step's primary one, but where events are drawn and
    /// all of them are.
    pub kinds: Vec<String>,
    /// The workers.
    pub tasks: Vec<Task>,
    /// Deadlines that suit the step, and its warm-up.
    pub options: StepOptions,
    /// What the workers count themselves.
    pub counts: ExtraCounts,
}

/// What the workers of a step count beside their operations; it outlives them.
#[derive(Clone)]
pub struct ExtraCounts(pub(crate) Counted);

#[derive(Clone)]
pub(crate) enum Counted {
    Nothing,
    /// What looking up the smallest ids cost.
    MinId(Arc<MinIdCost>),
    /// Statements, and the growth of tables.
    Clients(Arc<StepTotals>),
    /// Keys found, bytes moved.
    Kv(Arc<SharedKvTotals>),
}
