//! The figures of a post: their geometry as an SVG reader sees it, no text on another, and pictures
//! that are not blank.

use std::fs;
use std::path::Path;

use plimsoll_analysis::FlameNode;
use plimsoll_report::post::figures::{
    Axis, FlameChart, GroupChart, LineChart, OverReleases, PerOperation, PerSecond, Seconds,
    Series, bars, dots, flames, lines, panels, png, releases, seconds, twin,
};
use plimsoll_testkit::archive;
use resvg::tiny_skia::{Pixmap, Point};
use resvg::usvg::roxmltree::{Document, Node};
use resvg::usvg::{self, Group, Options, Tree};

/// A text of a figure, and the corners of what its letters cover.
struct Placed {
    text: String,
    corners: [Point; 4],
}

/// The figure as an SVG reader lays it out with the program's own font.
fn laid_out(svg: &str) -> (Tree, Vec<Placed>) {
    let mut options = Options::default();
    let font = include_bytes!("../../assets/dejavu/DejaVuSans-subset.ttf");
    options.fontdb_mut().load_font_data(font.to_vec());
    let tree = Tree::from_str(svg, &options).unwrap();
    let mut placed = Vec::new();
    texts(tree.root(), &mut placed);
    (tree, placed)
}

fn texts(group: &Group, placed: &mut Vec<Placed>) {
    for node in group.children() {
        match node {
            usvg::Node::Group(group) => texts(group, placed),
            usvg::Node::Text(text) => {
                let ink = text.flattened().bounding_box();
                let mut corners = [
                    Point::from_xy(ink.left(), ink.top()),
                    Point::from_xy(ink.right(), ink.top()),
                    Point::from_xy(ink.right(), ink.bottom()),
                    Point::from_xy(ink.left(), ink.bottom()),
                ];
                text.abs_transform().map_points(&mut corners);
                let chunks = text.chunks().iter().map(|chunk| chunk.text());
                placed.push(Placed {
                    text: chunks.collect(),
                    corners,
                });
            }
            _ => {}
        }
    }
}

/// Whether two boxes, turned or not, have a surface in common: no line parts them.
fn overlap(one: &[Point; 4], other: &[Point; 4]) -> bool {
    const TOUCH: f32 = 0.2;
    let span = |corners: &[Point; 4], (x, y): (f32, f32)| {
        let along = corners.map(|corner| corner.x * x + corner.y * y);
        let low = along.iter().copied().fold(f32::INFINITY, f32::min);
        (low, along.iter().copied().fold(f32::NEG_INFINITY, f32::max))
    };
    let directions = [one, other].into_iter().flat_map(|corners| {
        [(0, 1), (1, 2)].map(|(a, b)| {
            let (x, y) = (corners[b].x - corners[a].x, corners[b].y - corners[a].y);
            let long = x.hypot(y).max(f32::MIN_POSITIVE);
            (x / long, y / long)
        })
    });
    directions.into_iter().all(|direction| {
        let (a, b) = (span(one, direction), span(other, direction));
        a.0 + TOUCH < b.1 && b.0 + TOUCH < a.1
    })
}

/// Every text is on the sheet and on no other text, and the picture has the text.
fn assert_readable(svg: &str, what: &str) -> String {
    let (tree, placed) = laid_out(svg);
    let (wide, high) = (tree.size().width(), tree.size().height());
    for (at, text) in placed.iter().enumerate() {
        for corner in &text.corners {
            let is_on = (0.0..=wide).contains(&corner.x) && (0.0..=high).contains(&corner.y);
            assert!(
                is_on,
                "{what}: {:?} leaves the sheet at {corner:?}",
                text.text
            );
        }
        for other in &placed[at + 1..] {
            let (text, other_text) = (&text.text, &other.text);
            assert!(
                !overlap(&placed[at].corners, &other.corners),
                "{what}: {text:?} lies on {other_text:?}: {:?} {:?}",
                placed[at].corners,
                other.corners
            );
        }
    }
    // For looking at them.
    if let Some(folder) = std::env::var_os("PLIMSOLL_FIGURES") {
        let name = what.replace([' ', ',', '/'], "_");
        let path = Path::new(&folder).join(format!("{name}.png"));
        fs::write(path, png(svg).unwrap()).unwrap();
    }
    placed.iter().map(|placed| placed.text.as_str()).collect()
}

