//! RocksDB's tree over the seconds of a step: bytes per level, stacked, a figure per cell on one
//! scale.

use maud::{Markup, html};

use super::{corners, px};
use crate::html::tables::cell_name;
use plimsoll_analysis::view::{LevelShape, StepView, View};
use plimsoll_core::units::BYTES_PER_MIB;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;

pub(crate) fn section(view: &View, step: &StepView) -> Markup {
    let total =
        |shape: &LevelShape, at: usize| shape.columns.iter().map(|level| level[at].1).sum::<u64>();
    let most = step
        .shapes
        .iter()
        .flat_map(|shape| (0..shape.columns[0].len()).map(move |at| total(shape, at)))
        .max()
        .unwrap_or(0);
    let levels: std::collections::BTreeSet<u32> = step
        .shapes
        .iter()
        .flat_map(|shape| shape.levels.iter().copied())
        .collect();
    html! {
        @if most > 0 {
            h3 { "Shape of the tree" }
            p.caption { "Bytes in the files of each level, one upon the other, over the seconds of \
                        the step. All on one scale." }
            p.keys {
                @for level in &levels {
                    span { span class={ "key k" (level % 8) } {} " L" (level) }
                }
            }
            div.figures {
                @for shape in &step.shapes { div { (figure(view, step, shape, most as f64)) } }
            }
        }
    }
}

fn figure(view: &View, step: &StepView, shape: &LevelShape, most: f64) -> Markup {
    let count = shape.columns[0].len();
    let width = (WIDTH - LEFT - RIGHT) / count as f64;
    let x = |at: usize| LEFT + at as f64 * width;
    let y = |bytes: f64| TOP + (1.0 - bytes / most) * (HEIGHT - TOP - BOTTOM);
    let cell = &view.cells[shape.cell];
    let seconds = count as u32 * shape.seconds_per_column;
    let end: Vec<String> = shape
        .levels
        .iter()
        .zip(&shape.columns)
        .filter(|(_, columns)| columns[count - 1].0 > 0)
        .map(|(level, columns)| {
            let (files, bytes) = columns[count - 1];
            format!("L{level} {files} files {}", size(bytes as f64))
        })
        .collect();
    html! {
        figure {
            figcaption { (cell_name(shape.cell, cell)) ": at the end " (end.join(", ")) }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ (step.name) ": \
                levels of " (cell.label) } {
                @for part in [0.0, 0.5, 1.0] {
                    @let at = px(y(part * most));
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(at) y2=(at) {}
                    text x=(LEFT - 6.0) y=(px(y(part * most) + 4.0)) text-anchor="end" {
                        (size(part * most))
                    }
                }
                @for (level, points) in shape.levels.iter().zip(outlines(shape)) {
                    @let points = points.into_iter().map(|(at, bytes)| (x(at), y(bytes)));
                    polygon class={ "fill k" (level % 8) } points=(corners(points)) {
                        title { "L" (level) }
                    }
                }
                text x=(LEFT) y=(HEIGHT - 6.0) { "0 s" }
                text x=(WIDTH - RIGHT) y=(HEIGHT - 6.0) text-anchor="end" { (seconds) " s" }
            }
        }
    }
}

/// The outline of each level's band as steps, the highest level at the bottom: column edge and
/// bytes, there above and back below.
fn outlines(shape: &LevelShape) -> Vec<Vec<(usize, f64)>> {
    let mut floor: Vec<u64> = vec![0; shape.columns[0].len()];
    let mut bands: Vec<Vec<(usize, f64)>> = Vec::new();
    for columns in shape.columns.iter().rev() {
        let top: Vec<u64> = floor
            .iter()
            .zip(columns)
            .map(|(floor, (_, bytes))| floor + bytes)
            .collect();
        let edges = |heights: &[u64]| -> Vec<(usize, f64)> {
            heights
                .iter()
                .enumerate()
                .flat_map(|(at, bytes)| [(at, *bytes as f64), (at + 1, *bytes as f64)])
                .collect()
        };
        bands.push(
            edges(&top)
                .into_iter()
                .chain(edges(&floor).into_iter().rev())
                .collect(),
        );
        floor = top;
    }
    bands.reverse();
    bands
}

fn size(bytes: f64) -> String {
    match bytes / BYTES_PER_MIB {
        mib if mib >= 10_240.0 => format!("{:.0} GiB", mib / 1024.0),
        mib if mib >= 1024.0 => format!("{:.1} GiB", mib / 1024.0),
        mib if mib >= 10.0 || mib == 0.0 => format!("{mib:.0} MiB"),
        mib => format!("{mib:.1} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_stand_upon_each_other() {
        let columns = vec![vec![(1, 10), (0, 0)], vec![(2, 30), (2, 40)]];
        let bands = outlines(&LevelShape {
            cell: 0,
            seconds_per_column: 1,
            levels: vec![0, 6],
            columns,
        });
        assert_eq!(
            bands[1],
            [
                (0, 30.0),
                (1, 30.0),
                (1, 40.0),
                (2, 40.0),
                (2, 0.0),
                (1, 0.0),
                (1, 0.0),
                (0, 0.0)
            ]
        );
        assert_eq!(
            bands[0],
            [
                (0, 40.0),
                (1, 40.0),
                (1, 40.0),
                (2, 40.0),
                (2, 40.0),
                (1, 40.0),
                (1, 30.0),
                (0, 30.0)
            ]
        );
    }

    #[test]
    fn sizes_have_a_unit_that_fits() {
        for (mib, text) in [
            (0.0, "0 MiB"),
            (0.96, "1.0 MiB"),
            (77.8, "78 MiB"),
            (1536.0, "1.5 GiB"),
            (16_384.0, "16 GiB"),
        ] {
            assert_eq!(size(mib * BYTES_PER_MIB), text);
        }
    }
}
