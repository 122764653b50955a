//! Locks, deadlocks and lost connections on real servers: every try is counted once, and every row
//! is where the counts say.

#![allow(
    clippy::duplicate_mod,
    reason = "the helpers of both families bring the same third file"
)]

#[path = "../../engine/tests/mysql_support/mod.rs"]
mod mysql_support;
#[path = "../../engine/tests/postgres_support/mod.rs"]
mod postgres_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::{InsertBenchmark, Plan, Step};
use plimsoll_core::record::OperationRecord;
use plimsoll_core::units::SECOND_NS;
use plimsoll_engine::SqlSession;
use plimsoll_load::{
    Control, Ended, MonotonicClock, Progress, StepOutcome, StepOutputs, no_series, run_step,
};
use plimsoll_workload::insert_benchmark::{InsertBenchmarkRun, SharedServer};

/// Runs `test` on a MySQL, a MariaDB and a PostgreSQL, as far as they are here.
fn on_each(
    name: &str,
    mysql: &[(&str, &str)],
    postgres: &[(&str, &str)],
    test: impl Fn(SharedServer),
) {
    for wanted in [mysql_support::MYSQL_OLD, mysql_support::MARIADB] {
        if let Some(build) = mysql_support::build(&format!("outages::{name}"), wanted) {
            let (_folders, server) = mysql_support::server(&build, mysql);
            test(Arc::new(server));
        }
    }
    if let Some(build) = postgres_support::build(&format!("outages::{name}"), "18") {
        let (_folders, server) = postgres_support::quick(&build, postgres);
        test(Arc::new(server));
    }
}

fn workload(engine: &str, sizes: &str) -> InsertBenchmark {
    let text = format!(
        "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"{engine}\"]\nconfigs = \
        [\"c\"]\nwait = \"0s\"\n[sizes]\nrows = 5000\n\
         write_rows = 5000\n{sizes}"
    );
    Plan::parse("t.toml", &text).unwrap().cells[0]
        .workload
        .insert_benchmark()
        .unwrap()
        .clone()
}

fn engine_of(server: &SharedServer) -> &'static str {
    if is_postgres(server) {
        "postgres"
    } else {
        "mysql"
    }
}

fn is_postgres(server: &SharedServer) -> bool {
    server.sql().unwrap().forms().engine() == EngineName::Postgres
}

/// Runs one step while `disturb` does what it likes.
fn run_disturbed(
    run: &mut InsertBenchmarkRun,
    step: &Step,
    disturb: impl FnOnce() + Send,
) -> StepOutcome {
    let tasks = run
        .tasks(step, step.work.insert_benchmark().unwrap())
        .unwrap();
    let (clock, control) = (Arc::new(MonotonicClock), Arc::new(Control::default()));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(disturb);
        let mut progress = |_: &Progress| {};
        run_step(
            &clock,
            &tasks.kinds,
            tasks.tasks,
            &control,
            &tasks.options,
            StepOutputs {
                log: &mut std::io::sink(),
                progress: &mut progress,
                seconds: &mut no_series,
            },
        )
        .unwrap()
    });
    for operation in &outcome.operations {
        assert_eq!(
            operation.attempts,
            operation.ok + operation.retried + operation.failed,
            "{}: {}",
            step.name,
            operation.kind
        );
        assert_eq!(
            operation.errors.values().sum::<u64>(),
            operation.retried + operation.failed,
            "{}: {}",
            step.name,
            operation.kind
        );
        assert_eq!(
            operation.service.decode().unwrap().len(),
            operation.ok,
            "{}: {}",
            step.name,
            operation.kind
        );
    }
    outcome
}

/// The step is finished, and the tables hold what its counts say.
fn assert_whole(run: &mut InsertBenchmarkRun, step: &Step, outcome: &StepOutcome) {
    assert_eq!(outcome.ended, Ended::Finished);
    run.book(step, outcome);
    for check in run.verify(false).unwrap() {
        assert_eq!(check.found_rows, check.expected_rows, "{}", check.table);
    }
}

fn operation<'a>(outcome: &'a StepOutcome, kind: &str) -> &'a OperationRecord {
    outcome
        .operations
        .iter()
        .find(|operation| operation.kind == kind)
        .unwrap()
}

/// Loads and indexes.
fn load(server: &SharedServer, sizes: &str) -> (InsertBenchmarkRun, InsertBenchmark) {
    let settings = workload(engine_of(server), sizes);
    let mut run = InsertBenchmarkRun::new(settings.clone(), server.clone(), 7).unwrap();
    for step in &settings.steps[..2] {
        let outcome = run_disturbed(&mut run, step, || {});
        assert_whole(&mut run, step, &outcome);
    }
    (run, settings)
}

