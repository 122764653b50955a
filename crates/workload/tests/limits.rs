//! What a server would refuse is found before the first step.

mod log_support;

use std::sync::Arc;
use std::time::Duration;

use log_support::*;
use plimsoll_engine::{SessionClient, StartOptions};
use plimsoll_workload::SharedServer;

const SIZES: &str = "rows = 2000\nwrite_rows = 1000\nduration = \"1s\"\n";

#[test]
fn a_server_that_takes_no_batch_is_told_before_the_first_step() {
    let test = "limits::a_server_that_takes_no_batch_is_told_before_the_first_step";
    for build in mysql_support::ALL
        .into_iter()
        .filter_map(|wanted| mysql_support::build(test, wanted))
    {
        // 100 rows of up to 71 bytes and the beginning of the statement: more than 6 KiB, less than
        // 8 KiB.
        for (client, allowed, fits) in [
            (SessionClient::Full, 6144, false),
            (SessionClient::Thin, 8192, true),
        ] {
            let folders = mysql_support::Folders::new();
            let options = StartOptions {
                client,
                ..folders.options(&[("max_allowed_packet", &allowed.to_string())])
            };
            let server = mysql_support::start(&build, &options)
                .unwrap_or_else(|error| panic!("{}: {error}", build.name));
            let server: SharedServer = Arc::new(server);
            let (mut run, steps) = benchmark(&server, "insert-benchmark", SIZES);
            let checked = run.check_statements(&server.effective_settings().unwrap());
            if fits {
                assert_eq!(
                    checked.map_err(|error| error.message),
                    Ok(()),
                    "{}",
                    build.name
                );
                perform(&mut run, &steps[0]);
            } else {
                let error = checked.unwrap_err().message;
                let words = [
                    "the inserts of l.i0 have up to ",
                    " bytes (100 rows)",
                    &format!("no packet of {allowed} bytes or more"),
                    "raise max_allowed_packet to 7",
                ];
                assert!(
                    words.iter().all(|words| error.contains(words)),
                    "{}: {error}",
                    build.name
                );
            }
            drop(run);
            Arc::try_unwrap(server)
                .ok()
                .unwrap()
                .stop(Duration::from_secs(60))
                .unwrap();
        }
    }
}
