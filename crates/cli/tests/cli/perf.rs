//! What `explain` and the page have besides verdicts. `confirm --perf`: the servers are profiled
//! after what is measured, and functions that moved are named. `--waits`: what sessions wait for.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use plimsoll_store::{Profile, Store, read_profiles};
use plimsoll_testkit::{cached_build, skip};
use serde_json::Value;

use crate::support::{Place, UNDECIDED, processes_in, text};

#[test]
fn functions_of_a_real_server_are_told() {
    const TEST: &str = "cli::perf::functions_of_a_real_server_are_told";
    let Some(build) = cached_build(TEST, "postgres@18") else {
        return;
    };
    let place = Place::new();
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = \
        [\"{}\"]\nconfigs = [\"quiet\", \"logs\"]\nwait = \"100ms\"\n\
         seed = 3\ntests = [\"point-query\"]\n[sizes]\nclients = 1\ntables = 1\nrows = \
        \"5K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n\
         [config.quiet]\nsettings = {{ fsync = \"off\" }}\n[config.logs]\nsettings = \
        {{ fsync = \"off\", log_statement = \"all\" }}\n",
        build.name
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let cache = build.cache.to_str().unwrap();
    let confirm = place.run(&[
        "confirm",
        "plan.toml",
        "--blocks",
        "1",
        "--time",
        "200ms",
        "--perf",
        "1s",
        "--cache",
        cache,
    ]);
    assert_eq!(
        confirm.status.code(),
        Some(UNDECIDED),
        "with perf or without: {}",
        text(&confirm.stderr)
    );
    assert_eq!(processes_in(place.dir.path()), Vec::<u32>::new());
    let campaign = Store::new(place.path("plimsoll-runs")).find(None).unwrap();
    let profiles = read_profiles(&campaign.path).unwrap();
    // Only a kernel that forbids it is a reason for none.
    for reason in profiles
        .iter()
        .filter_map(|profile| profile.about.unavailable.as_ref())
    {
        assert!(!reason.contains("had not begun"), "{reason}");
    }
    let passes: Vec<(&str, u32)> = profiles
        .iter()
        .map(|profile| (profile.about.cell.as_str(), profile.pass))
        .collect();
    let is_missing = |profile: &Profile| profile.about.unavailable.is_some();
    let (most, is_complete) = (6, !profiles.iter().any(is_missing));
    assert!(
        profiles.len() == most || !is_complete && profiles.len() < most,
        "of both candidates in three passes, and not of the control: {passes:?} {}",
        text(&confirm.stderr)
    );
    let explained = place.run(&["explain", "point-query", "--json"]);
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    let page = fs::read_to_string(campaign.path.join("report/index.html")).unwrap();
    if explained["profile"]["unavailable"].is_string() {
        let reason = profiles
            .iter()
            .find_map(|profile| profile.about.unavailable.clone())
            .unwrap();
        assert!(page.contains("no profile of "), "the page says so too");
        assert!(
            text(&confirm.stderr).contains(&reason),
            "{}",
            text(&confirm.stderr)
        );
        return skip(TEST, &reason);
    }
    assert!(
        !is_complete || explained["profile"]["functions"][0]["interval"].is_array(),
        "three passes have intervals: {:#}",
        explained["profile"]
    );
    for profile in profiles.iter().filter(|profile| !is_missing(profile)) {
        let about = &profile.about;
        assert!(
            about.samples > 0 && about.server_cpu_us_per_op.is_some_and(|us| us > 0.0),
            "{about:?}"
        );
        assert_eq!(profile.stacks.values().sum::<u64>(), about.samples);
        assert!(
            about.nameless_samples < about.samples,
            "some function has a name"
        );
        assert!(about.counters.contains_key("ipc"));
    }
    let functions = explained["profile"]["functions"].as_array().unwrap();
    assert!(
        !functions.is_empty() && functions.len() <= 10,
        "{explained:#}"
    );
    assert!(page.contains("Differential flame graph") && page.contains("<svg class=\"flame\""));
    let lines = text(&place.run(&["explain", "point-query"]).stdout);
    assert!(
        lines.contains("server CPU by function, us/op") && lines.contains(" samples of "),
        "{lines}"
    );
}

/// The sessions of one cell wait for each other's commits, those of the other do not.
#[test]
fn waits_of_a_real_server_are_seen_in_its_turns() {
    const TEST: &str = "cli::perf::waits_of_a_real_server_are_seen_in_its_turns";
    let Some(build) = cached_build(TEST, "postgres@18") else {
        return;
    };
    let place = Place::new();
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = \
        [\"{}\"]\nconfigs = [\"waiting\", \"free\"]\nwait = \"100ms\"\nwaits = \"50Hz\"\n\
         seed = 3\ntests = [\"update-one\"]\n[sizes]\nclients = 2\ntables = 1\nrows = \
        \"5K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n\
         [config.waiting]\nsettings = {{ commit_delay = 10000, commit_siblings = 0 }}\n\
         [config.free]\nsettings = {{ synchronous_commit = \"off\" }}\n",
        build.name
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let cache = build.cache.to_str().unwrap();
    let run = place.run(&["run", "plan.toml", "--cache", cache]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let explained = |place: &Place| -> Value {
        let explained = place.run(&["explain", "update-one", "--json"]);
        serde_json::from_slice(&explained.stdout).unwrap()
    };
    let of_run = explained(&place);
    assert_eq!(of_run["waits"]["starts"], 1, "{of_run:#}");
    assert!(of_run["waits"]["events"][0]["low"].is_null(), "one start");

    let confirm = place.run(&[
        "confirm", "--all", "--slices", "--starts", "2", "--loads", "1", "--time", "4s", "--cache",
        cache,
    ]);
    assert_eq!(
        confirm.status.code(),
        Some(UNDECIDED),
        "{}",
        text(&confirm.stderr)
    );
    assert_eq!(processes_in(place.dir.path()), Vec::<u32>::new());
    let of_turns = explained(&place);
    let waits = &of_turns["waits"];
    assert_eq!(waits["starts"], 2, "{of_turns:#}");
    assert_eq!(waits["source_base"], "pg_stat_activity");
    assert!(waits["looks_base"].as_u64().unwrap() > 5, "{waits:#}");
    let seconds = |side: &str| -> f64 {
        let events = waits["events"].as_array().unwrap().iter();
        let waiting = events.filter(|event| event["event"] != "running");
        waiting.map(|event| event[side].as_f64().unwrap()).sum()
    };
    let (base, cell) = (seconds("base_s_per_1000"), seconds("cell_s_per_1000"));
    assert!(base > 5.0 && base > 5.0 * cell, "{base} {cell}: {waits:#}");
    let companions = of_turns["companions"].as_array().unwrap();
    // Commits would have those of the looks in them.
    let rows = companions.iter().find(|one| one["name"] == "rows updated");
    let per_op = rows.unwrap()["base_per_op"].as_f64().unwrap();
    assert!((0.98..1.02).contains(&per_op), "a row each: {per_op}");
    let campaign = Store::new(place.path("plimsoll-runs")).find(None).unwrap();
    let page = fs::read_to_string(campaign.path.join("report/index.html")).unwrap();
    assert!(page.contains("<h3>Waits</h3>"));
}
