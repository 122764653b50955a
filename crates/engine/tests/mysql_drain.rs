//! InnoDB's drain: what it does, and that it leaves the settings as they were.

mod mysql_support;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql_support::*;
use plimsoll_engine::{DrainAction, DrainLimits, Server};

const SETTINGS: [&str; 3] = [
    "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_idle_flush_pct",
];

fn settings_now(server: &dyn Server) -> Vec<Option<String>> {
    let effective = server.effective_settings().unwrap();
    SETTINGS
        .iter()
        .map(|name| effective.get(*name).cloned())
        .collect()
}

fn find<'a>(actions: &'a [DrainAction], action: &str) -> &'a DrainAction {
    actions
        .iter()
        .find(|found| found.action == action)
        .unwrap_or_else(|| panic!("no {action} in {actions:#?}"))
}

#[test]
fn pages_are_written_back_under_changed_settings_that_are_restored() {
    for wanted in ALL {
        let Some(build) = build(
            "pages_are_written_back_under_changed_settings_that_are_restored",
            wanted,
        ) else {
            continue;
        };
        let (folders, server) = server(
            &build,
            &[
                ("innodb_max_dirty_pages_pct", "77"),
                ("innodb_max_dirty_pages_pct_lwm", "33"),
                ("log_bin", "on"),
                ("innodb_io_capacity", "2000"),
            ],
        );
        let mut session = server.connect().unwrap();
        let tables = ["pi1".to_owned(), "pi2".to_owned()];
        for table in &tables {
            create_table(&*server, &mut *session, table);
            for _ in 0..20 {
                session.write(&insert_text(table, 500), 500).unwrap();
            }
        }
        let before = settings_now(&*server);
        assert_eq!(before[0].as_deref(), Some("77.000000"));

        let (is_done, seen) = (AtomicBool::new(false), AtomicBool::new(false));
        let wait_until = Instant::now() + Duration::from_secs(3);
        let later = Instant::now() + DEADLINE;
        let actions = thread::scope(|scope| {
            // The changed settings are there meanwhile, and so is their journal.
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) && !seen.load(Ordering::Relaxed) {
                    let is_changed = settings_now(&*server)[0].as_deref() == Some("1.000000");
                    if is_changed && folders.logs.path().join("settings-journal.json").exists() {
                        seen.store(true, Ordering::Relaxed);
                    }
                }
            });
            let actions = server.drain(&tables, &DrainLimits::new(wait_until, later, &|| false));
            is_done.store(true, Ordering::Relaxed);
            actions.unwrap()
        });
        assert!(
            seen.load(Ordering::Relaxed),
            "{}: the settings never changed",
            build.name
        );
        assert!(Instant::now() >= wait_until);
        assert_eq!(settings_now(&*server), before, "{}", build.name);
        assert!(!folders.logs.path().join("settings-journal.json").exists());

        find(
            &actions,
            if wanted == MYSQL_NEW {
                "reset binary logs and gtids"
            } else {
                "reset master"
            },
        );
        for table in &tables {
            assert!(
                find(&actions, &format!("analyze table `{table}`"))
                    .result
                    .ends_with("status: OK"),
                "{actions:#?}"
            );
        }
        assert_eq!(
            find(&actions, "set global innodb_max_dirty_pages_pct = 1").result,
            "now 1.000000"
        );
        let waited = find(&actions, "wait for writeback");
        let (_, numbers) = waited.result.split_once("dirty pages ").unwrap();
        let (from, to) = numbers.split_once(" -> ").unwrap();
        let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
        assert!(from > 100 && to < from, "{waited:?}");
        let position = |action: &str| {
            actions
                .iter()
                .position(|found| found.action == action)
                .unwrap()
        };
        assert!(
            position("set global innodb_max_dirty_pages_pct_lwm = 1")
                < position("set global innodb_max_dirty_pages_pct = 1")
        );
        assert!(
            position("set global innodb_max_dirty_pages_pct = 77.000000")
                < position("set global innodb_max_dirty_pages_pct_lwm = 33.000000")
        );
        let has_idle = wanted == MYSQL_NEW;
        assert_eq!(
            actions
                .iter()
                .any(|found| found.action == "set global innodb_idle_flush_pct = 100"),
            has_idle,
            "{}",
            build.name
        );
        for moment in ["before", "after"] {
            let status = std::fs::read_to_string(
                folders
                    .logs
                    .path()
                    .join(format!("drain-{moment}.innodb-status.txt")),
            )
            .unwrap();
            assert!(status.contains("BUFFER POOL AND MEMORY"));
        }
        drop(session);
        server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn a_stop_an_error_and_a_limit_end_a_drain_and_restore() {
    let Some(build) = build(
        "a_stop_an_error_and_a_limit_end_a_drain_and_restore",
        MYSQL_OLD,
    ) else {
        return;
    };
    let (folders, server) = server(&build, &[]);
    let before = settings_now(&*server);
    let far = Instant::now() + Duration::from_secs(3600);

    let asked = Cell::new(0);
    let is_stopped = || {
        asked.set(asked.get() + 1);
        asked.get() > 5
    };
    let actions = server
        .drain(&[], &DrainLimits::new(far, far, &is_stopped))
        .unwrap();
    assert!(
        find(&actions, "wait for writeback")
            .result
            .starts_with("cut short"),
        "{actions:#?}"
    );
    assert_eq!(settings_now(&*server), before);

    let actions = server
        .drain(&[], &DrainLimits::new(far, Instant::now(), &|| false))
        .unwrap();
    assert!(
        find(&actions, "wait for writeback")
            .result
            .starts_with("cut short"),
        "{actions:#?}"
    );
    assert_eq!(settings_now(&*server), before);

    // An ANALYZE that waits for a lock ends with the limit.
    let mut holder = server.connect().unwrap();
    holder
        .define("create table t (n int) engine=innodb")
        .unwrap();
    holder.define("lock tables t write").unwrap();
    let limit = Instant::now() + Duration::from_millis(300);
    let actions = server
        .drain(
            &["t".to_owned()],
            &DrainLimits::new(Instant::now(), limit, &|| false),
        )
        .unwrap();
    assert!(
        find(&actions, "analyze table `t`")
            .result
            .starts_with("cut short"),
        "{actions:#?}"
    );
    holder.define("unlock tables").unwrap();

    // A log folder that cannot be written: nothing is changed.
    let logs = folders.logs.path().to_owned();
    std::fs::remove_dir_all(&logs).unwrap();
    std::fs::write(&logs, "in the way").unwrap();
    let message = server
        .drain(&[], &DrainLimits::new(Instant::now(), far, &|| false))
        .unwrap_err()
        .message;
    assert!(
        message.contains("drain-before.innodb-status.txt"),
        "{message}"
    );
    assert_eq!(settings_now(&*server), before);
    std::fs::remove_file(&logs).unwrap();
}