fn all_text(svg: &str) -> String {
    let (_, placed) = laid_out(svg);
    placed.iter().map(|placed| placed.text.as_str()).collect()
}

/// Numbers of an attribute of all shapes of a kind, in their order.
fn numbers(document: &Document<'_>, kind: &str, attribute: &str) -> Vec<f64> {
    let number = |node: Node<'_, '_>| node.attribute(attribute)?.parse().ok();
    of_kind(document, kind).filter_map(number).collect()
}

fn of_kind<'a>(
    document: &'a Document<'_>,
    kind: &str,
) -> impl Iterator<Item = Node<'a, 'a>> + use<'a> {
    let kind = kind.to_owned();
    document.descendants().filter(move |node| {
        let words = node.attribute("data-kind").unwrap_or_default();
        words.split(' ').any(|word| word == kind)
    })
}

/// Where the line at 1.0 is.
fn base_at(document: &Document<'_>, attribute: &str) -> f64 {
    let group = of_kind(document, "one").next().unwrap();
    let line = group.children().find(Node::is_element).unwrap();
    line.attribute(attribute).unwrap().parse().unwrap()
}

fn chart(tests: &[&str], series: &[(&str, &[Option<f64>])]) -> GroupChart {
    let series = series.iter().map(|(name, values)| Series {
        name: (*name).to_owned(),
        values: values.to_vec(),
        intervals: Vec::new(),
    });
    GroupChart {
        title: "Writes".to_owned(),
        caption: "Throughput relative to MySQL 5.6.51, one run each.".to_owned(),
        alt: "From 5.6 to 5.7 there are big improvements.".to_owned(),
        base: "my5651".to_owned(),
        unit: "QPS".to_owned(),
        tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        series: series.collect(),
    }
}

/// A published relative table as one chart.
fn published(test: &str, file: &str) -> Option<GroupChart> {
    let text = fs::read_to_string(archive(test, file)?).unwrap();
    let mut table = GroupChart {
        title: "Relative throughput of all tests".to_owned(),
        caption: format!("From {file}, one run each."),
        unit: "QPS".to_owned(),
        ..GroupChart::default()
    };
    for line in text.lines() {
        if let Some(base) = line.strip_prefix("Relative to: ") {
            table.base = base.to_owned();
        } else if let Some((_, name)) = line.split_once(" : ") {
            table.series.push(Series {
                name: name.to_owned(),
                ..Series::default()
            });
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let (numbers, name) = line.rsplit_once('\t').unwrap();
            table.tests.push(name.to_owned());
            for (series, number) in table.series.iter_mut().zip(numbers.split('\t')) {
                series.values.push(number.parse().ok());
            }
        }
    }
    Some(table)
}

/// The tests of a chart from one to another.
fn part(chart: &GroupChart, tests: std::ops::Range<usize>) -> GroupChart {
    let series = chart.series.iter().map(|series| Series {
        values: series.values[tests.clone()].to_vec(),
        ..series.clone()
    });
    GroupChart {
        tests: chart.tests[tests.clone()].to_vec(),
        series: series.collect(),
        ..chart.clone()
    }
}

#[test]
fn real_tables_are_readable_at_600_pixels() {
    let name = "report::figures::real_tables_are_readable_at_600_pixels";
    for file in [
        "mytools/dec25.sb.socket.my/qps.rel.my.latest.tsv",
        "mytools/nov25.sb.mysql/dop1/qps.rel.all.tsv",
    ] {
        let Some(all) = published(name, file) else {
            return;
        };
        assert!(all.tests.len() >= 33 && all.series.len() >= 5);
        let count = all.tests.len();
        let groups = [(0, 9), (9, 13), (13, 23), (count - 10, count), (0, count)];
        for (from, to) in groups {
            let chart = part(&all, from..to);
            let what = format!("{}, {from} to {to}", all.series.len());
            let bars_svg = bars(&chart, Axis::Full);
            let cut = bars(&chart, twin(&chart).unwrap_or(Axis::CutAt(1.1)));
            let figures = [
                (bars_svg, "bars"),
                (cut, "cut"),
                (dots(&chart, Some(0.025)), "dots"),
            ];
            for (svg, kind) in figures {
                let text = assert_readable(&svg, &format!("{kind} of {what}"));
                for test in chart
                    .tests
                    .iter()
                    .chain(chart.series.iter().map(|s| &s.name))
                {
                    assert!(text.contains(test.as_str()), "{what}: {test} is not whole");
                }
                let document = Document::parse(&svg).unwrap();
                let shapes = if kind == "dots" { "dot" } else { "bar" };
                let drawn = of_kind(&document, shapes).count();
                assert_eq!(
                    drawn,
                    chart.tests.len() * chart.series.len(),
                    "{kind} of {what}"
                );
                assert_eq!(document.root_element().attribute("width"), Some("600"));
            }
        }
    }
}

