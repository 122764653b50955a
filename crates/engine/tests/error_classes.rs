//! What a failed statement means, on every engine and over both clients: the same event has the
//! same class everywhere, and whoever loses its connection gets an error that says so.

mod mysql_support;
mod postgres_support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql_support::wait_until;
use plimsoll_engine::ErrorClass::{Busy, Cancelled, Deadlock, Duplicate, Lost, Unsent};
use plimsoll_engine::mysql::Mysql;
use plimsoll_engine::postgres::Postgres;
use plimsoll_engine::{
    Engine, ErrorClass, InstalledBuild, Server, SessionClient, SqlError, SqlSession, StartOptions,
    Transport,
};

/// A server with a table `t (id, n)` of the rows 1 and 2.
struct Place {
    name: String,
    server: Box<dyn Server>,
    transport: Transport,
}

/// How a scenario is made on a server. `None` where the server has nothing of the kind.
type Scenario = fn(&Place) -> Option<Met>;

/// What the victim got as an answer.
struct Met {
    error: SqlError,
    /// Whether its next call was on another connection.
    is_gone: bool,
}

/// Scenarios, their class, and the codes that servers have for them.
const TABLE: &[(&str, Scenario, ErrorClass, &str)] = &[
    (
        "a row that must not be waited for",
        no_wait,
        Busy,
        "1205 3572 55P03",
    ),
    (
        "a row that was waited for in vain",
        row_wait,
        Busy,
        "1205 55P03",
    ),
    (
        "a table that was waited for in vain",
        table_wait,
        Busy,
        "1205 55P03",
    ),
    ("a deadlock", deadlock, Deadlock, "1213 40P01"),
    (
        "a row that has changed since the snapshot",
        snapshot,
        Deadlock,
        "1020 40001",
    ),
    ("a row that is there", duplicate, Duplicate, "1062 23505"),
    (
        "a write that is cancelled",
        cancelled_write,
        Cancelled,
        "1317 57014",
    ),
    (
        "a sort that is cancelled",
        cancelled_sort,
        Cancelled,
        "1317 57014",
    ),
    (
        "a statement that takes too long",
        time_limit,
        Cancelled,
        "1969 3024 57014",
    ),
    (
        "a transaction that is idle for too long",
        idle_transaction,
        Unsent,
        "2006 4031 25P03",
    ),
    (
        "a transaction that takes too long",
        transaction_limit,
        Unsent,
        "25P04",
    ),
    (
        "a session that is ended while it is idle",
        ended_idle,
        Unsent,
        "2006 57P01",
    ),
    // PostgreSQL says that it ends the session, and what was not committed is gone; MySQL closes
    // the connection without a word.
    (
        "a session that is ended while it writes, by mysql",
        mysql_ended_busy,
        Lost,
        "2013",
    ),
    (
        "a session that is ended while it writes, by postgres",
        postgres_ended_busy,
        Unsent,
        "57P01",
    ),
];

/// Codes of a connection that ended without a word of the server. Over TCP the kernel takes what it
/// cannot deliver any more, and the full client may miss a word that came with the end: nobody
/// knows whether the statement took place.
const WITHOUT_A_WORD: &[&str] = &["2013", "2027", "08006"];

impl Place {
    fn is_postgres(&self) -> bool {
        self.name.starts_with("postgres")
    }

