//! Files of packages of cargo's registry, through `cargo vendor`.

use std::fs;
use std::path::Path;

use plimsoll_engine::process::child_command;

use crate::builds::error::BuildError;
use crate::builds::fetch::child::Client;
use crate::builds::fetch::fetcher::Fetched;
use crate::builds::inspect::server_file::sha256;
use crate::builds::progress::Watch;

/// A file of a package.
pub(crate) struct Request<'a> {
    /// `name@version`.
    pub package: &'a str,
    /// Inside the package.
    pub file: &'a Path,
    /// Of the file.
    pub sha256: &'a str,
}

/// A package of nobody, which needs the one that is fetched.
const MANIFEST: &str = "[package]
name = \"fetch\"
version = \"0.0.0\"
edition = \"2021\"
publish = false

[lib]
path = \"lib.rs\"

[workspace]

[dependencies]
";

/// Fetches a package and takes one file of it, which must be the one that the recipe means.
pub(crate) fn fetch(
    request: &Request<'_>,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<Fetched, BuildError> {
    let package = request.package;
    let (name, version) = package.split_once('@').ok_or_else(|| {
        BuildError::Usage(format!("{package} is not name@version; mend the recipe"))
    })?;
    let manifest =
        format!("{MANIFEST}{name} = {{ version = \"={version}\", default-features = false }}\n");
    for (file, text) in [("Cargo.toml", manifest.as_str()), ("lib.rs", "")] {
        let path = folder.join(file);
        fs::write(&path, text).map_err(BuildError::io("write", &path))?;
    }
    let mut command = child_command("cargo");
    command
        .args(["vendor", "--quiet", "--versioned-dirs", "packages"])
        .current_dir(folder);
    let client = Client {
        command,
        needs: "Rust's cargo",
        grows: folder,
        log: folder.join("cargo.log"),
    };
    client.run(watch)?.map_err(|refusal| {
        let is_gone = refusal.has_any(&["no matching package", "failed to select a version"]);
        refusal.explain(package, is_gone)
    })?;
    take(
        request,
        &folder.join(format!("packages/{name}-{version}")),
        folder,
    )
}

/// Moves the file out of the unpacked package.
fn take(request: &Request<'_>, unpacked: &Path, folder: &Path) -> Result<Fetched, BuildError> {
    let (package, file) = (request.package, request.file);
    let from = unpacked.join(file);
    if !from.is_file() {
        return Err(BuildError::Client(format!(
            "cargo ended well and left no {} of {package}; try `cargo vendor` by hand",
            file.display()
        )));
    }
    let sum = sha256(&from)?;
    if sum != request.sha256 {
        return Err(BuildError::Unfit(format!(
            "{} of {package} has the sha256 {sum}, and the recipe means {}; look at where cargo's \
            packages come from",
            file.display(),
            request.sha256
        )));
    }
    let place = folder.join(file.file_name().unwrap_or_default());
    fs::rename(&from, &place).map_err(BuildError::io("move", &from))?;
    Ok(Fetched {
        files: vec![place],
        package_version: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_that_is_meant_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let unpacked = dir.path().join("packages/x-1.0.0");
        let request = |sha256| Request {
            package: "x@1.0.0",
            file: Path::new("src/x.c"),
            sha256,
        };
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let refused = |sha256| {
            take(&request(sha256), &unpacked, dir.path())
                .unwrap_err()
                .to_string()
        };
        assert!(refused(abc).contains("left no src/x.c of x@1.0.0; try"));
        fs::create_dir_all(unpacked.join("src")).unwrap();
        fs::write(unpacked.join("src/x.c"), "abc").unwrap();
        let error = refused("0");
        assert!(
            error.contains(abc) && error.contains("the recipe means 0;"),
            "{error}"
        );
        let fetched = take(&request(abc), &unpacked, dir.path()).unwrap();
        assert_eq!(fetched.files, [dir.path().join("x.c")]);
        assert_eq!(fs::read(dir.path().join("x.c")).unwrap(), b"abc");
    }
}
