//! Ratios to the base in a plot: a group of rows per step, a row per cell, the base against itself
//! below them.

use maud::{Markup, html};
use plimsoll_analysis::verdicts::Verdict;

use super::axis::ratio_ticks;
use super::{px, short};
use plimsoll_analysis::verdicts::{Basis, Call, Control, Finding, Role, percent};
use plimsoll_analysis::view::View;

const WIDTH: f64 = 900.0;
const LABEL: f64 = 355.0;
const VALUE: f64 = 175.0;
const ROW: f64 = 17.0;
const GAP: f64 = 8.0;
const TOP: f64 = 24.0;
/// Letters of a label that fit between a step's name and the plot.
const LABELLED: usize = 27;

struct Row<'a> {
    label: &'a str,
    base: &'a str,
    class: String,
    ratio: f64,
    interval: Option<(f64, f64)>,
    dots: &'a [f64],
    is_hollow: bool,
    word: &'a str,
}

impl<'a> Row<'a> {
    fn of(view: &'a View, finding: &'a Finding) -> Option<Self> {
        let estimate = finding.estimate?;
        Some(Self {
            label: &view.cells[finding.cell].label,
            base: &view.cells[finding.base].label,
            class: format!("k{}", finding.cell % 8),
            ratio: estimate.ratio,
            interval: match finding.call {
                Call::Screen(screen, _) => Some(((-screen.reach).exp(), screen.reach.exp())),
                _ => estimate.interval,
            },
            // One run is the ratio itself.
            dots: if finding.dots.len() > 1 {
                &finding.dots
            } else {
                &[]
            },
            is_hollow: !finding.call.is_judged()
                || finding.verdict() == Some(Verdict::Inconclusive),
            word: finding.call.word(),
        })
    }

    fn of_control(control: &'a Control) -> Option<Self> {
        let estimate = control.estimate?;
        Some(Self {
            label: &control.cell,
            base: &control.base,
            class: "control".to_owned(),
            ratio: estimate.ratio,
            interval: estimate.interval,
            dots: &[],
            is_hollow: control.is_sound == Some(false),
            word: "A/A, 99 %",
        })
    }

    /// A round that stalled may lie far out: it is cut at the edge and does not set the scale.
    fn ends(&self) -> [f64; 2] {
        let (low, high) = self.interval.unwrap_or((self.ratio, self.ratio));
        [
            low.min(self.ratio).max(self.ratio / 4.0),
            high.max(self.ratio).min(self.ratio * 4.0),
        ]
    }
}

