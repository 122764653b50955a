//! Unpacking archives into a build's folder.
//!
//! With crates rather than the `unzip`, `tar` and `xz` programs: a bare machine lacks two of the
//! three, archives inside archives are read without a copy on the disk, and no entry can leave the
//! folder.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use glob::Pattern;
use plimsoll_engine::process::child_command;
use plimsoll_store::create_in_place;

use crate::builds::error::BuildError;
use crate::builds::fetch::apt::package_name;
use crate::builds::fetch::child::Client;
use crate::builds::progress::Watch;
use crate::builds::recipes::recipe::{UnpackRule, is_inside};

/// Unpacks what the rules take of an archive into `root`.
pub(crate) fn unpack(
    archive: &Path,
    rules: &[UnpackRule],
    root: &Path,
    watch: &mut Watch<'_>,
) -> Result<(), BuildError> {
    let name = archive.display().to_string();
    for rule in rules {
        let file = File::open(archive).map_err(BuildError::io("open", archive))?;
        let mut taker = EntryUnpacker::new(rule, root, watch)?;
        match &rule.inside {
            None => unpack_stream(&name, BufReader::new(file), &mut taker)?,
            Some(inside) => unpack_nested(&name, BufReader::new(file), inside, &mut taker)?,
        }
        if taker.count == 0 {
            return Err(BuildError::Unfit(format!(
                "{name} holds nothing of {}; the package has changed",
                rule.include.join(", ")
            )));
        }
    }
    let real = root.canonicalize().map_err(BuildError::io("read", root))?;
    check_links(&real, &real)
}

/// Refuses links that lead out of the root. One that was checked by its name may lead through others,
/// so they are followed when all of them are there.
fn check_links(root: &Path, dir: &Path) -> Result<(), BuildError> {
    for entry in fs::read_dir(dir).map_err(BuildError::io("read", dir))? {
        let entry = entry.map_err(BuildError::io("read", dir))?;
        let kind = entry.file_type().map_err(BuildError::io("read", dir))?;
        if kind.is_dir() {
            check_links(root, &entry.path())?;
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).map_err(BuildError::io("read", dir))?;
            if !stays_inside(root, dir, &target) {
                return Err(leaves(&target.display().to_string()));
            }
        }
    }
    Ok(())
}

/// Whether the way that a link in `dir` leads stays below the root at each step, as far as it is
/// there, and by its names from there on. `root` and `dir` have no link in them.
fn stays_inside(root: &Path, dir: &Path, target: &Path) -> bool {
    let mut here = dir.to_owned();
    target.components().all(|component| {
        match component {
            Component::Normal(name) => {
                here.push(name);
                here = here.canonicalize().unwrap_or(std::mem::take(&mut here));
            }
            Component::CurDir => {}
            Component::ParentDir => {
                here.pop();
            }
            Component::RootDir | Component::Prefix(_) => here = component.as_os_str().into(),
        }
        here.starts_with(root)
    })
}

/// Unpacks whole Debian packages, but for those whose name matches `skip`. Returns name and version
/// of those it took.
pub(crate) fn unpack_debs(
    debs: &[PathBuf],
    skip: &[Pattern],
    root: &Path,
    watch: &mut Watch<'_>,
) -> Result<Vec<String>, BuildError> {
    fs::create_dir_all(root).map_err(BuildError::io("make", root))?;
    let mut taken = Vec::new();
    for deb in debs {
        let (Some(name), Some(stem)) = (package_name(deb), deb.file_stem()) else {
            continue;
        };
        if skip.iter().any(|pattern| pattern.matches(name)) {
            continue;
        }
        let mut command = child_command("dpkg");
        command.arg("-x").arg(deb).arg(root);
        let client = Client {
            command,
            needs: "dpkg (on Debian)",
            grows: deb,
            log: deb.with_extension("log"),
        };
        client.run(watch)?.map_err(|refusal| {
            BuildError::Unfit(format!("failed to unpack {name}: {}", refusal.summary))
        })?;
        taken.push(stem.to_string_lossy().replace("%3a", ":"));
    }
    Ok(taken)
}

