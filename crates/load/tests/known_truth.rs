//! Every number of a step, computed a second time: workers write down each try beside the recorder,
//! and a plain function makes from that list what the step must have come to. Arrivals, stops,
//! warm-ups, turns, stalls, locks, losses and failures are drawn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use plimsoll_core::clock::Clock;
use plimsoll_core::record::EncodedHistogram;
use plimsoll_core::units::SECOND_NS;
use plimsoll_load::{
    Arrival, Command, Control, Ended, Failure, Next, Outcome, Phase, Progress, SecondRow,
    StepOptions, StepOutcome, StepOutputs, Stop, Task, Worker, run_step,
};
use plimsoll_testkit::ClockPerThread;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const MS: u64 = 1_000_000;
/// How long after the clock's zero the workers begin.
const LEAD_NS: u64 = 2 * MS;
/// How long an operation may be refused before it fails.
const DEADLINE_NS: u64 = 60 * SECOND_NS;

/// What comes of a try.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Done(u64),
    Busy,
    Deadlock,
    Lost,
    /// A failure that may be.
    Failed,
    /// A failure that ends the step.
    Uncertain,
}

/// What a worker does with its tries, over and over.
#[derive(Clone, Debug)]
struct Script {
    tries: Vec<(u64, Fate)>,
    /// Before so many operations it has to wait for somebody, or has no connection.
    waits: Vec<(u64, bool)>,
    /// At the end of which try which command is given.
    commands: Vec<(u64, Command)>,
    /// After so many operations there are no more.
    operations: u64,
    /// Kinds in turn.
    kinds: u64,
}

#[derive(Clone, Copy, Debug)]
struct Try {
    /// Counts operations from 0.
    operation: u64,
    kind: usize,
    sent_ns: u64,
    done_ns: u64,
    fate: Fate,
}

/// What one worker wrote down.
#[derive(Clone, Debug, Default)]
struct Diary {
    tries: Vec<Try>,
    /// The operation with which measuring began, and how often that was reported.
    measured_from: Option<u64>,
    tellings: u32,
    /// Kinds of operations that were looked up without a connection, whether measuring had begun,
    /// and how long that took.
    look_ups: Vec<(usize, bool, u64)>,
    /// The clock when it closed.
    closed_ns: u64,
    /// Its last asking was in vain, or gave nothing more.
    has_finished: bool,
    command: Option<Command>,
}

impl Diary {
    /// When the operation was tried first. Tries are in the order of time, and operations too.
    fn begin_ns(&self, operation: u64) -> u64 {
        self.tries[self.tries.partition_point(|t| t.operation < operation)].sent_ns
    }
}

struct Writer {
    clock: Arc<ClockPerThread>,
    control: Arc<Control>,
    script: Script,
    diary: Diary,
    operations: u64,
    waited: u64,
    lost_since_ns: Option<u64>,
    diaries: Arc<Mutex<BTreeMap<u32, Diary>>>,
    client: u32,
}

impl Worker for Writer {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        if self.operations == self.script.operations {
            self.diary.has_finished = true;
            return Ok(Next::Finished);
        }
        if let Some((_, is_lost)) = self
            .script
            .waits
            .iter()
            .find(|(operation, _)| *operation == self.operations)
            .filter(|_| self.waited < 3)
        {
            self.waited += 1;
            if !is_lost {
                return Ok(Next::Later);
            }
            self.lost_since_ns.get_or_insert(self.clock.now_ns());
            return Ok(Next::Lost {
                message: "away".into(),
            });
        }
        self.waited = 0;
        let kind = (self.operations % self.script.kinds) as usize;
        self.operations += 1;
        if let Some(since_ns) = self.lost_since_ns.take() {
            self.diary.look_ups.push((
                kind,
                self.diary.measured_from.is_some(),
                self.clock.now_ns() - since_ns,
            ));
        }
        Ok(Next::Operation(kind))
    }

    fn begin_measuring(&mut self) {
        self.diary.tellings += 1;
        // The operation that is prepared is the first, but where the worker has ended.
        self.diary.measured_from = Some(self.operations.saturating_sub(1));
    }

    fn execute(&mut self) -> Outcome {
        let number = self.diary.tries.len();
        let (length_ns, fate) = self.script.tries[number % self.script.tries.len()];
        let sent_ns = self.clock.now_ns();
        self.clock.advance(length_ns);
        let kind = ((self.operations - 1) % self.script.kinds) as usize;
        self.diary.tries.push(Try {
            operation: self.operations - 1,
            kind,
            sent_ns,
            done_ns: self.clock.now_ns(),
            fate,
        });
        if let Some((_, command)) = self
            .script
            .commands
            .iter()
            .find(|(at, _)| *at == number as u64)
        {
            self.diary.command = Some(*command)
                .filter(|command| *command != Command::Park)
                .or(self.diary.command);
            self.control.give(*command);
        }
        let failure = |class| Failure {
            class,
            message: "no".into(),
        };
        match fate {
            Fate::Done(rows) => Outcome::Done { rows },
            Fate::Busy => Outcome::Retry { class: "busy" },
            Fate::Deadlock => Outcome::Retry { class: "deadlock" },
            Fate::Lost => Outcome::Lost {
                message: "gone".into(),
            },
            Fate::Failed => Outcome::Failed(failure("statement")),
            Fate::Uncertain => Outcome::Failed(failure("lost")),
        }
    }

    fn close(&mut self) {
        self.diary.closed_ns = self.clock.now_ns();
        self.diaries
            .lock()
            .unwrap()
            .insert(self.client, std::mem::take(&mut self.diary));
    }
}

