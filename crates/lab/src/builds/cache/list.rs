//! What a cache holds and what recipes offer besides.

use plimsoll_core::name::natural_cmp;
use plimsoll_engine::directory_bytes;

use super::{BuildCache, Leftover};
use crate::builds::error::BuildError;
use crate::builds::inspect::server_file::short_version;
use crate::builds::recipes::recipe::Recipe;
use crate::builds::recipes::resolve::{OWN, is_patch_of};
use crate::builds::record::Record;

/// A build that is offered, or here, or both.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ListedBuild {
    /// The name for plans and for `build add`.
    pub name: String,
    /// The exact version, or a series followed by `.*`.
    pub version: String,
    /// The recipe's source, or `own`; `-` of what is not finished.
    pub source: String,
    /// Whether it can be used at once.
    pub state: BuildState,
    /// Its bytes on the disk; unknown for what is not here, and zero for a folder that is the
    /// user's own.
    pub bytes: Option<u64>,
    /// The package or folder.
    pub origin: String,
}

impl ListedBuild {
    /// The name of its engine.
    pub fn engine(&self) -> &str {
        self.name.split(['@', '+']).next().unwrap_or_default()
    }
}

/// Whether a build can be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildState {
    /// In the cache.
    Here,
    /// To be fetched.
    Available,
    /// In the cache, with a record that cannot be read.
    Damaged,
    /// A workshop: a build from source failed or was interrupted in it, or the next commit of a
    /// checkout goes on there.
    Unfinished,
}

impl BuildCache {
    /// What recipes offer and what is here, by engine and version. A series that is here is not
    /// listed again as available.
    pub fn list(&self) -> Result<Vec<ListedBuild>, BuildError> {
        let mut listed: Vec<ListedBuild> = self
            .records()?
            .into_iter()
            .map(|(name, record)| self.found(name, record.ok()))
            .collect();
        for recipe in self.recipes.iter().chain(&self.sources) {
            if !listed.iter().any(|build| is_of(build, recipe)) {
                listed.push(available(recipe));
            }
        }
        listed.extend(self.workshops()?.into_iter().map(unfinished));
        listed.sort_by(|a, b| {
            a.engine()
                .cmp(b.engine())
                .then_with(|| natural_cmp(&a.version, &b.version))
                .then_with(|| a.name.cmp(&b.name))
        });
        Ok(listed)
    }

    /// A build in the cache; without a record that can be read it is damaged.
    fn found(&self, name: String, record: Option<Record>) -> ListedBuild {
        let folder = self.dir.join(&name);
        let bytes = directory_bytes(&folder).ok();
        match record {
            Some(record) => ListedBuild {
                name,
                version: record.build.version,
                bytes: if record.provenance.source == OWN {
                    Some(0)
                } else {
                    bytes
                },
                source: record.provenance.source,
                state: BuildState::Here,
                origin: record.build.origin,
            },
            None => ListedBuild {
                name,
                version: "-".to_owned(),
                source: "-".to_owned(),
                state: BuildState::Damaged,
                bytes,
                origin: folder.display().to_string(),
            },
        }
    }
}

/// Whether a build is what a recipe offers: then the recipe is not listed a second time.
fn is_of(listed: &ListedBuild, recipe: &Recipe) -> bool {
    let version = short_version(&listed.version);
    // A source is here under the name of its flags, too.
    let has_flags = listed.source.strip_prefix(&recipe.source);
    let is_source = has_flags
        .is_some_and(|rest| rest.is_empty() || recipe.make.is_some() && rest.starts_with('-'));
    let is_of_recipe = is_source && listed.name.starts_with(recipe.engine.as_str());
    let is_same_version = if recipe.is_series() {
        is_patch_of(version, &recipe.version)
    } else {
        version == recipe.version
    };
    listed.name == recipe.name() || (is_of_recipe && is_same_version)
}

fn available(recipe: &Recipe) -> ListedBuild {
    ListedBuild {
        name: recipe.name(),
        version: if recipe.is_series() {
            format!("{}.*", recipe.version)
        } else {
            recipe.version.clone()
        },
        source: recipe.source.clone(),
        state: BuildState::Available,
        bytes: None,
        origin: recipe.package.describe(),
    }
}

fn unfinished(shop: Leftover) -> ListedBuild {
    ListedBuild {
        name: shop.name,
        version: "-".to_owned(),
        source: "-".to_owned(),
        state: BuildState::Unfinished,
        bytes: Some(shop.bytes),
        origin: shop.folder.display().to_string(),
    }
}