#[test]
fn bars_are_as_high_as_their_ratios() {
    let values = [Some(0.5), Some(1.0), Some(5.89), None, Some(0.0)];
    let chart = chart(
        &["a", "b", "update-index_range=100", "d", "e"],
        &[("8.0", &values), ("9.5", &values)],
    );
    for (axis, expected) in [
        (Axis::Full, [0.5, 1.0, 5.89]),
        (Axis::CutAt(1.5), [0.5, 1.0, 1.5]),
    ] {
        let svg = bars(&chart, axis);
        let document = Document::parse(&svg).unwrap();
        let (top, high) = (
            numbers(&document, "bar", "y"),
            numbers(&document, "bar", "height"),
        );
        let bottom = top[0] + high[0];
        let one = bottom - base_at(&document, "y1");
        for (at, ratio) in expected.iter().enumerate() {
            for series in 0..2 {
                let drawn = high[2 * at + series] / one;
                assert!(
                    (drawn - ratio).abs() < 0.01,
                    "{axis:?}: {drawn} for {ratio}"
                );
                assert!((top[2 * at + series] + high[2 * at + series] - bottom).abs() < 0.2);
            }
        }
        let cut = of_kind(&document, "cut").count();
        let is_cut = axis != Axis::Full;
        // A cut bar has its zigzag.
        assert_eq!(cut, if is_cut { 4 } else { 0 });
        assert_eq!(all_text(&svg).contains("bars are cut"), is_cut);
        assert!(
            all_text(&svg).contains("5.89"),
            "the value is next to the bar"
        );
        assert_eq!(of_kind(&document, "missing").count(), 2);
        assert_readable(&svg, &format!("bars with {axis:?}"));
    }
}

#[test]
fn many_bars_lie_below_each_other() {
    let tests: Vec<String> = (0..31)
        .map(|at| format!("read-only_range={at}0000"))
        .collect();
    let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
    let values: Vec<Option<f64>> = (0..31).map(|at| Some(0.5 + f64::from(at) / 20.0)).collect();
    let svg = bars(
        &chart(&tests, &[("a", &values), ("b", &values)]),
        Axis::Full,
    );
    let document = Document::parse(&svg).unwrap();
    let wide = numbers(&document, "bar", "width");
    let left = numbers(&document, "bar", "x");
    assert_eq!(wide.len(), 62);
    assert!(left.iter().all(|x| *x == left[0]), "bars begin at 0");
    let one = base_at(&document, "x1") - left[0];
    for (at, wide) in wide.iter().enumerate() {
        let ratio = values[at / 2].unwrap();
        assert!((wide / one - ratio).abs() < 0.01, "{at}: {wide}");
    }
    assert_readable(&svg, "lying bars");
}

#[test]
fn a_twin_is_cut_where_one_test_hides_the_rest() {
    let of = |values: &[Option<f64>]| twin(&chart(&["a", "b", "c"], &[("x", values)]));
    assert_eq!(of(&[Some(1.0), Some(1.1), Some(2.2)]), None);
    let Some(Axis::CutAt(at)) = of(&[Some(5.89), Some(1.68), Some(0.9)]) else {
        panic!("5.89 hides 1.68");
    };
    assert!((1.68..1.9).contains(&at), "{at}");
    assert_eq!(of(&[None, None, Some(3.0)]), None);
    assert_eq!(twin(&GroupChart::default()), None);
}