#[derive(Clone, Debug)]
struct Case {
    arrival: Arrival,
    stop: Stop,
    warm_up_ns: u64,
    oversleep_ns: u64,
    /// One per client.
    scripts: Vec<Script>,
}

/// What a step left: its outcome, the workers' diaries, its log, the last progress and its series.
type Left = (
    StepOutcome,
    BTreeMap<u32, Diary>,
    Vec<u8>,
    Progress,
    Vec<SecondRow>,
);

fn run(case: &Case) -> Left {
    let clock = Arc::new(ClockPerThread {
        oversleep_ns: case.oversleep_ns,
    });
    let control = Arc::new(Control::default());
    let diaries = Arc::new(Mutex::new(BTreeMap::new()));
    let kinds = case.scripts[0].kinds as usize;
    let task = |(index, script): (usize, &Script)| Task {
        client: index as u32 + 1,
        kinds: (0..kinds).collect(),
        arrival: case.arrival.clone(),
        stop: case.stop,
        worker: Box::new(Writer {
            clock: clock.clone(),
            control: control.clone(),
            script: script.clone(),
            diary: Diary::default(),
            operations: 0,
            waited: 0,
            lost_since_ns: None,
            diaries: diaries.clone(),
            client: index as u32 + 1,
        }),
    };
    let tasks = case.scripts.iter().enumerate().map(task).collect();
    let options = StepOptions {
        warm_up_ns: case.warm_up_ns,
        max_failed: Some(1.0),
        ..StepOptions::default()
    };
    let (mut log, mut last, mut series) = (Vec::new(), Progress::default(), Vec::new());
    let has_ended = AtomicBool::new(false);
    let has_turns = case.scripts.iter().any(|script| {
        script
            .commands
            .iter()
            .any(|(_, command)| *command == Command::Park)
    });
    let outcome = std::thread::scope(|scope| {
        if has_turns {
            // Turns of others: everybody's clock stands still meanwhile.
            scope.spawn(|| {
                while !has_ended.load(Ordering::SeqCst) {
                    if control.command() == Command::Park
                        && control.wait_until_parked(Duration::from_secs(60))
                    {
                        control.give(Command::Run);
                    }
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
        }
        let names = &["even", "odd"][..kinds];
        let mut progress = |progress: &Progress| last = progress.clone();
        let mut write = |row: &SecondRow| {
            series.push(*row);
            Ok(())
        };
        let outcome = run_step(
            &clock,
            names,
            tasks,
            &control,
            &options,
            StepOutputs {
                log: &mut log,
                progress: &mut progress,
                seconds: &mut write,
            },
        )
        .unwrap();
        has_ended.store(true, Ordering::SeqCst);
        outcome
    });
    let diaries = std::mem::take(&mut *diaries.lock().unwrap());
    (outcome, diaries, log, last, series)
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3600 * SECOND_NS, 3).unwrap()
}

/// One worker's truth.
#[derive(Default)]
struct Truth {
    ok: u64,
    retried: u64,
    failed: u64,
    rows: u64,
    wait_ns: u64,
    errors: BTreeMap<String, u64>,
    service: Vec<u64>,
    response: Vec<u64>,
    lag: Vec<u64>,
    unsuccessful: Vec<u64>,
    unsent: Vec<u64>,
    /// ok, unsuccessful, rows, sum and maximum of service, maximum of response.
    seconds: BTreeMap<u64, [u64; 6]>,
    first_sent_ns: Option<u64>,
    last_tried_ns: u64,
}

/// The instants of a schedule, from its beginning.
fn instants(arrival: &Arrival) -> Box<dyn Iterator<Item = u64> + '_> {
    match arrival {
        Arrival::Closed => Box::new(std::iter::empty()),
        Arrival::Even {
            operations,
            period_ns,
            phase_ns,
        } => Box::new((0..).map(move |i: u128| {
            *phase_ns + (i * u128::from(*period_ns) / u128::from(*operations)) as u64
        })),
        Arrival::ClassicBurst { burst } => Box::new((0..).map(move |i: u64| i / burst * SECOND_NS)),
        Arrival::Poisson { .. } => {
            let mut due = arrival.due();
            Box::new(std::iter::from_fn(move || due.next_ns()))
        }
    }
}

/// What is reported of a worker as a whole.
struct Whole {
    kinds: Vec<Truth>,
    ended_ns: u64,
    /// Operations due, and until when.
    planned: u64,
    length_ns: u64,
    is_cut: bool,
    failure: Option<&'static str>,
}

/// From the start of the step; `finished_ns` is where a finish reached the first worker, if one was
/// given.
fn truth(case: &Case, diary: &Diary, finished_ns: Option<u64>) -> Whole {
    let start_ns = LEAD_NS + case.warm_up_ns;
    let is_open = case.arrival != Arrival::Closed;
    let kinds = case.scripts[0].kinds;
    let mut of_kinds: Vec<Truth> = (0..kinds).map(|_| Truth::default()).collect();
    let mut due = instants(&case.arrival);
    let mut due_ns = 0;
    let (mut sent, mut failure) = (0, None);
    // An operation that was begun in the warm-up belongs to it, to its last try.
    let measured: Vec<Try> = diary
        .tries
        .iter()
        .filter(|t| diary.begin_ns(t.operation) >= start_ns)
        .copied()
        .collect();
    for (at, t) in measured.iter().enumerate() {
        let truth = &mut of_kinds[t.kind];
        let before = at
            .checked_sub(1)
            .map(|at| measured[at])
            .filter(|before| before.operation == t.operation);
        let first_sent_ns = diary.begin_ns(t.operation);
        match before {
            None => {
                due_ns = if is_open {
                    start_ns + due.next().unwrap()
                } else {
                    t.sent_ns
                };
                sent += 1;
                if is_open {
                    truth.lag.push(t.sent_ns - due_ns);
                }
            }
            Some(before) => truth.wait_ns += t.sent_ns - before.done_ns,
        }
        truth.first_sent_ns.get_or_insert(t.sent_ns - start_ns);
        truth.last_tried_ns = t.done_ns - start_ns;
        let second = truth
            .seconds
            .entry((t.done_ns - start_ns) / SECOND_NS)
            .or_default();
        let took_ns = t.done_ns - t.sent_ns;
        if let Fate::Done(rows) = t.fate {
            truth.ok += 1;
            truth.rows += rows;
            truth.service.push(took_ns);
            second[0] += 1;
            second[2] += rows;
            second[3] += took_ns;
            second[4] = second[4].max(took_ns);
            if is_open {
                truth.response.push(t.done_ns - due_ns);
                second[5] = second[5].max(t.done_ns - due_ns);
            }
            continue;
        }
        let is_refused = matches!(t.fate, Fate::Busy | Fate::Deadlock);
        let is_final = match t.fate {
            Fate::Failed | Fate::Uncertain => true,
            _ => is_refused && t.done_ns - first_sent_ns >= DEADLINE_NS,
        };
        let class = match t.fate {
            Fate::Busy => "busy",
            Fate::Deadlock => "deadlock",
            Fate::Failed => "statement",
            _ => "lost",
        };
        *truth.errors.entry(class.to_owned()).or_default() += 1;
        truth.unsuccessful.push(took_ns);
        second[1] += 1;
        if is_final {
            truth.failed += 1;
            failure = failure.or((t.fate == Fate::Uncertain).then_some("lost"));
        } else {
            truth.retried += 1;
            truth.wait_ns += took_ns;
        }
    }
    for (kind, is_measured, waited_ns) in &diary.look_ups {
        if *is_measured || case.warm_up_ns == 0 {
            of_kinds[*kind].wait_ns += waited_ns;
        }
    }
    // A failure in the warm-up ends the step as well.
    failure = failure.or(diary
        .tries
        .iter()
        .any(|t| t.fate == Fate::Uncertain)
        .then_some("lost"));
    let ended_ns = diary.closed_ns.saturating_sub(start_ns);
    let is_cut = failure.is_some()
        || diary.command == Some(Command::Stop) && !has_reached_its_end(case, diary, start_ns);
    let (planned, length_ns) = schedule(case, ended_ns, is_cut, finished_ns);
    if is_open && !is_cut {
        let owed: Vec<u64> = due
            .take(planned.saturating_sub(sent) as usize)
            .map(|due_ns| ended_ns.saturating_sub(due_ns))
            .collect();
        share_out(&owed, &mut of_kinds);
    }
    Whole {
        kinds: of_kinds,
        ended_ns,
        planned,
        length_ns,
        is_cut,
        failure,
    }
}

/// Whether a worker that was asked to stop was done anyway.
fn has_reached_its_end(case: &Case, diary: &Diary, start_ns: u64) -> bool {
    let is_between = !matches!(
        diary.tries.last().map(|t| t.fate),
        Some(Fate::Busy | Fate::Deadlock | Fate::Lost)
    );
    // Other rules are looked at after the command.
    let Stop::Time(length_ns) = case.stop else {
        return false;
    };
    is_between
        && diary
            .tries
            .last()
            .is_some_and(|t| t.done_ns >= start_ns + length_ns)
}

fn schedule(case: &Case, ended_ns: u64, is_cut: bool, finished_ns: Option<u64>) -> (u64, u64) {
    let before = |length_ns: u64| {
        instants(&case.arrival)
            .take_while(|due_ns| *due_ns < length_ns)
            .count() as u64
    };
    if case.arrival == Arrival::Closed {
        return (0, 0);
    }
    let whole_ns = match (case.stop, &case.arrival) {
        (Stop::Time(length_ns), _) | (Stop::Worker { length_ns, .. }, _) => length_ns,
        (
            Stop::Operations(count),
            Arrival::Even {
                operations,
                period_ns,
                ..
            },
        ) => (count * period_ns).div_ceil(*operations),
        (Stop::Operations(count), Arrival::ClassicBurst { burst }) => {
            count.div_ceil(*burst) * SECOND_NS
        }
        (Stop::Operations(count), arrival) => instants(arrival).nth(count as usize).unwrap(),
        (Stop::WithClient, _) => ended_ns,
    };
    let whole_ns = if matches!(case.stop, Stop::Time(_)) {
        whole_ns.min(ended_ns)
    } else {
        whole_ns
    };
    let is_by_time = matches!(case.stop, Stop::Time(_) | Stop::Worker { .. });
    let limit_ns = finished_ns
        .filter(|_| is_by_time)
        .unwrap_or(u64::MAX)
        .min(if is_cut { ended_ns } else { u64::MAX });
    if limit_ns < whole_ns {
        return (before(limit_ns), limit_ns);
    }
    match case.stop {
        Stop::Operations(count) | Stop::Worker { planned: count, .. } => (count, whole_ns),
        _ => (before(whole_ns), whole_ns),
    }
}

/// Kinds in the shares of what was begun and came to an end.
fn share_out(owed: &[u64], kinds: &mut [Truth]) {
    let weights: Vec<u64> = kinds.iter().map(|kind| kind.ok + kind.failed).collect();
    let weights = if weights.iter().sum::<u64>() == 0 {
        vec![1; kinds.len()]
    } else {
        weights
    };
    let mut given = vec![0u64; kinds.len()];
    for ns in owed {
        // Exact fractions: (given + 1) / weight is the least.
        let candidates = (0..kinds.len()).filter(|&at| weights[at] > 0);
        let at = candidates
            .min_by(|&a, &b| {
                ((given[a] + 1) * weights[b])
                    .cmp(&((given[b] + 1) * weights[a]))
                    .then(a.cmp(&b))
            })
            .unwrap();
        given[at] += 1;
        kinds[at].unsent.push(*ns);
        kinds[at].response.push(*ns);
        kinds[at].lag.push(*ns);
    }
}

fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
    let mut histogram = empty();
    values
        .into_iter()
        .for_each(|ns| histogram.saturating_record(ns));
    histogram
}

