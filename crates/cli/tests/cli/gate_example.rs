//! The worked example of a gate for pull requests: two builds of PostgreSQL, one with a planted
//! regression.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_testkit::cached_build;

use crate::support::{Place, processes_in, text};

#[test]
fn a_planted_regression_ends_the_job_of_a_pull_request() {
    let test = "cli::gate_example::a_planted_regression_ends_the_job_of_a_pull_request";
    let Some(build) = cached_build(test, "postgres@18") else {
        return;
    };
    let place = Place::new();
    // Under root the servers run as nobody, who has to reach the builds.
    fs::set_permissions(place.dir.path(), Permissions::from_mode(0o755)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(root.join("examples/gate-two-postgres/run.sh"))
        .current_dir(place.dir.path())
        .env("PATH", path)
        .env("POSTGRES", build.cache.join(&build.name))
        .env("PLIMSOLL_BUILDS", place.path("cache"))
        .env("PLIMSOLL_TESTS", "point-query")
        .env("PLIMSOLL_ROWS", "10K")
        // It ends with the decision: the rest is for a machine that runs other tests meanwhile.
        .env("PLIMSOLL_BUDGET", "5m")
        .env("PLANT_SHARE", "4")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(
        stdout.ends_with("the gate ended with 1, as it has to\n"),
        "{stdout}"
    );
    let plan = fs::read_to_string(place.path("plimsoll-gate.toml")).unwrap();
    assert!(plan.contains("rows = \"10K\""), "{plan}");
    let comment = fs::read_to_string(place.path("plimsoll-comment.md")).unwrap();
    assert!(
        comment.starts_with("<!-- plimsoll gate -->") && comment.contains("point-query"),
        "{comment}"
    );
    let junit = fs::read_to_string(place.path("plimsoll-gate.xml")).unwrap();
    assert!(junit.contains("<failure"), "{junit}");
    assert!(processes_in(place.dir.path()).is_empty());
}
