//! `build make`.

use std::sync::atomic::Ordering;

use plimsoll_core::units::format_bytes;
use plimsoll_lab::builds::{BuildCache, GivenSource, MakeRequest};

use super::fetch::{ProgressLine, stop_flag};
use super::print_added;
use crate::arguments::MakeBuild;
use crate::failure::{Failure, VerbResult};

pub(super) fn make(cache: BuildCache, arguments: &MakeBuild) -> VerbResult {
    // As plans write it: what is made here is +source, with a flag set behind it or not.
    let source = arguments.name.source.as_deref();
    let of_name = source.and_then(|source| source.strip_prefix("source-"));
    if let Some(source) = source
        && source != "source"
        && of_name.is_none_or(|set| arguments.flags.as_ref().is_some_and(|flags| flags != set))
    {
        return Err(Failure::usage(format!(
            "{} cannot be made: what is made is called after its flags; leave out +{source}, and \
            give --flags or --label",
            arguments.name
        )));
    }
    let given = arguments.source.as_deref().map(GivenSource::parse);
    let request = MakeRequest {
        engine: arguments.name.engine,
        version: arguments.name.version.clone(),
        flags: arguments.flags.clone().or(of_name.map(str::to_owned)),
        source: given.transpose()?,
        label: arguments.label.clone(),
    };
    let cache = match arguments.jobs {
        Some(jobs) => cache.with_jobs(jobs),
        None => cache,
    };
    let stop = stop_flag()?;
    let mut line = ProgressLine::new();
    let made = cache.make(&request, &mut |progress| line.show(progress), &|| {
        stop.load(Ordering::SeqCst)
    });
    line.clear();
    let made = made?;
    print_added(&made.build);
    let size = format_bytes(made.bytes);
    let seconds = made.took.as_secs();
    let took = format!("{} min {} s, {size}", seconds / 60, seconds % 60);
    tell!(
        "{}",
        match made.is_new {
            true => format!("made in {took}"),
            false => format!("it was made before, of the same source, in {took}"),
        }
    );
    Ok(0)
}
