//! `build.json`: what is known of an installed build, beside its files. Written last, so that a
//! folder without it is not a build.
//!
//! Paths below the build's folder are written as `{build}/...`: a cache can be moved or restored
//! elsewhere.

use std::fs;
use std::io::Write;
use std::path::Path;

use plimsoll_engine::InstalledBuild;
use plimsoll_store::create_in_place;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::builds::error::BuildError;

/// The file's name.
pub(crate) const FILE: &str = "build.json";
const PLACEHOLDER: &str = "{build}";

/// A build and how it came here. The file has the members of both in one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub provenance: Provenance,
    pub build: InstalledBuild,
}

/// How a build came here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Provenance {
    /// The source's name in recipes, or `own`.
    pub source: String,
    /// The Debian packages that were unpacked, with their versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Sum of the file with the sums of all files; not of users' own builds, nor of those that were
    /// added before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_sha256: Option<String>,
    /// Of what it was made, if it was made here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<MadeFrom>,
}

/// Of what a build was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeFrom {
    /// Sum of source, recipe, compiler and flags: a build that has the same is the same.
    pub identity: String,
    /// Sum of all that decides whether a workshop can go on: `identity` but for the commit.
    pub tools: String,
    /// The source's hash.
    pub source: String,
    /// The first line of `gcc --version`.
    pub compiler: String,
    /// The first line of `ld --version`; empty of builds that were made before it was recorded.
    #[serde(default)]
    pub binutils: String,
    /// The C library that was compiled against; empty as above.
    #[serde(default)]
    pub libc: String,
    /// The flag set's name.
    pub flag_set: String,
    /// Its options.
    pub flags: String,
    /// Which features are on and off.
    pub features: String,
    /// How many object files there were.
    pub objects: u64,
    /// How long it took, in seconds, after the source was there.
    pub seconds: u64,
}

impl Record {
    fn to_value(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(&self.build)?;
        if let (Value::Object(members), Value::Object(provenance)) =
            (&mut value, serde_json::to_value(&self.provenance)?)
        {
            members.extend(provenance);
        }
        Ok(value)
    }

    fn from_value(value: Value) -> serde_json::Result<Self> {
        Ok(Self {
            provenance: Provenance::deserialize(&value)?,
            build: InstalledBuild::deserialize(value)?,
        })
    }
}

/// Writes the record of the build in `root` and makes it durable.
pub(crate) fn write(root: &Path, record: &Record) -> Result<(), BuildError> {
    let path = root.join(FILE);
    let io = || BuildError::io("write", &path);
    let mut value = record.to_value().map_err(|error| io()(error.into()))?;
    let here = root.display().to_string();
    for_each_text(&mut value, &mut |text| {
        if let Some(rest) = text.strip_prefix(&here)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            *text = format!("{PLACEHOLDER}{rest}");
        }
    });
    let text = serde_json::to_string_pretty(&value).map_err(|error| io()(error.into()))?;
    let mut file = create_in_place(&path).map_err(io())?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.write_all(b"\n"))
        .and_then(|()| file.sync_all())
        .map_err(io())
}

/// Reads the record of the build in `root`; `None` where there is none.
pub(crate) fn read(root: &Path) -> Result<Option<Record>, BuildError> {
    let path = root.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BuildError::io("read", &path)(error)),
    };
    let damaged = |error: serde_json::Error| {
        BuildError::Unfit(format!(
            "{} is damaged ({error}); remove the folder {} and add the build again",
            path.display(),
            root.display()
        ))
    };
    let mut value: Value = serde_json::from_str(&text).map_err(damaged)?;
    let here = root.display().to_string();
    for_each_text(&mut value, &mut |text| {
        if let Some(rest) = text.strip_prefix(PLACEHOLDER) {
            *text = format!("{here}{rest}");
        }
    });
    Record::from_value(value).map(Some).map_err(damaged)
}

fn for_each_text(value: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| for_each_text(value, change)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|value| for_each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_core::engines::EngineName;
    use plimsoll_engine::DataInit;

    use super::*;

    #[test]
    fn a_build_can_be_moved() {
        let dir = tempfile::tempdir().unwrap();
        let (before, after) = (dir.path().join("before"), dir.path().join("after"));
        fs::create_dir(&before).unwrap();
        let at = |root: &Path| Record {
            provenance: Provenance {
                source: "jcabi".into(),
                packages: vec!["libaio1=0.3".into()],
                files_sha256: Some("ab".into()),
                made: None,
            },
            build: InstalledBuild {
                name: "mysql@5.6.14".into(),
                engine: EngineName::Mysql,
                version: "5.6.14".into(),
                origin: "/elsewhere".into(),
                toolchain: BTreeMap::new(),
                server_sha256: "00".into(),
                server: root.join("bin/mysqld"),
                basedir: root.to_owned(),
                share_dir: Some(root.join("share")),
                plugin_dir: None,
                init: DataInit::Bootstrap {
                    scripts: vec![root.join("share/a.sql"), root.join("share/b.sql")],
                },
                env: BTreeMap::from([(
                    "LD_LIBRARY_PATH".into(),
                    root.join("syslib").display().to_string(),
                )]),
                server_options: vec!["--mysqlx=OFF".into()],
                storage_plugins: BTreeMap::new(),
                db_bench: None,
                links: Vec::new(),
            },
        };
        assert_eq!(read(&before).unwrap(), None);
        write(&before, &at(&before)).unwrap();
        let text = fs::read_to_string(before.join(FILE)).unwrap();
        let members: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        for member in ["source", "packages", "name", "server_sha256"] {
            assert!(members.contains_key(member), "{member}: {text}");
        }
        fs::rename(&before, &after).unwrap();
        assert_eq!(read(&after).unwrap(), Some(at(&after)));
        fs::write(after.join(FILE), "{\"source\":").unwrap();
        assert!(read(&after).unwrap_err().to_string().contains("is damaged"));
    }
}
