//! Recipes: which package holds a build, which client fetches it, and how it is laid out. Data,
//! read from the files in `builds/`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use plimsoll_core::engines::{self, EngineName};
use plimsoll_engine::DataInit;
use serde::Deserialize;

use crate::builds::error::BuildError;
use crate::builds::make::flags::FlagSet;
use crate::builds::make::recipe::{MakePlan, MakeRecipe};

/// Where a package comes from: the ordinary client that fetches it and what that client calls it.
/// Never a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "client", rename_all = "lowercase", deny_unknown_fields)]
pub enum Package {
    /// An artifact of a Maven repository.
    Mvn {
        /// `group:artifact:version[:type[:classifier]]`.
        artifact: String,
    },
    /// A package of the npm registry.
    Npm {
        /// `name@version`.
        package: String,
    },
    /// Packages of a Debian suite.
    Apt {
        /// `bookworm`, `sid`, ...
        suite: String,
        /// Fetched with all they depend on, the C library included. The first one's version is the
        /// build's, unless there is an `also`.
        #[serde(default)]
        packages: Vec<String>,
        /// Fetched alone, in exactly this suite: for suites that cannot resolve what they need by
        /// themselves.
        #[serde(default)]
        also: Vec<String>,
        /// Whether the suite's security updates count. Without them one more patch level can be
        /// had.
        #[serde(default)]
        has_security: bool,
    },
    /// A source package of a Debian suite: compiled here, without Debian's patches.
    #[serde(rename = "apt-source")]
    AptSource {
        /// `bookworm`, `sid`, ...
        suite: String,
        /// The source package; `NAME=VERSION` if the suite's index has several.
        name: String,
        /// Whether the suite's security updates count.
        #[serde(default)]
        has_security: bool,
    },
    /// One file of a package of cargo's registry: a whole source, compiled here.
    Cargo {
        /// `name@version`.
        package: String,
        /// Inside the package.
        file: PathBuf,
        /// Of the file.
        sha256: String,
    },
}

impl Package {
    /// The package as its client names it, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Mvn { artifact } => format!("mvn {artifact}"),
            Self::Npm { package } => format!("npm {package}"),
            Self::Apt {
                suite,
                has_security,
                ..
            } => format!(
                "apt {} of Debian {suite}{}",
                self.main_package().unwrap_or_default(),
                security(*has_security)
            ),
            Self::AptSource {
                suite,
                name,
                has_security,
            } => format!(
                "apt source {name} of Debian {suite}{}",
                security(*has_security)
            ),
            Self::Cargo { package, .. } => format!("cargo {package}"),
        }
    }

    /// The Debian package whose version is the build's.
    pub(crate) fn main_package(&self) -> Option<&str> {
        match self {
            Self::Apt { packages, also, .. } => {
                also.first().or(packages.first()).map(String::as_str)
            }
            _ => None,
        }
    }

    /// Whether it is compiled here.
    fn is_source(&self) -> bool {
        matches!(self, Self::AptSource { .. } | Self::Cargo { .. })
    }

    /// This package with `{release}` filled in.
    fn at_release(&self, release: &str) -> Self {
        let fill = |text: &String| text.replace("{release}", release);
        match self {
            Self::Mvn { artifact } => Self::Mvn {
                artifact: fill(artifact),
            },
            Self::Npm { package } => Self::Npm {
                package: fill(package),
            },
            Self::Apt {
                suite,
                packages,
                also,
                has_security,
            } => Self::Apt {
                suite: fill(suite),
                packages: packages.iter().map(fill).collect(),
                also: also.iter().map(fill).collect(),
                has_security: *has_security,
            },
            Self::AptSource { .. } | Self::Cargo { .. } => self.clone(),
        }
    }
}

fn security(has_security: bool) -> &'static str {
    if has_security {
        " with security updates"
    } else {
        ""
    }
}

/// Which entries of an archive go where. Patterns: `*` stands for any text, slashes included.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnpackRule {
    /// The archive inside the package, when the package only wraps it.
    pub inside: Option<String>,
    /// Entries to take.
    #[serde(default = "everything")]
    pub include: Vec<String>,
    /// Entries to leave out all the same.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Leading folders to drop from their names.
    #[serde(default)]
    pub strip: usize,
    /// The folder they go to, below the build's.
    #[serde(default)]
    pub into: PathBuf,
}