#[test]
fn dots_have_one_in_their_middle_and_say_what_is_single() {
    let mut chart = chart(
        &["a", "b"],
        &[
            ("x", &[Some(0.5), Some(2.0)]),
            ("y", &[Some(1.0), Some(1.25)]),
        ],
    );
    chart.series[1].intervals = vec![Some((0.9, 1.1)), Some((1.2, 9.0))];
    let svg = dots(&chart, Some(0.04));
    let document = Document::parse(&svg).unwrap();
    let one = base_at(&document, "x1");
    let box_of = |node: Node<'_, '_>| -> f64 {
        match node.attribute("cx") {
            Some(x) => x.parse().unwrap(),
            None => {
                let points = node.attribute("points").unwrap().split(' ');
                let x =
                    points.map(|point| point.split_once(',').unwrap().0.parse::<f64>().unwrap());
                let x: Vec<f64> = x.collect();
                let ends = x
                    .iter()
                    .fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
                (ends.0 + ends.1) / 2.0
            }
        }
    };
    let drawn: Vec<Node<'_, '_>> = of_kind(&document, "dot").collect();
    let x: Vec<f64> = drawn.iter().map(|dot| box_of(*dot)).collect();
    // By test: x and y of a, x and y of b.
    assert!(
        (x[1] - one).abs() < 0.2 && (one - x[0] - (x[2] - one)).abs() < 0.4,
        "{x:?} {one}"
    );
    let is_hollow = |dot: &Node<'_, '_>| dot.attribute("fill") == Some("#ffffff");
    let hollow: Vec<bool> = drawn.iter().map(is_hollow).collect();
    assert_eq!(hollow, [true, false, true, false]);
    let band = of_kind(&document, "band").next().unwrap();
    let side = |name: &str| band.attribute(name).unwrap().parse::<f64>().unwrap();
    assert!((side("x") + side("width") / 2.0 - one).abs() < 0.2);
    assert_eq!(of_kind(&document, "beyond").count(), 1);
    for words in ["Hollow marks have no interval", "differ by up to 4.0 %"] {
        assert!(all_text(&svg).replace('\n', " ").contains(words), "{words}");
    }
    assert_readable(&svg, "dots");
    let without = dots(&chart, None);
    let document = Document::parse(&without).unwrap();
    assert_eq!(of_kind(&document, "band").count(), 0);
}

#[test]
fn a_cost_that_is_zero_is_named_and_not_drawn() {
    let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    let releases = ["5.6.51", "5.7.44", "8.0.44", "8.4.7", "9.5.0"];
    let mut chart = PerOperation {
        title: "insert: costs per operation".to_owned(),
        caption: "Relative to my5651.".to_owned(),
        alt: "CPU per insert drops by 30 %.".to_owned(),
        releases: releases.map(str::to_owned).to_vec(),
        panels: vec![
            ("cpu/o".to_owned(), some(&[1.0, 0.7, 0.94, 0.95, 0.98])),
            ("cs/o".to_owned(), some(&[1.0, 0.97, 0.99, 1.0, 1.22])),
            ("r/o".to_owned(), some(&[0.0; 5])),
            (
                "wKB/o".to_owned(),
                vec![Some(1.0), None, Some(1.2), Some(1.1), Some(1.3)],
            ),
            ("rKB/o".to_owned(), vec![None; 5]),
        ],
    };
    let svg = panels(&chart);
    let text = all_text(&svg);
    assert!(text.contains("zero in all releases: r/o."), "{text}");
    assert!(text.contains("not known: rKB/o."), "{text}");
    let document = Document::parse(&svg).unwrap();
    assert_eq!(of_kind(&document, "one").count(), 3);
    assert_eq!(of_kind(&document, "dot").count(), 14);
    assert_eq!(of_kind(&document, "missing").count(), 1);
    assert_readable(&svg, "panels");

    chart.releases = (0..30)
        .map(|at| format!("x.my80{at:02}_rel_o2nofp.z12a_c8r32.pk1"))
        .collect();
    let values: Vec<f64> = (0..30).map(|at| 1.0 + f64::from(at) / 30.0).collect();
    chart.panels = vec![
        ("cpu/o".to_owned(), some(&values)),
        ("cs/o".to_owned(), some(&values)),
    ];
    assert_readable(&panels(&chart), "panels of many releases");
}

