//! A step in parts is counted like the same step at home: the parts' reports travel as JSON, as
//! they do between hosts, and each part runs on a clock of its own that is an hour ahead.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;
use plimsoll_core::clock::Clock;
use plimsoll_core::histogram::EncodedHistogram;
use plimsoll_core::record::OperationRecord;
use plimsoll_load::{
    Arrival, Control, Ended, Failure, MonotonicClock, Next, Outcome, PartHost, PartLink,
    PartReport, SecondRow, StepError, StepOptions, StepOutcome, StepOutputs, StepPart, Stop, Task,
    Worker, interval_s, run_part, run_step, run_step_in_parts,
};
use serde_json::{Value, json};

const HOUR_NS: u64 = 3_600_000_000_000;

/// The real clock, an hour ahead.
#[derive(Default)]
struct Ahead(MonotonicClock);

impl Clock for Ahead {
    fn now_ns(&self) -> u64 {
        self.0.now_ns() + HOUR_NS
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.0.sleep_until_ns(deadline_ns.saturating_sub(HOUR_NS));
    }
}

/// Sleeps for a time that depends on the client, and is refused at times.
struct Sleeper {
    client: u32,
    done: u64,
    fails_at: Option<u64>,
}

impl Worker for Sleeper {
    fn open(&mut self) -> Result<(), String> {
        match self.client {
            9 => Err("max_connections is reached".into()),
            _ => Ok(()),
        }
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        self.done += 1;
        if self.fails_at == Some(self.done) {
            return Outcome::Failed(Failure {
                class: "statement",
                message: "no such table".into(),
            });
        }
        if self.done % 10 == 3 {
            return Outcome::Retry { class: "deadlock" };
        }
        std::thread::sleep(Duration::from_micros(200 * u64::from(self.client)));
        Outcome::Done { rows: 2 }
    }
}

/// Clients 1 to 4: an open loop of Poisson arrivals for 2.5 s, or a closed loop of 40 operations.
fn tasks(is_open: bool, fails_at: Option<u64>) -> Vec<Task> {
    let task = |client: u32| Task {
        client,
        kinds: vec![0],
        arrival: match is_open {
            true => Arrival::Poisson {
                operations: 50,
                period_ns: 1_000_000_000,
                seed: u64::from(client),
            },
            false => Arrival::Closed,
        },
        stop: match is_open {
            true => Stop::Time(2_500_000_000),
            false => Stop::Operations(40),
        },
        worker: Box::new(Sleeper {
            client,
            done: 0,
            fails_at: fails_at.filter(|_| client == 4),
        }),
    };
    (1..=4).map(task).collect()
}

/// What is said to a part.
enum ToPart {
    Start(u64),
    Leave,
}

/// A client host in a thread.
struct Thread {
    name: String,
    to: Sender<ToPart>,
    ready: Receiver<Result<(), String>>,
    reports: Receiver<String>,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
    /// All that came, for the test.
    kept: Arc<Mutex<Vec<Value>>>,
    /// It is lost when so many reports have come.
    lost_after: Option<usize>,
    /// What it says of its way.
    round_trip_ns: u64,
    /// How long before the start it heard of it.
    told_before_ns: Arc<AtomicU64>,
}

struct ToHome {
    told: Receiver<ToPart>,
    ready: Sender<Result<(), String>>,
    reports: Sender<String>,
}

impl PartLink for ToHome {
    fn connected(&mut self) -> Option<u64> {
        self.ready.send(Ok(())).unwrap();
        match self.told.recv() {
            Ok(ToPart::Start(at_ns)) => Some(at_ns),
            _ => None,
        }
    }

    fn report(&mut self, report: PartReport) {
        let _ = self.reports.send(serde_json::to_string(&report).unwrap());
    }

    fn ended(&mut self) {
        let _ = self.told.recv();
    }
}