/// These findings, all of one role, with the control of their steps; without
/// findings the control of all steps.
pub(crate) fn ratio_plot(view: &View, findings: &[&Finding], role: Role, title: &str) -> Markup {
    let mut groups: Vec<(&str, Vec<Row<'_>>)> = Vec::new();
    for finding in findings {
        let Some(row) = Row::of(view, finding) else {
            continue;
        };
        match groups.iter_mut().find(|(step, _)| *step == finding.step) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((&finding.step, vec![row])),
        }
    }
    for control in view
        .findings
        .control
        .iter()
        .filter(|control| control.role == role)
    {
        let Some(row) = Row::of_control(control) else {
            continue;
        };
        match groups.iter_mut().find(|(step, _)| *step == control.step) {
            Some((_, rows)) => rows.push(row),
            None if findings.is_empty() => groups.push((&control.step, vec![row])),
            None => {}
        }
    }
    let margin = view.findings.margin;
    let all = groups
        .iter()
        .flat_map(|(_, rows)| rows.iter().flat_map(Row::ends))
        .chain([1.0 - 2.0 * margin, 1.0 + 2.0 * margin]);
    let (low, high) = all.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ratio| {
        (low.min(ratio), high.max(ratio))
    });
    let (low, high) = (low.ln() - 0.02, high.ln() + 0.02);
    let x = |ratio: f64| {
        LABEL + ((ratio.ln() - low) / (high - low)).clamp(0.0, 1.0) * (WIDTH - LABEL - VALUE)
    };
    let at = |ratio: f64| px(x(ratio));
    let mut y = TOP;
    let placed: Vec<(f64, &str, &[Row<'_>])> = groups
        .iter()
        .map(|(step, rows)| {
            let top = y;
            y += ROW * rows.len() as f64 + GAP;
            (top, *step, rows.as_slice())
        })
        .collect();
    let height = y;
    html! {
        figure.wide {
            figcaption { (title) ". " (legend(view, findings)) }
            svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(title) {
                rect.band x=(at(1.0 - margin)) y=(TOP - 4.0)
                    width=(px(x(1.0 + margin) - x(1.0 - margin))) height=(height - TOP) {}
                @for tick in ticks(low.exp(), high.exp()) {
                    line.grid x1=(at(tick)) x2=(at(tick)) y1=(TOP - 4.0) y2=(height - 4.0) {}
                    text x=(at(tick)) y="12" text-anchor="middle" { (tick) }
                }
                line.mark x1=(at(1.0)) x2=(at(1.0)) y1=(TOP - 4.0) y2=(height - 4.0) {}
                @for (top, step, rows) in placed {
                    line.grid x1="0" x2=(WIDTH) y1=(top - GAP / 2.0) y2=(top - GAP / 2.0) {}
                    text.step x="0" y=(top + ROW / 2.0 + 4.0) { title { (step) } (short(step, 24)) }
                    @for (i, row) in rows.iter().enumerate() {
                        (drawn(row, top + ROW * (i as f64 + 0.5), &at))
                    }
                }
            }
        }
    }
}

fn legend(view: &View, findings: &[&Finding]) -> String {
    if view.findings.is_screen() {
        return "The bar is where two equal builds lie.".to_owned();
    }
    if findings.is_empty() {
        return format!(
            "The bar is the 99 % interval, the band is ±{:.0} %.",
            100.0 * view.findings.margin
        );
    }
    let level = 100.0
        * findings
            .iter()
            .find_map(|finding| finding.estimate)
            .map_or(0.95, |estimate| estimate.level);
    let dots = if findings
        .iter()
        .any(|finding| finding.basis == Basis::Slices)
    {
        "starts"
    } else {
        "blocks"
    };
    format!(
        "The bar is the {level:.0} % interval, dots are single {dots}, the band is ±{:.0} %.",
        100.0 * view.findings.margin
    )
}

fn drawn(row: &Row<'_>, y: f64, at: &impl Fn(f64) -> String) -> Markup {
    html! {
        text x=(LABEL - 8.0) y=(y + 4.0) text-anchor="end" {
            title { (row.label) " vs " (row.base) } (short(row.label, LABELLED))
        }
        g class=(row.class) {
            @for (n, dot) in row.dots.iter().enumerate() {
                // Three lanes, so that dots that are alike do not hide each other.
                circle.trial cx=(at(*dot)) cy=(y + (n % 3) as f64 * 3.0 - 3.0) r="1.8" {}
            }
            @if let Some((low, high)) = row.interval {
                line.interval x1=(at(low)) x2=(at(high)) y1=(y) y2=(y) {}
            }
            circle class={ "dot" @if row.is_hollow { " hollow" } } cx=(at(row.ratio)) cy=(y) r="4" {
                title { (row.label) " vs " (row.base) ": " (percent(row.ratio)) }
            }
        }
        text x=(WIDTH - VALUE + 8.0) y=(y + 4.0) { (percent(row.ratio)) " " (row.word) }
    }
}

/// Round ratios between the ends, 1.0 among them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let reach = low.log2().abs().max(high.log2().abs());
    let ticks = ratio_ticks(reach).into_iter();
    ticks.filter(|tick| (low..=high).contains(tick)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The axis of ratios up to 40 had 5, 10, 15 and no 1.
    #[test]
    fn an_axis_names_the_base() {
        for (low, high) in [(0.94, 1.06), (0.25, 40.0), (0.9, 12.0), (0.01, 1.1)] {
            let ticks = ticks(low, high);
            assert!(ticks.contains(&1.0) && ticks.len() >= 3, "{ticks:?}");
            assert!(ticks.iter().all(|tick| (low..=high).contains(tick)));
        }
    }
}
