//! The system's `ssh`, which knows the user's keys, agents and jump hosts.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use plimsoll_engine::process::{child_command, output_within};
use plimsoll_store::shell_word;

use super::hosts::Host;
use crate::error::LabError;

/// Never asks, never believes a key that is not known, and notices within 8 s that nobody answers.
const OPTIONS: [&str; 5] = [
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "ServerAliveInterval=2",
    "ServerAliveCountMax=3",
    "ConnectTimeout=5",
];
/// ssh's own failures have this exit code.
const SSH_FAILED: i32 = 255;
/// A shell that does not find the program has this one.
const NOT_FOUND: i32 = 127;
/// So much of what ssh says is kept.
const MOST_WORDS: u64 = 64 << 10;

/// `ssh` to a host with a command for its shell, each word quoted, in a process group of its own:
/// Ctrl-C reaches the desk alone.
pub(super) fn ssh(host: &Host, command: &[OsString]) -> Command {
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
            "{}: ssh did not log in; try `ssh {}` yourself first",
            host.name, host.ssh
        ))),
    }
}

/// Why ssh to a host ended: what it said last, with what to do about it.
pub(super) fn why(host: &Host, code: Option<i32>, said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let has = |what: &str| said.contains(what);
    let remedy = match code {
        Some(SSH_FAILED) if has("REMOTE HOST IDENTIFICATION HAS CHANGED") => {
            return format!(
                "the host's key is not the one that ssh knows: find out why, then remove the old \
                one with `ssh-keygen -R {}`",
                host.ssh.rsplit('@').next().unwrap_or(&host.ssh)
            );
        }
        Some(SSH_FAILED) if has("Host key verification failed") => {
            return format!(
                "ssh does not know the host's key: look at it with `ssh {}`",
                host.ssh
            );
        }
        Some(SSH_FAILED) if has("Permission denied") => {
            return format!("the host takes none of your keys: try `ssh {}`", host.ssh);
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

/// Runs a command on a host to its end, without input, and gives what it wrote.
pub(super) fn run(host: &Host, mut command: Command, limit: Duration) -> Result<String, String> {
    let output = output_within(&mut command, limit)
        .map_err(|error| format!("failed to run ssh: {error}; install it, or try it yourself"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        Some(0) => Ok(text(&output.stdout)),
        code => Err(why(host, code, &text(&output.stderr))),
    }
}

/// Reads to the end, and keeps the beginning.
pub(super) fn read_in_thread(
    from: Option<impl Read + Send + 'static>,
) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut from) = from {
            let _ = (&mut from).take(MOST_WORDS).read_to_end(&mut text);
            let _ = std::io::copy(&mut from, &mut std::io::sink());
        }
        String::from_utf8_lossy(&text).into_owned()
    })
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
                "Host key verification failed.\n",
                "look at it with `ssh u@h1.lab`",
            ),
            (
                Some(255),
                "u@h1.lab: Permission denied (publickey).\n",
                "none of your keys",
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
}