#[test]
fn an_analyze_that_somebody_else_ends_is_an_error_and_not_cut_short() {
    for wanted in ALL {
        let Some(build) = build(
            "an_analyze_that_somebody_else_ends_is_an_error_and_not_cut_short",
            wanted,
        ) else {
            continue;
        };
        let (_folders, server) = server(&build, &[]);
        let mut holder = server.connect().unwrap();
        holder
            .define("create table t (n int) engine=innodb")
            .unwrap();
        holder.define("lock tables t write").unwrap();
        let mut killer = server.connect().unwrap();
        let later = Instant::now() + DEADLINE;
        let drained = thread::scope(|scope| {
            let drain = scope.spawn(|| {
                server.drain(
                    &["t".to_owned()],
                    &DrainLimits::new(Instant::now(), later, &|| false),
                )
            });
            let find =
                "select max(id) from information_schema.processlist where info like 'analyze%'";
            let mut found = None;
            wait_until("the analyze", || {
                found = killer.query_integer(find).unwrap();
                found.is_some()
            });
            killer.define(&format!("kill {}", found.unwrap())).unwrap();
            drain.join().unwrap()
        });
        let message = drained
            .expect_err("a lost ANALYZE was reported as done")
            .message;
        assert!(
            message.contains("analyze table `t`"),
            "{}: {message}",
            build.name
        );
    }
}
