//! The system's `ssh`, which knows the user's keys, agents and jump hosts.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_engine::process::child_command;
use plimsoll_store::shell_word;
use zeroize::Zeroizing;

use super::hosts::Host;
use crate::error::LabError;

/// Never asks, never believes a key that is not known, notices within 8 s that nobody answers, and
/// leaves no master behind that others use.
const OPTIONS: [&str; 6] = [
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "ServerAliveInterval=2",
    "ServerAliveCountMax=3",
    "ConnectTimeout=5",
    "ControlMaster=no",
];
/// ssh's own failures have this exit code.
const SSH_FAILED: i32 = 255;
/// A shell that does not find the program has this one.
const NOT_FOUND: i32 = 127;
/// So many bytes of what ssh says are kept.
const MOST_WORDS: usize = 64 << 10;
/// No answer of `plimsoll` is longer.
const MOST_ANSWER: usize = 1 << 20;
/// What ssh said before it ended is read by then.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);

/// `ssh` to a host with a command for its shell, each word quoted, in a process group of its own:
/// Ctrl-C reaches the desk alone.
pub(crate) fn ssh(host: &Host, command: &[OsString]) -> Command {
    let mut ssh = bare(host);
    ssh.args(OPTIONS.iter().flat_map(|option| ["-o", option]));
    let words = command
        .iter()
        .map(|word| shell_word(&word.to_string_lossy()));
    ssh.arg(&host.ssh).arg(words.collect::<Vec<_>>().join(" "));
    ssh.process_group(0);
    ssh
}

/// The same with a line for its shell.
pub(super) fn ssh_line(host: &Host, line: &str) -> Command {
    let mut ssh = bare(host);
    ssh.args(OPTIONS.iter().flat_map(|option| ["-o", option]));
    ssh.arg(&host.ssh).arg(line).process_group(0);
    ssh
}

fn bare(host: &Host) -> Command {
    let mut ssh = child_command("ssh");
    if let Some(config) = &host.ssh_config {
        ssh.arg("-F").arg(config);
    }
    ssh.arg("-T");
    ssh
}

/// Lets ssh show a host's key, and ask whether it is the right one, at the user's terminal. Nothing
/// else runs there.
///
/// # Errors
/// When ssh cannot be started, or the key is not believed.
pub fn ask_for_host_key(host: &Host) -> Result<(), LabError> {
    let status = bare(host)
        .args(["-o", "StrictHostKeyChecking=ask", "-o", "ConnectTimeout=5"])
        .arg(&host.ssh)
        .arg("true")
        .status()
        .map_err(|error| LabError::io("failed to start ssh; install it", error))?;
    match status.success() {
        true => Ok(()),
        false => Err(LabError::Machine(format!(
            "{}: ssh did not log in; try `{}` yourself first",
            host.name,
            by_hand(host)
        ))),
    }
}

/// What a user types to log in as this program does.
fn by_hand(host: &Host) -> String {
    match &host.ssh_config {
        None => format!("ssh {}", host.ssh),
        Some(config) => format!(
            "ssh -F {} {}",
            shell_word(&config.to_string_lossy()),
            host.ssh
        ),
    }
}

/// The command that removes a host's old key, as far as ssh said where it is and under which name:
/// an alias of a configuration is not the name there.
fn forget_key(host: &Host, said: &str) -> String {
    let between = |begin: &str, end: &str| {
        let rest = said.split_once(begin)?.1;
        Some(rest.split_once(end)?.0)
    };
    let name = between("Host key for ", " has changed");
    let name = name.unwrap_or_else(|| host.ssh.rsplit('@').next().unwrap_or(&host.ssh));
    let offending = said
        .lines()
        .find_map(|line| line.strip_prefix("Offending "));
    let place = offending.and_then(|line| line.split_once(" key in ")?.1.rsplit_once(':'));
    let file = place.map_or_else(String::new, |(file, _)| format!("-f {} ", shell_word(file)));
    format!("ssh-keygen {file}-R {}", shell_word(name))
}

