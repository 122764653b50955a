//! `hosts.toml`: which machines there are. It is the user's, and no part of a plan.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::suggest::hint;
use plimsoll_core::units::parse_duration_ns;
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// The variable that names the file.
const VARIABLE: &str = "PLIMSOLL_HOSTS";
/// The default of a host's folder for program, builds, data and spool.
const DEFAULT_DIR: &str = "/var/lib/plimsoll";
/// A host that says nothing for this long is lost.
const PATIENCE: Duration = Duration::from_secs(10);
const LEAST_PATIENCE: Duration = Duration::from_secs(3);

/// The machines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The file.
    pub file: PathBuf,
    /// A host that says nothing for this long is lost.
    pub patience: Duration,
    /// The configuration that ssh reads instead of the user's.
    pub ssh_config: Option<PathBuf>,
    /// In the order of their names.
    pub hosts: Vec<Host>,
}

/// A machine that is reached by ssh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// What it is called in commands, events and reports.
    pub name: String,
    /// Where ssh connects to: anything that ssh understands.
    pub ssh: String,
    /// Its machine type, if it was given. Blocks of one campaign run on one type.
    pub class: Option<String>,
    /// The folder there that holds the program, builds, data and spool.
    pub dir: PathBuf,
    /// The configuration that ssh reads instead of the user's.
    pub ssh_config: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    ssh_config: Option<PathBuf>,
    patience: Option<String>,
    #[serde(default)]
    host: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    ssh: String,
    class: Option<String>,
    dir: Option<PathBuf>,
}

