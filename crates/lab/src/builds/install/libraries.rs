//! Libraries a server lacks on this machine: private copies of Debian's, found by
//! `LD_LIBRARY_PATH`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use plimsoll_engine::process::{child_command, output_within};

use crate::builds::error::BuildError;
use crate::builds::fetch::fetcher::Fetcher;
use crate::builds::install::unpack::unpack_debs;
use crate::builds::progress::{Stage, Watch};
use crate::builds::recipes::debian::DebianFacts;
use crate::builds::recipes::recipe::Package;

/// The folder of the copies, below a build's.
const FOLDER: &str = "syslib";

/// `ldd` reads some files.
const LDD_LIMIT: Duration = Duration::from_secs(60);

/// Names of libraries that a program asks for and this machine lacks.
pub(crate) fn missing_libraries(program: &Path) -> Vec<String> {
    // Without `ldd` nothing is known to be missing; starting the server tells.
    let mut ldd = child_command("ldd");
    ldd.arg(program)
        .env("LC_ALL", "C")
        .env_remove("LD_LIBRARY_PATH");
    let Ok(output) = output_within(&mut ldd, LDD_LIMIT) else {
        return Vec::new();
    };
    parse_missing(&String::from_utf8_lossy(&output.stdout))
}

fn parse_missing(ldd: &str) -> Vec<String> {
    ldd.lines()
        .filter_map(|line| line.trim().strip_suffix(" => not found"))
        .map(str::to_owned)
        .collect()
}

/// Brings the missing libraries into the build; returns the environment its programs need.
pub(crate) fn bring_missing(
    program: &Path,
    root: &Path,
    facts: &DebianFacts,
    fetcher: &dyn Fetcher,
    download: &Path,
    watch: &mut Watch<'_>,
) -> Result<BTreeMap<String, String>, BuildError> {
    let missing = missing_libraries(program);
    if missing.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut wanted = Vec::new();
    for name in &missing {
        let library = facts.libraries.get(name).ok_or_else(|| {
            BuildError::Unfit(format!(
                "{} needs {name}, which is not here; install the package that holds it",
                program.display()
            ))
        })?;
        wanted.push((name, library));
    }
    let mut also: Vec<String> = wanted
        .iter()
        .map(|(_, library)| library.package.clone())
        .collect();
    also.sort();
    also.dedup();
    let package = Package::Apt {
        suite: facts.library_suite.clone(),
        packages: Vec::new(),
        also,
        has_security: false,
    };
    watch.begin(Stage::Fetching)?;
    fs::create_dir_all(download).map_err(BuildError::io("make", download))?;
    let fetched = fetcher.fetch(&package, None, download, watch)?;
    let unpacked = download.join("unpacked");
    unpack_debs(&fetched.files, &[], &unpacked, watch)?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).map_err(BuildError::io("make", &folder))?;
    copy_libraries(&unpacked, &folder)?;
    for (name, library) in wanted {
        let at = folder.join(name);
        // A newer version of a library may serve under the name that the program asks for.
        if let (false, Some(file)) = (at.exists(), &library.file) {
            symlink(file, &at).map_err(BuildError::io("make the link", &at))?;
        }
        if !at.exists() {
            return Err(BuildError::Unfit(format!(
                "the package {} does not hold {name}; mend builds/debian.toml",
                library.package
            )));
        }
    }
    Ok(BTreeMap::from([(
        "LD_LIBRARY_PATH".to_owned(),
        folder.display().to_string(),
    )]))
}

/// Copies libraries from anywhere below `from`, links as links.
fn copy_libraries(from: &Path, to: &Path) -> Result<(), BuildError> {
    for entry in fs::read_dir(from).map_err(BuildError::io("read", from))? {
        let path = entry.map_err(BuildError::io("read", from))?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        let target = to.join(name);
        if path.is_symlink() {
            if name.to_string_lossy().contains(".so") {
                let link = fs::read_link(&path).map_err(BuildError::io("read", &path))?;
                symlink(link, &target).map_err(BuildError::io("make the link", &target))?;
            }
        } else if path.is_dir() {
            copy_libraries(&path, to)?;
        } else if name.to_string_lossy().contains(".so") {
            fs::copy(&path, &target).map_err(BuildError::io("copy", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_are_read_from_ldd() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibaio.so.1 => not found\n\tlibc.so.6 => \
                   /lib/libc.so.6 (0x2)\n\tlibnuma.so.1 => not found\n";
        assert_eq!(parse_missing(text), ["libaio.so.1", "libnuma.so.1"]);
    }
}