/// Why ssh to a host ended: what it said last, with what to do about it.
pub(crate) fn why(host: &Host, code: Option<i32>, said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let has = |what: &str| said.contains(what);
    let remedy = match code {
        Some(SSH_FAILED) if has("REMOTE HOST IDENTIFICATION HAS CHANGED") => {
            return format!(
                "the host's key is not the one that ssh knows: find out why, then remove the old \
                one with `{}`",
                forget_key(host, said)
            );
        }
        Some(SSH_FAILED) if has("Host key verification failed") => {
            return format!(
                "ssh does not know the host's key: look at it with `{}`",
                by_hand(host)
            );
        }
        Some(SSH_FAILED) if has("Permission denied") => {
            return format!("the host takes none of your keys: try `{}`", by_hand(host));
        }
        Some(NOT_FOUND) => {
            return format!(
                "this version of plimsoll is not there: `plimsoll host push {}` copies it",
                host.name
            );
        }
        Some(SSH_FAILED) => "ssh failed",
        Some(_) => "it ended",
        None => "ssh was killed",
    };
    match lines().next_back() {
        Some(last) => format!("{remedy}: {last}"),
        None => remedy.to_owned(),
    }
}

/// Runs a command on a host to its end, without input, and gives what it wrote, which has at most
/// [`MOST_ANSWER`] bytes.
///
/// # Errors
/// What ssh said, with what to do about it; that the host did not end, or did not stop talking.
pub(super) fn run(host: &Host, mut command: Command, limit: Duration) -> Result<String, String> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("failed to start ssh: {error}; install it"))?;
    let said = Words::of(child.stderr.take());
    let answer = Words::at_most(MOST_ANSWER, child.stdout.take());
    let too_much = || {
        format!(
            "it answers with more than {} MiB, which no plimsoll does: look at what its shell \
            prints at login",
            MOST_ANSWER >> 20
        )
    };
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if answer.is_cut() => break Err(too_much()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            _ => {
                let seconds = limit.as_secs();
                break Err(format!(
                    "it has not answered within {seconds} s: try `{}`",
                    by_hand(host)
                ));
            }
        }
    };
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    match ended?.code() {
        Some(0) => {
            // What was in the pipe when it ended is read by then, and only then is it known whether
            // that was too much.
            let (text, is_cut) = answer.said_by(deadline);
            match is_cut {
                true => Err(too_much()),
                false => Ok(text),
            }
        }
        code => Err(why(host, code, &said.said())),
    }
}

/// What a program on a host is talked to by.
pub(crate) struct Piped {
    pub child: Child,
    pub input: ChildStdin,
    pub output: ChildStdout,
    pub said: Words,
}

/// Starts a command that goes to a host, with its input and its outputs as pipes.
pub(crate) fn start_piped(mut command: Command) -> Result<Piped, String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("failed to start ssh: {error}; install it"))?;
    let said = Words::of(child.stderr.take());
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("ssh has no pipes".into());
    };
    Ok(Piped {
        child,
        input,
        output,
        said,
    })
}

/// The input of a program on a host. Beats on it show that somebody is there, until this is dropped.
pub(crate) struct HostInput(Arc<Mutex<ChildStdin>>);

impl HostInput {
    /// Says the line `beat` every `period`, first after one.
    pub fn of(input: ChildStdin, beat: String, period: Duration) -> Self {
        let input = Arc::new(Mutex::new(input));
        let of_beats = Arc::downgrade(&input);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(period);
                match of_beats.upgrade() {
                    Some(input) => Self(input).say(&beat),
                    None => return,
                }
            }
        });
        Self(input)
    }

    /// Says a line, which may hold a password. A host that is gone shows by its end or by silence.
    pub fn say(&self, text: &str) {
        let mut input = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // As one write: a line is not cut in two packets.
        let line = Zeroizing::new(format!("{text}\n"));
        let _ = input.write_all(line.as_bytes());
    }
}

/// The end of a child, waited for as long as `limit`.
pub(crate) fn end_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            _ => return None,
        }
    }
}