    fn is_mariadb(&self) -> bool {
        self.name.starts_with("mariadb")
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name.starts_with(name))
    }

    /// Whether the connection of a victim can end without a word although the statement was never
    /// read.
    fn may_miss(&self, code: &str) -> bool {
        self.transport == Transport::Tcp && WITHOUT_A_WORD.contains(&code)
    }

    fn connect(&self) -> Box<dyn SqlSession> {
        self.server.connect().unwrap()
    }

    /// A session that has the lock of row 1, in a transaction.
    fn holder(&self) -> Box<dyn SqlSession> {
        let mut session = self.connect();
        session.perform("begin").unwrap();
        session
            .perform("update t set n = n + 1 where id = 1")
            .unwrap();
        session
    }

    fn id(&self, session: &mut dyn SqlSession) -> i64 {
        let sql = if self.is_postgres() {
            "select pg_backend_pid()"
        } else {
            "select connection_id()"
        };
        session.query_integer(sql).unwrap().unwrap()
    }

    /// How many sessions have this id and, where it matters, run a statement that begins so.
    fn count(&self, session: &mut dyn SqlSession, id: i64, statement: &str) -> i64 {
        let sql = match (self.is_postgres(), statement) {
            (true, "") => format!("select count(*) from pg_stat_activity where pid = {id}"),
            (true, statement) => {
                format!(
                    "select count(*) from pg_stat_activity where pid = {id} and state = 'active' \
                    and query like '{statement}%'"
                )
            }
            (false, "") => {
                format!("select count(*) from information_schema.processlist where id = {id}")
            }
            (false, statement) => {
                format!(
                    "select count(*) from information_schema.processlist where id = {id} and info \
                    like '{statement}%'"
                )
            }
        };
        session.query_integer(&sql).unwrap().unwrap()
    }

    /// Runs `sql`, which fails, on the victim.
    fn met(&self, mut victim: Box<dyn SqlSession>, sql: &str) -> Met {
        let before = self.id(&mut *victim);
        let error = victim.perform(sql).unwrap_err();
        Met {
            error,
            is_gone: self.id(&mut *victim) != before,
        }
    }

    /// Runs `sql` on the victim, and `end` on another session as soon as it runs. `end` has the
    /// victim's id for `#`.
    fn met_with(&self, mut victim: Box<dyn SqlSession>, sql: &str, end: &str) -> Met {
        let id = self.id(&mut *victim);
        let mut other = self.connect();
        thread::scope(|scope| {
            scope.spawn(move || {
                let beginning: String = sql.chars().take(20).collect();
                wait_until("the statement", || {
                    self.count(&mut *other, id, &beginning) > 0
                });
                other.perform(&end.replace('#', &id.to_string())).unwrap();
            });
            self.met(victim, sql)
        })
    }

    /// Waits until the server has ended the victim's session, then runs `sql` on it.
    fn met_after_end(&self, mut victim: Box<dyn SqlSession>, id: i64, sql: &str) -> Met {
        let mut other = self.connect();
        wait_until("the end of the session", || {
            self.count(&mut *other, id, "") == 0
        });
        let error = victim.perform(sql).unwrap_err();
        Met {
            error,
            is_gone: self.id(&mut *victim) != id,
        }
    }

    fn cancel(&self) -> &'static str {
        if self.is_postgres() {
            "select pg_cancel_backend(#)"
        } else {
            "kill query #"
        }
    }

    fn end(&self) -> &'static str {
        if self.is_postgres() {
            "select pg_terminate_backend(#)"
        } else {
            "kill #"
        }
    }

    /// A session with a setting of its own.
    fn with(&self, mysql: &str, mariadb: &str, postgres: &str) -> Box<dyn SqlSession> {
        let mut session = self.connect();
        session
            .perform(if self.is_postgres() {
                postgres
            } else if self.is_mariadb() {
                mariadb
            } else {
                mysql
            })
            .unwrap();
        session
    }
}

fn no_wait(place: &Place) -> Option<Met> {
    if place.is_one_of(&["mysql@5"]) {
        return None;
    }
    let _holder = place.holder();
    Some(place.met(
        place.connect(),
        "select id from t where id = 1 for update nowait",
    ))
}

fn row_wait(place: &Place) -> Option<Met> {
    let _holder = place.holder();
    let seconds = "set innodb_lock_wait_timeout = 1";
    Some(place.met(
        place.with(seconds, seconds, "set lock_timeout = 50"),
        "update t set n = 0 where id = 1",
    ))
}

fn table_wait(place: &Place) -> Option<Met> {
    let _holder = place.holder();
    let seconds = "set lock_wait_timeout = 1";
    Some(place.met(
        place.with(seconds, seconds, "set lock_timeout = 50"),
        "alter table t add column more int",
    ))
}

fn deadlock(place: &Place) -> Option<Met> {
    let (mut one, mut two) = (place.holder(), place.connect());
    two.perform("begin").unwrap();
    two.perform("update t set n = n + 1 where id = 2").unwrap();
    let ids = [place.id(&mut *one), place.id(&mut *two)];
    let run = |mut session: Box<dyn SqlSession>, row: u32| {
        let result = session.perform(&format!("update t set n = n + 1 where id = {row}"));
        // The other gets its row, and the transaction that PostgreSQL calls aborted ends.
        session.perform("rollback").unwrap();
        (result, place.id(&mut *session))
    };
    let results = thread::scope(|scope| {
        let waiting = scope.spawn(|| run(one, 2));
        let second = run(two, 1);
        [waiting.join().unwrap(), second]
    });
    let mut failed = results
        .into_iter()
        .zip(ids)
        .filter_map(|((result, after), before)| Some((result.err()?, after != before)));
    let (error, is_gone) = failed.next().expect("one of the two is refused");
    assert!(failed.next().is_none(), "{}: both were refused", place.name);
    Some(Met { error, is_gone })
}