fn step<'a>(settings: &'a InsertBenchmark, name: &str) -> &'a Step {
    settings
        .steps
        .iter()
        .find(|step| step.name == name)
        .unwrap()
}

/// Waits until a session of the server waits for a lock.
fn wait_for_waiter(server: &SharedServer) {
    let sql = if is_postgres(server) {
        "select count(*) from pg_locks where not granted"
    } else {
        "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"
    };
    let mut watcher = server.connect().unwrap();
    mysql_support::wait_until("somebody who waits for a lock", || {
        // InnoDB shows the same picture again to whoever looks more often than ten times a second.
        std::thread::sleep(Duration::from_millis(150));
        watcher.query_integer(sql).unwrap() > Some(0)
    });
}

fn begin(session: &mut dyn SqlSession) {
    session.define("begin").unwrap();
}

/// Locks the row with this id.
fn lock_row(session: &mut dyn SqlSession, id: i64) {
    assert_eq!(
        session
            .query(&format!(
                "select data from pi1 where transactionid = {id} for update"
            ))
            .unwrap(),
        1
    );
}

fn smallest_id(session: &mut dyn SqlSession) -> i64 {
    session
        .query_integer("select min(transactionid) from pi1")
        .unwrap()
        .unwrap()
}

#[test]
fn a_delete_that_waits_too_long_for_a_lock_is_tried_again() {
    let mysql = [("innodb_lock_wait_timeout", "1")];
    let postgres = [("lock_timeout", "300ms")];
    on_each(
        "a_delete_that_waits_too_long_for_a_lock_is_tried_again",
        &mysql,
        &postgres,
        |server| {
            let (mut run, settings) = load(&server, "");
            let write = step(&settings, "l.i1");
            let mut holder = server.connect().unwrap();
            begin(&mut *holder);
            let id = smallest_id(&mut *holder) + 10;
            lock_row(&mut *holder, id);
            let hold = Duration::from_millis(2500);
            let outcome = run_disturbed(&mut run, write, || {
                wait_for_waiter(&server);
                std::thread::sleep(hold);
                holder.define("rollback").unwrap();
            });
            let delete = operation(&outcome, "delete");
            assert!(delete.retried > 0 && delete.failed == 0, "{delete:?}");
            assert_eq!(
                delete.errors.keys().collect::<Vec<_>>(),
                ["busy"],
                "{delete:?}"
            );
            assert!(delete.wait_ns >= SECOND_NS / 4, "{delete:?}");
            assert_whole(&mut run, write, &outcome);
        },
    );
}

#[test]
fn the_victim_of_a_deadlock_is_tried_again() {
    // PostgreSQL ends the session that looks for the deadlock; ours looks later than the deleter.
    on_each(
        "the_victim_of_a_deadlock_is_tried_again",
        &[],
        &[("deadlock_timeout", "3s")],
        |server| {
            let (mut run, settings) = load(&server, "");
            let write = step(&settings, "l.i1");
            let mut other = server.connect().unwrap();
            if is_postgres(&server) {
                other.define("set deadlock_timeout = '60s'").unwrap();
                begin(&mut *other);
            } else {
                // InnoDB ends the transaction that changed less: this one changes the most.
                other
                    .define(&format!(
                        "create table heavy (id int primary key){}",
                        server.sql().unwrap().table_suffix()
                    ))
                    .unwrap();
                begin(&mut *other);
                let rows: Vec<String> = (0..2000).map(|id| format!("({id})")).collect();
                other
                    .write(
                        &format!("insert into heavy values {}", rows.join(",")),
                        2000,
                    )
                    .unwrap();
            }
            let id = smallest_id(&mut *other);
            // The first delete takes the rows from `id` on, and meets this one.
            lock_row(&mut *other, id + 20);
            let outcome = run_disturbed(&mut run, write, || {
                wait_for_waiter(&server);
                lock_row(&mut *other, id);
                other.define("rollback").unwrap();
            });
            let delete = operation(&outcome, "delete");
            assert!(
                delete
                    .errors
                    .get("deadlock")
                    .is_some_and(|&count| count > 0)
                    && delete.failed == 0,
                "{delete:?}"
            );
            assert_whole(&mut run, write, &outcome);
        },
    );
}

