//! The documentation as a book: links lead somewhere, every page is listed, none is too long, and
//! decision records are numbered and headed alike.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// A page answers one question.
const MAX_LINES: usize = 120;
/// Columns of prose; tables and code keep their own lines.
const MAX_WIDTH: usize = 100;
const ROOT_PAGES: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
];

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let mut broken = Vec::new();
    for (page, text) in &pages {
        for link in links(text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() {
                page.clone()
            } else {
                normal(&page.parent().unwrap().join(path))
            };
            let leaves_the_book = page.starts_with("docs") && !target.starts_with("docs");
            let has_heading = || match pages.get(&target) {
                Some(text) => anchors(text).contains(anchor),
                None => false,
            };
            if leaves_the_book
                || !root().join(&target).exists()
                || !anchor.is_empty() && !has_heading()
            {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "links without a target (a page of the book may only link into the book):\n{}",
        broken.join("\n")
    );
}

/// `doctor` was nowhere among the commands.
#[test]
fn every_command_is_in_the_list_of_commands() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    let help = String::from_utf8(program.arg("--help").output().unwrap().stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let verbs: Vec<&str> = commands
        .lines()
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| {
            line.strip_prefix("  ")
                .filter(|line| !line.starts_with(' '))
        })
        .filter_map(|line| line.split(' ').next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    let list = &pages()[Path::new("docs/commands/README.md")];
    for verb in verbs {
        let forms = [
            format!("[{verb}]("),
            format!(" {verb}]("),
            format!("plimsoll {verb} "),
        ];
        assert!(forms.iter().any(|form| list.contains(form)), "{verb}");
    }
}

#[test]
fn the_summary_lists_every_page_once() {
    let pages = pages();
    let listed = links(&pages[Path::new("docs/SUMMARY.md")])
        .into_iter()
        .map(|link| Path::new("docs").join(link))
        .collect::<Vec<_>>();
    let unique = listed.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(listed.len(), unique.len(), "a page is listed twice");
    let there = pages
        .into_keys()
        .filter(|page| page.starts_with("docs") && !page.ends_with("SUMMARY.md"))
        .collect::<BTreeSet<_>>();
    let difference = unique.symmetric_difference(&there).collect::<Vec<_>>();
    assert!(
        difference.is_empty(),
        "listed in docs/SUMMARY.md or there, but not both: {difference:?}"
    );
}

#[test]
fn pages_are_short_and_narrow() {
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        if !page.starts_with("docs") || page.ends_with("SUMMARY.md") {
            continue;
        }
        let count = text.lines().count();
        if count > MAX_LINES {
            wrong.push(format!("{}: {count} lines", page.display()));
        }
        for (number, line) in prose(&text) {
            // A link or path that is longer than the page is wide cannot be wrapped.
            if line.chars().count() > MAX_WIDTH && line.trim_start().contains(' ') {
                wrong.push(format!(
                    "{}:{number}: wider than {MAX_WIDTH}",
                    page.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "split or wrap:\n{}", wrong.join("\n"));
}

#[test]
fn decision_records_are_numbered_and_headed_alike() {
    let mut numbers = BTreeSet::new();
    for (page, text) in pages() {
        let Ok(name) = page.strip_prefix("docs/adr") else {
            continue;
        };
        let number = name.to_str().unwrap().get(..4).unwrap();
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let place = page.display();
        assert!(numbers.insert(number.to_owned()), "{place}: number taken");
        let heading = text.lines().next().unwrap_or_default();
        assert!(
            heading.starts_with(&format!("# {number} ")),
            "{place} begins with \"{heading}\", not with \"# {number} Title\""
        );
        for part in ["**Question.**", "**Decision.**", "**Consequences.**"] {
            assert!(text.contains(part), "{place} has no {part}");
        }
    }
    assert!(!numbers.is_empty());
}

#[test]
fn anchors_are_those_of_the_renderers() {
    let headings = "# show --json\n## `l.x` & more\n```\n# code\n```\n## Looks\n## Looks\n";
    assert_eq!(
        anchors(headings),
        ["show---json", "lx--more", "looks", "looks-1"]
            .map(str::to_owned)
            .into()
    );
    let text = "[a](b.md#c) `[no](code.md)` [web](https://x.y)\n\n    [no](block.md)\n";
    assert_eq!(links(text), ["b.md#c"]);
}

fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

/// Every Markdown page by its path from the repository's root.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut folders = vec![root().join("docs")];
    let mut paths = ROOT_PAGES.map(|name| root().join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_owned(), text)
        })
        .collect()
}

/// Resolves `..` without asking the file system.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}

/// Lines with their numbers that are neither code nor a row of a table.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            return None;
        }
        let is_text = !is_fenced && !line.starts_with("    ") && !line.starts_with('|');
        is_text.then_some((index + 1, line))
    })
}

/// Targets of links that are not on the web; code spans are left out.
fn links(text: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut lines = String::new();
    for line in text.lines() {
        is_fenced ^= line.trim_start().starts_with("```");
        if !is_fenced && (!line.starts_with("    ") || line.trim_start().starts_with('-')) {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    let without_code = lines.split('`').step_by(2).collect::<Vec<_>>().join("_");
    without_code
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.trim().to_owned())
        .filter(|target| !target.contains("://"))
        .collect()
}

/// The anchors of a page's headings: small letters, digits, `-` and `_`; a second one of the same
/// name gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = title
            .trim()
            .chars()
            .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect::<String>()
            .to_lowercase();
        let next = (1..).map(|count| format!("{anchor}-{count}"));
        let free = std::iter::once(anchor.clone())
            .chain(next)
            .find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}
