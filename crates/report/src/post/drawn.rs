//! From a figure as data to its drawings.

use plimsoll_analysis::FlameNode;
use plimsoll_analysis::post::{Chart, Figure, Form, Line, OverSeconds};

use super::figures::{
    Axis, FlameChart, GroupChart, LineChart, OverReleases, PerOperation, PerSecond, Seconds,
    Series, bars, dots, flames, lines, panels, releases, seconds, twin,
};

/// A drawing of a figure.
pub(super) struct Drawing {
    /// The file's name without its ending.
    pub name: String,
    pub svg: String,
}

/// One drawing, and a second one with a cut axis where one test hides the others.
pub(super) fn draw(figure: &Figure) -> Vec<Drawing> {
    let one = |svg: String| {
        vec![Drawing {
            name: figure.name.clone(),
            svg,
        }]
    };
    match &figure.form {
        Form::Bars(chart) => {
            let chart = group_chart(figure, chart);
            let mut drawings = one(bars(&chart, Axis::Full));
            drawings.extend(twin(&chart).map(|axis| Drawing {
                name: format!("{}.cut", figure.name),
                svg: bars(&chart, axis),
            }));
            drawings
        }
        Form::Dots { chart, twins } => one(dots(&group_chart(figure, chart), *twins)),
        Form::PerOperation {
            releases,
            panels: costs,
        } => one(panels(&PerOperation {
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            alt: figure.alt.clone(),
            releases: releases.clone(),
            panels: costs.clone(),
        })),
        Form::OverReleases {
            releases: names,
            tests,
            median,
            arrived_in,
        } => one(releases(&OverReleases {
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            alt: figure.alt.clone(),
            releases: names.clone(),
            tests: tests.iter().map(series).collect(),
            median: median.clone(),
            arrived_in: *arrived_in,
        })),
        Form::Seconds {
            rate_unit,
            response_unit,
            seconds_per_point,
            builds,
        } => one(seconds(&PerSecond {
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            alt: figure.alt.clone(),
            rate_unit: rate_unit.clone(),
            response_unit: response_unit.clone(),
            seconds_per_point: *seconds_per_point,
            builds: builds.iter().map(over_seconds).collect(),
        })),
        Form::Flames { base, cell, tree } => one(flames(&flame_chart(figure, [base, cell], tree))),
        Form::Lines {
            x_label,
            y_label,
            x,
            series: all,
        } => one(lines(&LineChart {
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            alt: figure.alt.clone(),
            x_label: x_label.clone(),
            y_label: y_label.clone(),
            log2_x: true,
            x: x.clone(),
            series: all.iter().map(series).collect(),
        })),
    }
}

fn flame_chart(figure: &Figure, [base, cell]: [&String; 2], tree: &FlameNode) -> FlameChart {
    FlameChart {
        title: figure.title.clone(),
        caption: figure.caption.clone(),
        alt: figure.alt.clone(),
        base: base.clone(),
        cell: cell.clone(),
        tree: tree.clone(),
    }
}

fn group_chart(figure: &Figure, chart: &Chart) -> GroupChart {
    GroupChart {
        title: figure.title.clone(),
        caption: figure.caption.clone(),
        alt: figure.alt.clone(),
        base: chart.base.clone(),
        unit: chart.unit.clone(),
        tests: chart.tests.clone(),
        series: chart.series.iter().map(series).collect(),
    }
}

fn over_seconds(of: &OverSeconds) -> Seconds {
    Seconds {
        name: of.name.clone(),
        rates: of.rates.clone(),
        responses: of.responses.clone(),
        stalls: Vec::new(),
    }
}

fn series(line: &Line) -> Series {
    Series {
        name: line.name.clone(),
        values: line.values.clone(),
        intervals: line.intervals.clone(),
    }
}
