//! MySQL and MariaDB: making data, starting, settings, crashing, stopping.

mod mysql_support;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use mysql_support::*;
use plimsoll_engine::{DrainLimits, Health, StartOptions, Transport};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn starts_with_the_configs_settings_and_stops_cleanly() {
    for wanted in ALL {
        let Some(build) = build("starts_with_the_configs_settings_and_stops_cleanly", wanted)
        else {
            continue;
        };
        let (folders, server) = server(
            &build,
            &[
                ("log-bin", "on"),
                ("innodb_io_capacity", "1k"),
                ("loose_innodb_log_file_size", "64M"),
                ("loose_no_such_option", "1"),
            ],
        );
        let two = [("a".to_owned(), "a"), ("b".to_owned(), "b")];
        let forms = server.sql().unwrap().forms();
        assert_eq!(forms.create_indexes("t", &two).len(), 1, "as InnoDB's");
        assert_eq!(server.sql().unwrap().table_suffix(), " engine=innodb");
        assert_eq!(server.health(), Health::Running);
        let effective = server.effective_settings().unwrap();
        let table = [
            ("character_set_server", "latin1"),
            ("log_bin", "ON"),
            ("innodb_io_capacity", "1024"),
            ("innodb_buffer_pool_size", "67108864"),
            ("datadir", "DATA/data/"),
            ("skip_networking", "ON"),
            ("tmpdir", "DATA/tmp"),
        ];
        for (name, value) in table {
            assert_eq!(effective[name], value, "{} of {}", name, build.name);
        }
        assert_eq!(effective["basedir"].trim_end_matches('/'), "BUILD");
        assert!(
            effective["loose_no_such_option"].starts_with("not known to "),
            "{}",
            effective["loose_no_such_option"]
        );
        assert_eq!(
            effective.contains_key("loose_innodb_log_file_size"),
            wanted == MYSQL_NEW,
            "{}",
            build.name
        );
        assert!(!effective.contains_key("server_uuid"));

        let actions = server.reset_between_steps().unwrap();
        assert_eq!(
            actions[0].action,
            if wanted == MYSQL_NEW {
                "reset binary logs and gtids"
            } else {
                "reset master"
            }
        );

        let pids = server.processes();
        let command = fs::read(format!("/proc/{}/cmdline", pids[0])).unwrap();
        assert!(
            String::from_utf8_lossy(&command).contains("--defaults-file="),
            "{pids:?}"
        );
        server.stop(DEADLINE).unwrap();
        assert!(!fs::exists(format!("/proc/{}", pids[0])).unwrap());

        // The data is there for another start.
        let again = start(&build, &folders.options(&[("log_bin", "off")])).unwrap();
        assert_eq!(again.reset_between_steps().unwrap(), []);
        again.stop(DEADLINE).unwrap();
    }
}

