//! Where things are, when the arguments do not say.

use std::path::PathBuf;

use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::{default_cache_dir, default_data_dir};
use plimsoll_store::{Fleet, Store, shell_word};

use crate::arguments::{OverHosts, Places};
use crate::failure::Failure;

impl Places {
    pub fn store(&self) -> Store {
        Store::new(&self.store)
    }

    pub fn builds(&self) -> Result<BuildCache, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::bug(format!("failed to find this program: {error}")))?;
        Ok(BuildCache::new(self.cache_dir()?).under_guard(program))
    }

    pub fn cache_dir(&self) -> Result<PathBuf, Failure> {
        Ok(self.cache.clone().map_or_else(default_cache_dir, Ok)?)
    }

    pub fn data_dir(&self) -> Result<PathBuf, Failure> {
        Ok(self.data.clone().map_or_else(default_data_dir, Ok)?)
    }

    /// Options of commands to type that name places, as the user has given them: empty, or each
    /// behind a space.
    pub fn options(&self) -> String {
        let given = [("--cache", &self.cache), ("--data", &self.data)];
        let option = |(name, dir): (&str, &Option<PathBuf>)| {
            let dir = dir.as_deref()?.to_string_lossy();
            Some(format!(" {name} {}", shell_word(&dir)))
        };
        given.into_iter().filter_map(option).collect()
    }

    /// The command that goes on with the campaign at `path`, a word of a shell: builds are looked for
    /// where they were.
    pub fn resume(&self, path: &str) -> String {
        let cache = self.cache.as_deref().map(|dir| dir.to_string_lossy());
        let cache = cache.map_or_else(String::new, |dir| format!(" --cache {}", shell_word(&dir)));
        format!("plimsoll resume {path}{cache}")
    }
}

impl OverHosts {
    /// Options of commands to type that name these hosts and their file, as the user has given
    /// them. If no host was given, those that the campaign has.
    pub fn options(&self, fleet: Option<&Fleet>) -> String {
        let names = match (fleet, self.hosts.is_empty()) {
            (Some(Fleet::Hosts { names, .. }), true) => names,
            _ => &self.hosts,
        };
        match names.is_empty() {
            true => String::new(),
            false => format!(" --hosts {}{}", shell_word(&names.join(",")), self.about()),
        }
    }

    /// Options of `resume`, which knows the campaign's hosts unless it was given others.
    pub fn resume_options(&self, fleet: Option<&Fleet>) -> String {
        match fleet {
            Some(Fleet::Hosts { names, .. }) if *names == self.hosts => self.about(),
            Some(Fleet::Hosts { .. }) if self.hosts.is_empty() => self.about(),
            _ => self.options(None),
        }
    }

    fn about(&self) -> String {
        let file = self.hosts_file.as_deref().map(|file| {
            let file = file.to_string_lossy();
            format!(" --hosts-file {}", shell_word(&file))
        });
        let skew = if self.allow_skew { " --allow-skew" } else { "" };
        format!("{}{skew}", file.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_type_repeat_what_was_said_of_hosts() {
        let over = |hosts: &[&str], file: Option<&str>| OverHosts {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            hosts_file: file.map(PathBuf::from),
            allow_skew: false,
        };
        let fleet = Fleet::Hosts {
            names: vec!["a".into(), "b".into()],
            class: None,
        };
        let of = |over: &OverHosts| {
            (
                over.options(Some(&fleet)),
                over.resume_options(Some(&fleet)),
            )
        };
        for (over, confirm, resume) in [
            (over(&["a", "b"], None), " --hosts a,b", ""),
            (
                over(&[], Some("f")),
                " --hosts a,b --hosts-file f",
                " --hosts-file f",
            ),
            (
                over(&["class=c"], None),
                " --hosts 'class=c'",
                " --hosts 'class=c'",
            ),
        ] {
            assert_eq!(of(&over), (confirm.to_owned(), resume.to_owned()));
        }
        let skewed = OverHosts {
            allow_skew: true,
            ..over(&["a"], None)
        };
        assert_eq!(skewed.options(None), " --hosts a --allow-skew");
        assert_eq!(over(&[], Some("f")).options(None), "", "at home");
    }
}
