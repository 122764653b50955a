//! A server that the plan gives by its address: used with a password that is nowhere to be found,
//! and left as it was.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::{build_record, cached_build, is_root};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Place, processes_in, text, wait, wait_until};

pub const SECRET: &str = "geh3im!wort";

/// Somebody's MySQL, with the empty database `given`, and `busy` that holds a table of theirs.
pub struct Somebody {
    dir: TempDir,
    pub port: u16,
    server: Child,
}

impl Somebody {
    pub fn new(test: &str) -> Option<Self> {
        let build = cached_build(test, "mysql@5.7")?;
        let record: Value =
            serde_json::from_str(&build_record(&build.cache.join(&build.name)).unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let command = || {
            let mut command = Command::new(record["server"].as_str().unwrap());
            command
                .arg("--no-defaults")
                .arg(format!("--basedir={}", record["basedir"].as_str().unwrap()));
            command.arg(format!("--datadir={}", data.display()));
            if let Some(share) = record["share_dir"].as_str() {
                command.arg(format!("--lc-messages-dir={share}"));
            }
            if is_root() {
                command.arg("--user=root");
            }
            command.args(
                record["server_options"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|option| option.as_str().unwrap()),
            );
            command.envs(
                record["env"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(name, value)| (name, value.as_str().unwrap())),
            );
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(fs::File::create(dir.path().join("log")).unwrap());
            command
        };
        assert!(
            command()
                .arg("--initialize-insecure")
                .status()
                .unwrap()
                .success()
        );
        let init = dir.path().join("init.sql");
        let statements = [
            "create database given;",
            "create database busy;",
            "create table busy.precious (n int);",
            &format!("create user 'bench'@'127.0.0.1' identified by '{SECRET}';"),
            "grant all on given.* to 'bench'@'127.0.0.1';",
            "grant all on busy.* to 'bench'@'127.0.0.1';",
        ];
        fs::write(&init, statements.join("\n") + "\n").unwrap();
        let port = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let socket = dir.path().join("s.sock");
        let server = command()
            .args([
                "--bind-address=127.0.0.1",
                "--innodb-flush-log-at-trx-commit=0",
                &format!("--port={port}"),
            ])
            .args([
                format!("--socket={}", socket.display()),
                format!("--init-file={}", init.display()),
            ])
            .spawn()
            .unwrap();
        let somebody = Self { dir, port, server };
        wait_until("the server", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(somebody)
    }

    /// Files of a database's tables.
    pub fn tables(&self, database: &str) -> Vec<String> {
        let files = fs::read_dir(self.dir.path().join("data").join(database)).unwrap();
        let mut names: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name.ends_with(".frm"));
        names.sort();
        names
    }

    fn plan(&self, database: &str, password: &str) -> String {
        format!(
            "name = \"t\"\nworkload = \"insert-benchmark\"\ncells = [\"mysql@prod.as_is\"]\nwait = \
            \"100ms\"\n\
             steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]\n[sizes]\nrows = \
            \"20K\"\nwrite_rows = \"2K\"\nduration = \"1s\"\n\
             [server.prod]\ndsn = \"mysql://bench@127.0.0.1:{}/{database}\"\n{password}\n",
            self.port
        )
    }
}

impl Drop for Somebody {
    fn drop(&mut self) {
        // Ours to end: the test has started it.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Files below `dir` that hold the password, but the password's own.
fn leaks(dir: &Path, own: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(leaks(&path, own));
        } else if path != own
            && fs::read(&path)
                .unwrap()
                .windows(SECRET.len())
                .any(|window| window == SECRET.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

fn holds_secret(path: String) -> bool {
    fs::read(path)
        .unwrap_or_default()
        .windows(SECRET.len())
        .any(|window| window == SECRET.as_bytes())
}

#[test]
fn a_external_server_is_loaded_and_the_password_is_nowhere() {
    let Some(somebody) =
        Somebody::new("cli::external::a_external_server_is_loaded_and_the_password_is_nowhere")
    else {
        return;
    };
    let place = Place::new();
    let password = place.path("password");
    fs::write(&password, format!("{SECRET}\n")).unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(
        place.path("plan.toml"),
        somebody.plan(
            "given",
            &format!("password_file = \"{}\"", password.display()),
        ),
    )
    .unwrap();
    let output = place.run(&["run", "plan.toml"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("has mode 644") && stderr.contains("chmod 600"),
        "{stderr}"
    );
    assert!(!place.path("plimsoll-runs").exists());

    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let child = place.spawn(&["run", "plan.toml", "--seed", "3"]);
    wait_until("two processes", || processes_in(place.dir.path()).len() > 1);
    for pid in processes_in(place.dir.path()) {
        for part in ["cmdline", "environ"] {
            assert!(
                !holds_secret(format!("/proc/{pid}/{part}")),
                "{part} of {pid}"
            );
        }
    }
    let output = wait(child);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stdout.contains(SECRET) && !stderr.contains(SECRET));
    assert_eq!(leaks(place.dir.path(), &password), Vec::<PathBuf>::new());
    assert_eq!(place.steps_done().len(), 5);
    let events = fs::read_to_string(&place.event_files()[0]).unwrap();
    assert!(
        events.contains("\"session_tls\":\"off\"")
            && events.contains("left out: the server is not ours")
    );
    assert!(
        events.contains("no server process is known"),
        "its CPU is said to be unavailable"
    );
    assert_eq!(somebody.tables("given"), [""; 0]);
    assert_eq!(somebody.tables("busy"), ["precious.frm"]);
}

#[test]
fn a_password_of_the_environment_stays_with_the_program_and_a_foreign_table_is_untouched() {
    let test = "cli::external::a_password_of_the_environment_stays_with_the_program_and_a_foreign_table_is_untouched";
    let Some(somebody) = Somebody::new(test) else {
        return;
    };
    let place = Place::new();
    fs::write(
        place.path("plan.toml"),
        somebody.plan("busy", "password_env = \"PLIMSOLL_TEST_PASSWORD\""),
    )
    .unwrap();
    let output = place
        .command(&["run", "plan.toml"])
        .env("PLIMSOLL_TEST_PASSWORD", "falsch")
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("check the user in the dsn, and the password ([server.prod])"),
        "{stderr}"
    );

    // A wrapper of the binary would show a child's environment too late; the plan with the right
    // password runs long enough.
    fs::write(
        place.path("plan.toml"),
        somebody.plan("given", "password_env = \"PLIMSOLL_TEST_PASSWORD\""),
    )
    .unwrap();
    fs::remove_dir_all(place.path("plimsoll-runs")).unwrap();
    let mut command = place.command(&["run", "plan.toml"]);
    let child = command
        .env("PLIMSOLL_TEST_PASSWORD", SECRET)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let program = child.id();
    let trial = || {
        processes_in(place.dir.path())
            .into_iter()
            .find(|pid| *pid != program && is_trial(*pid))
    };
    wait_until("the trial", || trial().is_some());
    let trial = trial().unwrap();
    assert!(!holds_secret(format!("/proc/{trial}/environ")));
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        leaks(place.dir.path(), Path::new("")),
        Vec::<PathBuf>::new()
    );

    fs::write(
        place.path("plan.toml"),
        somebody.plan("busy", "password_env = \"PLIMSOLL_TEST_PASSWORD\""),
    )
    .unwrap();
    let output = place
        .command(&["run", "plan.toml"])
        .env("PLIMSOLL_TEST_PASSWORD", SECRET)
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains(
            "the database busy holds what is not ours (precious; there is no Plimsoll marker), and \
            nothing was touched"
        ),
        "{stderr}"
    );
    assert_eq!(somebody.tables("busy"), ["precious.frm"]);
}

/// Whether a process is the binary's `trial` by now, and no longer the fork that becomes it.
fn is_trial(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline"))
        .unwrap_or_default()
        .ends_with(b"trial\0")
}
