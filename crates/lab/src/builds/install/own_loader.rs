//! Programs of Debian packages start through the C library they were unpacked with, by wrappers
//! that find it from their own place: a build runs on an older host, and it runs with the same
//! libraries on every host.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::builds::error::BuildError;
use crate::builds::inspect::elf::is_dynamic_program;
use crate::builds::inspect::server_file::ask;

const LIBRARY_FOLDERS: [&str; 2] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
const LOADER: &str = "ld-linux-x86-64.so.2";

/// Replaces every program of the unpacked packages by a wrapper; the program itself becomes
/// `NAME.real`.
pub(crate) fn wrap_programs(root: &Path) -> Result<(), BuildError> {
    let libraries: Vec<&str> = LIBRARY_FOLDERS
        .into_iter()
        .filter(|folder| root.join(folder).is_dir())
        .collect();
    let Some(loader) = libraries
        .iter()
        .map(|folder| format!("{folder}/{LOADER}"))
        .find(|loader| root.join(loader).exists())
    else {
        return Err(BuildError::Unfit(format!(
            "the packages in {} hold no {LOADER}; the recipe must fetch libc6 as well",
            root.display()
        )));
    };
    // Debian 11's loader cannot set the name a program is started by.
    let has_argv0 = ask(&root.join(&loader), &["--help"], &BTreeMap::new())
        .is_ok_and(|help| help.contains("--argv0"));
    for folder in program_folders(root)? {
        for entry in fs::read_dir(root.join(&folder)).map_err(BuildError::io("read", &folder))? {
            let path = entry.map_err(BuildError::io("read", &folder))?.path();
            if path.is_symlink() || !path.is_file() || !is_dynamic_program(&path) {
                continue;
            }
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let real = path.with_file_name(format!("{name}.real"));
            fs::rename(&path, &real).map_err(BuildError::io("rename", &path))?;
            let text = wrapper(&folder, name, &loader, &libraries, has_argv0);
            fs::write(&path, text).map_err(BuildError::io("write", &path))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .map_err(BuildError::io("change the rights of", &path))?;
        }
    }
    Ok(())
}

/// Folders of programs, relative to the root. A merged `/bin` is a link and not among them.
fn program_folders(root: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut folders: Vec<PathBuf> = ["bin", "sbin", "usr/bin", "usr/sbin"]
        .iter()
        .map(PathBuf::from)
        .collect();
    let postgres = root.join("usr/lib/postgresql");
    if postgres.is_dir() {
        for entry in fs::read_dir(&postgres).map_err(BuildError::io("read", &postgres))? {
            let name = entry
                .map_err(BuildError::io("read", &postgres))?
                .file_name();
            folders.push(Path::new("usr/lib/postgresql").join(name).join("bin"));
        }
    }
    folders.retain(|folder| root.join(folder).is_dir() && !root.join(folder).is_symlink());
    Ok(folders)
}

fn wrapper(folder: &Path, name: &str, loader: &str, libraries: &[&str], has_argv0: bool) -> String {
    let path: Vec<String> = libraries
        .iter()
        .map(|folder| format!("$root/{folder}"))
        .collect();
    let argv0 = if has_argv0 { "--argv0 \"$0\" " } else { "" };
    format!(
        "#!/bin/sh\nhere=$(cd \"${{0%/*}}\" && pwd -P)\nroot=${{here%/{}}}\nexec \
        \"$root/{loader}\" {argv0}--library-path \"{}\" \"$here/{name}.real\" \"$@\"\n",
        folder.display(),
        path.join(":")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The machine's own loader and C library stand in for a package's.
    #[test]
    fn a_wrapped_program_runs_from_any_place() {
        let Some(host) = LIBRARY_FOLDERS
            .iter()
            .map(|folder| Path::new("/").join(folder))
            .find(|folder| folder.join(LOADER).exists())
        else {
            return plimsoll_testkit::skip(
                "lab::a_wrapped_program_runs_from_any_place",
                "no loader of x86-64",
            );
        };
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("before");
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        fs::create_dir_all(&libraries).unwrap();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        for entry in fs::read_dir(&host).unwrap() {
            let name = entry.unwrap().file_name();
            if [
                "ld-linux-x86-64.so.2",
                "libc.so.6",
                "libselinux.so.1",
                "libpcre2-8.so.0",
            ]
            .iter()
            .any(|wanted| name == *wanted)
            {
                fs::copy(host.join(&name), libraries.join(&name)).unwrap();
            }
        }
        fs::copy("/bin/echo", root.join("usr/bin/say")).unwrap();
        fs::write(root.join("usr/bin/script"), "#!/bin/sh\n").unwrap();
        wrap_programs(&root).unwrap();

        let moved = dir.path().join("after");
        fs::rename(&root, &moved).unwrap();
        assert!(moved.join("usr/bin/say.real").is_file());
        assert!(!moved.join("usr/bin/script.real").exists());
        for (program, at) in [
            (moved.join("usr/bin/say"), dir.path()),
            (PathBuf::from("./say"), &moved.join("usr/bin")),
        ] {
            let output = Command::new(program)
                .current_dir(at)
                .args(["a b", "c"])
                .output()
                .unwrap();
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "a b c\n",
                "{output:?}"
            );
        }
    }

    #[test]
    fn packages_without_a_c_library_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            wrap_programs(dir.path())
                .unwrap_err()
                .to_string()
                .contains("must fetch libc6")
        );
    }
}
