//! The desk's end of a connection to `plimsoll work`.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::hosts::Host;
use super::ssh::{HostInput, Piped, Words, end_within, ssh, start_piped, why};
use super::transfer::{Incoming, MOST_BYTES};
use super::wire::{BEAT, DeskLine, Hello, WorkLine};

/// A login takes no longer.
const LOGIN_LIMIT: Duration = Duration::from_secs(20);
/// What is asked to end has this long.
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);
/// Why the desk has let go of a host by itself.
pub(super) const STOPPED: &str = "the desk was stopped";
/// No line of `work` is longer; its greeting names every build.
const LONGEST_LINE: u64 = 1 << 20;
/// So many lines wait for the desk; a host that says more waits itself.
const MOST_WAITING: usize = 16;

/// A host that is connected.
pub(super) struct Link {
    host: Host,
    patience: Duration,
    child: Child,
    input: HostInput,
    came: Receiver<Came>,
    heard: Arc<Heard>,
    said: Option<Words>,
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
    /// What no `work` says: nothing behind it is read.
    Nonsense(String),
    /// Nothing for now.
    Nothing,
}

/// Why there is no connection any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// The host or the way to it is lost: it may come back.
    Lost(String),
    /// The host says no, or talks nonsense: asking again would not help.
    Refused(String),
}

impl Gone {
    /// In words, after "because".
    pub fn reason(self) -> String {
        match self {
            Self::Lost(reason) | Self::Refused(reason) => reason,
        }
    }
}