/// Makes everything readable and every program and script executable, whatever the archive and our
/// own mask say: servers under another user need it.
pub(crate) fn open_rights(path: &Path) -> Result<(), BuildError> {
    let metadata = path
        .symlink_metadata()
        .map_err(BuildError::io("read", path))?;
    let wanted = if metadata.is_symlink() {
        return Ok(());
    } else if metadata.is_dir() {
        0o755
    } else {
        let mode = metadata.permissions().mode();
        // Never set-user-id: nothing here is installed.
        (mode & 0o755)
            | if mode & 0o111 != 0 || is_program(path) {
                0o755
            } else {
                0o644
            }
    };
    fs::set_permissions(path, fs::Permissions::from_mode(wanted))
        .map_err(BuildError::io("change the rights of", path))?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path).map_err(BuildError::io("read", path))? {
            open_rights(&entry.map_err(BuildError::io("read", path))?.path())?;
        }
    }
    Ok(())
}

fn is_program(path: &Path) -> bool {
    let mut start = [0; 4];
    let Ok(mut file) = File::open(path) else {
        return false;
    };
    file.read_exact(&mut start).is_ok() && (start == *b"\x7fELF" || start.starts_with(b"#!"))
}

/// What a name says about how a file is packed.
enum Packing {
    Zip,
    TarGz,
    TarXz,
}

fn packing(name: &str) -> Result<Packing, BuildError> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if ends(&[".zip", ".jar"]) {
        Ok(Packing::Zip)
    } else if ends(&[".tgz", ".tar.gz"]) {
        Ok(Packing::TarGz)
    } else if ends(&[".txz", ".tar.xz"]) {
        Ok(Packing::TarXz)
    } else {
        Err(BuildError::Unfit(format!(
            "{name} is not an archive of a known kind (zip, jar, tgz, txz); the package has changed"
        )))
    }
}

fn unfit(name: &str) -> impl FnOnce(zip::result::ZipError) -> BuildError + '_ {
    move |error| {
        BuildError::Unfit(format!(
            "{name} cannot be read: {error}; remove the build and add it again"
        ))
    }
}

fn unpack_stream(
    name: &str,
    archive: impl Read + Seek,
    taker: &mut EntryUnpacker<'_, '_>,
) -> Result<(), BuildError> {
    match packing(name)? {
        Packing::Zip => unpack_zip(name, archive, taker),
        Packing::TarGz => unpack_tar(name, flate2::read::GzDecoder::new(archive), taker),
        Packing::TarXz => unpack_tar(name, lzma_rust2::XzReader::new(archive, true), taker),
    }
}

/// The archive that matches `inside` in a zip archive.
fn unpack_nested(
    name: &str,
    archive: impl Read + Seek,
    inside: &str,
    taker: &mut EntryUnpacker<'_, '_>,
) -> Result<(), BuildError> {
    let mut zip = zip::ZipArchive::new(archive).map_err(unfit(name))?;
    let pattern = pattern(inside)?;
    let inner = zip
        .file_names()
        .flatten()
        .find(|entry| pattern.matches(entry))
        .map(|entry| entry.into_owned());
    let inner = inner.ok_or_else(|| {
        BuildError::Unfit(format!("{name} has no {inside}; the package has changed"))
    })?;
    let entry = zip.by_name(&inner).map_err(unfit(name))?;
    match packing(&inner)? {
        Packing::TarGz => unpack_tar(&inner, flate2::read::GzDecoder::new(entry), taker),
        Packing::TarXz => unpack_tar(&inner, lzma_rust2::XzReader::new(entry, true), taker),
        Packing::Zip => {
            // A zip archive is read from its end; those inside others are small.
            let mut bytes = Vec::new();
            let mut entry = entry;
            entry
                .read_to_end(&mut bytes)
                .map_err(|error| unfit(name)(error.into()))?;
            unpack_zip(&inner, Cursor::new(bytes), taker)
        }
    }
}