fn snapshot(place: &Place) -> Option<Met> {
    if !place.is_postgres() && !place.is_mariadb() {
        return None;
    }
    let mut session = place.connect();
    if place.is_mariadb() {
        session
            .perform("set innodb_snapshot_isolation = on")
            .unwrap();
    }
    let begin = if place.is_postgres() {
        "begin isolation level repeatable read"
    } else {
        "start transaction with consistent snapshot"
    };
    session.perform(begin).unwrap();
    session.perform("select n from t").unwrap();
    place
        .connect()
        .perform("update t set n = n + 1 where id = 2")
        .unwrap();
    let before = place.id(&mut *session);
    let error = session
        .perform("update t set n = n + 1 where id = 2")
        .unwrap_err();
    session.perform("rollback").unwrap();
    Some(Met {
        error,
        is_gone: place.id(&mut *session) != before,
    })
}

fn duplicate(place: &Place) -> Option<Met> {
    Some(place.met(place.connect(), "insert into t values (1, 0)"))
}

fn cancelled_write(place: &Place) -> Option<Met> {
    let _holder = place.holder();
    Some(place.met_with(
        place.connect(),
        "update t set n = 0 where id = 1",
        place.cancel(),
    ))
}

fn cancelled_sort(place: &Place) -> Option<Met> {
    let sql = if place.is_postgres() {
        "select id from t where pg_sleep(60) is not null order by n"
    } else {
        "select id from t where sleep(60) = 0 order by n"
    };
    Some(place.met_with(place.connect(), sql, place.cancel()))
}

fn time_limit(place: &Place) -> Option<Met> {
    if place.is_one_of(&["mysql@5.5", "mysql@5.6"]) {
        return None;
    }
    let victim = place.with(
        "set max_execution_time = 50",
        "set max_statement_time = 0.05",
        "set statement_timeout = 50",
    );
    Some(place.met(
        victim,
        if place.is_postgres() {
            "select pg_sleep(60)"
        } else {
            "select id from t where sleep(60) = 0"
        },
    ))
}

fn idle_transaction(place: &Place) -> Option<Met> {
    let mut victim = place.with(
        "set wait_timeout = 1",
        "set idle_transaction_timeout = 1",
        "set idle_in_transaction_session_timeout = 50",
    );
    let id = place.id(&mut *victim);
    victim.perform("begin").unwrap();
    victim
        .perform("update t set n = n + 1 where id = 1")
        .unwrap();
    Some(place.met_after_end(victim, id, "commit"))
}

fn transaction_limit(place: &Place) -> Option<Met> {
    let mut names = vec!["mysql", "mariadb", "postgres@9"];
    names.extend([
        "postgres@10",
        "postgres@11",
        "postgres@12",
        "postgres@13",
        "postgres@14",
        "postgres@15",
        "postgres@16",
    ]);
    if place.is_one_of(&names) {
        return None;
    }
    let mut victim = place.connect();
    let id = place.id(&mut *victim);
    victim.perform("set transaction_timeout = 50").unwrap();
    victim.perform("begin").unwrap();
    let error = victim.perform("select pg_sleep(60)").unwrap_err();
    Some(Met {
        error,
        is_gone: place.id(&mut *victim) != id,
    })
}

fn ended_idle(place: &Place) -> Option<Met> {
    let mut victim = place.connect();
    let id = place.id(&mut *victim);
    let (mut other, end) = (place.connect(), place.end().replace('#', &id.to_string()));
    wait_until("the end of the session", || {
        // MySQL loses a KILL that comes just before the session begins to read its next statement.
        let _ = other.perform(&end);
        place.count(&mut *other, id, "") == 0
    });
    Some(place.met_after_end(victim, id, "update t set n = 0 where id = 1"))
}

fn mysql_ended_busy(place: &Place) -> Option<Met> {
    (!place.is_postgres()).then(|| ended_busy(place))
}

fn postgres_ended_busy(place: &Place) -> Option<Met> {
    place.is_postgres().then(|| ended_busy(place))
}

fn ended_busy(place: &Place) -> Met {
    let _holder = place.holder();
    place.met_with(
        place.connect(),
        "update t set n = 0 where id = 1",
        place.end(),
    )
}

/// A server's own code: a number, or the SQLSTATE behind the words.
fn code(error: &SqlError) -> String {
    error.message.rsplit_once("SQLSTATE ").map_or_else(
        || error.code.to_string(),
        |(_, sqlstate)| sqlstate.to_owned(),
    )
}

/// All that a server answers otherwise than the table says.
fn differences(place: &Place) -> Vec<String> {
    let mut session = place.connect();
    session.define("drop table if exists t").unwrap();
    session
        .define(&format!(
            "create table t (id int primary key, n int){}",
            place.server.sql().unwrap().table_suffix()
        ))
        .unwrap();
    session
        .perform("insert into t values (1, 0), (2, 0)")
        .unwrap();
    let mut found = Vec::new();
    for (scenario, provoke, class, codes) in TABLE {
        let Some(Met { error, is_gone }) = provoke(place) else {
            continue;
        };
        let code = code(&error);
        let is_known = codes.split(' ').any(|known| known == code) && error.class == *class;
        let is_missed = *class == Unsent && error.class == Lost && place.may_miss(&code);
        if !(is_known || is_missed) || is_gone != class.is_disconnected() {
            let transport = place.transport;
            found.push(format!(
                "{}, {transport:?}: {scenario}: {:?}, connection gone: {is_gone}: {error}",
                place.name, error.class
            ));
        }
    }
    found
}