#[test]
fn nobody_else_reaches_the_socket_of_a_server_without_passwords() {
    for wanted in ALL {
        let Some(build) = build(
            "nobody_else_reaches_the_socket_of_a_server_without_passwords",
            wanted,
        ) else {
            continue;
        };
        let folders = Folders::new();
        // As it is made with the usual umask.
        fs::set_permissions(folders.data.path(), Permissions::from_mode(0o755)).unwrap();
        let server = start(&build, &folders.options(&[]))
            .unwrap_or_else(|error| panic!("{}: {error}", build.name));
        assert!(folders.data.path().join("s.sock").exists());
        let mode = fs::metadata(folders.data.path())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o700, "{}: {mode:o}", build.name);
        server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn the_options_are_kept_beside_the_log() {
    let Some(build) = build("the_options_are_kept_beside_the_log", MYSQL_NEW) else {
        return;
    };
    let (folders, server) = server(&build, &[("innodb_io_capacity", "1234"), ("log_bin", "on")]);
    let kept = fs::read_to_string(folders.logs.path().join("my.cnf")).unwrap();
    assert_eq!(
        kept,
        fs::read_to_string(folders.data.path().join("my.cnf")).unwrap()
    );
    assert!(
        kept.starts_with("[mysqld]\n") && kept.contains("innodb_io_capacity = 1234\n"),
        "{kept}"
    );
    server.stop(DEADLINE).unwrap();
}

#[test]
fn what_a_version_does_not_take_is_named() {
    for wanted in ALL {
        let Some(build) = build("what_a_version_does_not_take_is_named", wanted) else {
            continue;
        };
        let folders = Folders::new();
        let refused = |pairs: &[(&str, &str)]| {
            start(&build, &folders.options(pairs))
                .map(|_| ())
                .unwrap_err()
        };

        let message = refused(&[("no_such_option", "1")]);
        assert!(
            message.contains("does not know the option no_such_option"),
            "{message}"
        );
        assert!(
            message.contains(&build.name) && message.contains("loose_no_such_option"),
            "{message}"
        );

        let message = refused(&[("innodb_buffer_pool", "1")]);
        assert!(
            message.contains("the option innodb_buffer_pool;")
                || message.contains("begins with innodb_buffer_pool;"),
            "{message}"
        );

        let message = refused(&[("innodb_flush_method", "sideways")]);
        assert!(
            message.contains("value sideways for innodb_flush_method"),
            "{message}"
        );

        let message = refused(&[("innodb_io_capacity", "4Q")]);
        assert!(
            message.contains("does not take the value 4Q for innodb_io_capacity"),
            "{message}"
        );

        let message = refused(&[
            ("innodb_max_dirty_pages_pct", "50"),
            ("innodb_lru_scan_depth", "17"),
        ]);
        assert!(
            message.contains("innodb_lru_scan_depth: wanted 17, found 100"),
            "{message}"
        );

        let message = refused(&[("storage_engine", "tokudb")]);
        assert!(
            message.contains("has no storage engine \"tokudb\"; it has ")
                && message.contains("InnoDB"),
            "{message}"
        );

        if wanted == MYSQL_NEW {
            let message = refused(&[("innodb_log_file_size", "64M")]);
            assert!(
                message.contains("(MySQL 9.7")
                    && message.contains("does not know the option innodb_log_file_size"),
                "{message}"
            );
        }
        if wanted == MARIADB {
            let message = refused(&[("innodb_buffer_pool_instances", "4")]);
            assert!(
                message.contains("innodb_buffer_pool_instances: accepted, and without effect"),
                "{message}"
            );
        }
        // None of them has left a server behind.
        assert!(
            !folders.data.path().join("server.pid").exists()
                || start(&build, &folders.options(&[])).is_ok()
        );
    }
}

#[test]
fn an_old_version_names_what_it_does_not_know() {
    let Some(build) = build("an_old_version_names_what_it_does_not_know", "mysql@5.6") else {
        return;
    };
    let message = start(
        &build,
        &Folders::new().options(&[("innodb_dedicated_server", "on")]),
    )
    .map(|_| ())
    .unwrap_err();
    let version = build.version.split('-').next().unwrap();
    assert!(
        message.contains(&format!(
            "(MySQL {version}) does not know the option innodb_dedicated_server;"
        )),
        "{message}"
    );
}

#[test]
fn no_version_puts_innodb_in_place_of_another_engine() {
    for wanted in ["mysql@5.6", MYSQL_OLD] {
        let Some(build) = build("no_version_puts_innodb_in_place_of_another_engine", wanted) else {
            continue;
        };
        let (_folders, server) = server(&build, &[]);
        let mut session = server.connect().unwrap();
        let error = session
            .define("create table t (n int) engine=tokudb")
            .unwrap_err();
        assert!(
            error.message.contains("Unknown storage engine"),
            "{}: {error}",
            build.name
        );
        assert_eq!(session.query("show tables like 't'").unwrap(), 0);
        session
            .define("create table t (n int) engine=myisam")
            .unwrap();
        let message = server
            .sql()
            .unwrap()
            .check_tables(&["t".to_owned()])
            .unwrap_err()
            .message;
        assert!(
            message.contains("the table t should be innodb's and is MyISAM's"),
            "{message}"
        );
        drop(session);
        server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn a_taken_port_is_named() {
    let Some(build) = build("a_taken_port_is_named", MYSQL_OLD) else {
        return;
    };
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut options = Folders::new().options(&[]);
    options.transport = Transport::Tcp;
    // Somebody is always faster than we are.
    options.prefix = [
        "/bin/sh",
        "-c",
        &format!("exec \"$@\" --port={port}"),
        "thief",
    ]
    .map(str::to_owned)
    .to_vec();
    let message = start(&build, &options).map(|_| ()).unwrap_err();
    assert!(
        message.contains("Address already in use") && message.contains(&port.to_string()),
        "{message}"
    );
}

#[test]
fn a_killed_server_is_noticed_within_a_second() {
    let Some(build) = build("a_killed_server_is_noticed_within_a_second", MYSQL_OLD) else {
        return;
    };
    let (_folders, server) = server(&build, &[]);
    let mut session = server.connect().unwrap();
    assert_eq!(session.query_integer("select 1").unwrap(), Some(1));
    kill_process(
        Pid::from_raw(server.processes()[0] as i32).unwrap(),
        Signal::KILL,
    )
    .unwrap();
    let killed = Instant::now();
    wait_until("the server's end", || server.health() != Health::Running);
    assert!(
        killed.elapsed() < Duration::from_secs(1),
        "{:?}",
        killed.elapsed()
    );
    let Health::Crashed { status, log_tail } = server.health() else {
        panic!()
    };
    assert!(status.starts_with("signal 9, SIGKILL"), "{status}");
    assert!(log_tail.contains("ready for connections"), "{log_tail}");
    for _ in 0..2 {
        let error = session.query("select 1").unwrap_err();
        assert_eq!(error.class.as_str(), "lost", "{error}");
    }
    let message = server.counters().unwrap_err().message;
    assert!(message.contains("look into the server's log"), "{message}");
    let later = Instant::now() + DEADLINE;
    let message = server
        .drain(&[], &DrainLimits::new(later, later, &|| false))
        .unwrap_err()
        .message;
    assert!(message.contains("SIGKILL"), "{message}");
    assert!(
        server
            .stop(DEADLINE)
            .unwrap_err()
            .message
            .contains("it had ended before")
    );
}

#[test]
fn tcp_prefix_and_environment_reach_the_server() {
    for wanted in ALL {
        let Some(build) = build("tcp_prefix_and_environment_reach_the_server", wanted) else {
            continue;
        };
        let folders = Folders::new();
        let mut options = folders.options(&[]);
        options.transport = Transport::Tcp;
        // A wrapper that stays above the server.
        options.prefix = ["/bin/sh", "-c", "\"$@\"; exit $?", "wrapper"]
            .map(str::to_owned)
            .to_vec();
        options.env = BTreeMap::from([("PLIMSOLL_TEST".to_owned(), "seen".to_owned())]);
        let server =
            start(&build, &options).unwrap_or_else(|error| panic!("{}: {error}", build.name));
        let effective = server.effective_settings().unwrap();
        assert_eq!(
            (
                effective["bind_address"].as_str(),
                effective["skip_networking"].as_str()
            ),
            ("127.0.0.1", "OFF")
        );
        let mut session = server.connect().unwrap();
        let host = "select host from information_schema.processlist where id = connection_id()";
        let mut from = String::new();
        session
            .for_each_row(host, &mut |row| from = row[0].to_owned())
            .unwrap();
        // A socket's client has no port.
        assert!(from.contains(':'), "{from}");
        let pid = server.processes()[0];
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(String::from_utf8_lossy(&environment).contains("PLIMSOLL_TEST=seen"));
        let name = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!name.starts_with("/bin/sh\0"), "{name}");
        server.stop(DEADLINE).unwrap();
        assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
    }
}

#[test]
fn a_server_in_a_namespace_of_process_ids_is_signalled_and_no_stranger() {
    let test = "a_server_in_a_namespace_of_process_ids_is_signalled_and_no_stranger";
    let Some(build) = build(test, MYSQL_NEW) else {
        return;
    };
    let prefix = ["unshare", "--pid", "--fork"];
    if !Command::new(prefix[0])
        .args(&prefix[1..])
        .arg("true")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        return plimsoll_testkit::skip(
            &format!("engine::{test}"),
            "unshare may make no namespace of process ids here",
        );
    }
    let folders = Folders::new();
    let options = StartOptions {
        prefix: prefix.map(str::to_owned).to_vec(),
        ..folders.options(&[])
    };
    let server = start(&build, &options).unwrap();
    assert_eq!(
        fs::read_to_string(folders.data.path().join("server.pid"))
            .unwrap()
            .trim(),
        "1"
    );
    let pid = server.processes()[0];
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(
        pid != 1 && command.contains("--pid-file=") && !command.starts_with("unshare"),
        "{pid}: {command}"
    );
    // The wrapper would not pass the signal on.
    server.stop(DEADLINE).unwrap();
}

#[test]
fn a_long_path_and_foreign_data_are_refused_before_the_start() {
    let Some(build) = build(
        "a_long_path_and_foreign_data_are_refused_before_the_start",
        MYSQL_OLD,
    ) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(120));
    let message = start(&build, &StartOptions::new(&long, settings(QUICK)))
        .map(|_| ())
        .unwrap_err();
    assert!(
        message.contains("s.sock has ")
            && message.contains("may have 107")
            && message.contains("--data"),
        "{message}"
    );

    let folders = Folders::new();
    fs::create_dir(folders.data.path().join("data")).unwrap();
    let message = start(&build, &folders.options(&[]))
        .map(|_| ())
        .unwrap_err();
    assert!(
        message.contains("was not made to its end here"),
        "{message}"
    );
}

