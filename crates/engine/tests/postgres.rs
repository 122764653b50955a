//! PostgreSQL servers of several versions: made, started, asked, crashed and stopped.

mod postgres_support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_engine::postgres::{Postgres, release_shared_memory};
use plimsoll_engine::process::{IDENTITY_FILE, ProcessIdentity};
use plimsoll_engine::{Engine, Health, InstalledBuild, Server, StartOptions, Transport};
use postgres_support::{
    DEADLINE, Folders, MAJORS, QUICK, build, quick, settings, start, status, wait_until,
};
use rustix::process::{Pid, Signal, geteuid, kill_process};

fn kill(pid: u32) {
    kill_process(
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
        Signal::KILL,
    )
    .unwrap();
}

fn version_num(server: &dyn Server) -> u32 {
    let settings = server.effective_settings().unwrap();
    settings["server_version_num"].parse().unwrap()
}

fn pid(server: &dyn Server) -> u32 {
    match server.processes()[..] {
        [pid] => pid,
        ref other => panic!("{other:?}"),
    }
}

/// From an empty folder to a clean end, and again on the same data.
fn live(build: &InstalledBuild) {
    let folders = Folders::new();
    let more = [
        ("checkpoint_timeout", "30min"),
        ("wal_buffers", "-1"),
        ("work_mem", "'8MB'"),
        ("io_method@18", "sync"),
        ("jit@11-99", "off"),
    ];
    let options = folders.options(&[QUICK, &more]);
    let server = start(build, &options).unwrap();
    let kept = fs::read_to_string(folders.logs.path().join("plimsoll.conf")).unwrap();
    assert_eq!(
        kept,
        fs::read_to_string(folders.data.path().join("pgdata/plimsoll.conf")).unwrap()
    );
    let version = version_num(&*server);
    let digits = build
        .version
        .split(|character: char| !character.is_ascii_digit())
        .next()
        .unwrap();
    assert_eq!(version / 10_000, digits.parse::<u32>().unwrap());

    // Never as root, in no group of root's, and with no way in for others.
    let pid = pid(&*server);
    let uids = status(pid, "Uid");
    if geteuid().is_root() {
        assert_eq!(uids, ["65534"; 4]);
        assert_eq!(status(pid, "Groups"), [""; 0]);
        assert_eq!(status(pid, "CapPrm"), ["0000000000000000"]);
    } else {
        assert_eq!(uids, [geteuid().as_raw().to_string().as_str(); 4]);
    }
    assert_eq!(
        fs::metadata(folders.data.path())
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    assert_eq!(server.health(), Health::Running);

    let effective = server.effective_settings().unwrap();
    for (name, value) in [
        ("shared_buffers", "16MB"),
        ("fsync", "off"),
        ("max_connections", "20"),
        ("checkpoint_timeout", "30min"),
        ("work_mem", "8MB"),
        ("data_checksums", "on"),
        ("restart_after_crash", "off"),
        ("listen_addresses", ""),
        ("server_encoding", "UTF8"),
        ("lc_collate", "C"),
    ] {
        // From 16 on the collation is not a parameter.
        assert_eq!(
            effective.get(name).map_or(
                if name == "lc_collate" { "C" } else { "absent" },
                String::as_str
            ),
            value,
            "{name}"
        );
    }
    assert!(!effective.contains_key("data_directory") && !effective.contains_key("port"));
    let not_applied: Vec<_> = effective
        .iter()
        .filter(|(name, _)| name.starts_with("not applied"))
        .collect();
    if version >= 180_000 {
        assert_eq!(effective["io_method"], "sync");
        assert!(not_applied.is_empty(), "{not_applied:?}");
    } else {
        let reason = &effective["not applied: io_method@18"];
        assert!(
            reason.starts_with("needs >= 18, this is ") && reason.ends_with("(value sync)"),
            "{reason}"
        );
        assert_eq!(not_applied.len(), if version < 110_000 { 2 } else { 1 });
    }

    let mut session = server.connect().unwrap();
    session
        .define("create table pi1 (transactionid bigserial primary key, a int not null)")
        .unwrap();
    assert_eq!(
        session
            .write("insert into pi1 (a) select generate_series(1, 1000)", 1000)
            .unwrap(),
        1000
    );
    drop(session);

    let before = server.counters().unwrap();
    let mut session = server.connect().unwrap();
    assert_eq!(
        session
            .write(
                "insert into pi1 (a) select generate_series(1, 20000)",
                20_000
            )
            .unwrap(),
        20_000
    );
    drop(session);
    // The server tells its counters when it likes.
    let mut after = before.clone();
    let grown =
        |after: &std::collections::BTreeMap<String, i64>, name: &str| after[name] - before[name];
    wait_until("the counters of the insert", || {
        after = server.counters().unwrap();
        grown(&after, "pg_stat_user_tables.n_tup_ins") >= 20_000
            && grown(&after, "pg_stat_database.xact_commit") >= 1
    });
    assert!(grown(&after, "wal_lsn_bytes") > 20_000 * 30, "{after:?}");
    for (name, since) in [
        ("pg_stat_bgwriter.buffers_clean", 0),
        ("pg_stat_database.blk_read_time_us", 0),
        ("pg_statio_user_tables.heap_blks_hit", 0),
        ("pg_stat_wal.wal_records", 140_000),
        ("pg_stat_io.relation.reads", 160_000),
        ("pg_stat_checkpointer.num_timed", 170_000),
        ("pg_stat_io.wal.writes", 180_000),
    ] {
        assert_eq!(
            after.contains_key(name),
            version >= since,
            "{name} in {after:?}"
        );
    }
    assert!(server.database_bytes().unwrap() > 1 << 20);

    let state = folders.logs.path().join("state");
    server.save_state(&state, "l.i0.end").unwrap();
    server.save_state(&state, "l.x.end").unwrap();
    let read = |name: &str| fs::read_to_string(state.join(name)).unwrap();
    assert!(read("l.i0.end.pg_settings.tsv").contains("\nshared_buffers\t2048\t8kB\t"));
    assert!(
        read("l.x.end.relation_sizes.tsv")
            .lines()
            .any(|line| line.starts_with("pi1_pkey\ti\t"))
    );
    assert!(
        read("pg_config.tsv").contains("\nVERSION\tPostgreSQL "),
        "{}",
        read("pg_config.tsv")
    );
    assert_eq!(
        state.join("l.i0.end.pg_stat_io.tsv").exists(),
        version >= 160_000
    );

    server.stop(DEADLINE).unwrap();
    assert_eq!(status(pid, "Uid"), [""; 0]);
    assert!(!folders.data.path().join(".s.PGSQL.5432").exists());

    // The same data, another config: what it says now counts.
    let server = start(build, &folders.options(&[QUICK, &[("work_mem", "16MB")]])).unwrap();
    let effective = server.effective_settings().unwrap();
    assert_eq!(
        (
            effective["work_mem"].as_str(),
            effective["checkpoint_timeout"].as_str()
        ),
        ("16MB", "5min")
    );
    assert_eq!(
        server
            .connect()
            .unwrap()
            .query_integer("select count(*) from pi1")
            .unwrap(),
        Some(21_000)
    );
    server.stop(DEADLINE).unwrap();

    let message = start(
        build,
        &folders.options(&[QUICK, &[("data_checksums", "off")]]),
    )
    .err()
    .unwrap();
    assert!(
        message.contains("has data_checksums = on and the config wants off"),
        "{message}"
    );
}

macro_rules! lives {
    ($($name:ident: $index:literal,)*) => { $(
        #[test]
        fn $name() {
            if let Some(build) = build(concat!("postgres::", stringify!($name)), MAJORS[$index]) {
                live(&build);
            }
        }
    )* };
}

lives! {
    postgres_96_lives: 0,
    postgres_18_lives: 1,
}

#[test]
fn checksums_are_off_where_the_config_says_so() {
    for major in MAJORS {
        let Some(build) = build(
            "postgres::checksums_are_off_where_the_config_says_so",
            major,
        ) else {
            continue;
        };
        let (_folders, server) = quick(&build, &[("data_checksums", "off")]);
        assert_eq!(
            server.effective_settings().unwrap()["data_checksums"],
            "off",
            "{major}"
        );
    }
}

#[test]
fn a_config_is_checked_without_a_server() {
    for major in MAJORS {
        let Some(build) = build("postgres::a_config_is_checked_without_a_server", major) else {
            continue;
        };
        let engine = Postgres::new(build.clone());
        let check = |name: &str, value: &str| {
            engine
                .check_settings(&settings(&[(name, value)]))
                .map_err(|error| error.message)
        };
        check("shared_buffers", "1GB").unwrap();
        check("some_extension.parameter", "1").unwrap();
        check("io_method@18", "sync").unwrap();
        if major != "18" {
            let message = check("io_method", "sync").unwrap_err();
            assert!(
                message.starts_with(&format!(
                    "postgres {} does not know the parameter io_method",
                    build.version
                )),
                "{message}"
            );
        }
        for (name, value, wanted) in [
            (
                "shared_bufers",
                "1GB",
                "does not know the parameter shared_bufers (did you mean \"shared_buffers\"?); \
                remove it",
            ),
            (
                "shared_buffers",
                "12 apples",
                "refuses the config: invalid value for parameter \"shared_buffers\": \"12 apples\"",
            ),
            (
                "work_mem",
                "1kB",
                "is outside the valid range for parameter \"work_mem\"",
            ),
            (
                "synchronous_commit",
                "maybe",
                "invalid value for parameter \"synchronous_commit\": \"maybe\"",
            ),
            ("port", "5432", "setting port is not the config's"),
            (
                "block_size",
                "4096",
                "parameter \"block_size\" cannot be changed",
            ),
        ] {
            let message = check(name, value).unwrap_err();
            assert!(message.contains(wanted), "{major} {name}: {message}");
        }
        // A start looks too, before it makes anything.
        let folders = Folders::new();
        let message = start(&build, &folders.options(&[&[("shared_bufers", "1GB")]]))
            .err()
            .unwrap();
        assert!(
            message.contains(&format!("postgres {} does not know", build.version)),
            "{message}"
        );
        assert_eq!(fs::read_dir(folders.data.path()).unwrap().count(), 0);
    }
}

/// The shipped configs as the server gets them, sizes by template at a small machine's.
#[test]
fn every_version_takes_the_shipped_configs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/postgres");
    for major in MAJORS {
        let Some(build) = build("postgres::every_version_takes_the_shipped_configs", major) else {
            continue;
        };
        for file in fs::read_dir(&folder).unwrap().flatten() {
            let text = fs::read_to_string(file.path()).unwrap();
            let lines = text
                .lines()
                .filter(|line| !line.starts_with('#'))
                .filter_map(|line| line.split_once(" = "));
            let config = lines
                .map(|(name, value)| {
                    let is_template = value.starts_with('{') && value.ends_with("}B");
                    (
                        name.to_owned(),
                        if is_template {
                            "268435456B".to_owned()
                        } else {
                            value.to_owned()
                        },
                    )
                })
                .collect();
            Postgres::new(build.clone())
                .check_settings(&config)
                .unwrap();
            // Reading them finds what a version does not know; running with them is seen once.
            if major != "18" {
                continue;
            }
            let folders = Folders::new();
            let server = start(
                &build,
                &StartOptions {
                    settings: config,
                    ..folders.options(&[])
                },
            )
            .unwrap();
            let effective = server.effective_settings().unwrap();
            let label = file.file_name().into_string().unwrap();
            let buffers = if label == "cx10bio.conf" {
                "64MB"
            } else {
                "256MB"
            };
            assert_eq!(effective["shared_buffers"], buffers, "{label}");
            assert_eq!(
                effective["synchronous_commit"],
                if label == "cx10bdur.conf" {
                    "on"
                } else {
                    "off"
                },
                "{label}"
            );
            assert_eq!(effective["autovacuum_naptime"], "10s", "{label}");
            server
                .connect()
                .unwrap()
                .query("select 'is it in the log?'")
                .unwrap();
            assert_eq!(
                folders.log().contains("is it in the log?"),
                label == "cx10blog.conf",
                "{label}"
            );
            server.stop(DEADLINE).unwrap();
        }
    }
}

