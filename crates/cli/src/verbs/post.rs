//! `post`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use plimsoll_analysis::post::check::{Standing, check_beside};
use plimsoll_analysis::post::{PostOptions, has_verdicts, post_beside};
use plimsoll_analysis::{Options, Stored, View, analyse_among, changed_files};
use plimsoll_report::{
    PostFile, checked_to_json, checked_to_text, to_post_files, to_post_markdown,
};

use crate::arguments::{Places, Post, PostFormat};
use crate::failure::{Failure, INCOMPLETE, VerbResult};
use crate::output::print;

/// The folder of a campaign's post, where nobody names another.
const FOLDER: &str = "post";

pub fn post(places: &Places, arguments: &Post) -> VerbResult {
    let store = places.store();
    let campaign = store.find(arguments.which.campaign())?;
    let record = campaign.load()?;
    for change in changed_files(&record)? {
        tell!("warning: {change}");
    }
    let records = [record];
    let stored = Stored::newest(&store);
    let bases = each_once(&arguments.base);
    let against = |base: Option<&String>| {
        let options = Options {
            base: base.cloned(),
            builds: arguments.builds.clone(),
        };
        analyse_among(&records, &options, &stored)
    };
    let view = against(bases.first())?;
    // Verdicts against a base are an analysis of their own.
    let others = bases.iter().skip(1).filter(|_| has_verdicts(&view));
    let others = others.map(|base| against(Some(base)));
    let others = others.collect::<Result<Vec<View>, _>>()?;
    let options = PostOptions {
        bases,
        telling: arguments.telling.clone(),
    };
    if let Some(text) = &arguments.check {
        let checked = check_beside(&view, &others, &options, &read(text)?)?;
        match arguments.json {
            true => print(&format!("{:#}\n", checked_to_json(&checked)))?,
            false => print(&checked_to_text(&checked))?,
        }
        let is_whole = checked.iter().all(|of| of.standing != Standing::NotFound);
        return Ok(if is_whole { 0 } else { INCOMPLETE });
    }
    let post = post_beside(&view, &others, &options)?;
    if arguments.format == PostFormat::Md {
        print(&to_post_markdown(&post))?;
        return Ok(0);
    }
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| campaign.path.join(FOLDER));
    let files =
        to_post_files(&post).map_err(|error| Failure::usage(format!("failed to {error}")))?;
    let text = out.join("post.md");
    let is_same = |file: &PostFile| fs::read(&text).is_ok_and(|old| old == file.bytes);
    if text.exists()
        && !files
            .iter()
            .any(|file| file.path == "post.md" && is_same(file))
    {
        keep(&text)?;
    }
    for file in files {
        write(&out.join(&file.path), &file.bytes)?;
    }
    print(&format!("post: {}\n", text.display()))?;
    Ok(0)
}

/// The bases in their order: one that is named twice has one section.
fn each_once(bases: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let of_first = bases.iter().filter(|base| seen.insert(*base));
    of_first.cloned().collect()
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(|error| {
        Failure::usage(format!(
            "failed to read {}: {error}; name the text with --check FILE",
            path.display()
        ))
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Moves a text that somebody may have worked on to the first free name beside it.
fn keep(text: &Path) -> Result<(), Failure> {
    let free = (1..)
        .map(|number| text.with_file_name(format!("post.{number}.md")))
        .find(|path| !path.exists())
        .expect("numbers do not end");
    fs::rename(text, &free).map_err(|error| {
        Failure::usage(format!(
            "failed to keep {} as {}: {error}; choose another folder with --out",
            text.display(),
            free.display()
        ))
    })?;
    tell!("note: the former text is kept as {}", free.display());
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| {
            Failure::usage(format!(
                "failed to write {}: {error}; choose another folder with --out",
                path.display()
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_that_is_named_twice_has_one_section() {
        let bases = ["b", "a", "b", "c", "a"].map(str::to_owned);
        assert_eq!(each_once(&bases), ["b", "a", "c"]);
    }
}