#[test]
fn lines_mark_their_highest_value() {
    let rates = [1000.0, 1900.0, 3500.0, 6100.0, 9000.0, 8200.0];
    let mut chart = LineChart {
        title: "point-query over clients".to_owned(),
        caption: "Three runs each; the band is their spread.".to_owned(),
        alt: "9.5 peaks at 16 clients.".to_owned(),
        x_label: "clients".to_owned(),
        y_label: "queries per second".to_owned(),
        log2_x: true,
        x: [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].to_vec(),
        series: vec![
            Series {
                name: "mysql@9.5".to_owned(),
                values: rates.map(Some).to_vec(),
                intervals: rates.map(|rate| Some((rate * 0.9, rate * 1.1))).to_vec(),
            },
            Series {
                name: "mysql@5.6".to_owned(),
                values: rates
                    .map(|rate| (rate < 9000.0).then_some(rate * 1.2))
                    .to_vec(),
                intervals: Vec::new(),
            },
        ],
    };
    let svg = lines(&chart);
    let document = Document::parse(&svg).unwrap();
    let line = of_kind(&document, "line")
        .next()
        .unwrap()
        .attribute("points")
        .unwrap();
    let points: Vec<(f64, f64)> = line
        .split(' ')
        .map(|point| point.split_once(',').unwrap())
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    // Doublings are equally far apart.
    let steps: Vec<f64> = points.windows(2).map(|two| two[1].0 - two[0].0).collect();
    assert!(
        steps.iter().all(|step| (step - steps[0]).abs() < 0.21),
        "{steps:?}"
    );
    let peaks = numbers(&document, "peak", "cx");
    assert_eq!(peaks.len(), 2);
    assert!((peaks[0] - points[4].0).abs() < 0.2);
    assert!((numbers(&document, "peak", "cy")[0] - points[4].1).abs() < 0.2);
    assert!(all_text(&svg).contains("mysql@9.5: highest 9,000 at 16"));
    assert_eq!(of_kind(&document, "band").count(), 1);
    assert_eq!(of_kind(&document, "dot").count(), 11);
    assert_readable(&svg, "lines");

    // No logarithm of zero; a line is parted there.
    chart.x[0] = 0.0;
    let svg = lines(&chart);
    assert_eq!(of_kind(&Document::parse(&svg).unwrap(), "dot").count(), 9);
    chart.log2_x = false;
    chart.x = (0..200).map(|at| f64::from(at) * 1234.5).collect();
    assert_readable(&lines(&chart), "lines over many points");
}

#[test]
fn tests_over_releases_have_a_bold_median() {
    let tests = (0..10u32).map(|test| Series {
        name: format!("update-nonindex_range={test}"),
        values: (0..12u32)
            .map(|at| Some(1.0 - f64::from(at / 6) * 0.2 + f64::from(test) / 50.0))
            .collect(),
        intervals: Vec::new(),
    });
    let chart = OverReleases {
        title: "Writes over releases".to_owned(),
        caption: "Relative to my5651.".to_owned(),
        alt: "A regression arrives in 8.0.20.".to_owned(),
        releases: (0..12).map(|at| format!("mysql@8.0.{at}4")).collect(),
        tests: tests.collect(),
        median: (0..12)
            .map(|at| Some(if at < 6 { 1.0 } else { 0.8 }))
            .collect(),
        arrived_in: Some(6),
    };
    let svg = releases(&chart);
    let document = Document::parse(&svg).unwrap();
    assert_eq!(of_kind(&document, "line").count(), 10);
    assert_eq!(of_kind(&document, "median").count(), 1);
    let arrived = of_kind(&document, "arrived").next().unwrap();
    let line = arrived.children().find(Node::is_element).unwrap();
    let x: f64 = line.attribute("x1").unwrap().parse().unwrap();
    let median = of_kind(&document, "median")
        .next()
        .unwrap()
        .attribute("points")
        .unwrap();
    let places: Vec<f64> = median
        .split(' ')
        .map(|point| point.split_once(',').unwrap().0.parse().unwrap())
        .collect();
    assert!(places[5] < x && x < places[6], "{places:?} {x}");
    assert_readable(&svg, "releases");
    let long = OverReleases {
        releases: (0..60)
            .map(|at| "long".repeat(20) + &at.to_string())
            .collect(),
        ..chart
    };
    assert_readable(&releases(&long), "releases with long names");
}

