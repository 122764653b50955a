//! A campaign from the command line to its outputs.

use crate::support::{DEADLINE, Place, text, wait, wait_until};
use serde_json::Value;

fn checksums(place: &Place) -> Vec<String> {
    let mut checksums: Vec<String> = Vec::new();
    for file in place.event_files() {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let tables = event["tables"].as_array().cloned().unwrap_or_default();
            checksums.extend(
                tables
                    .iter()
                    .filter_map(|table| table["checksum"].as_str().map(str::to_owned)),
            );
        }
    }
    checksums
}

fn decoded_count(histogram: &Value) -> u64 {
    histogram
        .as_str()
        .map_or(0, plimsoll_testkit::histogram_count)
}

#[test]
fn a_run_ends_with_tables_a_page_and_numbers_that_add_up() {
    let place = Place::new();
    let output = place.run(&["run", "small.toml", "--seed", "7"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    for wanted in [
        "sqlite.wal_full",
        "sqlite.wal_off",
        "l.i0",
        "qr100",
        "index.html",
    ] {
        assert!(stdout.contains(wanted), "{wanted} is not in\n{stdout}");
    }
    assert!(
        !stdout.contains('\x1b') && !stderr.contains('\x1b'),
        "no colours into a pipe"
    );
    assert!(
        stderr.contains("l.i1") && stderr.contains("inserts/s"),
        "{stderr}"
    );
    let page = place.campaign().join("report/index.html");
    assert!(std::fs::metadata(&page).unwrap().len() > 10_000);

    // Every try is in exactly one histogram, in every step of every trial.
    let mut steps = 0;
    for file in place.event_files() {
        for line in std::fs::read_to_string(file)
            .unwrap()
            .lines()
            .filter(|line| line.contains("\"event\":\"step_done\""))
        {
            let event: Value = serde_json::from_str(line).unwrap();
            for operation in event["operations"].as_array().unwrap() {
                let count = |name: &str| operation[name].as_u64().unwrap();
                assert_eq!(
                    count("attempts"),
                    count("ok") + count("retried") + count("failed")
                );
                assert_eq!(
                    decoded_count(&operation["service"])
                        + decoded_count(&operation["unsuccessful"]),
                    count("attempts")
                );
            }
            steps += 1;
        }
    }
    assert_eq!(steps, 10);

    let shown = place.run(&["show", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["campaign"]["seed"], 7);
    assert_eq!(shown["campaign"]["base"], "sqlite.wal_full");
    assert_eq!(shown["cells"].as_array().unwrap().len(), 2);
    let results = shown["results"].as_array().unwrap();
    assert_eq!(results.len(), 10);
    for result in results {
        assert_eq!(result["attempt"], 1);
        assert!(
            result["metrics"]["ips"]["value"].as_f64().unwrap() > 0.0,
            "{result}"
        );
    }
    assert!(
        place
            .path("data")
            .read_dir()
            .unwrap()
            .all(|entry| entry.unwrap().file_name() == ".plimsoll-data"),
        "data directories are removed"
    );
}

#[test]
fn the_same_seed_gives_the_same_schedule_and_data_and_another_seed_does_not() {
    let [first, again, other] = [5u64, 5, 6].map(|seed| {
        let place = Place::new();
        let output = place.run(&["run", "small.toml", "--seed", &seed.to_string()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let header: Value =
            serde_json::from_slice(&std::fs::read(place.campaign().join("campaign.json")).unwrap())
                .unwrap();
        (header["schedule"].clone(), checksums(&place))
    });
    assert_eq!(first, again);
    assert_eq!(first.1.len(), 2, "one table in each of two trials");
    assert_eq!(first.1[0], first.1[1], "every cell gets the same rows");
    assert_ne!(first.1, other.1);
}

#[test]
fn every_format_comes_from_the_same_campaign() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    for (format, wanted) in [
        ("md", "| "),
        ("csv", "cell,step"),
        ("tsv", "cell\tstep"),
        ("json", "{"),
    ] {
        let output = place.run(&["report", "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(wanted), "{format}");
    }
    let output = place.run(&["report", "--out", "elsewhere/page.html"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "a mistyped folder is not made"
    );
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let output = place.run(&["report", "--out", "elsewhere/page.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(place.path("elsewhere/page.html").exists());
    let output = place.run(&[
        "show",
        "--base",
        "sqlite.wal_off",
        "--builds",
        "sqlite.wal_off",
    ]);
    assert!(
        !text(&output.stdout).contains("wal_full"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_full_disk_is_not_silent() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    for arguments in [
        &["show"][..],
        &["show", "--json"],
        &["report", "--format", "csv"],
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = place.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output.stderr).contains("failed to write to standard output"),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn two_campaigns_do_not_disturb_each_other() {
    let place = Place::new();
    let first = place.spawn(&["run", "small.toml"]);
    wait_until("the first is running", || {
        place
            .path("plimsoll-runs")
            .read_dir()
            .is_ok_and(|mut entries| {
                entries.any(|entry| entry.unwrap().path().join("trials").exists())
            })
    });
    let second = place.run(&["--store", "other", "run", "small.toml"]);
    assert_eq!(second.status.code(), Some(5), "{}", text(&second.stderr));
    assert!(
        text(&second.stderr).contains("another campaign is running"),
        "{}",
        text(&second.stderr)
    );
    let first = wait(first);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
}

#[test]
fn the_null_engine_shows_the_clients_ceiling() {
    let place = Place::new();
    let plan = "name = \"ceiling\"\nworkload = \"insert-benchmark\"\nbuilds = [\"null\"]\nconfigs \
               = [\"none\"]\nverify = \"counters\"\nwait = \"0s\"\n[sizes]\nrows = \
               \"100K\"\nwrite_rows = \"10K\"\nduration = \"1s\"\nclients = 4\n";
    std::fs::write(place.path("ceiling.toml"), plan).unwrap();
    let output = place.run(&["run", "ceiling.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown: Value = serde_json::from_slice(&place.run(&["show", "--json"]).stdout).unwrap();
    let qr1000 = shown["results"]
        .as_array()
        .unwrap()
        .iter()
        .find(|result| result["step"] == "qr1000")
        .unwrap();
    // 4 clients x 1000 rows/s x 1 s in transactions of 50 rows; none is lost, however busy the
    // machine.
    assert_eq!(qr1000["operations"]["insert"]["ok"], 80, "{qr1000:#}");
    assert_eq!(qr1000["operations"]["insert"]["rows"], 4000, "{qr1000:#}");
    assert!(qr1000["metrics"]["rate_share"]["value"].as_f64().unwrap() > 0.0);
}

/// A row that vanishes behind the benchmark's back fails the step that notices, not the campaign.
#[test]
fn a_planted_loss_fails_the_step() {
    let place = Place::new();
    let child = place.spawn(&["run", "small.toml", "--seed", "3"]);
    wait_until("the first table is loaded", || {
        place.path("plimsoll-runs").is_dir()
            && place
                .path("plimsoll-runs")
                .read_dir()
                .unwrap()
                .next()
                .is_some()
            && place
                .steps_done()
                .iter()
                .any(|(folder, step)| folder.starts_with("1-") && step == "l.x")
    });
    let campaign = place.campaign().file_name().unwrap().to_owned();
    let database = place.path("data").join(campaign).join("1-a1").join("ib.db");
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.busy_timeout(DEADLINE).unwrap();
    assert_eq!(
        connection
            .execute("delete from pi1 where transactionid = 19999", [])
            .unwrap(),
        1
    );
    drop(connection);
    let output = wait(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("rows and should hold")
            && stderr.contains("rows were lost or came from elsewhere"),
        "{stderr}"
    );
    let shown: Value = serde_json::from_slice(&place.run(&["show", "--json"]).stdout).unwrap();
    let status = |cell: &str, step: &str| {
        let results = shown["results"].as_array().unwrap();
        results
            .iter()
            .find(|result| result["cell"] == cell && result["step"] == step)
            .unwrap()["status"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let header: Value =
        serde_json::from_slice(&std::fs::read(place.campaign().join("campaign.json")).unwrap())
            .unwrap();
    let cells: Vec<&str> = header["schedule"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| {
            header["cells"][trial["cell"].as_u64().unwrap() as usize]["label"]
                .as_str()
                .unwrap()
        })
        .collect();
    // A busy machine may make them suspect or slow; that decides nothing here.
    let is_done = |status: String| ["ok", "suspect", "sla_missed"].contains(&status.as_str());
    assert!(is_done(status(cells[0], "l.x")), "{shown:#}");
    let failed = ["l.i1", "l.i2", "qr100"]
        .iter()
        .filter(|step| status(cells[0], step) == "failed")
        .count();
    assert_eq!(failed, 1, "{shown:#}");
    assert!(
        is_done(status(cells[1], "qr100")),
        "the other cell is not touched: {shown:#}"
    );
}