/// The same over both clients and both kinds of socket.
fn differences_of(
    build: &InstalledBuild,
    engine: &dyn Engine,
    options: impl Fn() -> StartOptions,
) -> Vec<String> {
    let mut found = Vec::new();
    for (client, transport) in [
        (SessionClient::Thin, Transport::Socket),
        (SessionClient::Full, Transport::Tcp),
    ] {
        let server = engine
            .start(&StartOptions {
                client,
                transport,
                ..options()
            })
            .unwrap();
        let place = Place {
            name: build.name.clone(),
            server,
            transport,
        };
        found.extend(differences(&place));
        place.server.stop(mysql_support::DEADLINE).unwrap();
    }
    found
}

#[test]
fn the_same_event_has_the_same_class_on_every_engine() {
    let test = "error_classes::the_same_event_has_the_same_class_on_every_engine";
    let (mysql, postgres) = (mysql_support::builds(test), postgres_support::builds(test));
    // Servers wait for most of the time.
    let found: Vec<String> = thread::scope(|scope| {
        let mut running = Vec::new();
        for build in &mysql {
            running.push(scope.spawn(|| {
                let folders = mysql_support::Folders::new();
                differences_of(build, &Mysql::new(build.clone()), || folders.options(&[]))
            }));
        }
        for build in &postgres {
            running.push(scope.spawn(|| {
                let folders = postgres_support::Folders::new();
                differences_of(build, &Postgres::new(build.clone()), || {
                    folders.options(&[postgres_support::QUICK])
                })
            }));
        }
        running
            .into_iter()
            .flat_map(|running| running.join().unwrap())
            .collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Cancellations of a writing session at any instant, until `enough` of them were answered. Returns
/// what was answered, with the rows that are there nevertheless.
fn cancelled_in_time(place: &Place, enough: usize) -> Vec<(SqlError, i64)> {
    let mut other = place.connect();
    other.define("drop table if exists t").unwrap();
    other
        .define(&format!(
            "create table t (id int primary key){}",
            place.server.sql().unwrap().table_suffix()
        ))
        .unwrap();
    let mut victim = place.connect();
    let cancel = place
        .cancel()
        .replace('#', &place.id(&mut *victim).to_string());
    let (mut told, deadline) = (Vec::new(), Instant::now() + mysql_support::DEADLINE);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut killer = place.connect();
        let is_over = &is_over;
        scope.spawn(move || {
            for pause_us in (0..).map(|n: u64| n * 37 % 3000) {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                killer.perform(&cancel).unwrap();
                thread::sleep(Duration::from_micros(pause_us));
            }
        });
        for row in 1.. {
            if told.len() >= enough || Instant::now() > deadline {
                break;
            }
            let insert = format!("insert into t values ({row})");
            let result = if row % 2 == 0 {
                victim.perform(&insert)
            } else {
                victim
                    .perform("begin")
                    .and_then(|_| victim.perform(&insert))
                    .and_then(|_| victim.perform("commit"))
            };
            let Err(error) = result else { continue };
            // A late one may meet this too.
            while victim.perform("rollback").is_err() {}
            told.push((
                error,
                other
                    .query_integer(&format!("select count(*) from t where id = {row}"))
                    .unwrap()
                    .unwrap(),
            ));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    told
}

#[test]
fn a_write_that_is_told_to_be_cancelled_has_not_taken_place() {
    let test = "error_classes::a_write_that_is_told_to_be_cancelled_has_not_taken_place";
    let check = |name: &str, server: Box<dyn Server>| {
        let place = Place {
            name: name.to_owned(),
            server,
            transport: Transport::Socket,
        };
        const ENOUGH: usize = 20;
        let told = cancelled_in_time(&place, ENOUGH);
        assert_eq!(
            told.len(),
            ENOUGH,
            "{name}: cancellations that came in time"
        );
        for (error, rows) in told {
            assert_eq!((error.class, rows), (Cancelled, 0), "{name}: {error}");
        }
        place.server.stop(mysql_support::DEADLINE).unwrap();
    };
    for build in mysql_support::builds(test) {
        // A commit takes long, so that it is hit as well.
        let (_folders, server) =
            mysql_support::server(&build, &[("innodb_flush_log_at_trx_commit", "1")]);
        check(&build.name, server);
    }
    for build in postgres_support::builds(test) {
        let (_folders, server) = postgres_support::quick(&build, &[("fsync", "on")]);
        check(&build.name, server);
    }
}
