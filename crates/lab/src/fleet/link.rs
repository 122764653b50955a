//! The desk's end of a connection to `plimsoll work`.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::hosts::Host;
use super::ssh::{read_in_thread, ssh, why};
use super::transfer::Incoming;
use super::wire::{BEAT, DeskLine, Hello, WorkLine};

/// A login takes no longer.
const LOGIN_LIMIT: Duration = Duration::from_secs(20);
/// What is asked to end has this long.
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);
/// No line of `work` is longer; its greeting names every build.
const LONGEST_LINE: u64 = 16 << 20;

/// A host that is connected.
pub(super) struct Link {
    host: Host,
    patience: Duration,
    child: Child,
    input: Arc<Mutex<ChildStdin>>,
    came: Receiver<Came>,
    heard: Arc<Heard>,
    said: Option<JoinHandle<String>>,
    /// When the connection was asked for, and how long the greeting took.
    pub greeted_after: Duration,
    /// Who is there.
    pub hello: Hello,
}

/// What comes from a host.
pub(super) enum Came {
    Line(Box<WorkLine>),
    /// A sealed trial, unpacked beside the campaign's, or why it could not be.
    Trial {
        folder: String,
        incoming: Result<Incoming, String>,
    },
    /// Nothing for now.
    Nothing,
}

/// When something came last.
struct Heard {
    begin: Instant,
    last_ms: AtomicU64,
}

impl Heard {
    fn now(&self) {
        let ms = self.begin.elapsed().as_millis() as u64;
        self.last_ms.store(ms, Ordering::Relaxed);
    }

    fn silence(&self) -> Duration {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        self.begin.elapsed().saturating_sub(last)
    }
}

/// What is read counts as said, be it a line or a part of a long stream.
struct Listening {
    output: ChildStdout,
    heard: Arc<Heard>,
}

impl Read for Listening {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.output.read(buffer);
        self.heard.now();
        read
    }
}

impl Link {
    /// Connects to a host, where `program` is its `plimsoll`. Trials that come are unpacked below
    /// `campaign`.
    ///
    /// # Errors
    /// Why there is no `work`: what ssh said, with what to do about it.
    pub fn open(
        host: &Host,
        program: &str,
        patience: Duration,
        campaign: Option<PathBuf>,
    ) -> Result<Self, String> {
        let command: Vec<OsString> = [program, "work", "--dir"]
            .into_iter()
            .map(OsString::from)
            .chain([host.dir.clone().into_os_string()])
            .collect();
        Self::over(host, ssh(host, &command), patience, campaign)
    }

    /// The same over any command that answers as `work` does.
    fn over(
        host: &Host,
        mut command: Command,
        patience: Duration,
        campaign: Option<PathBuf>,
    ) -> Result<Self, String> {
        let asked = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("failed to start ssh: {error}; install it"))?;
        let said = child.stderr.take();
        let said = Some(read_in_thread(said));
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("ssh has no pipes".into());
        };
        let heard = Arc::new(Heard {
            begin: Instant::now(),
            last_ms: AtomicU64::new(0),
        });
        let input = Arc::new(Mutex::new(input));
        let of_link = Arc::downgrade(&input);
        std::thread::spawn(move || say_alive(&of_link));
        let (sender, came) = channel();
        let from = host.name.clone();
        let listening = Listening {
            output,
            heard: heard.clone(),
        };
        std::thread::spawn(move || read_all(listening, &sender, campaign, &from));
        let mut link = Self {
            host: host.clone(),
            patience: patience.max(LOGIN_LIMIT),
            child,
            input,
            came,
            heard,
            said,
            greeted_after: Duration::ZERO,
            hello: Hello::nobody(),
        };
        link.hello = link.greeting(asked + LOGIN_LIMIT.max(patience))?;
        link.greeted_after = asked.elapsed();
        link.patience = patience;
        Ok(link)
    }

    /// Neither beats nor noise greet: they do not move its deadline.
    fn greeting(&mut self, deadline: Instant) -> Result<Hello, String> {
        while Instant::now() < deadline {
            match self.next()? {
                Came::Line(line) => match *line {
                    WorkLine::Hello(hello) => return Ok(hello),
                    WorkLine::Refused { reason } => return Err(reason),
                    _ => {}
                },
                Came::Trial { .. } | Came::Nothing => {}
            }
        }
        Err("it answers, but not as `plimsoll work`: look at what its shell prints at login".into())
    }

    /// Says a line. A connection that is gone shows by its end or by silence.
    pub fn say(&self, line: &DeskLine) {
        if let Ok(text) = serde_json::to_string(line) {
            write_line(&self.input, &text);
        }
    }

    /// What comes next, waited for a moment.
    ///
    /// # Errors
    /// When the host is lost: why.
    pub fn next(&mut self) -> Result<Came, String> {
        match self.came.recv_timeout(POLL) {
            Ok(came) => Ok(came),
            Err(RecvTimeoutError::Timeout) if self.heard.silence() > self.patience => Err(format!(
                "it has said nothing for {} s",
                self.patience.as_secs()
            )),
            Err(RecvTimeoutError::Timeout) => Ok(Came::Nothing),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// Why the connection has ended.
    fn ended(&mut self) -> String {
        let code = match wait(&mut self.child, END_LIMIT) {
            Some(status) => status.code(),
            None => {
                // Its errors end with it: without this the reading of them would not.
                let _ = self.child.kill();
                None
            }
        };
        let said = self.said.take().and_then(|thread| thread.join().ok());
        why(&self.host, code, &said.unwrap_or_default())
    }

    /// Lets the host go: no more blocks.
    pub fn end(mut self) {
        self.say(&DeskLine::End);
        let deadline = Instant::now() + END_LIMIT;
        while Instant::now() < deadline && self.next().is_ok() {}
    }
}

impl Drop for Link {
    /// Whatever runs there sees the end of its input.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn wait(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            _ => return None,
        }
    }
}

