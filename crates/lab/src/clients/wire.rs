//! What a trial and `plimsoll client` say to each other: one JSON value a line, over the standard
//! input and output of ssh. The password of the server's account is on this pipe alone.

use std::net::IpAddr;
use std::time::Duration;

use plimsoll_core::plan::{Step, Workload};
use plimsoll_engine::GuestOrder;
use plimsoll_load::PartReport;
use plimsoll_workload::{CountsPart, RunState};
use serde::{Deserialize, Serialize};

/// Both sides say something this often.
pub(super) const BEAT: Duration = Duration::from_secs(1);

/// What the trial says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToClient {
    /// It lives.
    Beat,
    /// The first line: who are you?
    Greet {
        /// Where the server will be; none for where ssh comes from.
        server: Option<IpAddr>,
        /// A trial that says nothing for this long is gone.
        patience_ns: u64,
    },
    /// What does your clock say? Answered at once.
    Ping(u32),
    /// Connect the workers of these clients.
    Step(Box<StepOrder>),
    /// Begin at this instant of your clock.
    Start {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
    },
    /// End the workers after the operation in flight.
    Stop,
    /// Everybody has ended: disconnect.
    Leave,
}

/// What a host needs to make the workers of its clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepOrder {
    pub workload: Workload,
    pub seed: u64,
    pub step: Step,
    /// What the steps before have left.
    pub state: RunState,
    /// The first and the last.
    pub clients: (u32, u32),
    /// Of histogram intervals, which all hosts have alike.
    pub interval_s: u64,
    /// How the server is reached.
    pub guest: GuestOrder,
}

/// What a host says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromClient {
    /// It lives.
    Beat,
    /// The answer to `greet`.
    Hello(Box<ClientHello>),
    /// The answer to `ping`.
    Pong {
        id: u32,
        /// `CLOCK_MONOTONIC`.
        clock_ns: u64,
    },
    /// All workers are connected.
    Ready {
        /// The shortest round trip of `select 1`.
        query_rtt_min_ns: u64,
        /// The median of it.
        query_rtt_p50_ns: u64,
    },
    /// How long before the start it was known.
    Begun { margin_ns: u64 },
    /// What the workers did.
    Report(PartReport),
    /// All have ended: what they counted beside their operations.
    Counted {
        counts: CountsPart,
        /// CPU time of the process since the start.
        cpu_ns: u64,
    },
    /// The step is over here, and its connections are closed.
    Left,
    /// The step cannot be done here.
    Failed {
        /// The client that could not connect, if that is why.
        client: Option<u32>,
        reason: String,
    },
}

/// Who a host is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientHello {
    /// Of the program.
    pub version: String,
    /// The address at which it reaches the server.
    pub server: IpAddr,
    /// The address it comes from then.
    pub own: IpAddr,
    /// See `plimsoll_host::machine_id`.
    pub machine_id: Option<String>,
    /// See `plimsoll_engine::process::boot_id`.
    pub boot_id: String,
    pub cpu_model: String,
    /// How many it may use.
    pub cpus: u32,
}
