//! The page's frame.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::sections::{appendix, beyond, summary, verdicts};
use super::{data, figures, step};
use plimsoll_analysis::view::View;

const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
pub(crate) const UPLOT_LICENSE: &str = include_str!("../../assets/uplot/LICENSE");

/// What the page may do: run and style itself. Nothing may be fetched.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// The whole report as one HTML file that needs no network.
pub fn to_html(view: &View) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="plimsoll";
                title { (view.title) }
                // Without it a browser would ask the server for an icon.
                link rel="icon" href="data:,";
                style { (PreEscaped(UPLOT_STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                (figures::patterns())
                (contents(view))
                main {
                    (summary::head(view))
                    (beyond::section(view))
                    (verdicts::section(view))
                    (summary::notes(view))
                    (summary::cells(view))
                    (summary::summary(view))
                    @for (i, of) in view.steps.iter().enumerate() { (step::section(view, i, of)) }
                    (appendix::sections(view))
                }
                script type="application/json" id="series" { (PreEscaped(data::series_json(view))) }
                script { (PreEscaped(UPLOT_SCRIPT)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn contents(view: &View) -> Markup {
    html! {
        nav aria-label="contents" {
            strong { "Plimsoll" }
            @if !view.findings.is_empty() { a href="#verdicts" { "Verdicts" } }
            a href="#cells" { "Cells" }
            a href="#summary" { "Summary" }
            span.group { "Steps" }
            @for of in &view.steps { a.sub href={ "#" (step::anchor(&of.name)) } { (of.name) } }
            span.group { "More" }
            a href="#ran" { "What ran" }
            a href="#environment" { "Environment" }
            a href="#settings" { "Settings" }
            a href="#plan" { "Plan" }
            a href="#methods" { "Methods" }
        }
    }
}
