//! `files.sha256`: what the files of a fetched build were when it was added, in the form of
//! `sha256sum`. Libraries and scripts move numbers as servers do.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use plimsoll_store::create_in_place;

use crate::builds::error::BuildError;
use crate::builds::inspect::server_file::sha256;
use crate::builds::record;

const FILE: &str = "files.sha256";
/// Between the sum and the path: the file is read as bytes.
const SEPARATOR: &str = " *";

/// Writes the sums of all files in `root`, and returns that of the file with them.
pub(crate) fn write(root: &Path) -> Result<String, BuildError> {
    let mut files = Vec::new();
    let real = root.canonicalize().map_err(BuildError::io("read", root))?;
    list(&real, Path::new(""), &mut files)?;
    files.sort();
    let mut text = String::new();
    for file in files.iter().filter(|file| !is_own(file)) {
        let Some(name) = file.to_str().filter(|name| !name.contains('\n')) else {
            continue;
        };
        let sum = sha256(&root.join(file))?;
        text.push_str(&format!("{sum}{SEPARATOR}{name}\n"));
    }
    let path = root.join(FILE);
    // A package may have put a link there.
    create_in_place(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(BuildError::io("write", &path))?;
    sha256(&path)
}

/// What is no longer as it was, in words; none if all is. Files that came later are not looked at.
pub(crate) fn changed(root: &Path, wanted: &str) -> Result<Option<String>, BuildError> {
    let path = root.join(FILE);
    if !path.is_file() || sha256(&path)? != wanted {
        return Ok(Some(format!("{} is not what it was", path.display())));
    }
    let text = fs::read_to_string(&path).map_err(BuildError::io("read", &path))?;
    for (sum, name) in text.lines().filter_map(|line| line.split_once(SEPARATOR)) {
        let file = root.join(name);
        if !file.is_file() {
            return Ok(Some(format!("{} is not there any more", file.display())));
        }
        if sha256(&file)? != sum {
            return Ok(Some(format!("{} is not what it was", file.display())));
        }
    }
    Ok(None)
}

fn is_own(file: &Path) -> bool {
    [FILE, record::FILE]
        .iter()
        .any(|own| file == Path::new(own))
}

/// Files below a folder, by their paths below it, and links to files of the build: a program loads
/// libraries by those, so that what they lead to counts under their names. `root` has no link in it.
fn list(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> Result<(), BuildError> {
    let dir = root.join(below);
    for entry in fs::read_dir(&dir).map_err(BuildError::io("read", &dir))? {
        let entry = entry.map_err(BuildError::io("read", &dir))?;
        let kind = entry.file_type().map_err(BuildError::io("read", &dir))?;
        let path = below.join(entry.file_name());
        if kind.is_dir() {
            list(root, &path, files)?;
        } else if is_file_inside(root, &root.join(&path)) {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a path leads to a file of the build. Debian packages have links to files of the machine,
/// such as its loader: those are the machine's, and change with it.
fn is_file_inside(root: &Path, path: &Path) -> bool {
    let real = path.canonicalize();
    real.is_ok_and(|real| real.starts_with(root) && real.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn sums_are_not_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (root, victim) = (dir.path().join("build"), dir.path().join("victim"));
        fs::create_dir(&root).unwrap();
        fs::write(&victim, "theirs").unwrap();
        symlink("../victim", root.join(FILE)).unwrap();
        write(&root).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::write(root.join("a.so.1"), "1").unwrap();
        fs::write(root.join("a.so.2"), "2").unwrap();
        symlink("a.so.1", root.join("a.so")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        let sum = write(root).unwrap();
        assert_eq!(changed(root, &sum).unwrap(), None);
        fs::remove_file(root.join("a.so")).unwrap();
        symlink("a.so.2", root.join("a.so")).unwrap();
        assert!(changed(root, &sum).unwrap().is_some());
    }

    #[test]
    fn a_file_that_changed_is_named_and_one_that_came_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir(root.join("lib")).unwrap();
        fs::write(root.join("lib/ha_rocksdb.so"), "library").unwrap();
        fs::write(root.join("mysqld"), "server").unwrap();
        fs::write(root.join(record::FILE), "{}").unwrap();
        let sum = write(root).unwrap();
        let found = || changed(root, &sum).unwrap();
        fs::write(root.join(record::FILE), "{\"name\": 1}").unwrap();
        fs::write(root.join("core"), "came later").unwrap();
        assert_eq!(found(), None);

        fs::write(root.join("lib/ha_rocksdb.so"), "").unwrap();
        assert!(
            found()
                .unwrap()
                .ends_with("ha_rocksdb.so is not what it was")
        );
        fs::remove_file(root.join("lib/ha_rocksdb.so")).unwrap();
        assert!(
            found()
                .unwrap()
                .ends_with("ha_rocksdb.so is not there any more")
        );
        let text = fs::read_to_string(root.join(FILE)).unwrap();
        let others: Vec<&str> = text
            .lines()
            .filter(|line| line.ends_with("mysqld"))
            .collect();
        fs::write(root.join(FILE), others.join("\n")).unwrap();
        assert!(
            found()
                .unwrap()
                .ends_with("files.sha256 is not what it was")
        );
    }

    /// Debian's libc6 has `lib64/ld-linux-x86-64.so.2 -> /lib/x86_64-linux-gnu/...`, which `dpkg -x`
    /// unpacks as it is: it leads to this machine's own loader, and no server is started by it.
    #[test]
    fn what_the_machine_upgrades_outside_of_a_build_is_no_change_of_the_build() {
        let dir = tempfile::tempdir().unwrap();
        let (root, machine) = (dir.path().join("build"), dir.path().join("lib"));
        fs::create_dir_all(root.join("lib64")).unwrap();
        fs::create_dir(&machine).unwrap();
        fs::write(root.join("mysqld"), "server").unwrap();
        let loader = machine.join("ld-linux-x86-64.so.2");
        fs::write(&loader, "glibc 2.36-9+deb12u13").unwrap();
        symlink(&loader, root.join("lib64/ld-linux-x86-64.so.2")).unwrap();
        let sum = write(&root).unwrap();
        // apt-get upgrade, or the cache is moved to another machine.
        fs::write(&loader, "glibc 2.36-9+deb12u14").unwrap();
        assert_eq!(changed(&root, &sum).unwrap(), None);
    }
}
