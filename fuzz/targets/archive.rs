//! Archives of builds: entries as `KIND NAME` NUL `CONTENT` NUL, written by a library into a tar or a
//! zip, so that their names and links are what is tried. Nothing outside of the folder may change.
#![no_main]

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use zip::write::SimpleFileOptions;

/// A kind, a name, and a content or the target of a link.
type Entry<'a> = (u8, &'a [u8], &'a [u8]);

fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let kind = match kind % 4 {
            0 => tar::EntryType::Regular,
            1 => tar::EntryType::Symlink,
            2 => tar::EntryType::Link,
            _ => tar::EntryType::Directory,
        };
        let mut header = tar::Header::new_gnu();
        let old = header.as_gnu_mut().expect("it was made so");
        let name = &name[..name.len().min(99)];
        old.name[..name.len()].copy_from_slice(name);
        let is_file = kind == tar::EntryType::Regular;
        if !is_file {
            let to = &content[..content.len().min(99)];
            old.linkname[..to.len()].copy_from_slice(to);
        }
        let content: &[u8] = if is_file { content } else { b"" };
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o4755);
        header.set_cksum();
        builder.append(&header, content).expect("it is in memory");
    }
    let tar = builder.into_inner().expect("it is in memory");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gz.write_all(&tar).expect("it is in memory");
    gz.finish().expect("it is in memory")
}

fn zip(entries: &[Entry<'_>]) -> Option<Vec<u8>> {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (kind, name, content) in entries {
        let name = String::from_utf8_lossy(name);
        if kind % 4 == 1 {
            let to = String::from_utf8_lossy(content);
            writer.add_symlink(&*name, &*to, options).ok()?;
        } else {
            writer.start_file(&*name, options).ok()?;
            writer.write_all(content).ok()?;
        }
    }
    Some(writer.finish().ok()?.into_inner())
}

/// All links of an unpacked build lead to what is below it.
fn check_links(root: &Path, dir: &Path) {
    for entry in fs::read_dir(dir).expect("it is there").flatten() {
        let path = entry.path();
        if path.is_symlink() {
            if let Ok(real) = path.canonicalize() {
                assert!(real.starts_with(root), "{} leads out", path.display());
            }
        } else if path.is_dir() {
            check_links(root, &path);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    let mut parts = bytes.split(|byte| *byte == 0);
    let mut entries = Vec::new();
    while let (Some([kind, name @ ..]), Some(content)) = (parts.next(), parts.next()) {
        entries.push((*kind, name, content));
    }
    let (ending, archive) = match which % 3 {
        0 => ("tar.gz", Some(tar(&entries))),
        1 => ("zip", zip(&entries)),
        _ => ("zip", Some(bytes.to_vec())),
    };
    let Some(archive) = archive else { return };
    let dir = tempfile::tempdir_in("/dev/shm").expect("there is room");
    let place = dir.path().canonicalize().expect("it is there");
    let (root, outside) = (place.join("root"), place.join("outside"));
    fs::create_dir(&outside).expect("there is room");
    fs::write(outside.join("kept"), "kept").expect("there is room");
    let file = place.join(format!("a.{ending}"));
    fs::write(&file, &archive).expect("there is room");

    let unpacked = plimsoll_lab::builds::unpack_all(&file, &root);

    let names = |dir: &Path| fs::read_dir(dir).expect("it is there").count();
    assert_eq!(fs::read(outside.join("kept")).expect("it is there"), b"kept");
    assert_eq!(names(&outside), 1, "nothing is made outside");
    assert!(names(&place) <= 3, "nothing is made next to the folder");
    assert_eq!(fs::read(&file).expect("it is there"), archive);
    if unpacked.is_ok() {
        check_links(&root, &root);
    }
});