fn everything() -> Vec<String> {
    vec!["*".to_owned()]
}

/// Where things are in an unpacked build. Paths are relative to its folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layout {
    /// What to take from the archive. Debian packages are unpacked whole and need none.
    #[serde(default)]
    pub unpack: Vec<UnpackRule>,
    /// The server program.
    pub server: PathBuf,
    /// `--basedir`, or PostgreSQL's installation folder.
    #[serde(default)]
    pub basedir: PathBuf,
    /// `--lc-messages-dir`.
    pub share: Option<PathBuf>,
    /// `--plugin-dir`, where it differs from the compiled-in one.
    pub plugin: Option<PathBuf>,
    /// How a data directory is made.
    pub init: DataInit,
    /// Options the server cannot start without.
    #[serde(default)]
    pub server_options: Vec<String>,
    /// Storage engines by the option that loads their plugin.
    #[serde(default)]
    pub storage_plugins: BTreeMap<String, String>,
    /// RocksDB's benchmark program.
    pub db_bench: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeFile {
    engine: EngineName,
    source: String,
    rank: u32,
    packager: String,
    optimisation: Option<String>,
    package: Option<Package>,
    otherwise: Option<Package>,
    /// How a source becomes a build.
    make: Option<MakeRecipe>,
    layouts: BTreeMap<String, Layout>,
    builds: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    version: String,
    seen: Option<String>,
    release: Option<String>,
    layout: Option<String>,
    package: Option<Package>,
    packager: Option<String>,
}

/// One build that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    pub engine: EngineName,
    /// The name after `+` in a build's name.
    pub source: String,
    /// Of several sources that match a name, the lowest rank is taken. Rank 1 is not written in
    /// names.
    pub rank: u32,
    /// The exact version; or, with `seen`, a series such as `10.11` whose newest patch level the
    /// source has.
    pub version: String,
    /// The patch level a moving series had when the recipe was written.
    pub seen: Option<String>,
    /// Who compiled it.
    pub packager: String,
    /// Optimisation flags that the packager states, where the build itself does not.
    pub optimisation: Option<String>,
    pub package: Package,
    /// Where the package is not there: another one that holds the same.
    pub otherwise: Option<Package>,
    pub(crate) layout: Layout,
    /// If the package is a source: how it is compiled.
    pub(crate) make: Option<MakeRecipe>,
    /// With which flags; none before a name has said so.
    pub(crate) flags: Option<FlagSet>,
}

impl Recipe {
    /// Whether the exact version is known only after fetching.
    pub fn is_series(&self) -> bool {
        self.seen.is_some()
    }

    /// The version that orders it among others.
    pub(crate) fn newest_version(&self) -> &str {
        self.seen.as_deref().unwrap_or(&self.version)
    }

    /// The name of a build of this recipe at this version.
    pub(crate) fn name_at(&self, version: &str) -> String {
        if self.rank == 1 {
            format!("{}@{version}", self.engine)
        } else {
            format!("{}@{version}+{}", self.engine, self.source)
        }
    }

    /// This recipe of a source with a set of flags, and what it takes to compile it so.
    pub(crate) fn with_flags(&self, plan: &MakePlan) -> Self {
        Self {
            source: format!("{}-{}", self.source, plan.flags.name),
            flags: Some(plan.flags.clone()),
            make: Some(plan.how.clone()),
            ..self.clone()
        }
    }

    /// The name of what this recipe offers.
    pub fn name(&self) -> String {
        self.name_at(&self.version)
    }
}