fn decoded(encoded: Option<&EncodedHistogram>) -> Histogram<u64> {
    encoded.map_or_else(empty, |encoded| encoded.decode().unwrap())
}

fn read_log(log: &[u8]) -> BTreeMap<String, Histogram<u64>> {
    use base64::Engine;
    let mut totals: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(interval) = entry.unwrap() else {
            continue;
        };
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .unwrap();
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        let tag = interval
            .tag()
            .expect("every interval has a tag")
            .as_str()
            .to_owned();
        totals
            .entry(tag)
            .or_insert_with(empty)
            .add(&histogram)
            .unwrap();
    }
    totals
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let (outcome, diaries, log, last, series) = run(case);
    let is_finish = |diary: &Diary| diary.command == Some(Command::Finish);
    let start_ns = LEAD_NS + case.warm_up_ns;
    // Commands are drawn for a lone worker only.
    let finished_ns = diaries
        .values()
        .find(|diary| is_finish(diary))
        .map(|diary| diary.closed_ns.saturating_sub(start_ns));
    let finished_ns = finished_ns.filter(|_| matches!(case.stop, Stop::Time(_)));
    let wholes: Vec<Whole> = diaries
        .values()
        .map(|diary| truth(case, diary, finished_ns))
        .collect();
    for (diary, whole) in diaries.values().zip(&wholes) {
        check_order(case, diary, whole)?;
    }
    prop_assert_eq!(
        outcome.elapsed_ns,
        wholes.iter().map(|whole| whole.ended_ns).max().unwrap()
    );
    let ended = match wholes.iter().find_map(|whole| whole.failure) {
        Some(_) => 2,
        None => u8::from(
            diaries
                .values()
                .any(|diary| diary.command == Some(Command::Stop)),
        ),
    };
    let found = match &outcome.ended {
        Ended::Finished => 0,
        Ended::Stopped => 1,
        Ended::Failed(failure) if failure.class == "lost" => 2,
        Ended::Failed(failure) => return Err(TestCaseError::fail(format!("{failure:?}"))),
    };
    prop_assert_eq!(found, ended);
    let log = read_log(&log);
    let (mut all_ok, mut all_rows, mut all_unsuccessful) = (0, 0, 0);
    for kind in 0..case.scripts[0].kinds as usize {
        let operation = &outcome.operations[kind];
        let of_kind = || wholes.iter().map(|whole| &whole.kinds[kind]);
        let sum = |pick: fn(&Truth) -> u64| of_kind().map(pick).sum::<u64>();
        let values = |pick: fn(&Truth) -> &Vec<u64>| {
            histogram(of_kind().flat_map(|truth| pick(truth).iter().copied()))
        };
        prop_assert_eq!(
            (operation.ok, operation.retried, operation.failed),
            (sum(|t| t.ok), sum(|t| t.retried), sum(|t| t.failed))
        );
        prop_assert_eq!(
            operation.attempts,
            operation.ok + operation.retried + operation.failed
        );
        prop_assert_eq!(
            (operation.rows, operation.wait_ns),
            (sum(|t| t.rows), sum(|t| t.wait_ns))
        );
        prop_assert_eq!(
            operation.worker_ns,
            wholes.iter().map(|whole| whole.ended_ns).sum::<u64>()
        );
        let mut errors = BTreeMap::new();
        of_kind()
            .flat_map(|t| &t.errors)
            .for_each(|(class, count)| *errors.entry(class.clone()).or_insert(0) += count);
        prop_assert_eq!(&operation.errors, &errors);
        prop_assert_eq!(decoded(Some(&operation.service)), values(|t| &t.service));
        prop_assert_eq!(
            decoded(operation.unsuccessful.as_ref()),
            values(|t| &t.unsuccessful)
        );
        prop_assert_eq!(operation.unsent, sum(|t| t.unsent.len() as u64));
        prop_assert_eq!(
            decoded(operation.unsent_response.as_ref()),
            values(|t| &t.unsent)
        );
        prop_assert_eq!(
            decoded(operation.response.as_ref()),
            values(|t| &t.response)
        );
        prop_assert_eq!(decoded(operation.lag.as_ref()), values(|t| &t.lag));
        let name = &operation.kind;
        let of_log = |what: &str| {
            log.get(&format!("{name}.{what}"))
                .cloned()
                .unwrap_or_else(empty)
        };
        prop_assert_eq!(of_log("service"), decoded(Some(&operation.service)));
        prop_assert_eq!(of_log("response"), decoded(operation.response.as_ref()));
        check_clients(case, &outcome, &wholes, kind, finished_ns)?;
        check_seconds(&series, &wholes, kind)?;
        check_pacing(case, &outcome, &wholes, kind)?;
        all_ok += operation.ok;
        all_rows += operation.rows;
        all_unsuccessful += operation.retried + operation.failed;
    }
    prop_assert_eq!(last.phase, Phase::Ended);
    prop_assert_eq!(last.kinds.last(), Some(&(all_ok, all_rows)));
    prop_assert_eq!(last.unsuccessful, all_unsuccessful);
    Ok(())
}

