//! What the tests of a group report together, with verdicts: their mean as one, and what statements
//! and rows cost.

use super::judged::{name, said, size};
use super::tables::file_name;
use super::text::list;
use super::value::{
    Part, Said, Section, Sentence, Standing, Table, TableCell, TableGroup, TableRow,
};
use crate::groups::{Group, RowCost, section, tests_in_words};
use crate::metrics::Direction;
use crate::verdicts::{Role, Verdict};
use crate::view::View;

/// What the columns of a table of costs hold.
const ROWS_CAPTION: &str = "microseconds per statement = a + b x rows, fitted over the sizes of a \
                            test; the difference with its 95% interval over starts";

/// A sentence per candidate on the tests of a section as one.
pub(super) fn of_group(view: &View, title: &str) -> Vec<Sentence> {
    let of_section = |group: &&Group| group.level.is_none() && section(group) == title;
    let groups = of_throughput(view).filter(of_section);
    let told = groups.filter_map(|group| together(view, group));
    told.map(|(cells, result, said)| Sentence {
        text: format!("all of them together, {cells}: {result}"),
        cells: said,
    })
    .collect()
}

/// The same for the tl;dr, of the sections about which something is decided.
pub(super) fn of_all(view: &View) -> Vec<Sentence> {
    let is_decided = |group: &&Group| group.verdict != Verdict::Inconclusive;
    let groups = of_throughput(view).filter(|group| group.level.is_none());
    let groups = groups.filter(is_decided);
    let told = groups.filter_map(|group| {
        let (cells, result, said) = together(view, group)?;
        Some(Sentence {
            text: format!("{cells}, {}: {result}", section(group)),
            cells: said,
        })
    });
    told.collect()
}

fn of_throughput(view: &View) -> impl Iterator<Item = &Group> {
    let groups = view.groups.iter();
    groups.filter(|group| group.role == Role::Throughput)
}

/// Which cells, the verdict on the mean of their tests, and the tests' ratios. `None` without an
/// interval.
fn together(view: &View, group: &Group) -> Option<(String, String, Vec<Said>)> {
    let with_interval = |of: &Group| {
        let estimate = of.estimate.filter(|of| of.interval.is_some())?;
        Some(size(&estimate))
    };
    let change = with_interval(group)?;
    let is_same = |of: &&Group| {
        let at = |of: &Group| (of.section, of.level, of.cell);
        of.role == Role::Cpu && at(of) == at(group)
    };
    let cpu = view.groups.iter().find(is_same).and_then(|cpu| {
        // A test whose CPU has no verdict is left out of CPU alone.
        let of = match cpu.tests == group.tests {
            true => String::new(),
            false => format!(" over {} tests", cpu.tests.len()),
        };
        Some(format!("; CPU per operation {}{of}", with_interval(cpu)?))
    });
    let result = format!(
        "{} {change} ({}){}",
        group.verdict.name(),
        tests_in_words(group),
        cpu.unwrap_or_default()
    );
    let cells = format!("{} vs {}", name(view, group.cell), name(view, group.base));
    let tests = group.tests.iter();
    let findings = tests.filter_map(|test| view.findings.of_throughput(group.cell, test));
    let ratios = findings.filter_map(|finding| said(view, finding));
    Some((cells, result, ratios.collect()))
}

/// What statements and rows cost: a table per candidate with a group per test.
pub(super) struct Rows<'a> {
    view: &'a View,
    /// Where the first of the tables is among those of the post.
    first: usize,
    /// Candidates with costs, in the order of the tables.
    cells: Vec<usize>,
}

impl<'a> Rows<'a> {
    /// `first` is how many tables are before these.
    pub fn of(view: &'a View, first: usize) -> Self {
        let mut cells: Vec<usize> = view.row_costs.iter().map(|cost| cost.cell).collect();
        cells.sort_unstable();
        cells.dedup();
        Self { view, first, cells }
    }

    pub fn tables(&self) -> Vec<Table> {
        self.cells.iter().map(|cell| self.table(*cell)).collect()
    }

