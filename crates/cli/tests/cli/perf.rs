//! `confirm --perf`: the servers are profiled after what is measured, and `explain` and the page
//! say which functions moved.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use plimsoll_store::{Store, read_profiles};
use plimsoll_testkit::{cached_build, skip};
use serde_json::Value;

use crate::support::{Place, processes_in, text};

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
    let run = place.run(&["run", "plan.toml", "--cache", cache]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let confirm = place.run(&[
        "confirm", "--all", "--blocks", "1", "--time", "200ms", "--perf", "3s", "--cache", cache,
    ]);
    assert_eq!(
        confirm.status.code(),
        Some(0),
        "with perf or without: {}",
        text(&confirm.stderr)
    );
    assert_eq!(processes_in(place.dir.path()), Vec::<u32>::new());

    let campaign = Store::new(place.path("plimsoll-runs")).find(None).unwrap();
    let profiles = read_profiles(&campaign.path).unwrap();
    assert_eq!(
        profiles.len(),
        2,
        "of both candidates, and not of the control"
    );
    let explained = place.run(&["explain", "point-query", "--json"]);
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    let page = fs::read_to_string(campaign.path.join("report/index.html")).unwrap();
    if let Some(reason) = profiles
        .iter()
        .find_map(|profile| profile.about.unavailable.clone())
    {
        assert!(
            explained["profile"]["unavailable"]
                .as_str()
                .unwrap()
                .contains(&reason),
            "{explained:#}"
        );
        assert!(page.contains("no profile of "), "the page says so too");
        assert!(
            text(&confirm.stderr).contains(&reason),
            "{}",
            text(&confirm.stderr)
        );
        return skip(TEST, &reason);
    }
    for profile in &profiles {
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
