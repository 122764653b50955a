//! Tables of ratios: they follow from rates, which is checked digit for digit, or they are all that
//! was published.

use plimsoll_analysis::classic::relative;
use plimsoll_analysis::metrics::imported;
use plimsoll_store::imported::ImportedStep;

use super::builder::{Builder, ByMetric, printed};
use crate::names::folder::CellName;

/// A table of ratios to a base.
pub(super) struct Ratios<'a> {
    pub path: &'a str,
    pub base: CellName,
    pub columns: Vec<CellName>,
    pub rows: Vec<Row<'a>>,
}

/// A test of such a table: a printed ratio per column.
pub(super) struct Row<'a> {
    pub step: ImportedStep,
    pub cells: Vec<&'a str>,
    pub remark: Option<&'a str>,
}

impl Ratios<'_> {
    /// Checks the table, or keeps its ratios if there is nothing but tables of ratios (`is_alone`).
    pub(super) fn add(&self, builder: &mut Builder, is_alone: bool) {
        if is_alone {
            self.keep(builder);
        } else {
            self.check(builder);
        }
    }

    /// The base is 1.00. A campaign has one base: of tables with another one nothing is kept.
    fn keep(&self, builder: &mut Builder) {
        let base = builder.cell(&self.base, "");
        if *builder.base.get_or_insert(base) != base {
            return builder.leave_out(
                self.path,
                format!(
                    "it is relative to {}, other tables beside it to another result, and none of \
                    them has rates; import it alone",
                    self.base.original
                ),
            );
        }
        builder.note(format!(
            "Only ratios to {} were published: what stands for throughput is relative to it.",
            self.base.label()
        ));
        let columns = self.columns.iter();
        let cells: Vec<usize> = columns.map(|name| builder.cell(name, "")).collect();
        for row in &self.rows {
            let step = builder.step(ImportedStep {
                rate: imported::REL_RATE.name.to_owned(),
                description: "throughput relative to the base".to_owned(),
                ..row.step.clone()
            });
            let printed_cells = cells.iter().zip(&row.cells);
            let ratios = printed_cells.map(|(cell, text)| (*cell, *text));
            for (cell, text) in std::iter::once((base, "1.00")).chain(ratios) {
                let known = builder
                    .result(cell, step)
                    .values
                    .of(imported::REL_RATE)
                    .cloned();
                let known = known.and_then(|value| value.classic);
                if let Some(known) = known.filter(|known| known != text) {
                    let (test, path) = (&row.step.name, self.path);
                    builder.note(format!(
                        "{path}: {test} has {text} where another table has {known}, which is kept."
                    ));
                    continue;
                }
                let result = builder.result(cell, step);
                result.values.put(imported::REL_RATE, printed(text));
                if let Some(remark) = row.remark {
                    result.facts.insert("remark".to_owned(), remark.to_owned());
                }
            }
        }
    }

    /// Every ratio has to be that of the printed rates.
    fn check(&self, builder: &mut Builder) {
        let known = |name: &CellName| builder.find_cell(name);
        let cells: Vec<Option<usize>> = self.columns.iter().map(known).collect();
        let (Some(base), true) = (known(&self.base), cells.iter().any(Option::is_some)) else {
            return builder.leave_out(
                self.path,
                "its ratios are of results whose rates are not beside it; import it alone",
            );
        };
        let mut checked = 0;
        let mut wrong: Vec<String> = Vec::new();
        let mut unknown = 0;
        for row in &self.rows {
            for ((cell, name), text) in cells.iter().zip(&self.columns).zip(&row.cells) {
                let rate = |cell: usize| rate(builder, cell, &row.step);
                let Some((value, base)) = cell.and_then(rate).zip(rate(base)) else {
                    unknown += 1;
                    continue;
                };
                checked += 1;
                let expected = relative::format(value, base);
                if expected != *text {
                    wrong.push(format!(
                        "{} of {} is {text}, and {value} / {base} is {expected}",
                        row.step.name,
                        name.label()
                    ));
                }
            }
        }
        if let Some(first) = wrong.first() {
            let count = wrong.len();
            builder.note(format!(
                "{}: {count} of {checked} ratios do not follow from the rates, which are kept: \
                {first}.",
                self.path
            ));
        }
        if unknown > 0 {
            builder.note(format!(
                "{}: {unknown} of its ratios are of results that have no rate here; they are left \
                out.",
                self.path
            ));
        }
    }
}

/// The printed rate of a cell, as ratios divide it.
fn rate(builder: &Builder, cell: usize, step: &ImportedStep) -> Option<f64> {
    let values = &builder.find_result(cell, &step.name)?.values;
    let value = values.get(&step.rate)?;
    let printed = value.classic.as_ref().and_then(|text| text.parse().ok());
    printed.or(value.value)
}
