//! Real servers for tests: builds that are in the cache.

use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::skip;

/// A build in a cache.
#[derive(Clone, Debug)]
pub struct CachedBuild {
    /// The cache's folder of builds.
    pub cache: PathBuf,
    /// Its exact name, such as `mysql@5.7.22`.
    pub name: String,
}

/// The record of the build in this folder, as JSON: paths below the folder are kept as
/// `{build}/...`.
pub fn build_record(folder: &Path) -> std::io::Result<String> {
    let text = std::fs::read_to_string(folder.join("build.json"))?;
    Ok(text.replace("{build}", &folder.display().to_string()))
}

/// The folder of builds: `builds` in what `PLIMSOLL_CACHE` names, else where `plimsoll build add`
/// puts them.
pub fn builds_dir() -> PathBuf {
    let folder = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let default = || {
        if is_root() {
            Some("/var/cache".into())
        } else {
            folder("HOME").map(|home| home.join(".cache"))
        }
    };
    let cache = folder("PLIMSOLL_CACHE");
    let cache = cache.or_else(|| Some(folder("XDG_CACHE_HOME").or_else(default)?.join("plimsoll")));
    cache.unwrap_or_default().join("builds")
}

/// The build whose name begins so, from the default source where there are several, and then the
/// last by name: `postgres@18`, and of other sources `postgres@13+source-o2nofp`. Without one that
/// servers can run from, the test is skipped.
pub fn cached_build(test: &str, wanted: &str) -> Option<CachedBuild> {
    let cache = builds_dir();
    let names = std::fs::read_dir(&cache)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|folder| folder.file_name().into_string().ok());
    let (version, source) = wanted.split_once('+').unwrap_or((wanted, ""));
    let is_wanted = |name: &String| {
        let of_name = name.split_once('+').map_or("", |(_, source)| source);
        name.starts_with(version) && of_name.starts_with(source)
    };
    let found =
        names.filter(|name| is_wanted(name) && cache.join(name).join("build.json").is_file());
    let found = found.max_by_key(|name| (!name.contains('+'), name.clone()));
    let problem = match &found {
        None => Some(format!(
            "no build of {wanted} in the cache; fetch it with `plimsoll build add {wanted}`"
        )),
        Some(name) if wanted.starts_with("postgres") => {
            closed_folder(&cache.join(name)).map(|folder| {
                format!(
                    "root's servers run as nobody, who may not enter {}; set PLIMSOLL_CACHE to a \
                     cache that everybody may enter",
                    folder.display()
                )
            })
        }
        Some(_) => None,
    };
    match problem {
        Some(reason) => {
            skip(test, &reason);
            None
        }
        None => found.map(|name| CachedBuild { cache, name }),
    }
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// A folder on the way to `path` that keeps out everybody but root, when we are root.
fn closed_folder(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok().filter(|_| is_root())?;
    let is_closed = |folder: &&Path| {
        std::fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 1 == 0)
    };
    path.ancestors()
        .filter(is_closed)
        .last()
        .map(Path::to_owned)
}
