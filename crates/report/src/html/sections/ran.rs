//! What ran: every cell's binaries and who compiled them how.

use maud::{Markup, html};
use plimsoll_core::toolchain::{COMPILER, FLAGS, OPTIMISATION, PACKAGER, UNKNOWN};

use crate::html::tables::{cell_name, dagger, header, scrolling};
use plimsoll_analysis::view::{CellInfo, View};

const COLUMNS: [&str; 8] = [
    "cell",
    "version",
    "origin",
    "packager",
    "compiler",
    "flags that move numbers",
    "server sha256",
    "against the base",
];

pub(crate) fn section(view: &View) -> Markup {
    html! {
        section {
            h2 id="ran" { a.anchor href="#ran" { "What ran" } }
            @if view.cells.iter().any(|cell| cell.caveat.is_some()) {
                p.caption { "† not strictly comparable with the base: besides the engine's source \
                            also what compiled it differs, or is not known." }
            }
            (scrolling(html! {
                table.text {
                    (header(COLUMNS))
                    tbody { @for (i, cell) in view.cells.iter().enumerate() { (row(i, cell)) } }
                }
            }))
        }
    }
}

fn row(index: usize, cell: &CellInfo) -> Markup {
    // A server that was given has no binary here.
    let nothing = if cell.server_sha256.is_some() || cell.is_embedded == Some(false) {
        UNKNOWN
    } else {
        "built in"
    };
    let told = |key: &str| cell.toolchain.get(key).map_or(nothing, String::as_str);
    let options = if cell.build_options.is_empty() {
        None
    } else {
        Some(cell.build_options.join("\n"))
    };
    html! {
        tr {
            th { (cell_name(index, cell)) (dagger(cell)) }
            td title=[options] { (cell.version) }
            td { (cell.origin) }
            td { (told(PACKAGER)) }
            td { (told(COMPILER)) }
            td title=[cell.toolchain.get(FLAGS)] { (told(OPTIMISATION)) }
            td {
                @match &cell.server_sha256 {
                    Some(sha256) => code title=(sha256)
                        { (sha256.chars().take(12).collect::<String>()) }, None => (nothing)
                }
            }
            td {
                @match &cell.caveat {
                    Some(caveat) => (caveat.to_string()),
                    None if index == 0 => "",
                    None => "comparable",
                }
            }
        }
    }
}