fn unpack_zip(
    name: &str,
    archive: impl Read + Seek,
    taker: &mut EntryUnpacker<'_, '_>,
) -> Result<(), BuildError> {
    let mut zip = zip::ZipArchive::new(archive).map_err(unfit(name))?;
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(unfit(name))?;
        let entry_name = entry.name().map_err(unfit(name))?.into_owned();
        let Some(target) = taker.target(&entry_name)? else {
            continue;
        };
        if entry.is_dir() {
            fs::create_dir_all(&target).map_err(BuildError::io("make", &target))?;
        } else if entry.is_symlink() {
            let mut link = String::new();
            entry
                .read_to_string(&mut link)
                .map_err(|error| unfit(name)(error.into()))?;
            taker.link(Path::new(&link), &target)?;
        } else {
            taker.write(&mut entry, &target)?;
            if let Some(mode) = entry.unix_mode() {
                set_mode(&target, mode)?;
            }
        }
    }
    Ok(())
}

fn unpack_tar(
    name: &str,
    archive: impl Read,
    taker: &mut EntryUnpacker<'_, '_>,
) -> Result<(), BuildError> {
    let unreadable = |error: io::Error| {
        BuildError::Unfit(format!(
            "{name} cannot be read: {error}; add the build again"
        ))
    };
    let mut tar = tar::Archive::new(archive);
    for entry in tar.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let path = entry
            .path()
            .map_err(unreadable)?
            .to_string_lossy()
            .into_owned();
        let Some(target) = taker.target(&path)? else {
            continue;
        };
        let link = entry
            .link_name()
            .map_err(unreadable)?
            .map(|link| link.into_owned());
        match (entry.header().entry_type(), link) {
            (tar::EntryType::Directory, _) => {
                fs::create_dir_all(&target).map_err(BuildError::io("make", &target))?
            }
            (tar::EntryType::Symlink, Some(link)) => taker.link(&link, &target)?,
            (tar::EntryType::Link, Some(link)) => {
                // A second name of an entry before it: as good as a copy.
                let link = link.to_string_lossy();
                let first = taker.place(&link)?;
                taker.check_folder(first.parent().unwrap_or(&first), &link)?;
                if first.is_symlink() {
                    return Err(leaves(&link));
                }
                let mut from = File::open(&first).map_err(BuildError::io("open", &first))?;
                taker.write(&mut from, &target)?;
                let mode = fs::metadata(&first).map_err(BuildError::io("read", &first))?;
                set_mode(&target, mode.permissions().mode())?;
            }
            (kind, _) if kind.is_file() => {
                let mode = entry.header().mode().map_err(unreadable)?;
                taker.write(&mut entry, &target)?;
                set_mode(&target, mode)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn set_mode(target: &Path, mode: u32) -> Result<(), BuildError> {
    // Ours to write, whatever the archive says.
    fs::set_permissions(target, fs::Permissions::from_mode((mode & 0o777) | 0o600))
        .map_err(BuildError::io("change the rights of", target))
}

fn pattern(text: &str) -> Result<Pattern, BuildError> {
    Pattern::new(text).map_err(|error| {
        BuildError::Usage(format!(
            "the pattern {text} of a recipe is wrong: {error}; mend the recipe"
        ))
    })
}

/// Takes the entries that a rule wants, and puts them where it says.
struct EntryUnpacker<'a, 'w> {
    root: &'a Path,
    rule: &'a UnpackRule,
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    watch: &'a mut Watch<'w>,
    count: u64,
    bytes: u64,
}

impl<'a, 'w> EntryUnpacker<'a, 'w> {
    fn new(
        rule: &'a UnpackRule,
        root: &'a Path,
        watch: &'a mut Watch<'w>,
    ) -> Result<Self, BuildError> {
        fs::create_dir_all(root).map_err(BuildError::io("make", root))?;
        let patterns = |texts: &[String]| {
            texts
                .iter()
                .map(|text| pattern(text))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            root,
            rule,
            include: patterns(&rule.include)?,
            exclude: patterns(&rule.exclude)?,
            watch,
            count: 0,
            bytes: 0,
        })
    }

    /// Where an entry goes; `None` for one that is not wanted. Its folder is made.
    fn target(&mut self, entry: &str) -> Result<Option<PathBuf>, BuildError> {
        self.watch.check_cancelled()?;
        let entry = entry.trim_start_matches("./");
        let has = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(entry));
        if !has(&self.include)
            || has(&self.exclude)
            || Path::new(entry).components().count() <= self.rule.strip
        {
            return Ok(None);
        }
        let target = self.place(entry)?;
        let folder = target.parent().unwrap_or(self.root);
        // Before something is made there, as far as it is there already.
        let there = folder.ancestors().find(|above| above.exists());
        self.check_folder(there.unwrap_or(self.root), entry)?;
        fs::create_dir_all(folder).map_err(BuildError::io("make", folder))?;
        self.check_folder(folder, entry)?;
        self.count += 1;
        Ok(Some(target))
    }

    /// A link that an earlier entry made must not be on the way to this one: what is relative to it
    /// would lead elsewhere than its name says.
    fn check_folder(&self, folder: &Path, entry: &str) -> Result<(), BuildError> {
        let real = |path: &Path| path.canonicalize().map_err(BuildError::io("read", path));
        let below = folder.strip_prefix(self.root).unwrap_or(folder);
        match real(folder)? == real(self.root)?.join(below) {
            true => Ok(()),
            false => Err(leaves(entry)),
        }
    }

    /// The path of an entry, checked by its name alone.
    fn place(&self, entry: &str) -> Result<PathBuf, BuildError> {
        let entry_path = Path::new(entry.trim_start_matches("./"));
        if !is_inside(entry_path) {
            return Err(leaves(entry));
        }
        Ok(self.root.join(&self.rule.into).join(
            entry_path
                .components()
                .skip(self.rule.strip)
                .collect::<PathBuf>(),
        ))
    }

    fn write(&mut self, from: &mut impl Read, target: &Path) -> Result<(), BuildError> {
        // What an earlier entry put there may be a link.
        let mut file = create_in_place(target).map_err(BuildError::io("write", target))?;
        self.bytes += io::copy(from, &mut file).map_err(BuildError::io("write", target))?;
        self.watch.report(self.bytes);
        Ok(())
    }

    /// A link that stays inside; others are errors.
    fn link(&self, to: &Path, at: &Path) -> Result<(), BuildError> {
        let mut depth = at
            .strip_prefix(self.root)
            .map_or(0, |below| below.components().count())
            .saturating_sub(1);
        for component in to.components() {
            match component {
                Component::Normal(_) => depth += 1,
                Component::CurDir => {}
                Component::ParentDir if depth > 0 => depth -= 1,
                _ => return Err(leaves(&to.display().to_string())),
            }
        }
        let _ = fs::remove_file(at);
        symlink(to, at).map_err(BuildError::io("make the link", at))
    }
}

fn leaves(entry: &str) -> BuildError {
    BuildError::Unfit(format!(
        "the archive's entry {entry} would leave the build's folder; do not use this package"
    ))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Instant;

    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::builds::progress::Stage;

    enum Entry {
        File(&'static str, &'static [u8]),
        Link(&'static str, &'static str),
        HardLink(&'static str, &'static str),
    }
    use Entry::{File as F, HardLink, Link};

    fn zip(entries: &[Entry]) -> Vec<u8> {
        let options =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for entry in entries {
            match entry {
                F(name, bytes) => {
                    writer.start_file(*name, options).unwrap();
                    writer.write_all(bytes).unwrap();
                }
                Link(name, to) | HardLink(name, to) => {
                    writer.add_symlink(*name, *to, options).unwrap()
                }
            }
        }
        writer.finish().unwrap().into_inner()
    }

    fn tar(entries: &[Entry]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for entry in entries {
            let (name, kind, to, bytes): (_, _, _, &[u8]) = match entry {
                F(name, bytes) => (*name, tar::EntryType::Regular, None, bytes),
                Link(name, to) => (*name, tar::EntryType::Symlink, Some(*to), b""),
                HardLink(name, to) => (*name, tar::EntryType::Link, Some(*to), b""),
            };
            let mut header = tar::Header::new_gnu();
            // The library refuses to write names that leave; those who attack do not use it.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(kind);
            header.set_size(bytes.len() as u64);
            header.set_mode(0o4755);
            if let Some(to) = to {
                header.as_gnu_mut().unwrap().linkname[..to.len()].copy_from_slice(to.as_bytes());
            }
            header.set_cksum();
            builder.append(&header, bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut writer =
            lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn rule(text: &str) -> UnpackRule {
        toml::from_str(text).unwrap()
    }

    /// Unpacks an archive of this name and returns the files and links below the build's folder.
    fn run(
        name: &str,
        bytes: &[u8],
        rules: &[UnpackRule],
    ) -> (tempfile::TempDir, Result<Vec<String>, BuildError>) {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join(name);
        fs::write(&archive, bytes).unwrap();
        let root = dir.path().join("build");
        let mut tell = |_: &crate::builds::FetchProgress| {};
        let mut watch = Watch {
            progress: &mut tell,
            is_cancelled: &|| false,
            name: "x".into(),
            stage: Stage::Unpacking,
            started: Instant::now(),
        };
        let outcome = unpack(&archive, rules, &root, &mut watch)
            .and_then(|()| open_rights(&root))
            .map(|()| {
                let mut found = Vec::new();
                list(&root, &root, &mut found);
                found.sort();
                found
            });
        (dir, outcome)
    }

    fn list(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_symlink() {
                found.push(format!(
                    "{name} -> {}",
                    fs::read_link(&path).unwrap().display()
                ));
            } else if path.is_dir() {
                list(root, &path, found);
            } else {
                let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
                found.push(format!(
                    "{name} {mode:o} {}",
                    fs::read_to_string(&path).unwrap()
                ));
            }
        }
    }

    #[test]
    fn rules_say_what_goes_where() {
        let entries = || {
            [
                F("top/bin/mysqld", b"\x7fELF"),
                F("top/bin/mysqld-debug", b"no"),
                F("top/scripts/x", b"#!/bin/sh"),
                F("top/share/a.sql", b"sql"),
                Link("top/bin/server", "mysqld"),
                F("other/file", b"no"),
            ]
        };
        let rules = [
            rule("include = [\"top/*\"]\nexclude = [\"*-debug\", \"*/scripts/*\"]\nstrip = 1"),
            rule("include = [\"*/x\"]\nstrip = 2\ninto = \"s\""),
        ];
        let plain = [
            "bin/mysqld 755 \x7fELF",
            "bin/server -> mysqld",
            "s/x 755 #!/bin/sh",
        ];
        let (_dir, found) = run("a.jar", &zip(&entries()), &rules);
        assert_eq!(
            found.unwrap(),
            [plain.as_slice(), &["share/a.sql 644 sql"]].concat()
        );
        // In a tar archive every file has the rights that it states, but for set-user-id.
        for (name, bytes) in [
            ("a.tgz", gz(&tar(&entries()))),
            ("a.txz", xz(&tar(&entries()))),
        ] {
            let (_dir, found) = run(name, &bytes, &rules);
            assert_eq!(
                found.unwrap(),
                [plain.as_slice(), &["share/a.sql 755 sql"]].concat()
            );
        }
    }

    #[test]
    fn archives_inside_archives_are_unpacked() {
        let inner = || [F("./share/x", b"1"), HardLink("share/y", "share/x")];
        let wrapped = |name: &'static str, bytes: Vec<u8>| {
            (zip(&[F("README", b"no"), F(name, bytes.leak())]), name)
        };
        for (bytes, name) in [
            wrapped("in.txz", xz(&tar(&inner()))),
            wrapped("in.tar.gz", gz(&tar(&inner()))),
        ] {
            let (_dir, found) = run(
                "a.jar",
                &bytes,
                &[rule(&format!("inside = \"*{}\"", &name[2..]))],
            );
            assert_eq!(found.unwrap(), ["share/x 755 1", "share/y 755 1"]);
        }
        let (bytes, _) = wrapped(
            "d/in.jar",
            zip(&[F("META-INF/x", b"no"), F("data/y", b"1")]),
        );
        let (_dir, found) = run(
            "a.jar",
            &bytes,
            &[rule(
                "inside = \"d/in.jar\"\nexclude = [\"META-INF*\"]\ninto = \"to\"",
            )],
        );
        assert_eq!(found.unwrap(), ["to/data/y 644 1"]);
    }

    #[test]
    fn nothing_leaves_the_folder() {
        let everything = [rule("")];
        for (name, bytes) in [
            ("a.zip", zip(&[F("../evil", b"x")])),
            ("a.zip", zip(&[F("/evil", b"x")])),
            ("a.zip", zip(&[Link("a/link", "../../evil")])),
            ("a.zip", zip(&[Link("link", "/etc")])),
            ("a.tgz", gz(&tar(&[F("a/../../evil", b"x")]))),
            (
                "a.tgz",
                gz(&tar(&[Link("link", "/tmp"), F("link/evil", b"x")])),
            ),
            (
                "a.tgz",
                gz(&tar(&[F("a", b"x"), HardLink("b", "../../evil")])),
            ),
            (
                "a.tgz",
                gz(&tar(&[Link("a/b/up", ".."), Link("t", "a/b/up/../..")])),
            ),
            (
                "a.tgz",
                gz(&tar(&[
                    Link("a/b/up", ".."),
                    Link("files.sha256", "a/b/up/../../evil"),
                ])),
            ),
            // The first link stays inside. Seen from where it leads, the second does not.
            (
                "a.tgz",
                gz(&tar(&[
                    Link("a/b/c/s", "../../.."),
                    Link("a/b/c/s/l", "../../../evil"),
                    F("l", b"x"),
                ])),
            ),
            (
                "a.tgz",
                gz(&tar(&[
                    Link("a/b/s", "../.."),
                    F("x", b"x"),
                    HardLink("y", "a/b/s/x"),
                ])),
            ),
        ] {
            let (dir, outcome) = run(name, &bytes, &everything);
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains("would leave the build's folder"), "{error}");
            assert!(!dir.path().join("evil").exists() && !Path::new("/evil").exists());
        }
    }

    #[test]
    fn a_file_replaces_a_link_of_its_name() {
        let entries = [F("a", b"1"), Link("l", "a"), F("l", b"2")];
        let (_dir, found) = run("a.tgz", &gz(&tar(&entries)), &[rule("")]);
        assert_eq!(found.unwrap(), ["a 755 1", "l 755 2"]);
    }

    #[test]
    fn what_cannot_be_unpacked_says_why() {
        let good = zip(&[F("a", b"x")]);
        for (name, bytes, text, wanted) in [
            ("a.zip", &b"no archive"[..], "", "cannot be read"),
            ("a.zip", &good[..good.len() / 2], "", "cannot be read"),
            (
                "a.tgz",
                &gz(&tar(&[F("a", b"xxxx")]))[..30],
                "",
                "cannot be read",
            ),
            ("a.rar", b"", "", "not an archive of a known kind"),
            ("a.zip", &good, "inside = \"*.txz\"", "has no *.txz"),
            (
                "a.zip",
                &good,
                "include = [\"bin/*\"]",
                "holds nothing of bin/*",
            ),
        ] {
            let (_dir, outcome) = run(name, bytes, &[rule(text)]);
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    /// The folder of an entry is made before it is known whether a link leads out on the way to it.
    #[test]
    fn no_folder_is_made_outside() {
        let archive = gz(&tar(&[
            Link("a/b/up", ".."),
            Link("t", "a/b/up/../.."),
            F("t/evil/deep/x", b"x"),
        ]));
        let (dir, outcome) = run("a.tgz", &archive, &[rule("")]);
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("would leave the build's folder"), "{error}");
        let made = dir.path().join("evil/deep");
        assert!(
            !made.exists(),
            "made outside of the build: {}",
            made.display()
        );
    }

    /// A link whose folder is not there yet is not followed. When the build is in the cache, `..` is
    /// the cache, and the link is somebody else's server.
    #[test]
    fn a_link_that_leads_out_later_is_refused() {
        let archive = gz(&tar(&[
            Link("a/b/up", ".."),
            Link("bin/server", "../a/b/up/../../mysql@8.0.33/bin/mysqld"),
        ]));
        let (dir, outcome) = run("a.tgz", &archive, &[rule("")]);
        let other = dir.path().join("mysql@8.0.33/bin");
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("mysqld"), "another build's").unwrap();
        let through = fs::read_to_string(dir.path().join("build/bin/server"));
        assert!(
            outcome.is_err(),
            "unpacked: {outcome:?}; it reads {through:?}"
        );
    }
}
