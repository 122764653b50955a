//! Campaign folders may come from anybody: what is written in them, and links, lead to nothing that
//! is not theirs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::write_script;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Place, text, wait, wait_until};

const PLAN: &str = "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\nconfigs \
                   = [\"wal_off\"]\nsteps = [\"l.i0\"]\n[sizes]\nrows = \"1K\"\n";

/// A place with a complete campaign.
fn ran() -> Place {
    let place = Place::new();
    fs::write(place.path("plan.toml"), PLAN).unwrap();
    let output = place.run(&["run", "plan.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    place
}

fn change_header(place: &Place, change: impl FnOnce(&mut Value)) {
    let path = place.campaign().join("campaign.json");
    let mut header = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut header);
    fs::write(path, serde_json::to_vec(&header).unwrap()).unwrap();
}

#[test]
fn a_report_is_never_written_through_a_link() {
    let place = ran();
    let (precious, elsewhere) = (place.path("precious"), place.path("elsewhere"));
    fs::write(&precious, "theirs").unwrap();
    fs::create_dir(&elsewhere).unwrap();
    let report = place.campaign().join("report");
    fs::remove_file(report.join("index.html")).unwrap();
    symlink(&precious, report.join("index.html")).unwrap();
    let output = place.run(&["report"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "theirs");
    assert!(
        fs::read_to_string(report.join("index.html"))
            .unwrap()
            .contains("<html")
    );

    fs::remove_dir_all(&report).unwrap();
    symlink(&elsewhere, &report).unwrap();
    let output = place.run(&["report"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("report: it is a link, and campaigns have none; remove it"),
        "{stderr}"
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn resume_writes_through_no_link() {
    for name in ["lock", "trials", "states"] {
        let place = ran();
        let (precious, elsewhere) = (place.path("precious"), place.path("elsewhere"));
        fs::write(&precious, "theirs").unwrap();
        fs::create_dir(&elsewhere).unwrap();
        let link = place.campaign().join(name);
        let _ = fs::remove_file(&link).or_else(|_| fs::rename(&link, place.path("moved")));
        symlink(
            if name == "lock" {
                &precious
            } else {
                &elsewhere
            },
            &link,
        )
        .unwrap();
        let output = place.run(&["resume"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert!(
            stderr.contains(&format!("{name}: it is a link")),
            "{stderr}"
        );
        assert_eq!(fs::read_to_string(&precious).unwrap(), "theirs");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}

#[test]
fn resume_removes_no_data_but_that_of_a_campaign_of_that_name() {
    let place = ran();
    let precious = place.path("precious");
    let real = place
        .campaign()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let absolute = precious.display().to_string();
    for id in [
        "../precious",
        absolute.as_str(),
        "",
        ".",
        "..",
        "other",
        "./x/../../precious",
    ] {
        fs::create_dir_all(precious.join("thesis")).unwrap();
        fs::create_dir_all(place.path("data/other")).unwrap();
        change_header(&place, |header| header["id"] = json!(id));
        let output = place.run(&["resume", &real]);
        let stderr = text(&output.stderr);
        assert!(
            precious.join("thesis").is_dir() && place.path("data/other").is_dir(),
            "{id:?}: {stderr}"
        );
        assert!(
            place.path("data/.plimsoll-data").exists(),
            "{id:?}: {stderr}"
        );
        assert_eq!(output.status.code(), Some(2), "{id:?}: {stderr}");
        assert!(
            stderr.contains("to go on with it, give the folder that name"),
            "{id:?}: {stderr}"
        );
    }
}

/// A process of somebody else's, and the identity file that names it.
fn stranger() -> (Child, String) {
    let child = Command::new("sleep").arg("300").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let number = |at: usize| fields[at].parse::<u64>().unwrap();
    let group = json!({ "id": number(2), "start_ticks": 0, "session": number(3) });
    let identity = json!({ "pid": child.id(), "start_ticks": number(19), "boot_id": boot_id.trim(), "group": group });
    (child, identity.to_string())
}

#[test]
fn resume_kills_nobody_that_a_campaign_folder_names() {
    let place = ran();
    let (mut stranger, identity) = stranger();
    let trial = place.event_files().remove(0).parent().unwrap().to_owned();
    for dir in [
        place.campaign().join("states/0-a1"),
        place.campaign().join("profiles/0-a1"),
        trial,
    ] {
        fs::create_dir_all(dir.join("server")).unwrap();
        fs::write(dir.join("server/server-process.json"), &identity).unwrap();
    }
    let output = place.run(&["resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let is_alive = stranger.try_wait().unwrap().is_none();
    let _ = stranger.kill();
    stranger.wait().unwrap();
    assert!(is_alive, "a stranger was killed");
}

/// A pipe that nobody writes to, and a file that never ends.
#[test]
fn resume_waits_for_no_identity_file() {
    for make in [&["mkfifo"][..], &["ln", "-s", "/dev/zero"]] {
        let place = ran();
        let trial = place.event_files().remove(0).parent().unwrap().to_owned();
        fs::create_dir_all(trial.join("server")).unwrap();
        let made = Command::new(make[0])
            .args(&make[1..])
            .arg(trial.join("server/server-process.json"))
            .status()
            .unwrap();
        assert!(made.success());
        let mut command = Command::new("sh");
        // A file that never ends is to take neither time nor memory.
        command.args([
            "-c",
            "ulimit -v 4000000; exec timeout -s KILL 60 \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_plimsoll"),
            "resume",
            "--data",
            "data",
        ]);
        let output = command
            .current_dir(place.dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{make:?}: {}",
            text(&output.stderr)
        );
    }
}

/// Nobody writes to them.
#[test]
fn pipes_in_place_of_files_hang_nobody() {
    let place = ran();
    let trial = place.event_files().remove(0).parent().unwrap().to_owned();
    let series = fs::read_dir(trial.join("series"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let header = place.campaign().join("campaign.json");
    for file in [
        place.campaign().join("lock"),
        trial.join("events.jsonl"),
        trial.join("seal.json"),
        trial.join("l.i0.hlog"),
        series,
        header,
    ] {
        let kept = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(&file)
                .status()
                .unwrap()
                .success()
        );
        for verb in ["show", "report", "resume"] {
            let mut command = Command::new("timeout");
            command.args([
                "-s",
                "KILL",
                "20",
                env!("CARGO_BIN_EXE_plimsoll"),
                verb,
                "--data",
                "data",
            ]);
            let output = command
                .current_dir(place.dir.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert!(
                output.status.code().is_some_and(|code| code < 128),
                "{verb} waits for {}: {:?}",
                file.display(),
                output.status
            );
        }
        fs::remove_file(&file).unwrap();
        fs::write(&file, kept).unwrap();
    }
}

/// Client of packages that says what it was given.
fn fake_client(dir: &Path, name: &str, told: &Path) {
    let script = format!("/usr/bin/env >> {}\nexit 1", told.display());
    write_script(&dir.join(name), &script);
}

#[test]
fn clients_of_packages_are_given_no_password() {
    let place = Place::new();
    let (programs, told) = (place.path("programs"), place.path("told"));
    fs::create_dir(&programs).unwrap();
    ["mvn", "npm", "apt-get", "apt-cache"]
        .iter()
        .for_each(|client| fake_client(&programs, client, &told));
    let plan = "name = \"t\"\nworkload = \"insert-benchmark\"\ncells = [\"mysql@prod.as_is\", \
               \"mysql@5.6.24.cz10a\"]\nsteps = [\"l.i0\"]\n[sizes]\nrows = \"1K\"\n\
                [server.prod]\ndsn = \"mysql://bench@127.0.0.1:1/ib\"\npassword_env = \
               \"PLIMSOLL_TEST_PASSWORD\"\n";
    fs::write(place.path("plan.toml"), plan).unwrap();
    let mut command = place.command(&["run", "plan.toml", "--cache", "cache"]);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = command
        .env("PATH", path)
        .env("PLIMSOLL_TEST_PASSWORD", "geh3im")
        .output()
        .unwrap();
    let told = fs::read_to_string(&told)
        .unwrap_or_else(|_| panic!("no client was asked: {}", text(&output.stderr)));
    assert!(
        told.contains("PATH=")
            && !told.contains("geh3im")
            && !told.contains("PLIMSOLL_TEST_PASSWORD"),
        "{told}"
    );
}

#[test]
fn a_closed_terminal_stops_a_run_and_nohup_does_not_let_it() {
    // The one that is stopped must not be done before, and hears of it even if the tests do not.
    for (script, rows, code) in [
        ("exec env --default-signal=HUP \"$@\"", "1M", 130),
        ("trap '' HUP; exec \"$@\"", "30K", 0),
    ] {
        let place = Place::new();
        fs::write(place.path("plan.toml"), PLAN.replace("1K", rows)).unwrap();
        let mut command = Command::new("/bin/sh");
        command.args([
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_plimsoll"),
            "run",
            "plan.toml",
            "--data",
            "data",
        ]);
        // Nobody can read the output any more.
        let nowhere = fs::File::options().write(true).open("/dev/full").unwrap();
        let child = command
            .current_dir(place.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(nowhere)
            .spawn()
            .unwrap();
        wait_until("a trial", || {
            place.path("plimsoll-runs").exists() && !found_events(&place).is_empty()
        });
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::HUP).unwrap();
        assert_eq!(wait(child).status.code(), Some(code), "{script}");
    }
}

fn found_events(place: &Place) -> Vec<std::path::PathBuf> {
    if fs::read_dir(place.path("plimsoll-runs"))
        .unwrap()
        .next()
        .is_none()
    {
        Vec::new()
    } else {
        place.event_files()
    }
}
