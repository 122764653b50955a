//! What the client costs beside what the server costs, on a server that is started for it.
//!
//!     client_cost select BUILD CONNECTIONS OPERATIONS    a prepared point select: one line of JSON
//!     client_cost bare BUILD CONNECTIONS OPERATIONS the same without readings of the machine, for
//!     an instrumented process client_cost peers BUILD... beside sysbench, pgbench and a raw loop
//!     in C: tables
//!
//! BUILD is the beginning of a build's name in the cache. `make bench-peers` runs the last;
//! `tests/client_cost.rs` the second.

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
                "write: client_cost select|bare BUILD CONNECTIONS OPERATIONS, or client_cost peers \
                BUILD..."
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