impl Thread {
    fn new(name: &str, tasks: Vec<Task>, workers: usize) -> Self {
        let (to, told) = channel();
        let (ready, is_ready) = channel();
        let (reports, came) = channel();
        let control = Arc::new(Control::default());
        let of_part = control.clone();
        let thread = std::thread::spawn(move || {
            let refused = ready.clone();
            let mut link = ToHome {
                told,
                ready,
                reports,
            };
            let options = StepOptions::default();
            let clock = Arc::new(Ahead::default());
            let interval = interval_s(workers);
            let ran = run_part(&clock, tasks, interval, &of_part, &options, &mut link);
            if let Err(error) = ran {
                let _ = refused.send(Err(error.to_string()));
            }
        });
        Self {
            name: name.to_owned(),
            to,
            ready: is_ready,
            reports: came,
            control,
            thread: Some(thread),
            kept: Arc::default(),
            lost_after: None,
            round_trip_ns: 0,
            told_before_ns: Arc::default(),
        }
    }
}

impl PartHost for Thread {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self) -> Result<(), (Option<u32>, String)> {
        self.ready.recv().unwrap().map_err(|error| (Some(9), error))
    }

    fn longest_round_trip_ns(&self) -> u64 {
        self.round_trip_ns
    }

    fn start(&mut self, begin_ns: u64) {
        let left_ns = begin_ns.saturating_sub(MonotonicClock.now_ns());
        self.told_before_ns.store(left_ns, Ordering::SeqCst);
        self.to.send(ToPart::Start(begin_ns + HOUR_NS)).unwrap();
    }

    fn next(&mut self) -> Result<Option<PartReport>, String> {
        if self.lost_after == Some(self.kept.lock().unwrap().len()) {
            return Err("it has said nothing for 3 s".into());
        }
        match self.reports.recv_timeout(Duration::from_millis(20)) {
            Ok(text) => {
                let value = serde_json::from_str(&text).unwrap();
                self.kept.lock().unwrap().push(value);
                Ok(Some(serde_json::from_str(&text).unwrap()))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err("it has ended".into()),
        }
    }

    fn stop(&mut self) {
        self.control.give(plimsoll_load::Command::Stop);
    }

    fn leave(&mut self) {
        self.control.give(plimsoll_load::Command::Stop);
        let _ = self.to.send(ToPart::Leave);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// What a step wrote.
#[derive(Default)]
struct Written {
    log: Vec<u8>,
    seconds: Vec<SecondRow>,
}

fn run(all: Vec<Task>, parts: Option<Vec<StepPart>>) -> (Result<StepOutcome, StepError>, Written) {
    let mut written = Written::default();
    let seconds = &mut written.seconds;
    let outputs = StepOutputs {
        log: &mut written.log,
        progress: &mut |_| {},
        seconds: &mut |row| {
            seconds.push(*row);
            Ok(())
        },
    };
    let (clock, control) = (Arc::new(MonotonicClock), Arc::new(Control::default()));
    let options = StepOptions::default();
    let outcome = match parts {
        None => run_step(&clock, &["query"], all, &control, &options, outputs),
        Some(parts) => {
            let at = (&clock, &control);
            run_step_in_parts(at, &["query"], all, parts, &options, outputs)
        }
    };
    (outcome, written)
}

/// Two hosts with two clients each.
fn two_parts(is_open: bool, fails_at: Option<u64>) -> Vec<(StepPart, Arc<Mutex<Vec<Value>>>)> {
    [1..=2, 3..=4]
        .into_iter()
        .map(|clients| {
            let mut own = tasks(is_open, fails_at);
            own.retain(|task| clients.contains(&task.client));
            let host = Thread::new(&format!("h{}", clients.start()), own, 4);
            let kept = host.kept.clone();
            let host = Box::new(host);
            (StepPart { clients, host }, kept)
        })
        .collect()
}

fn only(outcome: &StepOutcome) -> &OperationRecord {
    assert_eq!(outcome.operations.len(), 1);
    &outcome.operations[0]
}

/// The sum of all histograms of a name in the intervals of all reports.
fn summed(reports: &[Value], name: &str) -> Histogram<u64> {
    let mut sum = plimsoll_core::histogram::empty();
    for report in reports {
        for interval in report["intervals"].as_array().unwrap() {
            let encoded: EncodedHistogram = serde_json::from_value(interval[name].clone()).unwrap();
            sum.add(encoded.decode().unwrap()).unwrap();
        }
    }
    sum
}

#[test]
fn the_histograms_of_a_merged_step_are_the_sums_of_the_parts() {
    let parts = two_parts(true, None);
    let kept: Vec<_> = parts.iter().map(|(_, kept)| kept.clone()).collect();
    let parts = parts.into_iter().map(|(part, _)| part).collect();
    let (outcome, written) = run(tasks(true, None), Some(parts));
    let outcome = outcome.unwrap();
    assert_eq!(outcome.ended, Ended::Finished);
    let merged = only(&outcome);
    let reports: Vec<Value> = kept
        .iter()
        .flat_map(|kept| kept.lock().unwrap().clone())
        .collect();
    assert!(kept.iter().all(|kept| kept.lock().unwrap().len() > 2));
    let service = merged.service.decode().unwrap();
    assert_eq!(service, summed(&reports, "service"));
    assert_eq!(service.len(), merged.ok);
    // What was never sent is only known when all have ended.
    let mut response = summed(&reports, "response");
    if let Some(unsent) = &merged.unsent_response {
        response.add(unsent.decode().unwrap()).unwrap();
    }
    assert_eq!(
        merged.response.as_ref().unwrap().decode().unwrap(),
        response
    );
    assert_eq!(merged.attempts, merged.ok + merged.retried);
    assert_eq!(
        merged.errors,
        BTreeMap::from([("deadlock".to_owned(), merged.retried)])
    );
    let unsuccessful = merged.unsuccessful.as_ref().unwrap().decode().unwrap();
    assert_eq!(unsuccessful.len(), merged.retried);
    // The series has every operation of every client once.
    let of_client = |client: u32| -> u64 {
        let rows = written.seconds.iter();
        let rows = rows.filter(|row| row.client == client);
        rows.map(|row| row.counts.ok).sum()
    };
    for client in &outcome.clients {
        assert_eq!(
            of_client(client.client),
            client.ok,
            "client {}",
            client.client
        );
        assert_eq!(client.rows, 2 * client.ok);
    }
    assert_eq!(outcome.clients.len(), 4);
    let log = String::from_utf8(written.log).unwrap();
    // Three intervals, and each once for both hosts.
    assert_eq!(log.matches("Tag=query.service").count(), 3, "{log}");
}

#[test]
fn schedules_are_those_of_home() {
    let parts = two_parts(true, None);
    let parts = parts.into_iter().map(|(part, _)| part).collect();
    let (away, _) = run(tasks(true, None), Some(parts));
    let (home, _) = run(tasks(true, None), None);
    let (away, home) = (away.unwrap(), home.unwrap());
    let (away, home) = (only(&away), only(&home));
    let target = |of: &OperationRecord| of.pacing.as_ref().unwrap().target_per_s;
    assert_eq!(target(away), target(home));
    assert_eq!(away.ok + away.unsent, home.ok + home.unsent);
    let seconds = |of: &OperationRecord| of.pacing.as_ref().unwrap().seconds;
    assert_eq!(seconds(away), seconds(home));
}

#[test]
fn a_fixed_number_of_operations_is_done_wherever_clients_are() {
    let parts = two_parts(false, None);
    let parts = parts.into_iter().map(|(part, _)| part).collect();
    let (outcome, _) = run(tasks(false, None), Some(parts));
    let outcome = outcome.unwrap();
    let merged = only(&outcome);
    assert_eq!((merged.ok, merged.rows), (160, 320));
    assert!(outcome.clients.iter().all(|client| client.ok == 40));
}

/// On machines full of work 150 ms were not enough, and the step failed.
#[test]
fn hosts_that_answer_slowly_are_told_of_the_start_earlier() {
    let margins_s = |round_trip_ns: u64| -> Vec<f64> {
        let mut told = Vec::new();
        let mut parts = Vec::new();
        for clients in [1..=2, 3..=4] {
            let mut own = tasks(false, None);
            own.retain(|task| clients.contains(&task.client));
            let mut host = Thread::new("h", own, 4);
            // One of them is slow: all begin when it can.
            host.round_trip_ns = if *clients.start() == 3 {
                round_trip_ns
            } else {
                0
            };
            told.push(host.told_before_ns.clone());
            let host = Box::new(host);
            parts.push(StepPart { clients, host });
        }
        let (outcome, _) = run(tasks(false, None), Some(parts));
        assert_eq!(only(&outcome.unwrap()).ok, 160);
        let told = told.iter().map(|told| told.load(Ordering::SeqCst));
        told.map(|ns| ns as f64 / 1e9).collect()
    };
    for margin in margins_s(1_000_000) {
        assert!(margin <= 0.15, "{margin}");
    }
    for margin in margins_s(200_000_000) {
        assert!(margin > 0.3 && margin <= 0.8, "{margin}");
    }
    // A host that answers after an hour has no hour.
    for margin in margins_s(HOUR_NS) {
        assert!(margin > 1.0 && margin <= 5.0, "{margin}");
    }
}

#[test]
fn a_failure_on_one_host_ends_the_step_on_all() {
    let parts = two_parts(true, Some(20));
    let parts = parts.into_iter().map(|(part, _)| part).collect();
    let (outcome, _) = run(tasks(true, Some(20)), Some(parts));
    let outcome = outcome.unwrap();
    let Ended::Failed(failure) = &outcome.ended else {
        panic!("{:?}", outcome.ended);
    };
    assert_eq!(
        (failure.class, failure.message.as_str()),
        ("statement", "no such table")
    );
    assert!(outcome.elapsed_ns < 2_000_000_000, "{}", outcome.elapsed_ns);
}

#[test]
fn a_lost_host_fails_the_step_and_is_named() {
    let part = |clients: std::ops::RangeInclusive<u32>, lost_after| {
        let mut own = tasks(true, None);
        own.retain(|task| clients.contains(&task.client));
        let mut host = Thread::new(&format!("h{}", clients.start()), own, 4);
        host.lost_after = lost_after;
        StepPart {
            clients,
            host: Box::new(host),
        }
    };
    let parts = vec![part(1..=2, None), part(3..=4, Some(2))];
    let (outcome, _) = run(tasks(true, None), Some(parts));
    let outcome = outcome.unwrap();
    let Ended::Failed(failure) = &outcome.ended else {
        panic!("{:?}", outcome.ended);
    };
    assert_eq!(failure.class, "client_host");
    assert!(
        failure.message.starts_with("lost client host h3 0.")
            && failure.message.ends_with("it has said nothing for 3 s"),
        "{}",
        failure.message
    );
    assert!(
        outcome.elapsed_ns < 2_000_000_000,
        "the others were stopped"
    );
}

#[test]
fn a_client_that_cannot_connect_is_named_with_its_host() {
    let mut own = tasks(false, None);
    own.truncate(1);
    own[0].client = 9;
    own[0].worker = Box::new(Sleeper {
        client: 9,
        done: 0,
        fails_at: None,
    });
    let host = Box::new(Thread::new("cl7", own, 1));
    let parts = vec![StepPart {
        clients: 9..=9,
        host,
    }];
    let mut all = tasks(false, None);
    all.truncate(1);
    all[0].client = 9;
    let (outcome, _) = run(all, Some(parts));
    let error = outcome.unwrap_err().to_string();
    assert!(
        error.starts_with("client 9 could not start: client host cl7: ")
            && error.contains("max_connections is reached"),
        "{error}"
    );
}

/// A host that says what it likes: one report after the start, and then nothing.
struct Liar(Option<Value>);

impl PartHost for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn open(&mut self) -> Result<(), (Option<u32>, String)> {
        Ok(())
    }

    fn start(&mut self, _: u64) {}

    fn next(&mut self) -> Result<Option<PartReport>, String> {
        let report = self.0.take().ok_or("it has ended")?;
        Ok(Some(serde_json::from_value(report).unwrap()))
    }

    fn stop(&mut self) {}

    fn leave(&mut self) {}
}

/// A second of a far future took the memory for all seconds before it, and a schedule without end
/// was walked to it.
#[test]
fn a_host_that_reports_what_cannot_be_fails_the_step_at_once() {
    let far = u64::MAX;
    let counts = json!({"ok": 1, "unsuccessful": 0, "rows": 0, "service_sum_ns": 1,
        "service_max_ns": 1, "response_max_ns": 1});
    let report = |seconds: Value, ends: Value| json!({"live": [], "next_interval": 0, "intervals": [], "seconds": seconds, "ends": ends});
    let second =
        |second: u64| json!([{"worker": 0, "kind": 0, "second": second, "counts": counts.clone()}]);
    let end = |ended_ns: u64, scheduled: u64, first_second: u64| {
        json!([{"worker": 0, "failure": null, "is_interrupted": false, "scheduled": scheduled,
            "ended_ns": ended_ns, "first_failure": null, "kinds": [{"kind": 0, "ok": 0,
            "retried": 0, "failed": 0, "rows": 0, "errors": {}, "wait_ns": 0, "lag": null,
            "unsuccessful": null, "first_sent_ns": 0, "last_tried_ns": 0,
            "first_second": first_second, "seconds": [counts.clone()]}]}])
    };
    let reports = [
        (report(second(far), json!([])), "far ahead of the step"),
        (report(second(1 << 40), json!([])), "far ahead of the step"),
        (report(json!([]), end(0, 0, far)), "far ahead of the step"),
        (report(json!([]), end(far, 0, 0)), "far ahead of the step"),
        (
            report(json!([]), end(1_000_000_000, far, 0)),
            "it has ended",
        ),
    ];
    for (report, words) in reports {
        let host = Box::new(Liar(Some(report.clone())));
        let parts = vec![StepPart {
            clients: 1..=4,
            host,
        }];
        let (outcome, _) = run(tasks(true, None), Some(parts));
        let Ended::Failed(failure) = outcome.unwrap().ended else {
            panic!("{report} is believed");
        };
        assert!(failure.message.contains(words), "{report}: {failure:?}");
    }
}

#[test]
fn odd_clients_over_more_hosts_than_are_needed_are_counted_once_each() {
    let part = |client: u32| {
        let mut own = tasks(true, None);
        own.retain(|task| task.client == client);
        let host = Thread::new(&format!("h{client}"), own, 3);
        let kept = host.kept.clone();
        let host = Box::new(host);
        let clients = client..=client;
        (StepPart { clients, host }, kept)
    };
    let parts: Vec<_> = (1..=3).map(part).collect();
    let kept: Vec<_> = parts.iter().map(|(_, kept)| kept.clone()).collect();
    let mut all = tasks(true, None);
    all.retain(|task| task.client < 4);
    let (outcome, written) = run(all, Some(parts.into_iter().map(|(part, _)| part).collect()));
    let outcome = outcome.unwrap();
    let merged = only(&outcome);
    let reports: Vec<Value> = kept
        .iter()
        .flat_map(|kept| kept.lock().unwrap().clone())
        .collect();
    let of_parts = summed(&reports, "service");
    let service = merged.service.decode().unwrap();
    assert_eq!(service, of_parts);
    let tail = |of: &Histogram<u64>| (of.max(), of.value_at_quantile(0.99), of.len());
    assert_eq!(tail(&service), tail(&of_parts));
    assert_eq!(outcome.clients.len(), 3);
    let done: u64 = outcome.clients.iter().map(|client| client.ok).sum();
    let rows: u64 = written.seconds.iter().map(|row| row.counts.ok).sum();
    assert_eq!((merged.ok, merged.ok), (done, rows));
    let longest = written.seconds.iter().map(|row| row.counts.service_max_ns);
    let longest = longest.max().unwrap();
    assert!(
        service.equivalent(service.max(), longest),
        "{} {longest}",
        service.max()
    );
}