/// Operations are sent when they are due or as soon as the worker is ready, and none before the
/// step that is counted in it.
fn check_order(case: &Case, diary: &Diary, whole: &Whole) -> Result<(), TestCaseError> {
    let start_ns = LEAD_NS + case.warm_up_ns;
    prop_assert!(
        diary.tellings == u32::from(case.warm_up_ns > 0),
        "told {} times",
        diary.tellings
    );
    if let Some(first) = diary
        .tries
        .iter()
        .find(|t| diary.begin_ns(t.operation) >= start_ns)
        .filter(|_| case.warm_up_ns > 0)
    {
        prop_assert_eq!(
            diary.measured_from,
            Some(first.operation),
            "the worker counts from the same operation on"
        );
    }
    if case.arrival != Arrival::Closed
        && !case.scripts.iter().any(|script| !script.waits.is_empty())
    {
        let mut ready_ns = 0;
        let mut due = instants(&case.arrival);
        let firsts = diary
            .tries
            .iter()
            .enumerate()
            .filter(|(at, t)| *at == 0 || diary.tries[at - 1].operation != t.operation);
        for (at, t) in firsts {
            ready_ns = if at == 0 {
                ready_ns
            } else {
                diary.tries[at - 1].done_ns
            };
            if t.sent_ns < start_ns {
                continue;
            }
            let due_ns = start_ns + due.next().unwrap();
            prop_assert!(t.sent_ns >= due_ns, "sent before it was due");
            prop_assert!(
                t.sent_ns <= due_ns.max(ready_ns) + case.oversleep_ns,
                "{:?} was due at {} and could at {}",
                t,
                due_ns,
                ready_ns
            );
        }
    }
    // The rule that ended it.
    let last_ns = diary
        .tries
        .last()
        .map_or(0, |t| t.done_ns)
        .saturating_sub(start_ns);
    if let (Stop::Time(length_ns), false, None, false) =
        (case.stop, whole.is_cut, diary.command, diary.has_finished)
    {
        let end_ns = length_ns.max(last_ns);
        let slack_ns = case.oversleep_ns
            + if case.scripts[0].waits.is_empty() {
                0
            } else {
                SECOND_NS
            };
        prop_assert!(
            (length_ns..=end_ns + slack_ns).contains(&whole.ended_ns),
            "{} is not at {}",
            whole.ended_ns,
            end_ns
        );
    }
    Ok(())
}

