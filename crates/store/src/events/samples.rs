//! Events for tests: one of each kind, and any at all.

use std::collections::BTreeMap;

use plimsoll_core::plan::Operation;
use plimsoll_core::readings::{Reading, Readings};
use plimsoll_core::record::{
    ClientHostRecord, ClientRecord, EncodedHistogram, OperationRecord, Pacing, TableCheck, TurnSums,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample;

use crate::events::event::{
    Canary, DrainDone, DrainStep, Event, ServerCrashed, ServerReady, StepDone, StepFailed,
    StepStart, Suspect, TrialDone, TrialFailed, TrialStart,
};

/// One event of each kind, small.
pub(crate) fn one_of_each() -> Vec<Event> {
    vec![
        Event::TrialStart(TrialStart {
            load: Some(2),
            trial: 1,
            attempt: 1,
            cell: "sqlite.wal_full".into(),
            block: 1,
            part: Some(2),
            campaign: Some("20260101T000000Z-t".into()),
            seed: u64::MAX,
            methodology_version: 1,
            pid: 7,
            pid_start_ticks: 9,
            boot_id: "b".into(),
            host: Some("h1".into()),
            link: Some(3),
            steps: vec!["point-query".into(), "update-index".into()],
            machine_id: Some("c0ffee".into()),
        }),
        Event::ServerReady(ServerReady {
            version: "3.50".into(),
            build_options: vec!["THREADSAFE=1".into()],
            embedded: true,
            effective_settings: BTreeMap::from([("synchronous".into(), "2".into())]),
            session: None,
            held: None,
            seconds: 0.1,
        }),
        Event::StepStart(StepStart {
            step: "l.i0".into(),
        }),
        small_step_done(),
        Event::DrainDone(DrainDone {
            step: "l.i0".into(),
            actions: vec![DrainStep {
                action: "ANALYZE".into(),
                seconds: 0.5,
                result: String::new(),
            }],
            drained_s: 0.5,
            waited_s: 1.5,
        }),
        Event::StepFailed(StepFailed {
            step: "l.x".into(),
            reason: "line\nbreak".into(),
            operations: Vec::new(),
        }),
        Event::ServerCrashed(ServerCrashed {
            step: None,
            status: "signal 9".into(),
            log_tail: "\u{1F6A2}\u{0}".into(),
        }),
        Event::TrialFailed(TrialFailed {
            reason: "Ctrl-C".into(),
            interrupted: true,
        }),
        Event::Canary(Canary {
            integer_per_us: 700.5,
            memory_bytes_per_s: 8e9,
            sync_ns: None,
        }),
        Event::Suspect(Suspect {
            reason: "qr100: other processes used 0.40 cores".into(),
        }),
        Event::TrialDone(TrialDone {
            seconds: 1e-9,
            stop_problem: Some("it did not stop within 300 s".to_owned()),
        }),
    ]
}

fn small_step_done() -> Event {
    let operation = OperationRecord {
        kind: "insert".into(),
        attempts: 3,
        ok: 2,
        retried: 1,
        rows: 200,
        errors: BTreeMap::from([("busy".into(), 1)]),
        service: EncodedHistogram("HISTFAAA".into()),
        pacing: Some(Pacing {
            target_per_s: 1.5,
            ..Pacing::default()
        }),
        ..OperationRecord::default()
    };
    Event::StepDone(Box::new(StepDone {
        step: "l.i0".into(),
        primary: Operation::Insert,
        operations: vec![operation],
        host: Readings::from_iter([
            ("cpu_s".to_owned(), Reading::Ok(0.1)),
            ("psi".to_owned(), Reading::Unavailable("no \"file\"".into())),
        ]),
        sla_missed: Some(0.9),
        ..StepDone::default()
    }))
}

fn number() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn operation() -> impl Strategy<Value = OperationRecord> {
    let histogram = || "[A-Za-z0-9+/=]{0,40}".prop_map(EncodedHistogram);
    let pacing = (number(), number(), any::<[u64; 3]>()).prop_map(
        |(target_per_s, achieved_per_s, [seconds, seconds_under, backlog])| Pacing {
            target_per_s,
            achieved_per_s,
            seconds,
            seconds_under,
            backlog,
        },
    );
    let histograms = (
        histogram(),
        option::of(histogram()),
        option::of(histogram()),
        option::of(histogram()),
    );
    (
        text(),
        any::<[u64; 8]>(),
        btree_map(text(), any::<u64>(), 0..3),
        histograms,
        option::of((pacing, any::<u64>())),
    )
        .prop_map(
            |(
                kind,
                [
                    attempts,
                    ok,
                    retried,
                    failed,
                    unsent,
                    rows,
                    wait_ns,
                    worker_ns,
                ],
                errors,
                (service, response, lag, unsuccessful),
                more,
            )| {
                let (pacing, statements) = more.unzip();
                let unsent_response = lag.clone();
                OperationRecord {
                    kind,
                    attempts,
                    ok,
                    retried,
                    failed,
                    rows,
                    errors,
                    wait_ns,
                    worker_ns,
                    service,
                    response,
                    lag,
                    unsuccessful,
                    pacing,
                    statements,
                    unsent,
                    unsent_response,
                }
            },
        )
}

fn step_done() -> impl Strategy<Value = Event> {
    let turns = option::of(
        any::<[u64; 2]>().prop_map(|[operations, active_ns]| TurnSums {
            operations,
            active_ns,
        }),
    );
    let client = (any::<u32>(), text(), any::<[u64; 4]>(), turns);
    let client =
        client.prop_map(
            |(client, kind, [ok, rows, from_ns, to_ns], turns)| ClientRecord {
                client,
                kind,
                ok,
                rows,
                from_ns,
                to_ns,
                turns,
            },
        );
    let reading = prop_oneof![
        number().prop_map(Reading::Ok),
        text().prop_map(Reading::Unavailable)
    ];
    let table = (text(), any::<[u64; 2]>(), option::of(text())).prop_map(
        |(table, [expected_rows, found_rows], checksum)| TableCheck {
            table,
            expected_rows,
            found_rows,
            checksum,
        },
    );
    let maps = (
        btree_map(text(), reading, 0..3).prop_map(Readings::from_iter),
        btree_map(text(), any::<i64>(), 0..3),
        btree_map(text(), number(), 0..3),
    );
    let lists = (vec(operation(), 0..3), vec(client, 0..3), vec(table, 0..3));
    (
        text(),
        sample::select(vec![
            Operation::Query,
            Operation::Event,
            Operation::MultiGet,
        ]),
        any::<u64>(),
        lists,
        maps,
        option::of(number()),
    )
        .prop_map(
            |(
                step,
                primary,
                elapsed_ns,
                (operations, clients, tables),
                (host, engine_counters, notes),
                sla_missed,
            )| {
                Event::StepDone(Box::new(StepDone {
                    step,
                    primary,
                    elapsed_ns,
                    operations,
                    clients,
                    host,
                    engine_counters,
                    tables,
                    notes,
                    sla_missed,
                    client_hosts: (0..elapsed_ns % 3).map(client_host).collect(),
                }))
            },
        )
}

fn client_host(number: u64) -> ClientHostRecord {
    ClientHostRecord {
        host: format!("h{number}"),
        offset_ns: number as i64 - 1,
        drift_ppm: (number > 0).then_some(-0.5),
        ..ClientHostRecord::default()
    }
}

fn trial_start() -> impl Strategy<Value = Event> {
    let numbers = (any::<[u32; 5]>(), any::<[u64; 2]>());
    let place = (text(), option::of(text()), option::of(text()));
    let of = (option::of(any::<u32>()), option::of(text()));
    let all = (numbers, text(), of, place);
    all.prop_map(|((small, large), cell, of, (boot_id, host, machine_id))| {
        let (part, campaign) = of;
        let [trial, attempt, block, methodology_version, pid] = small;
        let [seed, pid_start_ticks] = large;
        Event::TrialStart(TrialStart {
            load: None,
            trial,
            attempt,
            cell,
            block,
            part,
            campaign,
            seed,
            methodology_version,
            pid,
            pid_start_ticks,
            boot_id,
            host,
            link: None,
            steps: Vec::new(),
            machine_id,
        })
    })
}

fn server_ready() -> impl Strategy<Value = Event> {
    let settings = btree_map(text(), text(), 0..3);
    let session = option::of(btree_map(text(), text(), 0..3));
    let more = (
        any::<bool>(),
        settings,
        session,
        option::of(text()),
        number(),
    );
    (text(), vec(text(), 0..3), more).prop_map(
        |(version, build_options, (embedded, effective_settings, session, held, seconds))| {
            Event::ServerReady(ServerReady {
                version,
                build_options,
                embedded,
                effective_settings,
                session,
                held,
                seconds,
            })
        },
    )
}

fn drain_done() -> impl Strategy<Value = Event> {
    let step = (text(), number(), text()).prop_map(|(action, seconds, result)| DrainStep {
        action,
        seconds,
        result,
    });
    (text(), vec(step, 0..3), number(), number()).prop_map(
        |(step, actions, drained_s, waited_s)| {
            Event::DrainDone(DrainDone {
                step,
                actions,
                drained_s,
                waited_s,
            })
        },
    )
}

/// What can go wrong.
fn failure() -> impl Strategy<Value = Event> {
    prop_oneof![
        (text(), text(), vec(operation(), 0..2)).prop_map(|(step, reason, operations)| {
            Event::StepFailed(StepFailed {
                step,
                reason,
                operations,
            })
        }),
        (option::of(text()), text(), text()).prop_map(|(step, status, log_tail)| {
            Event::ServerCrashed(ServerCrashed {
                step,
                status,
                log_tail,
            })
        }),
        (text(), any::<bool>()).prop_map(|(reason, interrupted)| Event::TrialFailed(TrialFailed {
            reason,
            interrupted
        })),
        text().prop_map(|reason| Event::Suspect(Suspect { reason })),
    ]
}

fn canary() -> impl Strategy<Value = Event> {
    (number(), number(), option::of(number())).prop_map(
        |(integer_per_us, memory_bytes_per_s, sync_ns)| {
            Event::Canary(Canary {
                integer_per_us,
                memory_bytes_per_s,
                sync_ns,
            })
        },
    )
}

/// Any event that can be written.
pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => trial_start(),
        1 => server_ready(),
        1 => text().prop_map(|step| Event::StepStart(StepStart { step })),
        1 => step_done(),
        1 => drain_done(),
        1 => number().prop_map(|seconds| Event::TrialDone(TrialDone {
            seconds,
            stop_problem: None
        })),
        1 => canary(),
        // Four kinds are in it.
        4 => failure(),
    ]
}
