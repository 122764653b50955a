//! The one place where commands of children are made: none of them is given a password, and what is
//! only asked something has a limit.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Names of environment variables that hold passwords.
static SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps an environment variable from every child that is started from now on.
pub fn keep_from_children(variable: &str) {
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    if !secrets.iter().any(|known| known == variable) {
        secrets.push(variable.to_owned());
    }
}

/// The command of a child. It has our environment without what [`keep_from_children`] names.
pub fn child_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for variable in SECRETS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
    {
        command.env_remove(variable);
    }
    command
}

const POLL: Duration = Duration::from_millis(5);
/// What a program said before it ended is read by then.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// What a command prints and how it ends. One that has not ended within the limit is killed, and is
/// an error. What it leaves behind with its output open is not waited for beyond the limit.
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let deadline = Instant::now() + limit;
    let output = Reading::of(child.stdout.take());
    let errors = Reading::of(child.stderr.take());
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() < deadline => thread::sleep(POLL),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                let why = format!("no answer within {} s", limit.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
    };
    let deadline = last_words(deadline, Instant::now());
    Ok(Output {
        status,
        stdout: output.until(deadline),
        stderr: errors.until(deadline),
    })
}

/// Until when what a program said is read that has ended: all of it, however busy the machine is.
/// Behind that only children of its own may still hold the pipes.
fn last_words(deadline: Instant, ended: Instant) -> Instant {
    deadline.max(ended + LAST_WORDS_LIMIT)
}

/// What comes out of a pipe, read beside waiting: a full one would keep the program from ending.
struct Reading {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Reading {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let read = bytes.clone();
        let reader = thread::spawn(move || {
            let mut chunk = [0; 8192];
            let Some(mut pipe) = pipe else { return };
            loop {
                let count = match pipe.read(&mut chunk) {
                    Ok(count @ 1..) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(0) | Err(_) => return,
                };
                let mut bytes = read.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.extend_from_slice(&chunk[..count]);
            }
        });
        Self { bytes, reader }
    }

    /// All of it, or what has come by then.
    fn until(self, deadline: Instant) -> Vec<u8> {
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        std::mem::take(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_an_error_and_gone() {
        let mut endless = child_command("/bin/sh");
        endless.args(["-c", "echo $$; exec sleep 600"]);
        let error = output_within(&mut endless, Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        let mut leaves = child_command("/bin/sh");
        leaves.args(["-c", "sleep 600 & echo $!; exit 0"]);
        let said = output_within(&mut leaves, Duration::from_millis(300)).unwrap();
        let left = String::from_utf8(said.stdout).unwrap();
        let ended = child_command("kill").arg(left.trim()).status().unwrap();
        assert!(said.status.success() && ended.success(), "{left}");

        // More than a pipe holds, to both.
        let mut wordy = child_command("/bin/sh");
        wordy.args([
            "-c",
            "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3",
        ]);
        let said = output_within(&mut wordy, Duration::from_secs(60)).unwrap();
        let lengths = (said.stdout.len(), said.stderr.len());
        assert_eq!((lengths, said.status.code()), ((300_000, 300_000), Some(3)));
    }

    #[test]
    fn a_variable_that_is_kept_reaches_no_child() {
        const VARIABLE: &str = "PLIMSOLL_TEST_KEPT";
        if std::env::var_os(VARIABLE).is_none() {
            // In a process that has the variable: this test again.
            let test = "process::command::tests::a_variable_that_is_kept_reaches_no_child";
            let again = Command::new(std::env::current_exe().unwrap())
                .args([test, "--exact"])
                .env(VARIABLE, "kept")
                .output()
                .unwrap();
            let said = String::from_utf8(again.stdout).unwrap();
            assert!(
                again.status.success() && said.contains("1 passed"),
                "{said}"
            );
            return;
        }
        let told = || {
            let output = child_command("/bin/sh")
                .args(["-c", "echo $PLIMSOLL_TEST_KEPT"])
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        assert_eq!(told(), "kept");
        keep_from_children(VARIABLE);
        keep_from_children(VARIABLE);
        assert_eq!(told(), "");
    }

    /// `read_to_end`, which was here before, goes on after a signal.
    #[test]
    fn a_read_that_a_signal_interrupts_loses_nothing() {
        struct Interrupted<'a>(bool, &'a [u8]);
        impl Read for Interrupted<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                match std::mem::replace(&mut self.0, true) {
                    false => Err(io::ErrorKind::Interrupted.into()),
                    true => self.1.read(into),
                }
            }
        }
        let reading = Reading::of(Some(Interrupted(false, b"PostgreSQL 18.6\n")));
        let bytes = reading.until(Instant::now() + Duration::from_secs(5));
        assert_eq!(String::from_utf8(bytes).unwrap(), "PostgreSQL 18.6\n");
    }

    /// The reader comes late, as on a machine that is busy: what the program said is in the pipe.
    #[test]
    fn what_was_said_before_the_limit_is_read_behind_it() {
        struct Late<'a>(bool, &'a [u8]);
        impl Read for Late<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                if !std::mem::replace(&mut self.0, true) {
                    thread::sleep(Duration::from_millis(100));
                }
                self.1.read(into)
            }
        }
        let ended = Instant::now();
        let reading = Reading::of(Some(Late(false, b"PostgreSQL 18.6\n")));
        let bytes = reading.until(last_words(ended, Instant::now()));
        assert_eq!(String::from_utf8(bytes).unwrap(), "PostgreSQL 18.6\n");
    }
}