/// Tells the host that the desk lives, as long as somebody has the connection.
fn say_alive(input: &Weak<Mutex<ChildStdin>>) {
    let beat = serde_json::to_string(&DeskLine::Beat).unwrap_or_default();
    loop {
        std::thread::sleep(BEAT);
        match input.upgrade() {
            Some(input) => write_line(&input, &beat),
            None => return,
        }
    }
}

fn write_line(input: &Mutex<ChildStdin>, text: &str) {
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(input, "{text}");
}

/// Reads lines and streams until the host's output ends. Beats are not passed on.
fn read_all(output: Listening, sender: &Sender<Came>, campaign: Option<PathBuf>, from: &str) {
    let mut output = BufReader::with_capacity(64 << 10, output);
    loop {
        let mut text = Vec::new();
        match (&mut output)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut text)
        {
            Ok(read) if read > 0 && text.ends_with(b"\n") => {}
            _ => return,
        }
        let came = match serde_json::from_slice(&text) {
            // A login may print something first.
            Ok(WorkLine::Beat) | Err(_) => continue,
            Ok(WorkLine::Sealed { folder, bytes }) => {
                let mut stream = (&mut output).take(bytes);
                let incoming = match &campaign {
                    Some(campaign) => Incoming::unpack(campaign, &folder, from, &mut stream)
                        .map_err(|error| error.to_string()),
                    None => return,
                };
                Came::Trial { folder, incoming }
            }
            Ok(line) => Came::Line(Box::new(line)),
        };
        if sender.send(came).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::process::child_command;

    use super::*;

    fn open(script: &str) -> (Result<Link, String>, Duration) {
        let host = Host {
            name: "h1".into(),
            ssh: "h1".into(),
            class: None,
            dir: "/p".into(),
            ssh_config: None,
        };
        let mut command = child_command("sh");
        command.args(["-c", script]);
        let begun = Instant::now();
        let link = Link::over(&host, command, Duration::from_secs(3), None);
        (link, begun.elapsed())
    }

    #[test]
    fn a_host_that_closes_its_output_and_lives_does_not_hold_the_desk() {
        let (link, took) = open("exec >&-; exec sleep 60");
        assert!(link.is_err());
        assert!(took < Duration::from_secs(20), "{took:?}");
    }

    #[test]
    fn a_host_that_says_anything_but_a_greeting_is_given_up() {
        let (link, took) = open("while sleep 1; do echo noise; done");
        assert!(link.err().unwrap().contains("not as `plimsoll work`"));
        assert!(took < LOGIN_LIMIT + Duration::from_secs(10), "{took:?}");
    }
}
