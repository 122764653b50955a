//! Libraries of embedded engines: a process loads one of each engine, so each build has its own.

use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_engine::InstalledBuild;

use crate::builds_support;

/// Has the record of the build in the child.
const BUILD: &str = "PLIMSOLL_LIBRARY_TEST_BUILD";

/// Runs `body` for each build of the engine that the tests go through, in a child process of this
/// test.
pub fn for_each_build(test: &str, engine: &str, body: impl Fn(InstalledBuild, &Path)) {
    if let Some(record) = std::env::var_os(BUILD) {
        let dir = tempfile::tempdir().unwrap();
        let record = serde_json::from_str(record.to_str().unwrap()).unwrap();
        return body(record, dir.path());
    }
    for build in builds_support::to_go_through(test, &[engine]) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(BUILD, serde_json::to_string(&build).unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{}: {}\n{said}\n{}",
            build.name,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
