//! A test over rising numbers of clients.

use maud::{Markup, html};
use plimsoll_analysis::view::{Ramp, RampCell, Status, View};

use super::axis::round_ticks;
use super::{WIDTH, corners, dot, dot_key, px};
use crate::html::numbers::{compact, decimal};
use crate::html::tables::dagger;

/// Rate over the number of clients, whose axis is logarithmic: a line per cell.
pub(crate) fn ramp_figure(view: &View, ramp: &Ramp) -> Markup {
    const HEIGHT: f64 = 260.0;
    const LEFT: f64 = 84.0;
    // Room for a mark beside the highest and the last point.
    const RIGHT: f64 = 26.0;
    const TOP: f64 = 22.0;
    const BOTTOM: f64 = 40.0;
    let wide = WIDTH * 1.2;
    let most = ramp
        .cells
        .iter()
        .flat_map(|cell| &cell.levels)
        .filter_map(|level| level.rate)
        .fold(0.0, f64::max);
    let ticks = round_ticks(most);
    let top = ticks.last().copied().unwrap_or(1.0);
    let log = |users: u32| f64::from(users).log2();
    let (low, high) = (
        ramp.users.first().map_or(0.0, |users| log(*users)),
        ramp.users.last().map_or(1.0, |users| log(*users)),
    );
    let x = |users: u32| LEFT + (log(users) - low) / (high - low).max(1.0) * (wide - LEFT - RIGHT);
    let y = |rate: f64| TOP + (1.0 - rate / top) * (HEIGHT - TOP - BOTTOM);
    let points = |levels: &[(u32, f64, Status)]| {
        let points = levels.iter().map(|(users, rate, _)| (x(*users), y(*rate)));
        corners(points)
    };
    let unit_at = format!(
        "translate(12 {:.0}) rotate(-90)",
        (HEIGHT - BOTTOM + TOP) / 2.0
    );
    html! {
        figure.wide {
            figcaption { (ramp.test) ": " (ramp.rate.unit) " over clients" }
            svg viewBox={ "0 0 " (wide) " " (HEIGHT) } role="img" aria-label={ (ramp.test) " over \
                clients" } {
                @for rate in ticks {
                    @let at = px(y(rate));
                    line.grid x1=(LEFT) x2=(wide - RIGHT) y1=(at) y2=(at) {}
                    text x=(LEFT - 6.0) y=(px(y(rate) + 4.0)) text-anchor="end" { (compact(rate)) }
                }
                text.quiet transform=(unit_at) text-anchor="middle" { (ramp.rate.unit) }
                text.quiet x=(format!("{:.0}", (LEFT + wide - RIGHT) / 2.0)) y=(HEIGHT - 4.0)
                    text-anchor="middle" {
                    "clients, on a logarithmic axis"
                }
                @for users in &ramp.users {
                    @let at = px(x(*users));
                    line.grid x1=(at) x2=(at) y1=(TOP) y2=(HEIGHT - BOTTOM) {}
                    text x=(at) y=(HEIGHT - BOTTOM + 14.0) text-anchor="middle" { (users) }
                }
                @for (i, cell) in ramp.cells.iter().enumerate() {
                    @let levels = reached(ramp, cell);
                    polyline class={ "curve k" (i % 8) } points=(points(&levels)) {
                        title { (view.cells[i].label) }
                    }
                    @for (users, rate, status) in levels {
                        @let but = match status { Status::Ok => "", _ => ", " };
                        @let meaning = match status { Status::Ok => "", _ => status.meaning() };
                        @let label = &view.cells[i].label;
                        @let rate_text = decimal(rate, 0);
                        @let about =
                            format!("{label}: {rate_text} at {users} clients{but}{meaning}");
                        (dot(i, x(users), y(rate), status, &about))
                        @if status != Status::Ok {
                            text.quiet x=(px(x(users) + 7.0)) y=(px(y(rate) - 5.0)) {
                                (status.mark())
                            }
                        }
                    }
                }
            }
        }
        p.keys {
            @for (i, cell) in view.cells.iter().enumerate() {
                span { (dot_key(i)) " " (cell.label) (dagger(cell)) }
            }
        }
    }
}

/// The levels of a cell that have a rate: clients, rate, status.
fn reached(ramp: &Ramp, cell: &RampCell) -> Vec<(u32, f64, Status)> {
    let levels = ramp.users.iter().zip(&cell.levels);
    levels
        .filter_map(|(users, level)| Some((*users, level.rate?, level.status)))
        .collect()
}
