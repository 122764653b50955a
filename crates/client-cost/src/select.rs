//! sysbench's prepared point select through the load loop.

use std::fs;
use std::sync::Arc;

use plimsoll_core::readings::HostReading;
use plimsoll_core::seed::Draw;
use plimsoll_core::units::SECOND_NS;
use plimsoll_engine::{Prepared, SqlSession};
use plimsoll_host::{Collector, Looks, Proc};
use plimsoll_load::{
    Arrival, Control, Ended, Failure, MonotonicClock, Next, Outcome, Progress, StepOptions,
    StepOutputs, Stop, Task, Worker, no_series, run_step,
};
use plimsoll_workload::SharedServer;
use serde::Serialize;

use crate::Failed;
use crate::server::{ROWS, Target};

/// When queries are sent.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// One after the other, until each connection has had enough.
    Closed(Stop),
    /// So many a second on each connection, evenly, for so many seconds.
    Open { per_s: u64, seconds: u64 },
}

/// Point selects on so many connections.
#[derive(Clone, Copy, Debug)]
pub struct Selects {
    pub connections: u32,
    pub pace: Pace,
}

/// What they did.
#[derive(Debug, Serialize)]
pub struct Run {
    pub operations: u64,
    pub qps: f64,
    /// `None` without readings of the machine; so the next two.
    pub client_cpu_us_per_op: Option<f64>,
    pub server_cpu_us_per_op: Option<f64>,
    pub voluntary_switches_per_op: Option<f64>,
    /// The largest resident memory seen of this process.
    pub rss_mib: f64,
    /// The part of this process's CPU that the thread took which collects histograms and seconds.
    pub recording_thread_share: Option<f64>,
    /// Of an open loop.
    pub pacing: Option<Pacing>,
}

/// How the schedule was kept.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pacing {
    pub achieved_of_target: f64,
    /// From due to sent.
    pub late_p50_us: f64,
    pub late_p90_us: f64,
    pub late_p99_us: f64,
}

struct PointSelect {
    server: SharedServer,
    session: Option<(Box<dyn SqlSession>, Prepared)>,
    draw: Draw,
    id: i64,
}

impl Worker for PointSelect {
    fn open(&mut self) -> Result<(), String> {
        let mut session = self.server.connect().map_err(|error| error.to_string())?;
        let statement = session
            .prepare("select c from sbtest1 where id = ?")
            .map_err(|error| error.to_string())?;
        self.session = Some((session, statement));
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        self.id = 1 + self.draw.below(ROWS) as i64;
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        let (session, statement) = self.session.as_mut().expect("the session is open");
        match session.query_prepared(*statement, &[self.id]) {
            Ok(1) => Outcome::Done { rows: 1 },
            Ok(rows) => Outcome::Failed(Failure {
                class: "rows",
                message: format!("id {} has {rows} rows", self.id),
            }),
            Err(error) => Outcome::Failed(Failure {
                class: "statement",
                message: error.to_string(),
            }),
        }
    }
}

impl Selects {
    /// With the readings that a step of a campaign takes once a second, or without any: an
    /// instrumented process is too slow for these.
    pub fn run(self, target: &Target, has_readings: bool) -> Result<Run, Failed> {
        let collector =
            has_readings.then(|| Collector::start(Proc::new(), target.watch(), Looks::EachSecond));
        let mut rss_pages = 0;
        let recorder_before_ns = thread_cpu_ns();
        let outcome = run_step(
            &Arc::new(MonotonicClock),
            &["select"],
            (1..=self.connections)
                .map(|client| self.task(target, client))
                .collect(),
            &Arc::new(Control::default()),
            &StepOptions::default(),
            StepOutputs {
                log: &mut std::io::sink(),
                progress: &mut |_: &Progress| rss_pages = rss_pages.max(resident_pages()),
                seconds: &mut no_series,
            },
        )?;
        let recorder_ns = thread_cpu_ns() - recorder_before_ns;
        let readings = collector.map(Collector::stop).unwrap_or_default();
        if outcome.ended != Ended::Finished {
            return Err(format!("{:?}", outcome.ended).into());
        }
        let operation = outcome.operations.first().ok_or("nothing was done")?;
        let reading = |name| readings.value(name);
        let per_operation = |name: HostReading, scale: f64| {
            reading(name).map(|value| value * scale / operation.ok as f64)
        };
        let pacing = match (&operation.pacing, &operation.lag) {
            (Some(pacing), Some(lag)) => {
                let lag = lag.decode()?;
                let late_us = |quantile| lag.value_at_quantile(quantile) as f64 / 1e3;
                Some(Pacing {
                    achieved_of_target: pacing.achieved_per_s / pacing.target_per_s,
                    late_p50_us: late_us(0.5),
                    late_p90_us: late_us(0.9),
                    late_p99_us: late_us(0.99),
                })
            }
            _ => None,
        };
        Ok(Run {
            operations: operation.ok,
            qps: operation.ok as f64 * 1e9 / outcome.elapsed_ns as f64,
            client_cpu_us_per_op: per_operation(HostReading::ClientCpu, 1e6),
            server_cpu_us_per_op: per_operation(HostReading::ServerCpu, 1e6),
            voluntary_switches_per_op: per_operation(HostReading::VoluntarySwitches, 1.0),
            rss_mib: rss_pages as f64 * rustix::param::page_size() as f64 / f64::from(1 << 20),
            recording_thread_share: reading(HostReading::ClientCpu)
                .map(|client_s| recorder_ns as f64 / 1e9 / client_s),
            pacing,
        })
    }

    fn task(self, target: &Target, client: u32) -> Task {
        let draw = Draw::new(u64::from(client), &["client-cost"]);
        let worker = Box::new(PointSelect {
            server: target.server.clone(),
            session: None,
            draw,
            id: 0,
        });
        let (arrival, stop) = match self.pace {
            Pace::Closed(stop) => (Arrival::Closed, stop),
            Pace::Open { per_s, seconds } => {
                let phase_ns =
                    SECOND_NS / per_s * u64::from(client - 1) / u64::from(self.connections);
                (
                    Arrival::Even {
                        operations: per_s,
                        period_ns: SECOND_NS,
                        phase_ns,
                    },
                    Stop::Operations(per_s * seconds),
                )
            }
        };
        Task {
            client,
            kinds: vec![0],
            arrival,
            stop,
            worker,
        }
    }
}

/// CPU of the calling thread.
fn thread_cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(0)
}

fn resident_pages() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0)
}