#[test]
fn seconds_keep_every_dip_and_shade_stalls() {
    // Longer than the plot is wide: of 1800 seconds one has nearly nothing.
    let rates: Vec<Option<f64>> = (0..1800)
        .map(|second| match second {
            900 => Some(100.0),
            1200..1210 => None,
            _ => Some(20_000.0 + f64::from(second % 7) * 100.0),
        })
        .collect();
    let build = |name: &str, stalls: &[(f64, f64)]| Seconds {
        name: name.to_owned(),
        rates: rates.clone(),
        responses: rates.iter().map(|rate| Some(1e6 / (*rate)?)).collect(),
        stalls: stalls.to_vec(),
    };
    let chart = PerSecond {
        title: "l.i1 over time".to_owned(),
        caption: "One run each.".to_owned(),
        alt: "A stall after 900 seconds.".to_owned(),
        rate_unit: "inserts/s".to_owned(),
        response_unit: "longest insert, ms".to_owned(),
        seconds_per_point: 1.0,
        builds: vec![
            build("my8033_rel_native_lto.cz10a_bee", &[(890.0, 910.0)]),
            build("pg161_def.cx10a_bee", &[]),
        ],
    };
    let svg = seconds(&chart);
    let text = assert_readable(&svg, "seconds");
    for words in [
        "my8033_rel_native_lto.cz10a_bee: inserts/s",
        "longest insert, ms",
        "1800 s",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let document = Document::parse(&svg).unwrap();
    // In both plots of the first build.
    assert_eq!(of_kind(&document, "stall").count(), 2);
    let paths: Vec<&str> = of_kind(&document, "seconds")
        .map(|path| path.attribute("d").unwrap())
        .collect();
    assert_eq!(paths.len(), 4);
    let lines: Vec<(f64, f64, f64)> = paths[0]
        .split('M')
        .skip(1)
        .map(|line| {
            let (x, rest) = line.split_once(' ').unwrap();
            let (from, to) = rest.split_once('V').unwrap();
            (
                x.parse().unwrap(),
                from.parse().unwrap(),
                to.parse().unwrap(),
            )
        })
        .collect();
    // A line per pixel, each at another one, and one that reaches down to the dip.
    assert!((400..560).contains(&lines.len()), "{}", lines.len());
    assert!(lines.windows(2).all(|two| two[0].0 < two[1].0));
    let deep: Vec<_> = lines.iter().filter(|line| line.2 - line.1 > 50.0).collect();
    assert!((1..=2).contains(&deep.len()), "{deep:?}");
    let middle = (lines[0].0 + lines[lines.len() - 1].0) / 2.0;
    assert!((deep[0].0 - middle).abs() < 3.0, "{deep:?} {middle}");
    // Missing seconds are a gap.
    let gaps = lines.windows(2).filter(|two| two[1].0 - two[0].0 > 1.5);
    assert_eq!(gaps.count(), 1);
    assert!(all_text(&seconds(&PerSecond::default())).contains("no second"));
}

#[test]
fn names_from_outside_stay_text_and_whole() {
    let long = "abc_".repeat(90);
    let hostile = [
        "</text><script>alert(1)</script>",
        "\"'&amp;<![CDATA[",
        "a\u{0}b\u{202e}c\nd",
        "\u{8bfb}\u{53d6}",
        "",
        &long,
    ];
    let values: Vec<Option<f64>> = vec![
        Some(1.2),
        Some(f64::NAN),
        Some(f64::INFINITY),
        Some(-3.0),
        Some(1e300),
        Some(0.0),
    ];
    let mut chart = chart(
        &hostile,
        &[(hostile[0], &values), (hostile[5], &values[..2])],
    );
    chart.title = hostile[0].to_owned();
    chart.alt = hostile[1].to_owned();
    chart.series[0].intervals = vec![Some((f64::NAN, 2.0)), None, Some((3.0, 1.0))];
    for svg in [
        bars(&chart, Axis::Full),
        bars(&chart, Axis::CutAt(f64::NAN)),
        bars(&chart, Axis::CutAt(2.0)),
        dots(&chart, Some(f64::NAN)),
    ] {
        let document = Document::parse(&svg).unwrap();
        assert!(
            document
                .descendants()
                .all(|node| !node.has_tag_name("script"))
        );
        let root = document.root_element();
        let child = |name: &str| {
            let of = root
                .children()
                .find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)));
            of.unwrap().text().unwrap_or_default().to_owned()
        };
        assert_eq!(
            (child("title").as_str(), child("desc").as_str()),
            (hostile[0], hostile[1])
        );
        let text = assert_readable(&svg, "hostile names").replace(' ', "");
        for name in [hostile[0], hostile[1], &long] {
            assert!(text.contains(&name.replace(' ', "")), "{name}");
        }
        png(&svg).unwrap();
    }
    let empty = GroupChart::default();
    for svg in [bars(&empty, Axis::Full), dots(&empty, None)] {
        assert!(all_text(&svg).contains("There is no test to show."));
        png(&svg).unwrap();
    }
    assert!(all_text(&lines(&LineChart::default())).contains("no point"));
    assert!(all_text(&panels(&PerOperation::default())).contains("no cost"));
    assert!(all_text(&releases(&OverReleases::default())).contains("no release"));
}

