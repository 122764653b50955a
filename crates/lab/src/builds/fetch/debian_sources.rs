//! The Debian archives this machine uses, read from its own configuration of apt. Recipes name no
//! host.

use std::fs;
use std::path::{Path, PathBuf};

use crate::builds::error::BuildError;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Suites of Debian itself: other archives (of tools, of vendors) have other names for theirs.
const SUITES: [&str; 13] = [
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "experimental",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "rc-buggy",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    pub uri: String,
    /// A file of keys.
    pub keyring: String,
}

/// The archives of Debian.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Archives {
    pub main: Archive,
    pub security: Option<Archive>,
}

/// Reads the sources below apt's configuration folder.
pub(crate) fn archives(etc_apt: &Path) -> Result<Archives, BuildError> {
    let mut files: Vec<PathBuf> = fs::read_dir(etc_apt.join("sources.list.d"))
        .map(|entries| {
            entries
                .filter_map(|entry| entry.ok().map(|entry| entry.path()))
                .collect()
        })
        .unwrap_or_default();
    files.sort();
    files.insert(0, etc_apt.join("sources.list"));
    let mut entries = Vec::new();
    for file in files {
        // A file that is not there or not for us to read names no archive.
        let text = fs::read_to_string(&file).unwrap_or_default();
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("sources") => entries.extend(parse_stanzas(&text)),
            Some("list") => entries.extend(parse_lines(&text)),
            _ => {}
        }
    }
    let find = |is_security: bool| {
        entries
            .iter()
            .find(|entry| entry.is_of_debian() && entry.is_security() == is_security)
            .map(|entry| entry.archive.clone())
    };
    let main = find(false).ok_or_else(|| {
        BuildError::Usage(format!(
            "apt's sources in {} name no archive of Debian, where this build comes from; choose \
            another source with +SOURCE",
            etc_apt.display()
        ))
    })?;
    Ok(Archives {
        main,
        security: find(true),
    })
}

struct Entry {
    archive: Archive,
    suites: Vec<String>,
}

impl Entry {
    fn is_security(&self) -> bool {
        self.suites.iter().any(|suite| suite.contains("security"))
    }

    fn is_of_debian(&self) -> bool {
        self.suites.iter().any(|suite| {
            suite
                .split(['-', '/'])
                .next()
                .is_some_and(|name| SUITES.contains(&name))
        })
    }
}

/// deb822: `Key: value` lines, stanzas parted by empty lines.
fn parse_stanzas(text: &str) -> Vec<Entry> {
    let stanza = |stanza: &str| {
        let field = |key: &str| {
            let value = stanza
                .lines()
                .filter(|line| !line.starts_with('#'))
                .find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case(key).then(|| value.trim())
                });
            value.unwrap_or_default()
        };
        let is_used = field("Types").split_whitespace().any(|kind| kind == "deb")
            && !field("Enabled").eq_ignore_ascii_case("no");
        let uri = field("URIs").split_whitespace().next()?;
        let keyring = Some(field("Signed-By"))
            .filter(|path| path.starts_with('/'))
            .unwrap_or(KEYRING);
        is_used.then(|| Entry {
            archive: Archive {
                uri: uri.to_owned(),
                keyring: keyring.to_owned(),
            },
            suites: field("Suites")
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
        })
    };
    text.split("\n\n").filter_map(stanza).collect()
}

/// `deb [options] URI SUITE COMPONENT...`
fn parse_lines(text: &str) -> Vec<Entry> {
    let line = |line: &str| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let mut words = rest.split_whitespace();
        let (uri, suite) = (words.next()?, words.next()?);
        let keyring = options
            .split_whitespace()
            .find_map(|option| option.strip_prefix("signed-by="))
            .unwrap_or(KEYRING);
        Some(Entry {
            archive: Archive {
                uri: uri.to_owned(),
                keyring: keyring.to_owned(),
            },
            suites: vec![suite.to_owned()],
        })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANZAS: &str = "Types: deb\n# a comment: with a colon\nURIs: \
                          http://mirror.example/debian\nSuites: bookworm bookworm-updates\n\
        Components: main\nSigned-By: /usr/share/keyrings/x.gpg\n\nTypes: deb\nURIs: \
                          http://mirror.example/debian-security\n\
        Suites: bookworm-security\nComponents: main\n";

    fn read(files: &[(&str, &str)]) -> Result<Archives, BuildError> {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sources.list.d")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        archives(dir.path())
    }

    fn archive(uri: &str, keyring: &str) -> Archive {
        Archive {
            uri: uri.into(),
            keyring: keyring.into(),
        }
    }

    #[test]
    fn both_formats_are_read_and_other_archives_passed_over() {
        let tools = "deb https://tools.example/apt cloud-sdk-bookworm main\n";
        let found = read(&[
            ("sources.list.d/debian.sources", STANZAS),
            ("sources.list.d/a-tools.list", tools),
        ])
        .unwrap();
        assert_eq!(
            found.main,
            archive("http://mirror.example/debian", "/usr/share/keyrings/x.gpg")
        );
        assert_eq!(
            found.security,
            Some(archive("http://mirror.example/debian-security", KEYRING))
        );

        let lines = "# deb http://old.example/debian trixie main\ndeb [arch=amd64 \
                    signed-by=/k.gpg] http://a.example/debian trixie main contrib\n\
                     deb-src http://a.example/debian trixie main\ndeb http://a.example/security \
                    stable-security/updates main\n";
        let found = read(&[("sources.list", lines)]).unwrap();
        assert_eq!(found.main, archive("http://a.example/debian", "/k.gpg"));
        assert_eq!(
            found.security,
            Some(archive("http://a.example/security", KEYRING))
        );
    }

    #[test]
    fn no_archive_of_debian_is_an_error() {
        let others = "deb http://other.example/ubuntu noble main\n";
        for files in [&[][..], &[("sources.list", others)][..]] {
            let error = read(files).unwrap_err().to_string();
            assert!(error.contains("name no archive of Debian"), "{error}");
        }
        let disabled = format!("Enabled: no\n{}", STANZAS.split("\n\n").next().unwrap());
        assert!(read(&[("sources.list.d/debian.sources", &disabled)]).is_err());
    }
}