/// What ssh says, read beside it to the end: the beginning is kept.
pub(crate) struct Words {
    text: Arc<Mutex<Vec<u8>>>,
    is_cut: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl Words {
    pub fn of(from: Option<impl Read + Send + 'static>) -> Self {
        Self::at_most(MOST_WORDS, from)
    }

    /// The same, of which so many bytes are kept.
    fn at_most(most: usize, from: Option<impl Read + Send + 'static>) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let is_cut = Arc::new(AtomicBool::new(false));
        let (read, cut) = (text.clone(), is_cut.clone());
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            let Some(mut from) = from else { return };
            loop {
                let bytes = match from.read(&mut chunk) {
                    Ok(bytes @ 1..) => bytes,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Ok(0) | Err(_) => return,
                };
                let mut text = read.lock().unwrap_or_else(PoisonError::into_inner);
                let room = most.saturating_sub(text.len());
                text.extend_from_slice(&chunk[..bytes.min(room)]);
                cut.fetch_or(bytes > room, Ordering::Relaxed);
            }
        });
        Self {
            text,
            is_cut,
            reader,
        }
    }

    /// Whether there was more than is kept.
    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// All of it, when ssh has ended. What it has started, such as a ProxyCommand, may hold its
    /// standard error for as long as it likes: that is not waited for.
    pub fn said(self) -> String {
        self.said_by(Instant::now()).0
    }

    /// The same, read until then at least, and whether there was more than is kept.
    fn said_by(self, deadline: Instant) -> (String, bool) {
        let deadline = deadline.max(Instant::now() + LAST_WORDS_LIMIT);
        while !self.reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        (String::from_utf8_lossy(&text).into_owned(), self.is_cut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            name: "h1".into(),
            ssh: "u@h1.lab".into(),
            class: None,
            dir: "/it's here".into(),
            ssh_config: Some("/x".into()),
        }
    }

    #[test]
    fn a_command_is_one_word_of_quoted_words_behind_strict_options() {
        let command = ssh(&host(), &["/it's here/p".into(), "work".into()]);
        let arguments: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        assert_eq!(arguments[..3], ["-F", "/x", "-T"]);
        for option in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ServerAliveInterval=2",
        ] {
            assert!(arguments.contains(&option.into()), "{arguments:?}");
        }
        assert_eq!(
            arguments[arguments.len() - 2..],
            ["u@h1.lab", "'/it'\\''s here/p' work"]
        );
    }

    #[test]
    fn what_ssh_says_is_told_with_what_to_do() {
        for (code, said, wanted) in [
            (
                Some(255),
                "@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@\nHost key \
                         verification failed.\n",
                "ssh-keygen -R h1.lab",
            ),
            (
                Some(255),
                "@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@\nOffending ED25519 key in \
                 /my keys/known:3\r\nHost key for [10.0.0.1]:2222 has changed and you have \
                 requested strict checking.\n",
                "`ssh-keygen -f '/my keys/known' -R '[10.0.0.1]:2222'`",
            ),
            (
                Some(255),
                "Host key verification failed.\n",
                "look at it with `ssh -F /x u@h1.lab`",
            ),
            (
                Some(255),
                "u@h1.lab: Permission denied (publickey).\n",
                "none of your keys: try `ssh -F /x u@h1.lab`",
            ),
            (
                Some(255),
                "ssh: connect to host h1.lab port 22: No route to host\n",
                "No route",
            ),
            (Some(127), "sh: 1: /p: not found\n", "plimsoll host push h1"),
            (Some(3), "boom\n\n", "it ended: boom"),
            (None, "", "ssh was killed"),
        ] {
            let found = why(&host(), code, said);
            assert!(found.contains(wanted), "{found}");
        }
    }

    fn run_script(script: &str, limit: Duration) -> (Result<String, String>, Duration) {
        let mut command = child_command("sh");
        command.args(["-c", script]);
        let begun = Instant::now();
        (run(&host(), command, limit), begun.elapsed())
    }

    #[test]
    fn a_host_that_does_not_stop_talking_is_not_listened_to() {
        let limit = Duration::from_secs(60);
        let (answer, took) = run_script("exec cat /dev/zero", limit);
        let reason = answer.unwrap_err();
        assert!(reason.contains("more than 1 MiB"), "{reason}");
        assert!(took < limit / 2, "{took:?}");
        // What it said before it ended is too much, too.
        let (answer, _) = run_script("head -c 2000000 /dev/zero", limit);
        assert!(answer.unwrap_err().contains("more than 1 MiB"));
        let (answer, _) = run_script("head -c 1000000 /dev/zero | tr '\\0' x", limit);
        assert_eq!(answer.unwrap().len(), 1_000_000);
        // So is a byte too much that comes as the host ends: a part was taken for the whole.
        for _ in 0..20 {
            let (answer, _) = run_script("head -c 1048577 /dev/zero | tr '\\0' x", limit);
            assert!(answer.unwrap_err().contains("more than 1 MiB"));
        }
        // Standard error fills neither memory nor the pipe.
        let (answer, _) = run_script("head -c 2000000 /dev/zero >&2; echo yes", limit);
        assert_eq!(answer.unwrap(), "yes\n");
        let (answer, took) = run_script("exec sleep 60", Duration::from_millis(300));
        let reason = answer.unwrap_err();
        assert!(reason.contains("has not answered"), "{reason}");
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