fn check_clients(
    case: &Case,
    outcome: &StepOutcome,
    wholes: &[Whole],
    kind: usize,
    finished_ns: Option<u64>,
) -> Result<(), TestCaseError> {
    let name = &outcome.operations[kind].kind;
    let clients: Vec<_> = outcome
        .clients
        .iter()
        .filter(|client| client.kind == *name)
        .collect();
    prop_assert_eq!(clients.len(), wholes.len());
    for (at, (client, whole)) in clients.iter().zip(wholes).enumerate() {
        let of_kind = &whole.kinds[kind];
        prop_assert_eq!(
            (client.client, client.ok, client.rows),
            (at as u32 + 1, of_kind.ok, of_kind.rows)
        );
        let (from_ns, to_ns) = match case.stop {
            Stop::Time(length_ns) => {
                let last_ns = whole
                    .kinds
                    .iter()
                    .map(|of_kind| of_kind.last_tried_ns)
                    .max()
                    .unwrap();
                (
                    0,
                    last_ns.max(
                        length_ns
                            .min(whole.ended_ns)
                            .min(finished_ns.unwrap_or(u64::MAX)),
                    ),
                )
            }
            _ => {
                let from_ns = if whole.kinds.len() > 1 {
                    of_kind.first_sent_ns.unwrap_or(0)
                } else {
                    0
                };
                (
                    from_ns,
                    of_kind.last_tried_ns.max(whole.length_ns).max(from_ns),
                )
            }
        };
        prop_assert_eq!((client.from_ns, client.to_ns), (from_ns, to_ns));
    }
    Ok(())
}

