//! Which cells are releases of one product that are set side by side, and their series.

use plimsoll_core::name::BuildName;

use crate::cells::cell_info::CellInfo;

/// A cell as a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// Index into the view's cells.
    pub cell: usize,
    /// `8.0.44`, or the cell's label where it has no version.
    pub name: String,
    /// The cell's label.
    pub label: String,
    numbers: Vec<u32>,
    /// `v2` of a second run.
    run: String,
    /// What releases of one series have in common.
    series: Vec<u32>,
}

impl Release {
    /// What sentences call it as the speaker of its series: `8.0`, `9.5`, `13`.
    pub fn series_name(&self) -> String {
        match self.series.len() {
            0 => self.name.clone(),
            // A series of many minor versions is called by the one that speaks for it.
            1 if self.numbers.len() > 2 => dotted(&self.numbers[..2]),
            _ => dotted(&self.series),
        }
    }

    /// Whether it is a version and not a config of one.
    pub fn is_version(&self) -> bool {
        !self.series.is_empty()
    }

    /// Whether both are one version, run twice.
    pub fn is_version_of(&self, other: &Self) -> bool {
        self.numbers == other.numbers
    }

    /// Whether both are the same code, or nearly: neighbours in patch level, or run again.
    pub fn is_twin_of(&self, other: &Self) -> bool {
        let (Some((own, front)), Some((of_other, other_front))) =
            (self.numbers.split_last(), other.numbers.split_last())
        else {
            return false;
        };
        let is_series = !self.series.is_empty() && self.series == other.series;
        is_series
            && front == other_front
            && self.numbers.len() > self.series.len()
            && own.abs_diff(*of_other) <= 1
    }
}

#[cfg(test)]
impl Release {
    pub fn of_mysql(cell: usize, version: &str) -> Self {
        let numbers = numbers(version);
        Self {
            cell,
            name: version.to_owned(),
            label: version.to_owned(),
            series: series("MySQL", &numbers),
            numbers,
            run: String::new(),
        }
    }
}

/// Releases of one product and config, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Family {
    pub product: String,
    /// Config and shape, where a product has several.
    pub config: String,
    pub releases: Vec<Release>,
}

/// The releases of a view. Instances of the base that control it are none.
pub(crate) fn families(cells: &[CellInfo]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    let all = cells
        .iter()
        .enumerate()
        .filter(|(_, info)| !info.label.contains('#'));
    for (cell, info) in all {
        let (product, release) = release(cell, info);
        let config = info.label.strip_prefix(info.build.as_str());
        let config = config
            .unwrap_or_default()
            .trim_start_matches('.')
            .to_owned();
        let is_it = |family: &&mut Family| (&family.product, &family.config) == (&product, &config);
        match families.iter_mut().find(is_it) {
            Some(family) => family.releases.push(release),
            None => families.push(Family {
                product,
                config,
                releases: vec![release],
            }),
        }
    }
    let mut families = without_lone(families);
    for family in &mut families {
        name_apart(family);
        family
            .releases
            .sort_by(|a, b| (&a.numbers, &a.run).cmp(&(&b.numbers, &b.run)));
    }
    families
}

/// What sentences call a cell: as a release where all cells are of one product in one config, else
/// its label.
pub(crate) fn name_of(cells: &[CellInfo], cell: usize) -> String {
    let families = families(cells);
    let known = match &families[..] {
        [only] => only.releases.iter().find(|of| of.cell == cell),
        _ => None,
    };
    known.map_or_else(|| cells[cell].label.clone(), |of| of.name.clone())
}

/// Configs may carry the version in their names: then no config has two releases, and all of a
/// product are set side by side.
fn without_lone(families: Vec<Family>) -> Vec<Family> {
    let mut merged: Vec<Family> = Vec::new();
    for family in &families {
        let of_product = || families.iter().filter(|of| of.product == family.product);
        let is_lone = of_product().all(|of| of.releases.len() == 1);
        let known = merged.iter_mut().find(|of| of.product == family.product);
        match known {
            Some(known) if is_lone => {
                known.config = String::new();
                known.releases.extend(family.releases.iter().cloned());
            }
            _ => merged.push(family.clone()),
        }
    }
    merged
}

/// Cells of one version are called by their labels, and are series of their own. In a family of one
/// config no name repeats it.
fn name_apart(family: &mut Family) {
    let names: Vec<String> = family.releases.iter().map(|of| of.name.clone()).collect();
    let config = format!(".{}", family.config);
    for release in &mut family.releases {
        if names.iter().filter(|name| **name == release.name).count() > 1 {
            release.name.clone_from(&release.label);
            release.series.clear();
        }
        let build = release.name.strip_suffix(&config);
        if let Some(build) = build.filter(|build| !build.is_empty() && config.len() > 1) {
            release.name = build.to_owned();
        }
    }
}

fn release(cell: usize, info: &CellInfo) -> (String, Release) {
    let engine = info.build.parse::<BuildName>().ok();
    let stated = info.version.split_whitespace();
    let words: Vec<&str> = stated
        .clone()
        .take_while(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    let number = stated
        .clone()
        .nth(words.len())
        .or_else(|| Some(info.build.as_str()).filter(|build| is_version(build)))
        .unwrap_or_default();
    let product = match (words.join(" "), engine) {
        (words, _) if !words.is_empty() && !number.is_empty() => words,
        (_, Some(build)) => build.engine.facts().title.to_owned(),
        (words, None) => words,
    };
    let numbers = numbers(number);
    let run = match info.version.split_once('(') {
        Some((_, run)) => run.trim_end_matches(')').to_owned(),
        None => String::new(),
    };
    let name = match (numbers.is_empty(), run.is_empty()) {
        (true, _) => info.label.clone(),
        (false, true) => dotted(&numbers),
        (false, false) => format!("{} ({run})", dotted(&numbers)),
    };
    let release = Release {
        cell,
        name,
        label: info.label.clone(),
        series: series(&product, &numbers),
        numbers,
        run,
    };
    (product, release)
}

fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('.')
}

/// The leading dotted numbers: `8.0.44-debug` is 8, 0, 44.
fn numbers(text: &str) -> Vec<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    text[..end.unwrap_or(text.len())]
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

/// MySQL up to 8.4 by minor version, then by major; PostgreSQL from 10 on by major; others by
/// minor.
fn series(product: &str, numbers: &[u32]) -> Vec<u32> {
    let first = numbers.first().copied().unwrap_or(0);
    let length = match product {
        "MySQL" | "MyRocks" if first >= 9 => 1,
        "PostgreSQL" | "OrioleDB" if first >= 10 => 1,
        _ => 2,
    };
    numbers[..length.min(numbers.len())].to_vec()
}

fn dotted(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(".")
}

/// The places of the releases that speak for their series, oldest first: the newest patch of each
/// that came to a number, in its first run.
pub(crate) fn speakers(releases: &[Release], has_number: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut speakers: Vec<usize> = Vec::new();
    let heard = releases
        .iter()
        .enumerate()
        .filter(|(place, _)| has_number(*place));
    for (place, release) in heard {
        match speakers.last_mut() {
            Some(last)
                if !release.series.is_empty() && releases[*last].series == release.series =>
            {
                // The same release once more does not speak.
                if releases[*last].numbers != release.numbers {
                    *last = place;
                }
            }
            _ => speakers.push(place),
        }
    }
    speakers
}
