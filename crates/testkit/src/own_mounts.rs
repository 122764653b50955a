//! Processes that see other folders under the names that we know.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Starts `sleep 60` in mounts of its own, which `script` makes, with `mark` as its environment's
/// `PLIMSOLL_TRIAL`. `options` are those of unshare(1). None if that may not be done here.
pub fn start_in_own_mounts(options: &[&str], mark: &Path, script: &str) -> Option<Child> {
    let script = format!("{script} && echo up && exec sleep 60");
    let mut child = Command::new("unshare")
        .args(options)
        .args(["--mount", "sh", "-c", &script])
        .env("PLIMSOLL_TRIAL", mark)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut line = String::new();
    let output = child.stdout.take()?;
    let has_mounts = BufReader::new(output).read_line(&mut line).is_ok() && line == "up\n";
    let is_up = has_mounts && sleeps(child.id());
    if !is_up {
        let _ = child.kill();
        let _ = child.wait();
    }
    is_up.then_some(child)
}

/// Whether the process soon is `sleep`, and sleeps. While it becomes that it has no environment.
fn sleeps(pid: u32) -> bool {
    let wanted = format!("{pid} (sleep) S ");
    let stat = format!("/proc/{pid}/stat");
    let mut looks = (0..5_000).map(|_| {
        thread::sleep(Duration::from_millis(1));
        fs::read_to_string(&stat).is_ok_and(|stat| stat.starts_with(&wanted))
    });
    looks.any(|is_asleep| is_asleep)
}