fn check_seconds(series: &[SecondRow], wholes: &[Whole], kind: usize) -> Result<(), TestCaseError> {
    let mut found: BTreeMap<(u32, u64), [u64; 6]> = BTreeMap::new();
    for row in series.iter().filter(|row| row.kind == kind) {
        let c = row.counts;
        let counts = [
            c.ok,
            c.unsuccessful,
            c.rows,
            c.service_sum_ns,
            c.service_max_ns,
            c.response_max_ns,
        ];
        prop_assert!(
            found.insert((row.client, row.second), counts).is_none(),
            "a second is there once"
        );
    }
    found.retain(|_, counts| *counts != [0; 6]);
    let of_client = |(at, whole): (usize, &Whole)| {
        whole.kinds[kind]
            .seconds
            .iter()
            .map(|(second, counts)| ((at as u32 + 1, *second), *counts))
            .collect::<Vec<_>>()
    };
    let expected: BTreeMap<(u32, u64), [u64; 6]> =
        wholes.iter().enumerate().flat_map(of_client).collect();
    prop_assert_eq!(found, expected);
    Ok(())
}

fn check_pacing(
    case: &Case,
    outcome: &StepOutcome,
    wholes: &[Whole],
    kind: usize,
) -> Result<(), TestCaseError> {
    let is_mixed = case.scripts[0].kinds > 1 && matches!(case.stop, Stop::Time(_));
    let found = outcome.operations[kind].pacing.as_ref();
    let length_ns = wholes.iter().map(|whole| whole.length_ns).max().unwrap();
    if length_ns == 0 || is_mixed && kind > 0 {
        prop_assert!(found.is_none());
        return Ok(());
    }
    let found = found.unwrap();
    let name = &outcome.operations[kind].kind;
    let counted = length_ns.div_ceil(SECOND_NS) as usize + 1;
    let (mut due, mut done) = (vec![0u64; counted], vec![0u64; counted]);
    let (mut target, mut achieved) = (0.0, 0.0);
    for (whole, client) in wholes
        .iter()
        .zip(outcome.clients.iter().filter(|client| client.kind == *name))
    {
        let kinds = if is_mixed {
            &whole.kinds[..]
        } else {
            &whole.kinds[kind..=kind]
        };
        instants(&case.arrival)
            .take(whole.planned as usize)
            .for_each(|ns| due[((ns / SECOND_NS) as usize).min(counted - 1)] += 1);
        for (second, counts) in kinds
            .iter()
            .flat_map(|of_kind| &of_kind.seconds)
            .filter(|(second, _)| **second < counted as u64)
        {
            done[*second as usize] += counts[0];
        }
        target += whole.planned as f64 * 1e9 / whole.length_ns.max(1) as f64;
        let ok: u64 = kinds.iter().map(|of_kind| of_kind.ok).sum();
        achieved += ok as f64 * 1e9 / (client.to_ns - client.from_ns).max(1) as f64;
    }
    let seconds = length_ns / SECOND_NS;
    let under = (0..seconds as usize)
        .filter(|&second| (done[second] as f64) < 0.95 * due[second] as f64)
        .count() as u64;
    let backlog = due.iter().sum::<u64>().saturating_sub(done.iter().sum());
    prop_assert_eq!(
        (found.seconds, found.seconds_under, found.backlog),
        (seconds, under, backlog)
    );
    prop_assert!(
        (found.target_per_s - target).abs() < 1e-6 * target.max(1.0)
            && (found.achieved_per_s - achieved).abs() < 1e-6 * achieved.max(1.0)
    );
    Ok(())
}

