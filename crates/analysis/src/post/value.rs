//! What a post is made of. Writers lay it out; every word and number is here.

use crate::profiles::FlameNode;

/// A draft of the text that an author would publish, with its tables and figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    pub title: String,
    /// Server, workload and the reason for looking.
    pub lead: Sentence,
    /// At most five bullets, the most useful first.
    pub tldr: Vec<Bullet>,
    /// In the order of posts: builds and hardware, benchmark, results, limits.
    pub sections: Vec<Section>,
    /// All tables; sections point at them by index.
    pub tables: Vec<Table>,
    /// Plans of the campaigns as they were written, and configs with many settings: the file's name
    /// and its text.
    pub files: Vec<(String, String)>,
}

/// A heading and what is below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    pub title: String,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text(Sentence),
    List(List),
    Table {
        /// An index into the post's tables.
        table: usize,
        /// One of its groups; `None` shows all.
        group: Option<usize>,
    },
    Figure(Figure),
}

/// Bullets under a line of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// `Summary`, or what the bullets were looked up in.
    pub heading: String,
    pub bullets: Vec<Bullet>,
}

/// A bullet, nested once at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Bullet {
    pub sentence: Sentence,
    pub nested: Vec<Sentence>,
}

/// A sentence with the cells that it speaks about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sentence {
    pub text: String,
    pub cells: Vec<Said>,
}

/// A number that a sentence rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub test: String,
    /// The metric's name in the catalogue.
    pub metric: &'static str,
    /// The older release, or the base.
    pub from: String,
    pub to: String,
    /// New / old, from values in full precision.
    pub ratio: f64,
}

/// A table with a row per test, as a file and in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The file's name without its ending: letters, digits, dots, dashes.
    pub name: String,
    pub title: String,
    /// What the numbers are.
    pub caption: String,
    /// What relative values divide by.
    pub base: Option<String>,
    /// Names of the releases, each with the cell it stands for.
    pub columns: Vec<(String, String)>,
    pub groups: Vec<TableGroup>,
}

/// Rows under a heading, which may be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct TableGroup {
    pub title: String,
    pub rows: Vec<TableRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    pub label: String,
    /// One per column.
    pub cells: Vec<TableCell>,
    /// `arrives in 9.5.0`; empty without one.
    pub note: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableCell {
    /// The number as printed, `-` where there is none.
    pub text: String,
    /// `*`: the background writers missed their rate; `?`: disturbed; `!`: failed.
    pub mark: &'static str,
    pub standing: Standing,
}

/// Where a ratio is beside the band of no change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Plain,
    Worse,
    Better,
}

/// A figure, described: `report` draws it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The file's name without its ending.
    pub name: String,
    pub title: String,
    pub caption: String,
    /// For who cannot see it.
    pub alt: String,
    pub form: Form,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// Bars by test and release, from 0.
    Bars(Chart),
    /// A dot with its interval by test and release; `twins` is the share that twins differ by.
    Dots { chart: Chart, twins: Option<f64> },
    /// Costs over releases relative to the base, a panel per metric.
    PerOperation {
        releases: Vec<String>,
        panels: Vec<(String, Vec<Option<f64>>)>,
    },
    /// Ratios to the base over many releases: a line per test, their median, and where it changed.
    OverReleases {
        releases: Vec<String>,
        tests: Vec<Line>,
        median: Vec<Option<f64>>,
        arrived_in: Option<usize>,
    },
    /// Throughput and longest response over the seconds of a step.
    Seconds {
        rate_unit: String,
        /// Empty without response times.
        response_unit: String,
        seconds_per_point: f64,
        builds: Vec<OverSeconds>,
    },
    /// Where server CPU went beside the base: all stacks of both, in microseconds per operation.
    Flames {
        base: String,
        cell: String,
        tree: FlameNode,
    },
    /// Throughput or times over users, a line per release.
    Lines {
        x_label: String,
        y_label: String,
        x: Vec<f64>,
        series: Vec<Line>,
    },
}

/// Ratios to the base: a line per release, a value per test.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub base: String,
    /// What the ratios are ratios of.
    pub unit: String,
    pub tests: Vec<String>,
    pub series: Vec<Line>,
}

/// A release over the seconds of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct OverSeconds {
    pub name: String,
    pub rates: Vec<Option<f64>>,
    /// Empty if they are not known.
    pub responses: Vec<Option<f64>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: String,
    pub values: Vec<Option<f64>>,
    /// Ends of intervals; `None` for single runs.
    pub intervals: Vec<Option<(f64, f64)>>,
}

impl Sentence {
    /// A sentence that rests on no cell.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            cells: Vec::new(),
        }
    }
}

impl Part {
    /// A list without nested bullets.
    pub(crate) fn bullets(heading: &str, sentences: Vec<Sentence>) -> Self {
        Self::List(List {
            heading: heading.to_owned(),
            bullets: sentences.into_iter().map(Bullet::from).collect(),
        })
    }
}

impl From<Sentence> for Bullet {
    fn from(sentence: Sentence) -> Self {
        Self {
            sentence,
            nested: Vec::new(),
        }
    }
}

impl Post {
    /// Every sentence, in the order of the text.
    pub fn sentences(&self) -> Vec<&Sentence> {
        let mut all = vec![&self.lead];
        all.extend(self.tldr.iter().flat_map(Bullet::sentences));
        for part in self.sections.iter().flat_map(|section| &section.parts) {
            match part {
                Part::Text(sentence) => all.push(sentence),
                Part::List(list) => all.extend(list.bullets.iter().flat_map(Bullet::sentences)),
                Part::Table { .. } | Part::Figure(_) => {}
            }
        }
        all
    }
}

impl Bullet {
    fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        std::iter::once(&self.sentence).chain(&self.nested)
    }
}
