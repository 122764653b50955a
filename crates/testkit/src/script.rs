//! Programs that are made by a test.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a shell script that can be run, with its folder. `text` is its body, without the first
/// line.
///
/// A child writes it. While this process has a file open for writing, a child that another thread
/// makes has it open, too, until it becomes another program, and to run the file fails with "text
/// file busy" meanwhile.
pub fn write_script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a script lies in a folder")).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "cat >\"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    to.write_all(format!("#!/bin/sh\n{text}\n").as_bytes())
        .unwrap();
    drop(to);
    assert!(child.wait().unwrap().success(), "{}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_run_while_other_threads_make_processes() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let dir = dir.path();
                scope.spawn(move || {
                    for number in 0..50 {
                        let path = dir.join(format!("{thread}-{number}"));
                        write_script(&path, "echo ran");
                        let output = Command::new(&path).output().unwrap();
                        assert_eq!(output.stdout, b"ran\n");
                    }
                });
            }
        });
    }
}
