//! Servers external by address for the tests: where they are, and certificates.

// Each test binary uses a part of this.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::{ExternalServer, PasswordSource, ServerPlace, TlsMode};
use plimsoll_engine::{
    External, Password, Server, SessionClient, Settings, StartOptions, external_engine,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// In nothing that a campaign keeps.
pub const SECRET: &str = "geh3im!wort";

/// The database that the tests give away.
pub const DATABASE: &str = "not_ours";

/// A server on loopback, with the right password.
pub fn external(engine: EngineName, port: u16) -> External {
    let place = ServerPlace::Tcp {
        host: "127.0.0.1".to_owned(),
        port,
    };
    let server = ExternalServer {
        label: "prod".to_owned(),
        engine,
        place,
        user: "bench".to_owned(),
        database: DATABASE.to_owned(),
        password: PasswordSource::None,
        tls: TlsMode::Off,
        tls_ca: None,
    };
    External {
        server,
        password: Some(Password::new(SECRET.to_owned())),
        campaign: "20261121-test".to_owned(),
        settings: Settings::new(),
    }
}

/// Starts to use it. The error is free of the password.
pub fn enter(external: &External) -> Result<Box<dyn Server>, String> {
    enter_through(SessionClient::default(), external)
}

/// The same, and its sessions through this client.
pub fn enter_through(
    client: SessionClient,
    external: &External,
) -> Result<Box<dyn Server>, String> {
    let nowhere = StartOptions {
        client,
        ..StartOptions::new("/does/not/exist", Settings::new())
    };
    let started = external_engine(external.clone()).and_then(|engine| engine.start(&nowhere));
    started
        .map_err(|error| error.message)
        .inspect_err(|error| assert!(!error.contains(SECRET), "{error}"))
}

/// Why it cannot be used.
pub fn refused(external: &External) -> String {
    enter(external).map(|_| ()).unwrap_err()
}

/// Ends the use of a server while the process `pid` of it is stopped: it takes what it is sent, and
/// answers nothing. Returns the error. A use that waits for the answer nevertheless gets it in the
/// end, and is not an error.
pub fn stop_in_silence(server: Box<dyn Server>, pid: u32) -> Option<String> {
    let pid = Pid::from_raw(pid as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let (done, wait) = mpsc::channel::<()>();
    let waker = thread::spawn(move || {
        let _ = wait.recv_timeout(Duration::from_secs(30));
        kill_process(pid, Signal::CONT).unwrap();
    });
    let error = server.stop(Duration::from_millis(100)).err();
    drop(done);
    waker.join().unwrap();
    error.map(|error| error.message)
}

/// A certificate for `localhost` and 127.0.0.1, and of who signed it; keys in the form that old
/// servers read too.
pub struct Certificates {
    dir: TempDir,
}

impl Certificates {
    /// `None` where there is no `openssl` command.
    pub fn new(test: &str) -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            plimsoll_testkit::skip(
                &format!("engine::{test}"),
                "there is no openssl command; install it",
            );
            return None;
        }
        let certificates = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::write(
            certificates.path("names"),
            "subjectAltName=DNS:localhost,IP:127.0.0.1\n",
        )
        .unwrap();
        for line in [
            "req -x509 -newkey rsa:2048 -nodes -keyout ca-key -out ca.pem -days 30 -subj \
            /CN=test-ca",
            "req -newkey rsa:2048 -nodes -keyout key -out request -subj /CN=test-server",
            "x509 -req -in request -CA ca.pem -CAkey ca-key -CAcreateserial -days 30 -out \
            server-cert.pem -extfile names",
            "rsa -in key -traditional -out server-key.pem",
        ] {
            let done = Command::new("openssl")
                .args(line.split(' '))
                .current_dir(certificates.dir.path())
                .output()
                .unwrap();
            assert!(
                done.status.success(),
                "{line}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
        }
        Some(certificates)
    }

    /// `ca.pem`, `server-cert.pem`, `server-key.pem`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Copies one into a server's folder.
    pub fn copy(&self, name: &str, to: &Path) {
        fs::copy(self.path(name), to).unwrap();
    }

    /// Asks for TLS, and for a certificate signed by ours.
    pub fn demand(&self, external: &External) -> External {
        let mut external = external.clone();
        external.server.tls = TlsMode::VerifyFull;
        external.server.tls_ca = Some(self.path("ca.pem").to_str().unwrap().to_owned());
        external
    }
}

/// Whether any file below `dir` holds `text`.
pub fn holds(dir: &Path, text: &str) -> bool {
    fs::read_dir(dir).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            holds(&path, text)
        } else {
            String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(text)
        }
    })
}
