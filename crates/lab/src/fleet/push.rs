//! This program and builds, copied to a host; and what is removed there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use plimsoll_core::name::BuildName;
use plimsoll_store::{TRIALS_FOLDER, shell_word};

use super::hosts::Host;
use super::link::STOPPED;
use super::reach::Desk;
use super::spool::spooled;
use super::ssh::{Words, run, ssh, ssh_line, why};
use super::work::WorkPlaces;
use crate::builds::BuildCache;
use crate::error::LabError;
use crate::places::take_data_root;

/// Programs of hosts are called so, with the first digits of their sum behind it: several versions
/// lie side by side, and none is replaced while it runs.
const PROGRAM: &str = "plimsoll-";
const SUM_DIGITS: usize = 16;
/// What is copied takes no longer than this.
const COPY_LIMIT: Duration = Duration::from_secs(3600);
/// A question is answered within this.
const ASK_LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(10);

/// Where the program with this sum is on a host.
pub(crate) fn program_on(host: &Host, sha256: &str) -> PathBuf {
    let digits = &sha256[..SUM_DIGITS.min(sha256.len())];
    host.dir.join("bin").join(format!("{PROGRAM}{digits}"))
}

/// Copies this program to a host, and gives its path there. The host needs nothing but a shell.
///
/// # Errors
/// [`LabError::Machine`] with what ssh said.
pub fn push_program(desk: &Desk, host: &Host) -> Result<PathBuf, LabError> {
    let target = program_on(host, &desk.sha256);
    let word = |path: &Path| shell_word(&path.to_string_lossy());
    let bin = target.parent().unwrap_or(&target);
    let new = target.with_extension("new");
    let line = format!(
        "mkdir -p {bin} && cat > {new} && chmod 755 {new} && mv {new} {target} && {target} \
         --version",
        bin = word(bin),
        new = word(&new),
        target = word(&target)
    );
    let file =
        File::open(&desk.program).map_err(|error| LabError::io(desk.program.display(), error))?;
    copy(host, ssh_line(host, &line), &|| false, |to| {
        io::copy(&mut &file, to).map(drop)
    })
    .map_err(|reason| LabError::Machine(format!("{}: {reason}", host.name)))?;
    Ok(target)
}

/// Copies a build of the cache to a host, where this program checks it.
///
/// # Errors
/// [`LabError::Machine`] with what went wrong there; a build that is not here, or is a folder of the
/// user's own, is a usage error.
pub fn push_builds(
    desk: &Desk,
    host: &Host,
    builds: &BuildCache,
    names: &[BuildName],
) -> Result<(), LabError> {
    for name in names {
        let build = builds.get(name)?.ok_or_else(|| {
            LabError::Usage(format!(
                "the build {name} is not in the cache; fetch it with `plimsoll build add {name}`"
            ))
        })?;
        push_build(desk, host, builds, &build.name, &|| false)
            .map_err(|reason| LabError::Machine(format!("{}: {reason}", host.name)))?;
    }
    Ok(())
}

/// The same for one build by its exact name, until `is_stopped`.
pub(super) fn push_build(
    desk: &Desk,
    host: &Host,
    builds: &BuildCache,
    name: &str,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    let command: Vec<OsString> = [
        program_on(host, &desk.sha256).into_os_string(),
        "work".into(),
        "--dir".into(),
        host.dir.clone().into_os_string(),
        "--take-build".into(),
        name.into(),
    ]
    .into();
    let mut refused = None;
    let copied = copy(host, ssh(host, &command), is_stopped, |to| {
        builds.send(name, to).map_err(|error| {
            refused.get_or_insert(error.to_string());
            io::Error::other("it cannot be sent")
        })
    });
    // Why it could not be sent, unless that is because the host had ended.
    match (copied, refused) {
        (Err(reason), _) => Err(format!("the build {name}: {reason}")),
        (Ok(()), Some(reason)) => Err(reason),
        (Ok(()), None) => Ok(()),
    }
}

/// Runs ssh with what `send` writes as its input, until `is_stopped` or for [`COPY_LIMIT`]. When it
/// fails, what ssh said counts.
fn copy(
    host: &Host,
    mut command: std::process::Command,
    is_stopped: &dyn Fn() -> bool,
    send: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> Result<(), String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("failed to start ssh: {error}; install it"))?;
    let said = Words::of(child.stderr.take());
    let input = child.stdin.take();
    let deadline = Instant::now() + COPY_LIMIT;
    let mut why_ended = None;
    let sent = std::thread::scope(|scope| {
        // A host that takes nothing holds whoever writes.
        let sending = scope.spawn(move || match input {
            Some(mut input) => send(&mut input),
            None => Err(io::Error::other("ssh has no pipe")),
        });
        while !(sending.is_finished() && matches!(child.try_wait(), Ok(Some(_)) | Err(_))) {
            if why_ended.is_none() {
                why_ended = if is_stopped() {
                    Some(STOPPED.to_owned())
                } else if Instant::now() >= deadline {
                    Some(format!(
                        "copying took longer than {} s",
                        COPY_LIMIT.as_secs()
                    ))
                } else {
                    None
                };
                if why_ended.is_some() {
                    let _ = child.kill();
                }
            }
            std::thread::sleep(POLL);
        }
        let died = |_| Err(io::Error::other("its thread died"));
        sending.join().unwrap_or_else(died)
    });
    if let Some(why) = why_ended {
        return Err(why);
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    match (status.code(), sent) {
        (Some(0), Ok(())) => Ok(()),
        (Some(0), Err(error)) => Err(format!("failed to copy: {error}")),
        (code, _) => Err(why(host, code, &said.said())),
    }
}