impl Hosts {
    /// Reads a file; one that is not there has no hosts.
    ///
    /// # Errors
    /// When it cannot be read, with its line where it is not TOML of this form.
    pub fn read(file: &Path) -> Result<Self, LabError> {
        match fs::read_to_string(file) {
            Ok(text) => Self::parse(file, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::parse(file, ""),
            Err(error) => Err(LabError::Usage(format!(
                "the hosts in {} cannot be read: {error}",
                file.display()
            ))),
        }
    }

    fn parse(file: &Path, text: &str) -> Result<Self, LabError> {
        let wrong = |what: String| LabError::Usage(format!("{}: {what}", file.display()));
        let read: File = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let patience = match read.patience {
            None => PATIENCE,
            Some(text) => Duration::from_nanos(
                parse_duration_ns(&text).map_err(|error| wrong(format!("patience: {error}")))?,
            ),
        };
        if patience < LEAST_PATIENCE {
            return Err(wrong(format!(
                "patience is {patience:?}: a network may be silent for a moment, write \"3s\" or \
                more"
            )));
        }
        let folder = file.parent().unwrap_or(Path::new("."));
        let ssh_config = read.ssh_config.map(|config| folder.join(config));
        let mut hosts = Vec::new();
        for (name, entry) in read.host {
            check_name(&name).map_err(&wrong)?;
            let dir = entry.dir.unwrap_or_else(|| DEFAULT_DIR.into());
            check_entry(&name, &entry.ssh, &dir).map_err(&wrong)?;
            hosts.push(Host {
                name,
                ssh: entry.ssh,
                class: entry.class,
                dir,
                ssh_config: ssh_config.clone(),
            });
        }
        Ok(Self {
            file: file.to_owned(),
            patience,
            ssh_config,
            hosts,
        })
    }

    /// The host of this name.
    ///
    /// # Errors
    /// When there is none; the error names the nearest one.
    pub fn get(&self, name: &str) -> Result<&Host, LabError> {
        self.hosts
            .iter()
            .find(|host| host.name == name)
            .ok_or_else(|| {
                let known = self.hosts.iter().map(|host| host.name.as_str());
                LabError::Usage(format!(
                    "{} has no host \"{name}\"{}; `plimsoll host add {name} --ssh USER@ADDRESS` \
                    adds it",
                    self.file.display(),
                    hint(name, known)
                ))
            })
    }

    /// The hosts of these names, each once, which are all of one class. `class=C` stands for all
    /// hosts of that class.
    ///
    /// # Errors
    /// When one is not there or they are of several classes: a ratio within a block says nothing
    /// about another machine type.
    pub fn choose(&self, names: &[String]) -> Result<Vec<Host>, LabError> {
        let mut chosen: Vec<Host> = Vec::new();
        for name in names {
            let found: Vec<&Host> = match name.strip_prefix("class=") {
                None => vec![self.get(name)?],
                Some(class) => {
                    let of_class = |host: &&Host| host.class.as_deref() == Some(class);
                    self.hosts.iter().filter(of_class).collect()
                }
            };
            if found.is_empty() {
                return Err(LabError::Usage(format!(
                    "{} has no host with {name}; `plimsoll host list` shows them",
                    self.file.display()
                )));
            }
            for host in found {
                if !chosen.contains(host) {
                    chosen.push(host.clone());
                }
            }
        }
        let first = chosen.first().ok_or_else(|| {
            LabError::Usage("no host is named; `plimsoll host list` shows them".into())
        })?;
        if let Some(other) = chosen.iter().find(|host| host.class != first.class) {
            let class = |host: &Host| host.class.clone().unwrap_or_else(|| "none".into());
            return Err(LabError::Usage(format!(
                "{} is of class {} and {} of class {}: run a campaign on hosts of one class",
                first.name,
                class(first),
                other.name,
                class(other)
            )));
        }
        Ok(chosen)
    }

    /// Adds a host at the end of the file, which is made where it is missing. What is in it stays
    /// as it is.
    ///
    /// # Errors
    /// When the name is taken or the file cannot be written.
    pub fn add(&self, host: &Host) -> Result<(), LabError> {
        self.check_new(host)?;
        let text = |value: &str| toml::Value::String(value.to_owned()).to_string();
        let mut entry = format!("\n[host.{}]\nssh = {}\n", host.name, text(&host.ssh));
        if let Some(class) = &host.class {
            entry.push_str(&format!("class = {}\n", text(class)));
        }
        entry.push_str(&format!("dir = {}\n", text(&host.dir.to_string_lossy())));
        let failed =
            |error| LabError::io(format!("failed to write {}", self.file.display()), error);
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut file = fs::File::options()
            .create(true)
            .append(true)
            .open(&self.file)
            .map_err(failed)?;
        file.write_all(entry.as_bytes()).map_err(failed)
    }

    /// Whether a host can be added.
    ///
    /// # Errors
    /// When its name is taken or none, or an entry would not be read back.
    pub fn check_new(&self, host: &Host) -> Result<(), LabError> {
        check_name(&host.name).map_err(LabError::Usage)?;
        check_entry(&host.name, &host.ssh, &host.dir).map_err(LabError::Usage)?;
        if self.hosts.iter().any(|known| known.name == host.name) {
            return Err(LabError::Usage(format!(
                "{} has a host \"{}\" already: edit the file, or choose another name",
                self.file.display(),
                host.name
            )));
        }
        Ok(())
    }
}

fn check_entry(name: &str, ssh: &str, dir: &Path) -> Result<(), String> {
    if !dir.is_absolute() {
        return Err(format!(
            "[host.{name}] dir is {}: it must be an absolute path on the host",
            dir.display()
        ));
    }
    // ssh would take it for an option.
    if ssh.is_empty() || ssh.starts_with('-') {
        return Err(format!(
            "[host.{name}] ssh is \"{ssh}\": write what follows `ssh`, such as \"bench@db1.lab\""
        ));
    }
    Ok(())
}

/// A name is a word: it is a part of paths, of TOML and of tables.
///
/// # Errors
/// Says what is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && name.len() <= 40 && name.chars().all(is_part) {
        true => Ok(()),
        false => Err(format!(
            "the host's name \"{name}\" may have letters, digits, - and _ only, at most 40"
        )),
    }
}