/// When something came last.
struct Heard {
    begin: Instant,
    last_ms: AtomicU64,
    /// Whether a trial is coming right now.
    is_receiving: AtomicBool,
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
    /// Why there is no `work`: what ssh said, with what to do about it; [`STOPPED`] if `is_stopped`
    /// says so before it has greeted.
    pub fn open(
        host: &Host,
        program: &str,
        patience: Duration,
        campaign: Option<PathBuf>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, String> {
        let command: Vec<OsString> = [program, "work", "--dir"]
            .into_iter()
            .map(OsString::from)
            .chain([host.dir.clone().into_os_string()])
            .collect();
        Self::over(host, ssh(host, &command), patience, campaign, is_stopped)
    }

    /// The same over any command that answers as `work` does.
    pub(super) fn over(
        host: &Host,
        command: Command,
        patience: Duration,
        campaign: Option<PathBuf>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, String> {
        let asked = Instant::now();
        let Piped {
            child,
            input,
            output,
            said,
        } = start_piped(command)?;
        let said = Some(said);
        let heard = Arc::new(Heard {
            begin: Instant::now(),
            last_ms: AtomicU64::new(0),
            is_receiving: AtomicBool::new(false),
        });
        let beat = serde_json::to_string(&DeskLine::Beat).unwrap_or_default();
        let input = HostInput::of(input, beat, BEAT);
        let (sender, came) = sync_channel(MOST_WAITING);
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
        link.hello = link.greeting(asked + LOGIN_LIMIT.max(patience), is_stopped)?;
        link.greeted_after = asked.elapsed();
        link.patience = patience;
        Ok(link)
    }

    /// Neither beats nor noise greet: they do not move its deadline.
    fn greeting(
        &mut self,
        deadline: Instant,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Hello, String> {
        while Instant::now() < deadline {
            if is_stopped() {
                return Err(STOPPED.to_owned());
            }
            if let Came::Line(line) = self.next().map_err(Gone::reason)?
                && let WorkLine::Hello(hello) = *line
            {
                return Ok(hello);
            }
        }
        Err("it answers, but not as `plimsoll work`: look at what its shell prints at login".into())
    }

    /// Says a line. A connection that is gone shows by its end or by silence.
    pub fn say(&self, line: &DeskLine) {
        if let Ok(text) = serde_json::to_string(line) {
            self.input.say(&text);
        }
    }

    /// What comes next, waited for a moment.
    ///
    /// # Errors
    /// When the host is lost or says no: why.
    pub fn next(&mut self) -> Result<Came, Gone> {
        match self.came.recv_timeout(POLL) {
            Ok(Came::Line(line)) => match *line {
                WorkLine::Refused { reason } => Err(Gone::Refused(reason)),
                line => Ok(Came::Line(Box::new(line))),
            },
            Ok(Came::Nonsense(what)) => Err(Gone::Refused(format!(
                "{what}, which no plimsoll does: look at what runs there"
            ))),
            Ok(came) => Ok(came),
            Err(RecvTimeoutError::Timeout) if self.heard.silence() > self.patience => {
                let seconds = self.patience.as_secs();
                Err(Gone::Lost(format!("it has said nothing for {seconds} s")))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Came::Nothing),
            Err(RecvTimeoutError::Disconnected) => Err(Gone::Lost(self.ended())),
        }
    }

    /// Whether a trial is coming right now, which takes as long as the network does.
    pub fn is_receiving(&self) -> bool {
        self.heard.is_receiving.load(Ordering::Relaxed)
    }

    /// Why the connection has ended.
    fn ended(&mut self) -> String {
        let code = match end_within(&mut self.child, END_LIMIT) {
            Some(status) => status.code(),
            None => {
                let _ = self.child.kill();
                None
            }
        };
        let said = self.said.take().map(Words::said);
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

/// Reads lines and streams until the host's output ends, or says what no `work` says. Beats are not
/// passed on.
fn read_all(output: Listening, sender: &SyncSender<Came>, campaign: Option<PathBuf>, from: &str) {
    let heard = output.heard.clone();
    let mut output = BufReader::with_capacity(64 << 10, output);
    while let Some(came) = read_next(&mut output, &heard, campaign.as_deref(), from) {
        let is_last = matches!(came, Came::Nonsense(_));
        if sender.send(came).is_err() || is_last {
            return;
        }
    }
}

/// What comes next; none at the end of the output.
fn read_next(
    output: &mut impl BufRead,
    heard: &Heard,
    campaign: Option<&Path>,
    from: &str,
) -> Option<Came> {
    loop {
        let mut text = Vec::new();
        let mut line = (&mut *output).take(LONGEST_LINE);
        let read = line.read_until(b'\n', &mut text);
        if !text.ends_with(b"\n") {
            let is_too_long = read.is_ok() && line.limit() == 0;
            let what = || format!("it says a line of more than {} MiB", LONGEST_LINE >> 20);
            return is_too_long.then(|| Came::Nonsense(what()));
        }
        match serde_json::from_slice(&text) {
            // A login may print something first.
            Ok(WorkLine::Beat) | Err(_) => {}
            Ok(WorkLine::Sealed { folder, bytes }) => {
                let campaign = campaign?;
                if bytes > MOST_BYTES {
                    return Some(Came::Nonsense(format!(
                        "it announces a trial of {} GiB",
                        bytes >> 30
                    )));
                }
                let mut stream = (&mut *output).take(bytes);
                heard.is_receiving.store(true, Ordering::Relaxed);
                let incoming = Incoming::unpack(campaign, &folder, from, &mut stream)
                    .map_err(|error| error.to_string());
                heard.is_receiving.store(false, Ordering::Relaxed);
                return Some(Came::Trial { folder, incoming });
            }
            Ok(line) => return Some(Came::Line(Box::new(line))),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use plimsoll_engine::process::child_command;

    use super::*;

    pub(crate) fn host() -> Host {
        Host {
            name: "h1".into(),
            ssh: "h1".into(),
            class: None,
            dir: "/p".into(),
            ssh_config: None,
        }
    }

    /// A host that is a shell's script.
    pub(crate) fn scripted(script: &str, campaign: Option<PathBuf>) -> Result<Link, String> {
        let mut command = child_command("sh");
        command.args(["-c", script]);
        Link::over(&host(), command, Duration::from_secs(3), campaign, &|| {
            false
        })
    }

    /// A script's greeting.
    pub(crate) fn greeting() -> String {
        let hello = serde_json::to_string(&WorkLine::Hello(Hello::nobody())).unwrap();
        format!("echo '{hello}'; ")
    }

    fn open(script: &str) -> (Result<Link, String>, Duration) {
        let begun = Instant::now();
        (scripted(script, None), begun.elapsed())
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

    /// As the child of a ProxyCommand does, or a master of several connections.
    #[test]
    fn a_child_of_ssh_that_holds_its_standard_error_does_not_hold_the_desk() {
        let script = "sleep 30 </dev/null >/dev/null & echo $! >&2; exit 255";
        let (link, took) = open(script);
        let reason = link.err().unwrap();
        let pid = reason.strip_prefix("ssh failed: ").unwrap();
        assert!(child_command("kill").arg(pid).status().unwrap().success());
        assert!(took < Duration::from_secs(15), "{took:?}");
    }

    #[test]
    fn a_login_that_hangs_hears_ctrl_c() {
        let mut command = child_command("sh");
        command.args(["-c", "exec sleep 60"]);
        let begun = Instant::now();
        let is_stopped = || begun.elapsed() > Duration::from_millis(200);
        let patience = Duration::from_secs(3);
        let link = Link::over(&host(), command, patience, None, &is_stopped);
        assert_eq!(link.err().unwrap(), STOPPED);
        assert!(begun.elapsed() < LOGIN_LIMIT / 2, "{:?}", begun.elapsed());
    }

    /// What the desk keeps of a host that talks without end.
    fn nonsense(talk: &str) -> String {
        let place = tempfile::tempdir().unwrap();
        let script = greeting() + talk;
        let mut link = scripted(&script, Some(place.path().to_owned())).unwrap();
        let gone = loop {
            match link.next() {
                Ok(_) => {}
                Err(gone) => break gone,
            }
        };
        let trials = std::fs::read_dir(place.path().join("trials"));
        assert_eq!(
            trials.map_or(0, Iterator::count),
            0,
            "nothing of it is kept"
        );
        assert!(matches!(gone, Gone::Refused(_)), "{gone:?}");
        gone.reason()
    }

    #[test]
    fn a_host_that_sends_without_end_fills_neither_memory_nor_disk() {
        let sealed = r#"echo '{"sealed":{"folder":"1-a-a1","bytes":99999999999999}}'; "#;
        let said = nonsense(&format!("{sealed} exec cat /dev/zero"));
        assert!(said.contains("announces a trial of 93132 GiB"), "{said}");
        let said = nonsense("exec cat /dev/zero");
        assert!(said.contains("a line of more than 1 MiB"), "{said}");
    }

    #[test]
    fn a_host_that_says_more_than_the_desk_reads_waits() {
        let script = greeting() + "while :; do echo '\"ready\"'; done";
        let mut link = scripted(&script, None).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        // Pipes and channel are full: the script stands still.
        let mut waiting = 0;
        while let Ok(came) = link.came.try_recv() {
            assert!(matches!(came, Came::Line(_)));
            waiting += 1;
            if waiting > MOST_WAITING {
                break;
            }
        }
        assert!(waiting >= MOST_WAITING, "{waiting}");
        link.child.kill().unwrap();
        let lines = std::iter::from_fn(|| link.next().ok()).count();
        // What 64 KiB of a pipe and of a buffer hold of lines of 8 bytes, and not megabytes.
        assert!(lines < 40_000, "{lines}");
    }
}