#[test]
fn a_database_without_our_mark_is_left_alone() {
    let Some(build) = build("a_database_without_our_mark_is_left_alone", MYSQL_OLD) else {
        return;
    };
    let (folders, server) = server(&build, &[]);
    let mut session = server.connect().unwrap();
    session
        .define("create table precious (n int) engine=innodb")
        .unwrap();
    session.define("drop table plimsoll_marker").unwrap();
    server.stop(DEADLINE).unwrap();
    let message = start(&build, &folders.options(&[]))
        .map(|_| ())
        .unwrap_err();
    assert!(
        message.contains("the database ib holds precious and does not carry our mark"),
        "{message}"
    );
    assert!(
        fs::read_dir(folders.data.path().join("data/ib"))
            .unwrap()
            .flatten()
            .any(|file| file.file_name() == "precious.ibd")
    );
}

#[test]
fn a_build_that_is_not_what_it_says_is_refused() {
    let Some(mut build) = build("a_build_that_is_not_what_it_says_is_refused", MYSQL_OLD) else {
        return;
    };
    build.version = "5.7.1".to_owned();
    let message = start(&build, &Folders::new().options(&[]))
        .map(|_| ())
        .unwrap_err();
    assert!(
        message.contains("should be MySQL 5.7.1, but the server says"),
        "{message}"
    );
    build.server = "/does/not/exist/mysqld".into();
    let message = start(&build, &Folders::new().options(&[]))
        .map(|_| ())
        .unwrap_err();
    assert!(
        message.contains("start /does/not/exist/mysqld"),
        "{message}"
    );
}