    /// The tests of a candidate, each once.
    fn tests(&self, cell: usize) -> Vec<&'a str> {
        let mut tests: Vec<&str> = Vec::new();
        for cost in self.view.row_costs.iter().filter(|of| of.cell == cell) {
            if !tests.contains(&cost.test.as_str()) {
                tests.push(&cost.test);
            }
        }
        tests
    }

    fn costs(&self, cell: usize, test: &str) -> impl Iterator<Item = &'a RowCost> {
        let costs = self.view.row_costs.iter();
        costs.filter(move |of| of.cell == cell && of.test == test)
    }

    fn table(&self, cell: usize) -> Table {
        let of_cell = |of: &&RowCost| of.cell == cell;
        let base = self
            .view
            .row_costs
            .iter()
            .find(of_cell)
            .map_or(0, |of| of.base);
        let column = |cell: usize| (name(self.view, cell), self.view.cells[cell].label.clone());
        let group = |test: &&str| TableGroup {
            title: (*test).to_owned(),
            rows: self.costs(cell, test).flat_map(rows_of).collect(),
        };
        let [of_cell, of_base] = [cell, base].map(|cell| name(self.view, cell));
        Table {
            name: file_name(&["rows", &of_cell]),
            title: format!("What statements and rows cost, {of_cell} against {of_base}"),
            caption: ROWS_CAPTION.to_owned(),
            base: Some(of_base),
            columns: vec![
                column(base),
                column(cell),
                ("difference".to_owned(), "difference".to_owned()),
            ],
            groups: self.tests(cell).iter().map(group).collect(),
        }
    }

    /// Sentences and tables on the tests that have one of these steps. A table whose lines all miss
    /// a size is a file and not shown.
    pub fn parts(&self, is_step: impl Fn(&str) -> bool) -> Vec<Part> {
        let is_in = |cost: &&RowCost| cost.sizes.iter().any(|size| is_step(&size.step));
        let costs: Vec<&RowCost> = self.view.row_costs.iter().filter(is_in).collect();
        if costs.is_empty() {
            return Vec::new();
        }
        let (crooked, straight): (Vec<&RowCost>, Vec<&RowCost>) =
            costs.iter().partition(|cost| cost.doubt().is_some());
        let mut sentences: Vec<Sentence> = straight
            .iter()
            .map(|cost| sentence(self.view, cost))
            .collect();
        sentences.extend(doubts(self.view, &crooked).into_iter().map(Sentence::plain));
        let mut parts = vec![Part::bullets("Per statement and per row", sentences)];
        for (table, cell) in self.cells.iter().enumerate() {
            for (group, test) in self.tests(*cell).iter().enumerate() {
                let mut of_test = straight.iter();
                if of_test.any(|cost| cost.cell == *cell && cost.test == *test) {
                    parts.push(Part::Table {
                        table: self.first + table,
                        group: Some(group),
                    });
                }
            }
        }
        parts
    }

    /// A section on the tests that no other section has: those of levels of ramps.
    pub fn rest(&self, is_told: impl Fn(&str) -> bool) -> Option<Section> {
        let parts = self.parts(|step| !is_told(step));
        (!parts.is_empty()).then(|| Section {
            title: "Results: per statement and per row".to_owned(),
            parts,
        })
    }
}

/// Both coefficients of a cost.
fn rows_of(cost: &RowCost) -> [TableRow; 2] {
    let of = [
        ("a, per statement", &cost.per_statement),
        ("b, per row", &cost.per_row),
    ];
    of.map(|(what, part)| TableRow {
        label: format!("{}: {what}", cost.of_what()),
        cells: part
            .texts()
            .map(|text| TableCell {
                text,
                mark: "",
                standing: Standing::Plain,
            })
            .into(),
        note: cost.doubt().unwrap_or_default(),
    })
}

/// `random-points with 10, 100, 1000 rows, time (clients / rate): cost is not a straight line over
/// rows, a size is up to 13% off: 16 and 18`, for each test and cost.
fn doubts(view: &View, crooked: &[&RowCost]) -> Vec<String> {
    let mut all: Vec<(String, f64, Vec<String>)> = Vec::new();
    for cost in crooked {
        let what = format!("{}, {}", cost.sizes_in_words(), cost.of_what());
        let cell = name(view, cost.cell);
        match all.iter_mut().find(|(known, ..)| *known == what) {
            Some((_, misfit, cells)) => {
                *misfit = misfit.max(cost.misfit);
                cells.push(cell);
            }
            None => all.push((what, cost.misfit, vec![cell])),
        }
    }
    let text = |(what, misfit, cells): &(String, f64, Vec<String>)| {
        format!(
            "{what}: not a straight line over rows, a size is up to {:.0}% off, so it is not \
             divided: {}",
            100.0 * misfit,
            list(cells)
        )
    };
    all.iter().map(text).collect()
}

/// `random-points with 10, 100, 1000 rows, 18 vs 17, time (clients / rate): ...`. Without an
/// interval the numbers are in the table alone.
fn sentence(view: &View, cost: &RowCost) -> Sentence {
    let (a, b) = (&cost.per_statement, &cost.per_row);
    let clear = match (a.is_clear(), b.is_clear()) {
        (true, true) => "both intervals leave 0 out",
        (true, false) => "only the interval per statement leaves 0 out",
        (false, true) => "only the interval per row leaves 0 out",
        (false, false) => "neither interval leaves 0 out",
    };
    let result = match a.interval.and(b.interval) {
        None => "one start has no interval".to_owned(),
        Some(_) => format!(
            "{} us per statement and {} us per row; {clear}",
            a.in_words(),
            b.in_words()
        ),
    };
    let [of_cell, of_base] = [cost.cell, cost.base].map(|cell| name(view, cell));
    let is_rate = cost.metric.direction == Direction::Higher;
    let cells = cost.sizes.iter().map(|size| Said {
        test: size.step.clone(),
        metric: cost.metric.name,
        from: of_base.clone(),
        to: of_cell.clone(),
        ratio: match is_rate {
            true => size.base_us / size.cell_us,
            false => size.cell_us / size.base_us,
        },
    });
    Sentence {
        text: format!(
            "{}, {of_cell} vs {of_base}, {}: {result}",
            cost.sizes_in_words(),
            cost.of_what()
        ),
        cells: cells.collect(),
    }
}