#[test]
fn pictures_have_bars_and_letters() {
    let chart = chart(&["insert", "delete"], &[("8.0", &[Some(0.8), Some(1.2)])]);
    let svg = bars(&chart, Axis::Full);
    assert_eq!(
        svg,
        bars(&chart, Axis::Full),
        "the same input, the same bytes"
    );
    let picture = png(&svg).unwrap();
    assert_eq!(picture, png(&svg).unwrap());
    let pixels = Pixmap::decode_png(&picture).unwrap();
    assert_eq!(pixels.width(), 1200);
    let is = |at: &resvg::tiny_skia::PremultipliedColorU8, colour: (u8, u8, u8)| {
        (at.red(), at.green(), at.blue()) == colour
    };
    let count = |colour| pixels.pixels().iter().filter(|at| is(at, colour)).count();
    assert!(
        count((0x00, 0x72, 0xb2)) > 5_000,
        "bars of the first colour"
    );
    // Letters of the title: ink in the first lines of the picture, where nothing else is.
    let ink = |pixels: &Pixmap| {
        let first = &pixels.pixels()[..1200 * 50];
        first.iter().filter(|at| at.red() < 0x60).count()
    };
    assert!(ink(&pixels) > 200, "{}", ink(&pixels));
    let silent = Pixmap::decode_png(&png(&svg.replace("Writes", "")).unwrap()).unwrap();
    assert_eq!(ink(&silent), 0);
}

#[test]
fn what_is_not_a_figure_is_told() {
    let error = png("<svg").unwrap_err().to_string();
    assert!(
        error.starts_with("draw a picture of a figure: its SVG is not well-formed"),
        "{error}"
    );
    let tall = r#"<svg xmlns="http://www.w3.org/2000/svg" width="10" height="99999"/>"#;
    let error = png(tall).unwrap_err().to_string();
    assert!(
        error.contains("20 x 199998 pixels") && error.contains("use the .svg"),
        "{error}"
    );
    // Nothing outside is loaded.
    let outside = r#"<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10">
        <image href="/etc/hostname" width="10" height="10"/></svg>"#;
    let pixels = Pixmap::decode_png(&png(outside).unwrap()).unwrap();
    assert!(pixels.pixels().iter().all(|at| at.red() == 255));
}

/// Boxes of a flame graph lie side by side, and names stay within them.
#[test]
fn flames_have_names_within_their_boxes() {
    let node = |base_us: f64, cell_us: f64| FlameNode {
        base_us,
        cell_us,
        ..FlameNode::default()
    };
    let mut tree = node(40.0, 60.0);
    for (place, name) in ["do_command", "dispatch_a_very_long_statement_by_name", "x"]
        .iter()
        .enumerate()
    {
        let mut call = node(10.0, 20.0);
        for inner in 0..=place {
            let own = node(5.0, 20.0 / (place as f64 + 1.0));
            call.calls.insert(format!("{name}_inner_{inner}"), own);
        }
        tree.calls.insert((*name).to_owned(), call);
    }
    let svg = flames(&FlameChart {
        title: "scan: server CPU by function".to_owned(),
        caption: "scan, base 5.6".to_owned(),
        alt: "Server CPU of scan".to_owned(),
        base: "5.6".to_owned(),
        cell: "5.7".to_owned(),
        tree,
    });
    let (tree, placed) = laid_out(&svg);
    assert_eq!(tree.size().width(), 600.0);
    assert!(placed.iter().any(|of| of.text == "do_command +10.00"));
    for (at, one) in placed.iter().enumerate() {
        for other in &placed[at + 1..] {
            assert!(
                !overlap(&one.corners, &other.corners),
                "{} and {}",
                one.text,
                other.text
            );
        }
        let inside = |corner: &Point| (0.0..=600.0).contains(&corner.x);
        assert!(one.corners.iter().all(inside), "{}", one.text);
    }
    assert!(png(&svg).unwrap().starts_with(b"\x89PNG"));
}
