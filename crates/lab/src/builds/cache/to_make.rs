//! What has to be compiled before a plan can run, and how long that takes.

use plimsoll_core::name::BuildName;
use serde::Serialize;

use super::BuildCache;
use crate::builds::error::BuildError;
use crate::builds::make::needs;
use crate::builds::make::recipe::MakeRecipe;
use crate::builds::recipes::resolve::ResolvedBuild;

/// How many CPUs the minutes of recipes were measured on.
const CPUS_OF_RECIPES: f64 = 2.0;

/// A build that is not here and is compiled here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuildToMake {
    /// As plans name it.
    pub name: String,
    /// What makes it.
    pub command: String,
    /// About how long that takes; none if nobody knows.
    pub seconds: f64,
    /// Where the seconds are from.
    pub basis: String,
    /// What this machine lacks for it.
    pub lacks: Option<String>,
}

impl BuildCache {
    /// What a name's build takes to be made; none if it is here, or is fetched.
    ///
    /// # Errors
    /// When the name means nothing, or the cache cannot be read.
    pub fn to_make(&self, name: &BuildName) -> Result<Option<BuildToMake>, BuildError> {
        let resolved = self.resolve(name)?;
        let how = resolved.recipes.first().and_then(|r| r.make.as_ref());
        let (Some(how), Some(command)) = (how, make_command(&resolved)) else {
            return Ok(None);
        };
        if resolved.is_here {
            return Ok(None);
        }
        let (seconds, basis) = self.time_of(&resolved, how)?;
        Ok(Some(BuildToMake {
            lacks: needs::check(&how.needs)
                .err()
                .map(|error| error.to_string()),
            name: resolved.name,
            command,
            seconds,
            basis,
        }))
    }

    /// The longest time that the engine took here, else the recipe's. A build that came out of ccache
    /// took less than the next one will.
    fn time_of(
        &self,
        resolved: &ResolvedBuild,
        how: &MakeRecipe,
    ) -> Result<(f64, String), BuildError> {
        let records = self.records()?.into_iter();
        let made = records.filter_map(|(name, record)| {
            let record = record.ok()?;
            let is_of_engine = record.build.engine == resolved.engine;
            let made = record.provenance.made.filter(|_| is_of_engine)?;
            Some((made.seconds, name))
        });
        let here = made.max().filter(|(seconds, _)| *seconds > 0);
        let jobs = self.shops().jobs;
        let minutes = how.minutes;
        Ok(match here {
            Some((seconds, name)) => (seconds as f64, format!("as {name} took here")),
            None => {
                let seconds = 60.0 * minutes as f64 * CPUS_OF_RECIPES / jobs as f64;
                (seconds, format!("assumed, {minutes} min on 2 CPUs"))
            }
        })
    }
}

/// The command that makes a build of a recipe's source.
pub(super) fn make_command(resolved: &ResolvedBuild) -> Option<String> {
    let flags = resolved.recipes.first()?.flags.as_ref()?;
    Some(format!(
        "plimsoll build make {}@{} --flags {}",
        resolved.engine, resolved.version, flags.name
    ))
}