#[test]
fn what_the_config_cannot_overcome_is_an_error() {
    let test = "postgres::what_the_config_cannot_overcome_is_an_error";
    let Some(build) = build(test, "18") else {
        return;
    };
    let stubborn = InstalledBuild {
        server_options: vec!["-c".to_owned(), "work_mem=8MB".to_owned()],
        ..build.clone()
    };
    let folders = Folders::new();
    let message = start(
        &stubborn,
        &folders.options(&[QUICK, &[("work_mem", "4MB")]]),
    )
    .err()
    .unwrap();
    let wanted = format!(
        "postgres {} did not take work_mem = 4MB: it runs with 8MB from command line;",
        build.version
    );
    assert!(message.starts_with(&wanted), "{message}");

    // A parameter of an extension that nobody loads would be stored and mean nothing.
    let message = start(
        &build,
        &folders.options(&[QUICK, &[("auto_explain.log_analyze", "on")]]),
    )
    .err()
    .unwrap();
    assert!(
        message.contains("has no parameter auto_explain.log_analyze although it did not refuse it"),
        "{message}"
    );
}

#[test]
fn a_custom_parameter_reaches_statements_and_is_told() {
    for major in MAJORS {
        let Some(build) = build(
            "postgres::a_custom_parameter_reaches_statements_and_is_told",
            major,
        ) else {
            continue;
        };
        let custom = [
            ("Bench.Share", "3"),
            ("bench.words", "it's 'so' \\ 5MB"),
            ("bench.nothing", ""),
        ];
        let (_folders, server) = quick(&build, &custom);
        let effective = server.effective_settings().unwrap();
        for (name, value) in custom {
            let name = name.to_ascii_lowercase();
            assert_eq!(effective[&name], value, "{major}");
            assert_eq!(
                effective[&format!("custom parameter: {name}")],
                "no module of this server defines it",
                "{major}"
            );
        }
        assert!(
            !effective.contains_key("custom parameter: work_mem"),
            "{major}"
        );
        let mut session = server.connect().unwrap();
        assert_eq!(
            session
                .query_integer("select current_setting('bench.share')::int + 1")
                .unwrap(),
            Some(4),
            "{major}"
        );
        server.stop(DEADLINE).unwrap();
    }
}

