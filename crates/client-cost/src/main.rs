//! What the client costs beside what the server costs, on a server that is started for it.
//!
//! ```text
//! plimsoll-client-cost select BUILD CONNECTIONS OPERATIONS   a prepared point select, as JSON
//! plimsoll-client-cost bare BUILD CONNECTIONS OPERATIONS     without readings of the machine
//! plimsoll-client-cost peers BUILD...                        tables with sysbench, pgbench and C
//! ```
//!
//! BUILD is the beginning of a build's name in the cache. `make bench-peers` runs the last,
//! `tests/client_cost.rs` the other two: `bare` under callgrind.

mod insert;
mod instructions;
mod peers;
mod select;
mod server;
mod spread;
mod usage;

use std::env;
use std::error::Error;

use plimsoll_load::Stop;
use serde_json::json;

use select::{Pace, Selects};
use server::Target;

/// Whatever ends the measurement.
type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["select", build, connections, operations] => {
            let target = Target::start(build)?;
            let run = Selects {
                connections: connections.parse()?,
                pace: Pace::Closed(each(connections, operations)?),
            }
            .run(&target, true)?;
            target.stop()?;
            println!("{}", json!(run));
        }
        ["bare", build, connections, operations] => {
            let target = Target::start(build)?;
            let run = Selects {
                connections: connections.parse()?,
                pace: Pace::Closed(each(connections, operations)?),
            }
            .run(&target, false)?;
            target.stop()?;
            println!("{}", json!({ "operations": run.operations }));
        }
        ["peers", ref builds @ ..] if !builds.is_empty() => {
            for build in builds {
                peers::compare(build)?;
            }
        }
        _ => {
            return Err(
                "usage: plimsoll-client-cost select|bare BUILD CONNECTIONS OPERATIONS, or \
                plimsoll-client-cost peers BUILD..."
                    .into(),
            );
        }
    }
    Ok(())
}

/// Each connection's part of so many operations.
fn each(connections: &str, operations: &str) -> Result<Stop, Failed> {
    Ok(Stop::Operations(
        operations.parse::<u64>()? / connections.parse::<u64>()?,
    ))
}