fn arrivals() -> impl Strategy<Value = Arrival> {
    prop_oneof![
        2 => Just(Arrival::Closed),
        3 => (1u64..150, 0u64..SECOND_NS).prop_map(|(operations, phase_ns)| Arrival::Even { operations, period_ns: SECOND_NS, phase_ns }),
        1 => (1u64..40).prop_map(|burst| Arrival::ClassicBurst { burst }),
        1 => (1u64..150, any::<u64>()).prop_map(|(operations, seed)| Arrival::Poisson { operations, period_ns: SECOND_NS, seed }),
    ]
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![
        60 => (0u64..5).prop_map(Fate::Done),
        4 => Just(Fate::Busy),
        2 => Just(Fate::Deadlock),
        2 => Just(Fate::Lost),
        2 => Just(Fate::Failed),
    ]
}

fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![40 => 1000..20 * MS, 6 => 20 * MS..400 * MS, 2 => 400 * MS..1900 * MS]
}

/// Tries without an end of the loop: one of them is done at the least. Now and then one that
/// outlasts the patience, or the step's end.
fn scripts(kinds: u64) -> impl Strategy<Value = Script> {
    let rare = prop_oneof![
        20 => Just(None),
        1 => (0usize..40).prop_map(|at| Some((at, 61 * SECOND_NS, Fate::Busy))),
        2 => (0usize..40, 1000..50 * MS).prop_map(|(at, ns)| Some((at, ns, Fate::Uncertain))),
    ];
    (
        prop::collection::vec((lengths(), fates()), 1..40),
        rare,
        prop::collection::vec((0u64..60, any::<bool>()), 0..3),
        1u64..400,
    )
        .prop_map(move |(mut tries, rare, waits, operations)| {
            tries.push((3 * MS, Fate::Done(1)));
            if let Some((at, ns, fate)) = rare.filter(|(at, ..)| *at < tries.len()) {
                tries[at] = (ns, fate);
                tries.push((MS, Fate::Done(2)));
            }
            Script {
                tries,
                waits,
                commands: Vec::new(),
                operations,
                kinds,
            }
        })
}

