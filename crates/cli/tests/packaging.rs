//! The Debian package, installed where nothing else is.

use std::path::Path;
use std::process::Command;

/// Made of this test's binary, into a bare Debian: its dependencies are there, and the first command
/// that a newcomer types ends in verdicts.
#[test]
fn a_deb_runs_in_a_bare_debian() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = tempfile::tempdir().unwrap();
    let script = |name: &str| Command::new(root.join("packaging").join(name));
    let made = script("build.sh")
        .arg("deb")
        .arg(dir.path())
        .env("PLIMSOLL_BINARY", env!("CARGO_BIN_EXE_plimsoll"))
        .env("DEB_OPTIONS", "-Zgzip -z1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success(), "{stderr}");
    let package = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "deb"))
        .unwrap();
    let tried = script("try.sh").arg(package).output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&tried.stdout).into_owned(),
        String::from_utf8_lossy(&tried.stderr).into_owned(),
    );
    // On the test's own output: a skip is reported there.
    println!("{stdout}");
    assert!(tried.status.success(), "{stderr}");
    assert!(
        stdout.starts_with("SKIP ") || stdout.contains("from the installation to verdicts: "),
        "{stdout}"
    );
}
