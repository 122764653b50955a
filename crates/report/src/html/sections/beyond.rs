//! What differs between the cells beyond their builds, before any number.

use maud::{Markup, html};

use crate::html::tables::{cell_name, header_of_cells, scrolling};
use plimsoll_analysis::view::View;

/// Nothing where nothing differs.
pub(crate) fn section(view: &View) -> Markup {
    html! {
        @if !view.beyond_build.is_empty() {
            section {
                h2 id="beyond" { a.anchor href="#beyond" { "Differs beyond the build" } }
                p.caption {
                    "A ratio compares these, too: facts of the session as read back on a \
                    connection opened as the workers' are, of the machine, and settings that a \
                    config asks for. Everything else that is known is at the end of the page."
                }
                (scrolling(html! {
                    table.text {
                        (header_of_cells(&["fact"], view, cell_name))
                        tbody {
                            @for beyond in &view.beyond_build {
                                tr {
                                    th { (beyond.kind.name()) " " (beyond.name) }
                                    @for value in &beyond.values {
                                        td {
                                            @match value {
                                                Some(value) => (value),
                                                None => span.none { "–" }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }))
            }
        }
    }
}