/// The file when none is given: what `PLIMSOLL_HOSTS` names, else `plimsoll/hosts.toml` in the
/// user's folder of configurations.
///
/// # Errors
/// When neither that variable nor a home is set.
pub fn default_hosts_file() -> Result<PathBuf, LabError> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(file) = variable(VARIABLE) {
        return Ok(file.into());
    }
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || std::env::home_dir().map(|home| home.join(".config"));
    config
        .filter(|path| path.is_absolute())
        .or_else(home)
        .map(|config| config.join("plimsoll/hosts.toml"))
        .ok_or_else(|| {
            LabError::Usage("HOME is not set: say where hosts are with --hosts-file FILE".into())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ssh_config = \"cfg\"\npatience = \"5s\"\n[host.b]\nssh = \"b\"\nclass = \
                        \"m5\"\ndir = \"/b\"\n[host.a]\nssh = \"u@a\"\nclass = \"m5\"\n[host.c]\n\
                        ssh = \"c\"\n";

    fn parse(text: &str) -> Result<Hosts, String> {
        Hosts::parse(Path::new("/etc/x/hosts.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_are_read_and_chosen() {
        let hosts = parse(TEXT).unwrap();
        assert_eq!(hosts.patience, Duration::from_secs(5));
        let a = hosts.get("a").unwrap();
        assert_eq!(a.dir, Path::new(DEFAULT_DIR));
        assert_eq!(a.ssh_config.as_deref(), Some(Path::new("/etc/x/cfg")));
        let names = |wanted: &[&str]| -> Result<Vec<String>, String> {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            let chosen = hosts.choose(&wanted).map_err(|error| error.to_string())?;
            Ok(chosen.into_iter().map(|host| host.name).collect())
        };
        assert_eq!(names(&["b", "a", "b"]).unwrap(), ["b", "a"]);
        assert_eq!(names(&["class=m5", "a"]).unwrap(), ["a", "b"]);
        for (wanted, error) in [
            (&["a", "c"][..], "a is of class m5 and c of class none"),
            (&["d"], "has no host \"d\""),
            (&["class=m6"], "has no host with class=m6"),
            (&[], "no host is named"),
        ] {
            let found = names(wanted).unwrap_err();
            assert!(found.contains(error), "{found}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_place() {
        for (text, wanted) in [
            ("[host.a]\n", "missing field `ssh`"),
            (
                "[host.a]\nssh = \"-oProxyCommand=x\"\n",
                "write what follows `ssh`",
            ),
            (
                "[host.a]\nssh = \"a\"\ndir = \"x\"\n",
                "must be an absolute path",
            ),
            ("[host.\"a b\"]\nssh = \"a\"\n", "letters, digits"),
            ("patience = \"1s\"\n", "write \"3s\" or more"),
            ("patience = \"x\"\n", "patience: "),
            ("[hosts.a]\nssh = \"a\"\n", "unknown field `hosts`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.starts_with("/etc/x/hosts.toml: ") && error.contains(wanted),
                "{error}"
            );
        }
    }

    #[test]
    fn a_host_is_added_behind_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new/hosts.toml");
        let host = Host {
            name: "db1".into(),
            ssh: "bench@db1.lab".into(),
            class: Some("m5 \"metal\"".into()),
            dir: "/srv/p".into(),
            ssh_config: None,
        };
        Hosts::read(&file).unwrap().add(&host).unwrap();
        let hosts = Hosts::read(&file).unwrap();
        assert_eq!(hosts.hosts, std::slice::from_ref(&host));
        let error = hosts.add(&host).unwrap_err().to_string();
        assert!(error.contains("has a host \"db1\" already"), "{error}");
        fs::write(&file, "# mine\npatience = \"4s\"\n").unwrap();
        Hosts::read(&file).unwrap().add(&host).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# mine\n"), "{text}");
        assert_eq!(Hosts::read(&file).unwrap().hosts, [host]);
    }
}
