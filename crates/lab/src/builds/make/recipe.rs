//! How an engine's sources become a build: the `[make]` of a recipe file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_core::name::natural_cmp;
use plimsoll_engine::link_name;
use serde::Deserialize;

use crate::builds::make::flags::FlagSet;
use crate::builds::recipes::recipe::is_inside;

/// What to run, and what must be there for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MakeRecipe {
    /// The flag set that is meant if none is named.
    pub flags: String,
    /// The folder that the build is configured for. The same for all versions and all caches: a
    /// path of this machine in a program would move what lies behind it.
    pub prefix: PathBuf,
    /// Which features that move numbers are on and off; for people and for records.
    pub features: String,
    /// About how many object files there are in the end: what progress is measured by.
    pub objects: u64,
    /// How many minutes compiling took on two CPUs when the recipe was tried.
    pub minutes: u64,
    /// Files or folders that the engine's sources have and others do not.
    #[serde(default)]
    pub holds: Vec<PathBuf>,
    /// Where a source says which version it is: the numbers are joined by dots.
    pub version: Vec<VersionMark>,
    pub needs: Vec<Need>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub steps: Vec<Step>,
    /// How the server is linked once more, for flag sets with links; none if that is not known.
    pub link: Option<LinkStep>,
}

/// Links the server of the objects that are there. `{link}` has the options for the linker, and
/// `{to}` is the file to write.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkStep {
    /// The server, below the prefix.
    pub program: PathBuf,
    pub run: Vec<String>,
}

impl LinkStep {
    /// The file of a link, from 1, below the prefix: the first is the server itself, and others lie
    /// next to it, under names that nobody takes for another version of it.
    pub fn file(&self, number: u32) -> PathBuf {
        let name = self.program.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        match number {
            0 | 1 => self.program.clone(),
            _ => self.program.with_file_name(link_name(number, &name)),
        }
    }

    /// The options of the compiler for a link, from 1.
    pub fn options(number: u32) -> String {
        format!("-fuse-ld=lld -Wl,--shuffle-sections=.text*={number}")
    }
}

/// Where a number of the version stands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionMark {
    /// Files that may hold it; the first that is there does.
    pub files: Vec<PathBuf>,
    /// The text before it.
    pub after: String,
}

/// What the machine must have, and the Debian package that brings it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Need {
    pub program: Option<String>,
    /// A header of C or C++.
    pub header: Option<String>,
    pub package: String,
}

/// One command. `{flags}`, `{cc}`, `{cxx}`, `{jobs}`, `{prefix}`, `{stage}`, `{source}`,
/// `{objects}` and `{cache}` are filled in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub name: String,
    pub run: Vec<String>,
    /// Arguments of some versions alone.
    #[serde(default)]
    pub more: Vec<More>,
    /// Whether it is not run again when an interrupted build goes on.
    #[serde(default)]
    pub once: bool,
}

/// Arguments that some versions need.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct More {
    /// From this version on.
    pub since: Option<String>,
    /// Up to this version, which has them no longer.
    pub before: Option<String>,
    pub run: Vec<String>,
}

/// Puts the functions that it links into the order of a seed.
pub(crate) const LINKER: &str = "ld.lld";
pub(crate) const LINKER_PACKAGE: &str = "lld";

/// A recipe with a set of flags: what is run is known but for paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MakePlan {
    pub how: MakeRecipe,
    pub flags: FlagSet,
}

impl MakeRecipe {
    /// Checks what serde does not.
    pub fn check(&self) -> Result<(), String> {
        if !self.prefix.is_absolute() {
            return Err(format!("prefix {} is not absolute", self.prefix.display()));
        }
        if self.version.is_empty() || self.steps.is_empty() || self.objects == 0 {
            return Err("[make] lacks version, steps or objects".to_owned());
        }
        let files = self.version.iter().flat_map(|mark| &mark.files);
        let program = self.link.as_ref().map(|link| &link.program);
        let mut paths = files.chain(&self.holds).chain(program);
        if let Some(outside) = paths.find(|file| !is_inside(file)) {
            return Err(format!("{} leaves the source", outside.display()));
        }
        let is_one = |need: &Need| need.program.is_some() != need.header.is_some();
        if let Some(need) = self.needs.iter().find(|need| !is_one(need)) {
            return Err(format!(
                "{} is needed for a program or a header, not both",
                need.package
            ));
        }
        if self.link.as_ref().is_some_and(|link| link.run.is_empty()) {
            return Err("[make.link] runs nothing".to_owned());
        }
        let empty = self.steps.iter().find(|step| step.run.is_empty());
        empty.map_or(Ok(()), |step| {
            Err(format!("step {} runs nothing", step.name))
        })
    }
}

impl MakePlan {
    /// A recipe with a set of flags; `None` if that set has links and the recipe has none.
    pub fn new(mut how: MakeRecipe, flags: FlagSet) -> Option<Self> {
        if flags.links > 0 {
            how.link.as_ref()?;
            how.needs.push(Need {
                program: Some(LINKER.to_owned()),
                header: None,
                package: LINKER_PACKAGE.to_owned(),
            });
        }
        Some(Self { how, flags })
    }

    /// How the server is linked several times; none if it is linked once.
    pub fn link(&self) -> Option<&LinkStep> {
        self.how.link.as_ref().filter(|_| self.flags.links > 0)
    }
}

impl Step {
    /// Its arguments for a version, with placeholders filled in.
    pub fn arguments(&self, version: &str, fill: &dyn Fn(&str) -> String) -> Vec<String> {
        let more = self.more.iter().filter(|more| more.is_for(version));
        self.run
            .iter()
            .chain(more.flat_map(|more| &more.run))
            .map(|argument| fill(argument))
            .collect()
    }
}

impl More {
    fn is_for(&self, version: &str) -> bool {
        let is_before = |limit: &String| natural_cmp(version, limit).is_lt();
        !self.since.as_ref().is_some_and(is_before) && self.before.as_ref().is_none_or(is_before)
    }
}

/// Replaces `{NAME}` by values.
pub(crate) fn filled(text: &str, values: &[(&str, String)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// Whether a folder is one that a recipe's steps may have made.
pub(crate) fn staged(stage: &Path, prefix: &Path) -> PathBuf {
    let below = prefix.strip_prefix("/").unwrap_or(prefix);
    stage.join(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_depend_on_the_version() {
        let step: Step = toml::from_str(
            "name = \"configure\"\nrun = [\"./configure\", \"CFLAGS={flags}\"]\n\
            more = [{ since = \"16\", run = [\"--without-icu\"] }, \
            { before = \"14\", run = [\"--old\"] }]",
        )
        .unwrap();
        let fill = |text: &str| filled(text, &[("flags", "-O2 -g".to_owned())]);
        for (version, last) in [
            ("13.16", "--old"),
            ("14.1", "CFLAGS=-O2 -g"),
            ("16beta1", "--without-icu"),
            ("19rc1", "--without-icu"),
        ] {
            let arguments = step.arguments(version, &fill);
            assert_eq!(arguments.last().unwrap(), last, "{version}");
        }
    }
}