/// A vacuum between two turns would run in the next turns of its server alone.
#[test]
fn held_autovacuum_leaves_dead_rows_alone() {
    for major in MAJORS {
        let Some(build) = build("postgres::held_autovacuum_leaves_dead_rows_alone", major) else {
            continue;
        };
        let eager = [
            ("autovacuum", "on"),
            ("autovacuum_naptime", "1s"),
            ("autovacuum_vacuum_threshold", "1"),
            ("autovacuum_vacuum_scale_factor", "0"),
        ];
        let (_folders, server) = quick(&build, &eager);
        let mut session = server.connect().unwrap();
        session.define("create table t (id int)").unwrap();
        // A session tells what it did with a later statement, and no oftener than once a second.
        let mut vacuums_behind_dead_rows = || {
            session
                .define("insert into t select generate_series(1, 1000)")
                .unwrap();
            session.define("delete from t").unwrap();
            let count = "select autovacuum_count from pg_stat_user_tables where relname = 't'";
            session.query_integer(count).unwrap().unwrap_or(0)
        };
        wait_until("an autovacuum", || vacuums_behind_dead_rows() > 0);
        assert_eq!(server.hold_maintenance().unwrap(), Some("autovacuum"));
        assert_eq!(
            server.effective_settings().unwrap()["autovacuum"],
            "off",
            "{major}"
        );
        let before = vacuums_behind_dead_rows();
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            assert_eq!(vacuums_behind_dead_rows(), before, "{major}");
            std::thread::sleep(Duration::from_millis(200));
        }
        server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn a_parameter_of_a_module_that_is_not_loaded_or_lacks_it_is_no_custom_one() {
    for major in MAJORS {
        let Some(build) = build(
            "postgres::a_parameter_of_a_module_that_is_not_loaded_or_lacks_it_is_no_custom_one",
            major,
        ) else {
            continue;
        };
        for (settings, name) in [
            // A library alone, and an extension.
            (
                &[("auto_explain.log_analyze", "on")][..],
                "auto_explain.log_analyze",
            ),
            (
                &[("pg_stat_statements.max", "1000")],
                "pg_stat_statements.max",
            ),
            (
                &[
                    ("shared_preload_libraries", "auto_explain"),
                    ("auto_explain.log_analise", "on"),
                ],
                "auto_explain.log_analise",
            ),
        ] {
            let folders = Folders::new();
            let message = start(&build, &folders.options(&[QUICK, settings]))
                .err()
                .unwrap();
            assert!(
                message.contains(&format!("has no parameter {name} although")),
                "{major}: {message}"
            );
        }
        let loaded = [
            ("shared_preload_libraries", "auto_explain"),
            ("auto_explain.log_analyze", "on"),
        ];
        let (_folders, server) = quick(&build, &loaded);
        let effective = server.effective_settings().unwrap();
        assert_eq!(effective["auto_explain.log_analyze"], "on", "{major}");
        assert!(
            !effective.contains_key("custom parameter: auto_explain.log_analyze"),
            "{major}"
        );
        server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn a_server_that_cannot_start_shows_its_log() {
    let Some(build) = build("postgres::a_server_that_cannot_start_shows_its_log", "18") else {
        return;
    };
    let folders = Folders::new();
    let message = start(
        &build,
        &folders.options(&[QUICK, &[("shared_preload_libraries", "no_such_library")]]),
    )
    .err()
    .unwrap();
    assert!(
        message.starts_with("the server ended before it was ready (exit status 1); see "),
        "{message}"
    );
    assert!(
        message.contains("could not access file \"no_such_library\""),
        "{message}"
    );
}

#[test]
fn a_taken_port_is_named() {
    let Some(build) = build("postgres::a_taken_port_is_named", "18") else {
        return;
    };
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let folders = Folders::new();
    let mut options = StartOptions {
        transport: Transport::Tcp,
        ..folders.options(&[QUICK])
    };
    // Somebody is always faster than we are.
    options.prefix = ["/bin/sh", "-c", &format!("exec \"$@\" -p {port}"), "thief"]
        .map(str::to_owned)
        .to_vec();
    let message = start(&build, &options).err().unwrap();
    assert!(
        message.starts_with("the server ended before it was ready (exit status 1)"),
        "{message}"
    );
    assert!(
        message.contains("Address already in use") && message.contains(&port.to_string()),
        "{message}"
    );
}

#[test]
fn a_parameter_that_was_renamed_is_named_with_the_version() {
    for (major, old_name) in [
        ("9.6", "wal_keep_size"),
        ("18", "wal_keep_segments"),
        ("18", "vacuum_defer_cleanup_age"),
        ("18", "promote_trigger_file"),
    ] {
        let Some(build) = build(
            "postgres::a_parameter_that_was_renamed_is_named_with_the_version",
            major,
        ) else {
            continue;
        };
        let message = Postgres::new(build.clone())
            .check_settings(&settings(&[(old_name, "1")]))
            .unwrap_err()
            .message;
        assert!(
            message.starts_with(&format!(
                "postgres {} does not know the parameter {old_name}",
                build.version
            )),
            "{message}"
        );
    }
}

#[test]
fn data_of_another_version_is_refused() {
    let test = "postgres::data_of_another_version_is_refused";
    let (Some(old), Some(new)) = (build(test, "9.6"), build(test, "18")) else {
        return;
    };
    let (folders, server) = quick(&old, &[]);
    server.stop(DEADLINE).unwrap();
    let message = start(&new, &folders.options(&[QUICK])).err().unwrap();
    assert!(
        message.contains("holds data of postgres 9.6, and ")
            && message.ends_with("is 18; give it an empty data directory"),
        "{message}"
    );
}

#[test]
fn a_foreign_database_is_left_alone() {
    let Some(build) = build("postgres::a_foreign_database_is_left_alone", "18") else {
        return;
    };
    let (folders, server) = quick(&build, &[]);
    let mut session = server.connect().unwrap();
    session.define("drop table plimsoll_marker").unwrap();
    session
        .define("create table precious as select 42 as answer")
        .unwrap();
    drop(session);
    server.stop(DEADLINE).unwrap();
    let message = start(&build, &folders.options(&[QUICK])).err().unwrap();
    assert!(
        message.contains("database ib holds tables that this program did not make"),
        "{message}"
    );
}

#[test]
fn a_closed_folder_above_the_data_is_named() {
    let Some(build) = build("postgres::a_closed_folder_above_the_data_is_named", "18") else {
        return;
    };
    let folders = Folders::new();
    fs::set_permissions(folders.data.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let options = StartOptions {
        data_dir: folders.data.path().join("trial"),
        ..folders.options(&[QUICK])
    };
    let answer = start(&build, &options);
    if geteuid().is_root() {
        let message = answer.err().unwrap();
        let closed = folders.data.path().canonicalize().unwrap();
        assert!(
            message.contains(&format!(
                "nobody (uid 65534) may not enter {} (mode 700)",
                closed.display()
            )),
            "{message}"
        );
        assert!(
            message.ends_with("choose a data folder that everybody may enter with --data DIR"),
            "{message}"
        );
    } else {
        answer.unwrap().stop(DEADLINE).unwrap();
    }
}

#[test]
fn a_socket_path_that_is_too_long_is_named() {
    let Some(build) = build("postgres::a_socket_path_that_is_too_long_is_named", "18") else {
        return;
    };
    let folders = Folders::new();
    fs::set_permissions(folders.data.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let long = folders.data.path().join("x".repeat(100));
    let options = StartOptions {
        data_dir: long,
        ..folders.options(&[QUICK])
    };
    let message = start(&build, &options).err().unwrap();
    assert!(
        message.contains(
            "and 107 are possible; choose a data folder with a shorter path with --data DIR"
        ),
        "{message}"
    );
    // By TCP the length does not matter.
    let server = start(
        &build,
        &StartOptions {
            transport: Transport::Tcp,
            ..options
        },
    )
    .unwrap();
    server.stop(DEADLINE).unwrap();
}

#[test]
fn by_tcp_it_listens_on_loopback_only() {
    for major in ["9.6", "18"] {
        let Some(build) = build("postgres::by_tcp_it_listens_on_loopback_only", major) else {
            continue;
        };
        let folders = Folders::new();
        let server = start(
            &build,
            &StartOptions {
                transport: Transport::Tcp,
                ..folders.options(&[QUICK])
            },
        )
        .unwrap();
        assert_eq!(
            server.effective_settings().unwrap()["listen_addresses"],
            "127.0.0.1"
        );
        let mut session = server.connect().unwrap();
        assert_eq!(
            session
                .query_integer("select host(inet_server_addr())::text = '127.0.0.1' and 1 = 1")
                .map_err(|error| error.class),
            {
                // A boolean is not a number.
                Err(plimsoll_engine::ErrorClass::Statement)
            }
        );
        assert_eq!(
            session
                .query("select 1 where host(inet_server_addr()) = '127.0.0.1'")
                .unwrap(),
            1
        );
        // No socket: the other is a list of its shared memory.
        let others: Vec<_> = fs::read_dir(folders.data.path())
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .filter(|name| name != "pgdata" && name != "segments")
            .collect();
        assert!(others.is_empty(), "{others:?}");
        drop(session);
        server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn prefix_and_environment_reach_the_server() {
    let Some(build) = build("postgres::prefix_and_environment_reach_the_server", "18") else {
        return;
    };
    let folders = Folders::new();
    let mut options = folders.options(&[QUICK]);
    // A wrapper that stays above the server.
    options.prefix = ["/bin/sh", "-c", "\"$@\"; exit $?", "wrapper"]
        .map(str::to_owned)
        .to_vec();
    options
        .env
        .insert("PLIMSOLL_TEST".to_owned(), "seen".to_owned());
    let server = start(&build, &options).unwrap();
    let pid = pid(&*server);
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(String::from_utf8_lossy(&environment).contains("PLIMSOLL_TEST=seen"));
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(
        !String::from_utf8_lossy(&arguments).contains("wrapper"),
        "the pid is the wrapper's"
    );
    server.stop(DEADLINE).unwrap();
    assert_eq!(status(pid, "Uid"), [""; 0]);
}

/// What a server's processes have below `/dev/shm`. From 18 on its launchers have one that the main
/// process has not mapped.
fn segments(server: u32, major: &str) -> BTreeSet<PathBuf> {
    let is_one = |pid: u32| pid == server || status(pid, "PPid") == [server.to_string()];
    let mut found = BTreeSet::new();
    wait_until("the segments", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for pid in pids.filter(|pid| is_one(*pid)) {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let names = maps
                .lines()
                .filter_map(|line| line.rsplit_once("/dev/shm/"));
            let names = names.filter(|(_, name)| name.starts_with("PostgreSQL."));
            found.extend(names.map(|(_, name)| Path::new("/dev/shm").join(name)));
        }
        found.len() > usize::from(major == "18")
    });
    found
}

#[test]
fn a_killed_server_is_a_crash() {
    for major in ["9.6", "18"] {
        let Some(build) = build("postgres::a_killed_server_is_a_crash", major) else {
            continue;
        };
        let (folders, server) = quick(&build, &[]);
        let mut session = server.connect().unwrap();
        assert_eq!(session.query_integer("select 1").unwrap(), Some(1));
        let segments = segments(pid(&*server), major);
        kill(pid(&*server));
        wait_until("the crash", || server.health() != Health::Running);
        let Health::Crashed { status, .. } = server.health() else {
            panic!()
        };
        assert!(status.starts_with("signal 9, SIGKILL"), "{status}");
        // A session's process ends when it notices; every statement until then is answered, every
        // one after is lost at once.
        let error = loop {
            if let Err(error) = session.query_integer("select 1") {
                break error;
            }
        };
        // Its last word may be that the server is gone, or nothing.
        assert!(error.class.is_disconnected(), "{error}");
        let error = session.query_integer("select 1").unwrap_err();
        assert_eq!(error.class, plimsoll_engine::ErrorClass::Unsent);
        assert!(
            error.message.contains("the server has ended with signal 9"),
            "{error}"
        );
        // After the stop nobody writes into the folders any more.
        assert!(
            server
                .connect()
                .err()
                .unwrap()
                .message
                .starts_with("connect to postgres: ")
        );
        let message = server.stop(DEADLINE).unwrap_err().message;
        assert!(
            message.contains("had ended before with signal 9"),
            "{message}"
        );
        release_shared_memory(folders.data.path());
        assert_eq!(segments.iter().find(|segment| segment.exists()), None);
        folders.data.close().unwrap();
    }
}

/// A session that works notices only at its end that the server is gone, and writes until then.
#[test]
fn sessions_that_work_end_with_the_server_that_a_sudden_end_left_behind() {
    for major in ["9.6", "18"] {
        let Some(build) = build(
            "postgres::sessions_that_work_end_with_the_server_that_a_sudden_end_left_behind",
            major,
        ) else {
            continue;
        };
        let (folders, server) = quick(&build, &[]);
        let segments = segments(pid(&*server), major);
        let mut session = server.connect().unwrap();
        let backend = session
            .query_integer("select pg_backend_pid()")
            .unwrap()
            .unwrap() as u32;
        let is_running = || {
            status(backend, "State")
                .first()
                .is_some_and(|state| state != "Z")
        };
        std::thread::scope(|scope| {
            let working = scope.spawn(move || {
                session.query_integer("select count(*) from generate_series(1, 1000000000)")
            });
            let mut other = server.connect().unwrap();
            wait_until("the work", || {
                other
                    .query(&format!(
                        "select 1 from pg_stat_activity where state = 'active' and pid = {backend}"
                    ))
                    .unwrap()
                    == 1
            });
            assert!(is_running());
            let written = fs::read_to_string(folders.logs.path().join(IDENTITY_FILE)).unwrap();
            let identity: ProcessIdentity = serde_json::from_str(&written).unwrap();
            assert_eq!(identity.pid, pid(&*server));
            assert!(identity.kill_group());
            assert!(!is_running(), "the session's process was left behind");
            assert!(working.join().unwrap().unwrap_err().class.is_disconnected());
        });
        assert!(
            server
                .stop(DEADLINE)
                .unwrap_err()
                .message
                .contains("signal 9")
        );
        release_shared_memory(folders.data.path());
        assert_eq!(segments.iter().find(|segment| segment.exists()), None);
        folders.data.close().unwrap();
    }
}

#[test]
fn a_killed_session_process_is_a_crash_of_the_server() {
    let Some(build) = build(
        "postgres::a_killed_session_process_is_a_crash_of_the_server",
        "18",
    ) else {
        return;
    };
    let (_folders, server) = quick(&build, &[]);
    let mut session = server.connect().unwrap();
    let backend = session
        .query_integer("select pg_backend_pid()")
        .unwrap()
        .unwrap();
    kill(u32::try_from(backend).unwrap());
    wait_until("the crash", || server.health() != Health::Running);
    let Health::Crashed { status, log_tail } = server.health() else {
        panic!()
    };
    assert_eq!(status, "exit status 1");
    assert!(
        log_tail.contains(&format!("(PID {backend}) was terminated by signal 9")),
        "{log_tail}"
    );
    // Nobody was there to take it.
    assert_eq!(
        session.query_integer("select 1").unwrap_err().class,
        plimsoll_engine::ErrorClass::Unsent
    );
}

#[test]
fn a_server_that_does_not_end_in_time_is_made_to() {
    let Some(build) = build(
        "postgres::a_server_that_does_not_end_in_time_is_made_to",
        "18",
    ) else {
        return;
    };
    let (folders, server) = quick(&build, &[]);
    let pid = pid(&*server);
    let message = server.stop(Duration::ZERO).unwrap_err().message;
    assert!(
        message.contains("it had not ended within 0ns, it was made to end without a checkpoint"),
        "{message}"
    );
    assert_eq!(status(pid, "Uid"), [""; 0]);
    folders.data.close().unwrap();
}

#[test]
fn a_server_that_is_not_stopped_ends_with_its_value() {
    let Some(build) = build(
        "postgres::a_server_that_is_not_stopped_ends_with_its_value",
        "18",
    ) else {
        return;
    };
    let (folders, server) = quick(&build, &[]);
    let pid = pid(&*server);
    let _session = server.connect().unwrap();
    drop(server);
    assert_eq!(status(pid, "Uid"), [""; 0]);
    folders.data.close().unwrap();
}

/// Data of a start whose steps only read is kept for the next start.
#[test]
fn a_held_server_starts_again_on_its_data_with_its_config() {
    let Some(build) = build("postgres::held_again", "18") else {
        return;
    };
    let folders = Folders::new();
    let options = folders.options(&[QUICK, &[("autovacuum", "on")]]);
    let server = start(&build, &options).unwrap();
    server.hold_maintenance().unwrap();
    server.stop(DEADLINE).unwrap();
    let again = start(&build, &options).unwrap_or_else(|error| panic!("{error}"));
    again.stop(DEADLINE).unwrap();
}

#[test]
fn a_server_without_alter_system_is_held_too() {
    let Some(build) = build("postgres::held_without_alter_system", "18") else {
        return;
    };
    let (_folders, server) = quick(&build, &[("allow_alter_system", "off")]);
    let held = server.hold_maintenance();
    server.stop(DEADLINE).unwrap();
    assert_eq!(held.map_err(|error| error.message), Ok(Some("autovacuum")));
}

/// The workers of autovacuum among a server's processes.
fn workers_of_autovacuum(postmaster: u32) -> Vec<u32> {
    let children = format!("/proc/{postmaster}/task/{postmaster}/children");
    let children = fs::read_to_string(children).unwrap_or_default();
    children
        .split_whitespace()
        .filter(|pid| {
            let title = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&title).contains("autovacuum worker")
        })
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// Vacuums that take long, and begin every second.
const SLOW_VACUUMS: &[(&str, &str)] = &[
    ("autovacuum", "on"),
    ("autovacuum_naptime", "1s"),
    ("autovacuum_vacuum_threshold", "1"),
    ("autovacuum_vacuum_scale_factor", "0"),
    ("autovacuum_vacuum_cost_delay", "100ms"),
    ("autovacuum_vacuum_cost_limit", "1"),
];

fn vacuums_are_over_when_held(more: &[(&str, &str)]) {
    let Some(build) = build("postgres::vacuums_are_over_when_held", "18") else {
        return;
    };
    let folders = Folders::new();
    let options = folders.options(&[QUICK, SLOW_VACUUMS, more]);
    let server = start(&build, &options).unwrap();
    let mut session = server.connect().unwrap();
    session.define("create table t (id int)").unwrap();
    session
        .define("insert into t select generate_series(1, 100000)")
        .unwrap();
    session.define("delete from t").unwrap();
    let postmaster = pid(&*server);
    // One that is there for a second has found the table.
    wait_until("a vacuum", || {
        let before = workers_of_autovacuum(postmaster);
        std::thread::sleep(Duration::from_millis(1000));
        let now = workers_of_autovacuum(postmaster);
        now.iter().any(|pid| before.contains(pid))
    });
    server.hold_maintenance().unwrap();
    let left = workers_of_autovacuum(postmaster);
    drop(session);
    let _ = server.stop(DEADLINE);
    assert!(left.is_empty(), "right behind the hold: {left:?}");
}

#[test]
fn a_vacuum_is_over_when_it_is_held() {
    vacuums_are_over_when_held(&[]);
}

#[test]
fn a_vacuum_is_over_when_it_is_held_without_activities() {
    vacuums_are_over_when_held(&[("track_activities", "off")]);
}