/// Reads one recipe file and checks that it is complete. `file` names it in errors.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Recipe>, BuildError> {
    let wrong = |problem: String| {
        BuildError::Usage(format!(
            "the recipe {file} is wrong: {problem}; mend the file"
        ))
    };
    let recipe_file: RecipeFile = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let mut used_layouts = BTreeSet::new();
    let mut recipes = Vec::new();
    for entry in &recipe_file.builds {
        let wrong = |problem: &str| wrong(format!("version {}: {problem}", entry.version));
        let layout_name = entry.layout.as_deref().unwrap_or("default");
        let layout = recipe_file
            .layouts
            .get(layout_name)
            .ok_or_else(|| wrong(&format!("there is no layout \"{layout_name}\"")))?;
        used_layouts.insert(layout_name);
        let package = entry
            .package
            .as_ref()
            .or(recipe_file.package.as_ref())
            .ok_or_else(|| wrong("it names no package"))?;
        let release = entry.release.as_deref().unwrap_or(&entry.version);
        let package = package.at_release(release);
        let otherwise = recipe_file
            .otherwise
            .as_ref()
            .map(|package| package.at_release(release));
        for package in [Some(&package), otherwise.as_ref()].into_iter().flatten() {
            check(recipe_file.engine, layout, package).map_err(|problem| wrong(&problem))?;
            check_make(recipe_file.make.as_ref(), package).map_err(|problem| wrong(&problem))?;
        }
        recipes.push(Recipe {
            engine: recipe_file.engine,
            source: recipe_file.source.clone(),
            rank: recipe_file.rank,
            version: entry.version.clone(),
            seen: entry.seen.clone(),
            packager: entry
                .packager
                .clone()
                .unwrap_or_else(|| recipe_file.packager.clone()),
            optimisation: recipe_file.optimisation.clone(),
            package,
            otherwise,
            layout: layout.clone(),
            make: recipe_file.make.clone(),
            flags: None,
        });
    }
    if recipes.is_empty() {
        return Err(wrong("it offers no build".to_owned()));
    }
    // It is probably misspelt where a build should name it.
    if let Some(unused) = recipe_file
        .layouts
        .keys()
        .find(|name| !used_layouts.contains(name.as_str()))
    {
        return Err(wrong(format!("no build uses the layout \"{unused}\"")));
    }
    Ok(recipes)
}

fn check(engine: EngineName, layout: &Layout, package: &Package) -> Result<(), String> {
    let Some(facts) = &engine.facts().builds else {
        return Err(format!("{engine} is part of the program and has no recipe"));
    };
    if !facts.inits.contains(&layout.init.key()) {
        return Err(format!(
            "{:?} does not make a data directory of {engine}",
            layout.init
        ));
    }
    if (facts.layout == engines::Layout::Share) != layout.share.is_some() {
        return Err("`share` is for MySQL and MariaDB, which need it".to_owned());
    }
    let paths = [&layout.server, &layout.basedir]
        .into_iter()
        .chain(&layout.share)
        .chain(&layout.plugin)
        .chain(&layout.db_bench);
    for path in paths.chain(layout.unpack.iter().map(|rule| &rule.into)) {
        if !is_inside(path) {
            return Err(format!(
                "the path {} leaves the build's folder",
                path.display()
            ));
        }
    }
    match package {
        Package::Apt { packages, also, .. } if packages.is_empty() && also.is_empty() => {
            Err("it names no Debian package".to_owned())
        }
        Package::Apt { .. } | Package::AptSource { .. } if !layout.unpack.is_empty() => {
            Err("Debian packages are unpacked whole: leave out `unpack`".to_owned())
        }
        Package::Mvn { .. } | Package::Npm { .. } if layout.unpack.is_empty() => {
            Err("it unpacks nothing".to_owned())
        }
        Package::Mvn { artifact } if !(3..=5).contains(&artifact.split(':').count()) => Err(
            format!("{artifact} is not group:artifact:version[:type[:classifier]]"),
        ),
        Package::Npm { package } | Package::Cargo { package, .. } if !package.contains('@') => {
            Err(format!("{package} is not name@version"))
        }
        Package::Cargo { file, .. } if !is_inside(file) => {
            Err(format!("{} leaves its package", file.display()))
        }
        Package::Cargo { sha256, .. } if !is_sha256(sha256) => Err(format!(
            "\"{sha256}\" is not a sha256, 64 small hexadecimal digits"
        )),
        _ => Ok(()),
    }
}

/// Sources are compiled, and nothing else is.
fn check_make(make: Option<&MakeRecipe>, package: &Package) -> Result<(), String> {
    match (make, package.is_source()) {
        (Some(make), true) => make.check(),
        (None, true) => Err("a source needs [make]".to_owned()),
        (Some(_), false) => Err("[make] is for sources".to_owned()),
        (None, false) => Ok(()),
    }
}

fn is_sha256(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    text.len() == 64 && text.chars().all(is_digit)
}

