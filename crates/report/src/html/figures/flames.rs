//! Differential flame graphs as inline SVG, and the functions that moved.

use maud::{Markup, html};

use super::{px, short};
use crate::answers::profile::interval;
use crate::html::tables::{header, scrolling};
use plimsoll_analysis::view::{StepView, View};
use plimsoll_analysis::{FlameNode, Profiled};

const WIDTH: f64 = 1000.0;
const ROW: f64 = 15.0;
/// Of a character of a label.
const CHARACTER: f64 = 6.0;
/// Narrower boxes than this cannot be seen.
const NARROWEST: f64 = 2.0;
/// Deeper stacks are cut.
const DEEPEST: usize = 48;
/// A change of half or more has the full colour.
const FULL: f64 = 0.5;

/// The profiles of a step; nothing where there are none.
pub(crate) fn section(view: &View, step: &StepView) -> Markup {
    let profiles: Vec<&Profiled> = view
        .profiles
        .iter()
        .filter(|profiled| profiled.step == step.name)
        .collect();
    html! {
        @if !profiles.is_empty() {
            h3 { "Server CPU by function" }
            @for profiled in profiles {
                @let names = format!("{} against {}", profiled.cell_label, profiled.base_label);
                @match &profiled.reason {
                    Some(reason) => p.caption { (names) ": no profile of " (reason) "." },
                    None => {
                        p.caption {
                            (names) ", from passes of their own after what was measured. "
                            (profiled.trust())
                        }
                        @let doubt = profiled.doubt.clone();
                        @if let Some(told) = doubt.or_else(|| profiled.where_it_went()) {
                            p { (told) }
                        }
                        (functions(profiled))
                        (graph(profiled, &names))
                    },
                }
            }
        }
    }
}

fn functions(profiled: &Profiled) -> Markup {
    html! {
        (scrolling(html! {
            table {
                (header(["function, without what it calls", "base us/op", "cell us/op", "change", "95 %"]))
                tbody {
                    @for function in &profiled.functions {
                        tr {
                            th title=(function.name) { (short(&function.name, 70)) }
                            td { (format!("{:.3}", function.base_us)) }
                            td { (format!("{:.3}", function.cell_us)) }
                            td { (format!("{:+.3}", function.difference_us())) }
                            td { (interval(function)) }
                        }
                    }
                }
            }
        }))
    }
}

/// A box of the graph.
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) x: f64,
    pub(crate) width: f64,
    pub(crate) depth: usize,
    pub(crate) base_us: f64,
    pub(crate) cell_us: f64,
    pub(crate) difference_us: f64,
    pub(crate) change: f64,
}

impl Frame {
    pub(crate) fn numbers(&self) -> String {
        let (cell_us, base_us) = (self.cell_us, self.base_us);
        format!(
            "{cell_us:.3} us/op, base {base_us:.3}, {:+.3}",
            self.difference_us
        )
    }
}

fn graph(profiled: &Profiled, names: &str) -> Markup {
    let mut frames = Vec::new();
    lay_out(
        &profiled.tree,
        0.0,
        0,
        WIDTH / profiled.tree.cell_us.max(f64::MIN_POSITIVE),
        &mut frames,
    );
    let height = ROW
        * (frames
            .iter()
            .map(|frame| frame.depth + 1)
            .max()
            .unwrap_or(0)) as f64;
    html! {
        figure.wide {
            figcaption {
                "Differential flame graph: callers above, the width is " (profiled.cell_label)
                "'s time (" (format!("{:.2}", profiled.tree.cell_us)) " us/op in all, base "
                (format!("{:.2}", profiled.tree.base_us))
                "), red uses more than in the base, blue less; hover for numbers. What is only in \
                the base has no width."
            }
            svg.flame viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
                aria-label={ "differential flame graph of " (names) } {
                @for frame in &frames {
                    @let y = ROW * frame.depth as f64;
                    g {
                        title { (frame.name) ": " (frame.numbers()) }
                        rect x=(px(frame.x)) y=(y) width=(px(frame.width)) height=(ROW - 1.0)
                            fill=(colour(frame.change)) {}
                        @if frame.width > 5.0 * CHARACTER {
                            text x=(px(frame.x + 2.0)) y=(y + ROW - 4.0) {
                                (short(&frame.name, (frame.width / CHARACTER) as usize))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Boxes of what a node calls, beside each other, each with those of its own calls below it.
pub(crate) fn lay_out(node: &FlameNode, x: f64, depth: usize, scale: f64, frames: &mut Vec<Frame>) {
    let mut x = x;
    for (name, call) in &node.calls {
        let width = call.cell_us * scale;
        if width >= NARROWEST && depth < DEEPEST {
            let (base_us, cell_us, change) = (call.base_us, call.cell_us, call.change());
            frames.push(Frame {
                name: name.clone(),
                x,
                width,
                depth,
                base_us,
                cell_us,
                difference_us: call.difference_us(),
                change,
            });
            lay_out(call, x, depth + 1, scale, frames);
        }
        x += width;
    }
}

/// From blue by way of nearly white to red.
pub(crate) fn colour(change: f64) -> String {
    let strength = (change.abs() / FULL).min(1.0);
    let faded = |full: f64| (240.0 - (240.0 - full) * strength).round() as u8;
    if change >= 0.0 {
        format!(
            "#{:02x}{:02x}{:02x}",
            faded(230.0),
            faded(95.0),
            faded(80.0)
        )
    } else {
        format!(
            "#{:02x}{:02x}{:02x}",
            faded(85.0),
            faded(140.0),
            faded(230.0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(base_us: f64, cell_us: f64, calls: Vec<(&str, FlameNode)>) -> FlameNode {
        FlameNode {
            base_us,
            cell_us,
            calls: calls
                .into_iter()
                .map(|(name, node)| (name.to_owned(), node))
                .collect(),
        }
    }

    #[test]
    fn boxes_lie_below_their_caller_and_beside_each_other() {
        let gone = node(5.0, 0.0, Vec::new());
        let root = node(
            15.0,
            10.0,
            vec![
                ("a", node(4.0, 4.0, Vec::new())),
                (
                    "b",
                    node(
                        11.0,
                        6.0,
                        vec![("c", node(1.0, 6.0, Vec::new())), ("gone", gone)],
                    ),
                ),
            ],
        );
        let mut frames = Vec::new();
        lay_out(&root, 0.0, 0, WIDTH / 10.0, &mut frames);
        let boxes: Vec<(&str, f64, f64, usize)> = frames
            .iter()
            .map(|f| (f.name.as_str(), f.x, f.width, f.depth))
            .collect();
        assert_eq!(
            boxes,
            [
                ("a", 0.0, 400.0, 0),
                ("b", 400.0, 600.0, 0),
                ("c", 400.0, 600.0, 1)
            ]
        );
    }

    #[test]
    fn what_costs_more_is_red_and_what_costs_less_is_blue() {
        assert_eq!(
            (
                colour(0.0).as_str(),
                colour(1.0).as_str(),
                colour(-1.0).as_str()
            ),
            ("#f0f0f0", "#e65f50", "#558ce6")
        );
        assert_eq!(colour(0.7), colour(1.0));
    }
}