/// Steps of so many workers. Commands are drawn for one that is alone, and failures that end the
/// step.
fn cases(clients: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    let stops = prop_oneof![
        4 => (50 * MS..2500 * MS).prop_map(Stop::Time),
        2 => (1u64..200).prop_map(Stop::Operations),
        1 => (1u64..200, 50 * MS..2500 * MS).prop_map(|(planned, length_ns)| Stop::Worker { planned, length_ns }),
    ];
    let commands = prop_oneof![
        4 => Just(Vec::new()),
        2 => prop::collection::vec((0u64..200).prop_map(|at| (at, Command::Park)), 1..4),
        2 => (0u64..200).prop_map(|at| vec![(at, Command::Finish)]),
        1 => (0u64..200).prop_map(|at| vec![(at, Command::Stop)]),
    ];
    let warm_ups = prop_oneof![2 => Just(0), 1 => MS..1200 * MS];
    let oversleeps = prop_oneof![2 => Just(0), 1 => 1000..3 * MS];
    let shape = (
        arrivals(),
        stops,
        warm_ups,
        oversleeps,
        1u64..3,
        clients,
        commands,
    );
    shape.prop_flat_map(
        |(arrival, stop, warm_up_ns, oversleep_ns, kinds, clients, commands)| {
            prop::collection::vec(scripts(kinds), clients).prop_map(move |mut scripts| {
                let is_by_time = matches!(stop, Stop::Time(_));
                let warm_up_ns = if is_by_time { warm_up_ns } else { 0 };
                for script in &mut scripts {
                    match stop {
                        // Whoever ends by its own word keeps to a plan, or gives up before it.
                        Stop::Worker { planned, .. } => {
                            script.operations = script.operations.min(planned)
                        }
                        _ => script.operations = u64::MAX,
                    }
                }
                match &mut scripts[..] {
                    [script] => script.commands = commands.clone(),
                    // It would end the others wherever they are.
                    scripts => {
                        let fates = scripts
                            .iter_mut()
                            .flat_map(|script| &mut script.tries)
                            .map(|(_, fate)| fate);
                        fates
                            .filter(|fate| **fate == Fate::Uncertain)
                            .for_each(|fate| *fate = Fate::Failed);
                    }
                }
                Case {
                    arrival: arrival.clone(),
                    stop,
                    warm_up_ns,
                    oversleep_ns,
                    scripts,
                }
            })
        },
    )
}

/// So many cases; what fails is made smaller 400 times, or as often as `PROPTEST_MAX_SHRINK_ITERS`
/// says.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases,
        max_shrink_iters: default.max_shrink_iters.min(400),
        ..default
    }
}

proptest! {
    #![proptest_config(config(350))]

    #[test]
    fn every_number_of_a_step_is_what_its_worker_did(case in cases(1..2)) {
        check(&case)?;
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn every_number_of_a_step_is_what_its_workers_did(case in cases(2..5)) {
        check(&case)?;
    }
}
