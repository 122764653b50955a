//! Each invariant is broken once, and has to be found.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::*;

fn encoded(values: u64) -> String {
    use base64::Engine;

    let mut histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1_000_000, 3).unwrap();
    histogram.record_n(5, values).unwrap();
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&histogram, &mut bytes)
        .unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A line as the program writes it.
fn line(seq: u64, event: &str) -> String {
    let open = format!("{{\"v\":1,\"seq\":{seq},\"t_ns\":5,{event}");
    let crc = crc32fast::hash(format!("{open}}}").as_bytes());
    format!("{open},\"crc\":\"{crc:08x}\"}}")
}

fn step_done(ok: u64, attempts: u64, values: u64, of_client: u64) -> String {
    format!(
        "\"event\":\"step_done\",\"step\":\"l.i0\",\"operations\":[{{\"kind\":\"insert\",\
        \"ok\":{ok},\"retried\":1,\"failed\":0,\"attempts\":{attempts},\"service\":\"{}\",\
        \"response\":null}}],\"clients\":[{{\"kind\":\"insert\",\"ok\":{of_client}}}],\
        \"tables\":[]",
        encoded(values)
    )
}

struct Folders {
    dir: tempfile::TempDir,
}

impl Folders {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let trial = dir.path().join("store/20260101T000000Z-a/trials/1-x-a1");
        fs::create_dir_all(trial.join("series")).unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::write(dir.path().join("data").join(".plimsoll-data"), "").unwrap();
        fs::write(trial.join("../../campaign.json"), "{\"seed\":1}").unwrap();
        let folders = Self { dir };
        folders.write_events(&[
            line(1, "\"event\":\"trial_start\""),
            line(2, &step_done(7, 8, 7, 7)),
        ]);
        let seconds = "second\tclient\tkind\tok\n0\t1\tinsert\t3\n1\t1\tinsert\t4\n";
        fs::write(folders.trial().join("series/l.i0.operations.tsv"), seconds).unwrap();
        let log = format!(
            "#[Histogram log format version 1.3]\nTag=insert.service,0.0,1.0,5.0,{}\n\
            Tag=insert.service,1.0,1.0,5.0,{}\n",
            encoded(3),
            encoded(4)
        );
        fs::write(folders.trial().join("l.i0.hlog"), log).unwrap();
        folders
    }

    fn trial(&self) -> PathBuf {
        self.dir
            .path()
            .join("store/20260101T000000Z-a/trials/1-x-a1")
    }

    fn write_events(&self, lines: &[String]) {
        fs::write(self.trial().join("events.jsonl"), lines.join("\n") + "\n").unwrap();
    }

    fn findings(&self, facts: &Facts) -> Vec<String> {
        let audit = audit(
            &self.dir.path().join("store"),
            &self.dir.path().join("data"),
            facts,
        );
        assert!(audit.checks > 5, "{}", audit.checks);
        audit.findings.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn what_is_right_has_no_findings() {
    let found = Folders::new().findings(&Facts::default());
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_torn_last_line_is_no_finding() {
    let folders = Folders::new();
    let file = folders.trial().join("events.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + "{\"v\":1,\"se").unwrap();
    assert!(folders.findings(&Facts::default()).is_empty());
}

#[test]
fn every_invariant_that_is_broken_is_found() {
    type Break = fn(&Folders);
    let cases: [(&str, Break); 11] = [
        ("[2] ", |of| {
            let file = of.trial().join("events.jsonl");
            let text = fs::read_to_string(&file).unwrap();
            fs::write(file, text.replace("\"ok\":7", "\"ok\":8")).unwrap();
        }),
        ("[2] ", |of| {
            of.write_events(&[line(2, "\"event\":\"trial_start\"")])
        }),
        ("[2] ", |of| {
            fs::write(of.trial().join("../../campaign.json"), "{\"seed\"").unwrap()
        }),
        ("attempts is 9, and should be 8", |of| {
            of.write_events(&[line(1, &step_done(7, 9, 7, 7))])
        }),
        ("the number of service times is 14, and should be 7", |of| {
            of.write_events(&[line(1, &step_done(7, 8, 14, 7))])
        }),
        ("the clients' sum is 6, and should be 7", |of| {
            of.write_events(&[line(1, &step_done(7, 8, 7, 6))])
        }),
        ("the seconds' sum is 3, and should be 7", |of| {
            let seconds = "second\tclient\tkind\tok\n0\t1\tinsert\t3\n";
            fs::write(of.trial().join("series/l.i0.operations.tsv"), seconds).unwrap();
        }),
        (
            "the log's number of service times is 3, and should be 7",
            |of| {
                let log = format!("Tag=insert.service,0.0,1.0,5.0,{}\n", encoded(3));
                fs::write(of.trial().join("l.i0.hlog"), log).unwrap();
            },
        ),
        ("[5] ", |of| {
            fs::create_dir(of.dir.path().join("data/20260101T000000Z-a")).unwrap()
        }),
        ("[5] ", |of| {
            fs::write(of.trial().join("../../.reserve"), "x").unwrap()
        }),
        ("[9] ", |of| {
            fs::write(of.trial().join("trial.log"), "it is sw0rdfish!").unwrap()
        }),
    ];
    for (wanted, make) in cases {
        let folders = Folders::new();
        make(&folders);
        let facts = Facts {
            secret: Some("sw0rdfish".to_owned()),
            ..Facts::default()
        };
        let found = folders.findings(&facts);
        assert!(
            found.iter().any(|found| found.contains(wanted)),
            "{wanted}: {found:?}"
        );
    }
}

/// A screen and its confirm campaign have trials of one name: steps of the one were missed in the
/// other.
#[test]
fn trials_of_two_campaigns_are_told_apart() {
    let folders = Folders::new();
    let (first, second) = (
        folders.trial(),
        folders.dir.path().join("store/c/trials/1-x-a1"),
    );
    fs::create_dir_all(&second).unwrap();
    fs::write(second.join("../../campaign.json"), "{\"seed\":1}").unwrap();
    fs::write(
        second.join("events.jsonl"),
        line(1, "\"event\":\"trial_start\""),
    )
    .unwrap();
    assert_eq!(name_of(&second), "c/trials/1-x-a1");
    let facts = |trial: &Path| Facts {
        seen: BTreeMap::from([(name_of(trial), vec![line(2, &step_done(7, 8, 7, 7))])]),
        ..Facts::default()
    };
    let is_lost = |found: &String| found.contains("that was seen is not there");
    assert!(!folders.findings(&facts(&first)).iter().any(is_lost));
    assert!(folders.findings(&facts(&second)).iter().any(is_lost));
}

#[test]
fn a_finished_step_that_was_seen_and_is_gone_is_found() {
    let folders = Folders::new();
    let seen = line(2, &step_done(7, 8, 7, 7));
    let facts = |lines: Vec<String>| Facts {
        seen: BTreeMap::from([(name_of(&folders.trial()), lines)]),
        ..Facts::default()
    };
    assert!(folders.findings(&facts(vec![seen.clone()])).is_empty());
    let found = folders.findings(&facts(vec![seen, line(3, &step_done(1, 2, 1, 1))]));
    assert!(
        found.len() == 1 && found[0].starts_with("[1] "),
        "{found:?}"
    );
}

#[test]
fn a_process_that_works_for_the_folder_is_found() {
    let folders = Folders::new();
    let data = folders.dir.path().join("data");
    let mut child = Command::new("sleep")
        .arg("60")
        .env("PLIMSOLL_TRIAL", data.canonicalize().unwrap().join("x"))
        .spawn()
        .unwrap();
    // Until the new program is there, its environment is ours.
    let deadline = Instant::now() + Duration::from_secs(20);
    while processes_of(&data).is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    let found = folders.findings(&Facts::default());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        found.len() == 1 && found[0].starts_with("[4] "),
        "{found:?}"
    );
    assert!(folders.findings(&Facts::default()).is_empty());
}

/// Until it has written a line.
fn wait_until_up(child: &mut Child) {
    let output = child.stdout.take().unwrap();
    BufReader::new(output)
        .read_line(&mut String::new())
        .unwrap();
}

/// For some microseconds it has no environment: one of thirty looks found nobody.
#[test]
fn a_process_that_begins_a_program_is_found_all_the_while() {
    let folders = Folders::new();
    let data = folders.dir.path().join("data").canonicalize().unwrap();
    let mut child = Command::new("sh")
        .args([
            "-c",
            r#"echo up; exec sh -c "$0" "$0""#,
            r#"exec sh -c "$0" "$0""#,
        ])
        .env("PLIMSOLL_TRIAL", data.join("campaign/1-a1"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_up(&mut child);
    let looks = 400;
    let lost = (0..looks)
        .filter(|_| processes_of(&data).is_empty())
        .count();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lost, 0, "of {looks}");
}

/// PostgreSQL's sessions have no environment, and deeper down another data folder may be.
#[test]
fn processes_are_known_by_their_mark_or_by_where_they_work() {
    let folders = Folders::new();
    let data = folders.dir.path().join("data").canonicalize().unwrap();
    let cases = [
        (None, "campaign/1-a1/pgdata", true),
        (None, "campaign/1-a1", true),
        (None, "campaign", false),
        (None, "own/campaign/1-a1/pgdata", false),
        (Some("campaign/1-a1"), "", true),
        (Some("campaign"), "", true),
        (Some("own/campaign/1-a1"), "", false),
    ];
    for (mark, at, is_ours) in cases {
        fs::create_dir_all(data.join(at)).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "echo up; read line"])
            .current_dir(data.join(at))
            .env_clear()
            .envs(mark.map(|mark| ("PLIMSOLL_TRIAL", data.join(mark))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_up(&mut child);
        let found = processes_of(&data);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(!found.is_empty(), is_ours, "{mark:?} {at}: {found:?}");
    }
}

/// A container's campaign has the same default data folder as one outside.
#[test]
fn a_process_with_another_folder_of_that_path_is_not_found() {
    let folders = Folders::new();
    let data = folders.dir.path().join("data").canonicalize().unwrap();
    let trial = data.join("x");
    fs::create_dir(&trial).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let alias = elsewhere.path().canonicalize().unwrap();
    let start = |mark: &Path, script: &str| {
        plimsoll_testkit::start_in_own_mounts(&["--map-root-user"], mark, script)
    };
    let [at, trial_at, other_name] = [&data, &trial, &alias].map(|path| path.display());
    let hidden = format!("mount -t tmpfs none {at} && mkdir {trial_at}");
    let Some(mut other) = start(&trial, &hidden) else {
        let test = "audit::a_process_with_another_folder_of_that_path_is_not_found";
        return plimsoll_testkit::skip(test, "nothing may be mounted here");
    };
    let nothing_but_the_trial = format!(
        "mount --bind {trial_at} {other_name} && {hidden} && mount --bind {other_name} {trial_at}"
    );
    let by_another_name = format!("mount --bind {at} {other_name}");
    let mut ours = [
        start(&trial, "true").unwrap(),
        start(&trial, &nothing_but_the_trial).unwrap(),
        start(&alias.join("x"), &by_another_name).unwrap(),
    ];
    let mut found = processes_of(&data);
    for child in ours.iter_mut().chain([&mut other]) {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut wanted = ours.each_ref().map(|child| format!("{} (S)", child.id()));
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
}

/// A container's has a disk that does not answer.
#[test]
fn a_file_system_that_does_not_answer_holds_up_no_audit() {
    let folders = Folders::new();
    let data = folders.dir.path().join("data").canonicalize().unwrap();
    let script = format!(
        "exec 3<>/dev/fuse && mount -i -t fuse -o \
         fd=3,rootmode=40000,user_id=0,group_id=0,allow_other none {}",
        data.display()
    );
    let Some(mut other) = plimsoll_testkit::start_in_own_mounts(&[], &data.join("x"), &script)
    else {
        let test = "audit::a_file_system_that_does_not_answer_holds_up_no_audit";
        return plimsoll_testkit::skip(test, "nothing may be mounted here");
    };
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(processes_of(&data)));
    let found = told.recv_timeout(Duration::from_secs(60));
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(found.expect("it hangs"), Vec::<String>::new());
}

#[test]
fn campaigns_that_differ_are_told_apart() {
    let (a, b) = (Folders::new(), Folders::new());
    let campaign = |of: &Folders| of.trial().join("../..");
    assert!(
        audit_equal(&campaign(&a), &campaign(&b))
            .findings
            .is_empty()
    );
    fs::write(campaign(&b).join("campaign.json"), "{\"seed\":2}").unwrap();
    let found = audit_equal(&campaign(&a), &campaign(&b)).findings;
    assert!(
        found.len() == 1 && found[0].problem.starts_with("its seed"),
        "{found:?}"
    );
}