/// The host's end of a build's copy: takes it from `from` into the cache.
///
/// # Errors
/// When it comes damaged or does not fit on the disk.
pub fn receive_build(places: &WorkPlaces, name: &str, from: impl Read) -> Result<(), LabError> {
    fs::create_dir_all(&places.builds)
        .map_err(|error| LabError::io(places.builds.display(), error))?;
    Ok(BuildCache::new(&places.builds).receive(name, from)?)
}

/// What `machine check` of this program says on a host.
///
/// # Errors
/// [`LabError::Machine`] when the host cannot be reached or has not this program.
pub fn machine_check(desk: &Desk, host: &Host) -> Result<String, LabError> {
    let program = program_on(host, &desk.sha256);
    let words = [
        program,
        "machine".into(),
        "check".into(),
        "--data".into(),
        host.dir.join("data"),
    ];
    let words = words.iter().map(|word| shell_word(&word.to_string_lossy()));
    // Its exit code is the machine's, not ssh's.
    let line = words.collect::<Vec<_>>().join(" ") + " || test $? = 5";
    run(host, ssh_line(host, &line), ASK_LIMIT)
        .map_err(|reason| LabError::Machine(format!("{}: {reason}", host.name)))
}

/// Has a host clean itself; what it says.
///
/// # Errors
/// [`LabError::Machine`] when the host cannot be reached, has not this program or runs a campaign.
pub fn clean_host(desk: &Desk, host: &Host, is_all: bool) -> Result<Vec<String>, LabError> {
    let mut command: Vec<OsString> = vec![
        program_on(host, &desk.sha256).into(),
        "work".into(),
        "--dir".into(),
        host.dir.clone().into(),
        "--clean".into(),
    ];
    command.extend(is_all.then(|| "--all".into()));
    let said = run(host, ssh(host, &command), ASK_LIMIT)
        .map_err(|reason| LabError::Machine(format!("{}: {reason}", host.name)))?;
    Ok(said.lines().map(str::to_owned).collect())
}

/// The host's end of `host clean`: removes data, programs but this one, and campaigns in the spool
/// without trials; with `is_all` those with trials that no desk has fetched, too. What was removed,
/// and what was left because it may be needed.
///
/// # Errors
/// When a campaign runs there.
pub fn clean_here(dir: &Path, program: &Path, is_all: bool) -> Result<Vec<String>, LabError> {
    let places = WorkPlaces::below(dir);
    let mut told = Vec::new();
    // Ends what is left of campaigns, and removes their data.
    drop(take_data_root(&places.data)?);
    let failed = |path: &Path, error: io::Error| {
        LabError::io(format!("failed to remove {}", path.display()), error)
    };
    let kept = spooled(&places.spool);
    for campaign in entries(&places.spool) {
        let id = campaign
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if kept.contains(&id) && !is_all {
            let trials = entries(&campaign.join(TRIALS_FOLDER)).len();
            told.push(format!(
                "left {}: {trials} trials that no desk has; `plimsoll resume {id}` fetches them",
                campaign.display()
            ));
            continue;
        }
        fs::remove_dir_all(&campaign).map_err(|error| failed(&campaign, error))?;
        told.push(format!("removed {}", campaign.display()));
    }
    for old in entries(&dir.join("bin")) {
        let name = old
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if old != program && name.starts_with(PROGRAM) {
            fs::remove_file(&old).map_err(|error| failed(&old, error))?;
            told.push(format!("removed {}", old.display()));
        }
    }
    Ok(told)
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_to_a_host_that_takes_nothing_hears_ctrl_c() {
        let mut command = plimsoll_engine::process::child_command("sh");
        command.args(["-c", "exec sleep 60"]);
        let begun = Instant::now();
        let is_stopped = || begun.elapsed() > Duration::from_millis(200);
        // More than a pipe holds.
        let send = |to: &mut dyn Write| to.write_all(&vec![0; 1 << 20]);
        let host = super::super::link::tests::host();
        assert_eq!(
            copy(&host, command, &is_stopped, send).unwrap_err(),
            STOPPED
        );
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
    }

    #[test]
    fn a_clean_host_keeps_what_no_desk_has() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("bin/plimsoll-new");
        for path in [
            "bin/plimsoll-new",
            "bin/plimsoll-old",
            "bin/theirs",
            "spool/20260101T000000Z-done/campaign.json",
            "spool/20260101T000001Z-lost/trials/1-a.b.c-a1/events.jsonl",
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let told = clean_here(dir.path(), &program, false).unwrap().join("\n");
        assert!(
            told.contains("left ") && told.contains("resume 20260101T000001Z-lost"),
            "{told}"
        );
        let left = |below: &str| -> Vec<String> {
            let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            entries(&dir.path().join(below))
                .into_iter()
                .map(name)
                .collect()
        };
        assert_eq!(left("bin"), ["plimsoll-new", "theirs"]);
        assert_eq!(left("spool"), ["20260101T000001Z-lost"]);
        clean_here(dir.path(), &program, true).unwrap();
        assert_eq!(left("spool"), Vec::<String>::new());
    }
}