/// Ends sessions of others that do not write at this moment: those are between two operations, or
/// in a query.
fn kill_sessions(server: &SharedServer) -> u32 {
    let mut killer = server.connect().unwrap();
    let sql = if is_postgres(server) {
        "select pid from pg_stat_activity where application_name = 'plimsoll' and datname = 'ib' \
        and pid <> pg_backend_pid() and (state = 'idle' or query ilike 'select%') and query not \
        ilike 'select pg_terminate%'"
    } else {
        "select id from information_schema.processlist where db = 'ib' and id <> connection_id() \
        and (command = 'Sleep' or info like 'select%')"
    };
    let mut ids = Vec::new();
    killer
        .for_each_row(sql, &mut |row| ids.push(row[0].to_owned()))
        .unwrap();
    for id in &ids {
        // Fails when it has just ended.
        let _ = if is_postgres(server) {
            killer
                .query(&format!("select pg_terminate_backend({id})"))
                .map(|_| ())
        } else {
            killer.define(&format!("kill {id}"))
        };
    }
    ids.len() as u32
}

#[test]
fn lost_connections_come_back_and_nothing_is_lost_or_there_twice() {
    on_each(
        "lost_connections_come_back_and_nothing_is_lost_or_there_twice",
        &[],
        &[],
        |server| {
            let (mut run, settings) = load(&server, "duration = \"4s\"\n");
            for name in ["l.i1", "l.i2"] {
                let outcome = run_disturbed(&mut run, step(&settings, name), || {});
                assert_whole(&mut run, step(&settings, name), &outcome);
            }
            let read = step(&settings, "qr100");
            let killed = AtomicU32::new(0);
            let outcome = run_disturbed(&mut run, read, || {
                for _ in 0..6 {
                    std::thread::sleep(Duration::from_millis(400));
                    killed.fetch_add(kill_sessions(&server), Ordering::SeqCst);
                }
            });
            assert!(killed.load(Ordering::SeqCst) > 0);
            let lost: u64 = outcome
                .operations
                .iter()
                .map(|operation| operation.errors.get("lost").copied().unwrap_or(0))
                .sum();
            assert!(
                lost > 0,
                "{:?}",
                outcome
                    .operations
                    .iter()
                    .map(|operation| &operation.errors)
                    .collect::<Vec<_>>()
            );
            match &outcome.ended {
                Ended::Finished => {
                    assert!(
                        outcome
                            .operations
                            .iter()
                            .all(|operation| operation.failed == 0)
                    );
                    // 100 rows a second for 4 seconds in transactions of 50, whatever was lost in
                    // between.
                    assert_eq!(
                        (
                            operation(&outcome, "insert").ok,
                            operation(&outcome, "delete").ok
                        ),
                        (8, 8)
                    );
                    assert_whole(&mut run, read, &outcome);
                }
                // A write began between the list of sessions and the kill: then that is what is
                // said, and nothing is guessed.
                Ended::Failed(failure) => {
                    assert_eq!(failure.class, "lost");
                    assert!(
                        failure
                            .message
                            .contains("nobody knows whether it took place"),
                        "{}",
                        failure.message
                    );
                    assert_eq!(
                        outcome
                            .operations
                            .iter()
                            .map(|operation| operation.failed)
                            .sum::<u64>(),
                        1
                    );
                }
                Ended::Stopped => panic!("nobody stops it"),
            }
        },
    );
}

/// A server that is away for good: the worker gives up at its limit, and says what it had.
#[test]
fn a_connection_that_does_not_come_back_fails_the_step() {
    let Some(build) = mysql_support::build(
        "outages::a_connection_that_does_not_come_back_fails_the_step",
        mysql_support::MYSQL_OLD,
    ) else {
        return;
    };
    let (_folders, server) = mysql_support::server(&build, &[]);
    let server: SharedServer = Arc::new(server);
    let (run, settings) = load(&server, "duration = \"60s\"\nend = \"time\"\n");
    let step = step(&settings, "qr100");
    let mut tasks = run
        .tasks(step, step.work.insert_benchmark().unwrap())
        .unwrap();
    tasks.options.retry.reconnect_deadline_ns = SECOND_NS;
    let started = Instant::now();
    let mut progress = |progress: &Progress| {
        if progress.kinds[0].0 > 0 && server.health() == plimsoll_engine::Health::Running {
            let pid = rustix::process::Pid::from_raw(server.processes()[0] as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    };
    let (clock, control) = (Arc::new(MonotonicClock), Arc::new(Control::default()));
    let outcome = run_step(
        &clock,
        &tasks.kinds,
        tasks.tasks,
        &control,
        &tasks.options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut progress,
            seconds: &mut no_series,
        },
    )
    .unwrap();
    let Ended::Failed(failure) = &outcome.ended else {
        panic!("{:?}", outcome.ended)
    };
    assert!(
        failure.class == "lost" && started.elapsed() < Duration::from_secs(55),
        "{failure:?}"
    );
    let query = operation(&outcome, "query");
    assert!(
        query.ok > 0 && query.attempts == query.ok + query.retried + query.failed,
        "{query:?}"
    );
}