/// Whether a relative path stays below the folder it is joined to.
pub(crate) fn is_inside(path: &Path) -> bool {
    path.components()
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
engine = "mysql"
source = "attic"
rank = 1
packager = "nobody"
package = { client = "npm", package = "mysql@{release}" }
builds = [{ version = "5.6.1", release = "5.6.1002" }]

[layouts.default]
unpack = [{ strip = 1 }]
server = "bin/mysqld"
share = "share"
init = { copy = { dir = "data" } }
"#;

    #[test]
    fn a_release_is_filled_in() {
        let recipes = parse("x.toml", GOOD).unwrap();
        assert_eq!(recipes.len(), 1);
        assert_eq!(
            recipes[0].package,
            Package::Npm {
                package: "mysql@5.6.1002".into()
            }
        );
        assert_eq!(recipes[0].name(), "mysql@5.6.1");
    }

    #[test]
    fn a_file_of_a_package_is_a_source() {
        let good = "engine = \"sqlite\"\nsource = \"source\"\nrank = 9\npackager = \"x\"\n\
            [[builds]]\nversion = \"3.1.0\"\npackage = { client = \"cargo\", package = \
            \"a@1.0.0\", file = \"b/c.c\", sha256 = \"SUM\" }\n[layouts.default]\nserver = \
            \"lib/l.so\"\ninit = \"library\"\n[make]\nflags = \"o2\"\nprefix = \"/x\"\n\
            features = \"\"\nobjects = 1\nminutes = 1\nversion = [{ files = [\"c.c\"], after = \"V\" }]\n\
            needs = []\n[[make.steps]]\nname = \"x\"\nrun = [\"true\"]\n"
            .replace("SUM", &"0a".repeat(32));
        let recipes = parse("x.toml", &good).unwrap();
        assert_eq!(recipes[0].name(), "sqlite@3.1.0+source");
        assert_eq!(recipes[0].package.describe(), "cargo a@1.0.0");
        for (old, new, wanted) in [
            ("a@1.0.0", "a", "a is not name@version"),
            ("b/c.c", "../c.c", "../c.c leaves its package"),
            ("0a0a", "0A0a", "is not a sha256"),
            ("0a0a", "0a", "is not a sha256"),
            ("[make]", "[make.other]", "unknown field"),
        ] {
            let text = good.replacen(old, new, 1);
            let error = parse("x.toml", &text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("source = \"attic\"", "", "missing field `source`"),
            ("rank = 1", "rank = 1\ncolour = 2", "unknown field `colour`"),
            (
                "client = \"npm\"",
                "client = \"ftp\"",
                "unknown variant `ftp`",
            ),
            ("mysql@{release}", "mysql", "mysql is not name@version"),
            (
                "unpack = [{ strip = 1 }]",
                "",
                "version 5.6.1: it unpacks nothing",
            ),
            (
                "server = \"bin/mysqld\"",
                "server = \"../mysqld\"",
                "../mysqld leaves the build's folder",
            ),
            ("share = \"share\"", "", "`share` is for MySQL and MariaDB"),
            (
                "{ copy = { dir = \"data\" } }",
                "{ initdb = { program = \"x\" } }",
                "does not make a data directory of mysql",
            ),
            (
                "release = \"5.6.1002\"",
                "layout = \"other\"",
                "there is no layout \"other\"",
            ),
            (
                "[{ version = \"5.6.1\", release = \"5.6.1002\" }]",
                "[]",
                "it offers no build",
            ),
            ("engine = \"mysql\"", "engine = \"null\"", "has no recipe"),
            (
                "engine = \"mysql\"",
                "engine = \"rocksdb\"",
                "does not make a data directory of rocksdb",
            ),
            (
                "rank = 1",
                "rank = 1\notherwise = { client = \"npm\", package = \"mysql\" }",
                "mysql is not name@version",
            ),
        ];
        for (old, new, wanted) in cases {
            let text = GOOD.replacen(old, new, 1);
            assert_ne!(text, GOOD, "{old}");
            let error = parse("x.toml", &text).unwrap_err().to_string();
            assert!(
                error.contains(wanted) && error.starts_with("the recipe x.toml is wrong: "),
                "{error}"
            );
        }
    }
}
