//! The classic rules against published reports, cell by cell.

use plimsoll_analysis::classic::throughput::{Rate, classify};
use plimsoll_analysis::classic::{Class, metrics_line, relative, response};
use plimsoll_core::record::SLA_SHARE;

/// The smallest rate that a published table takes for met, rounded as there.
fn least_rate(target_per_s: f64) -> u64 {
    (SLA_SHARE * target_per_s).round() as u64
}

fn is_missed(rate_per_s: u64, target_per_s: f64) -> bool {
    rate_per_s < least_rate(target_per_s)
}

const FBMY_METRICS: &str = include_str!("data/fbmy_metrics.txt");
const FBMY_CLASSES: &str = include_str!("data/fbmy_classes.txt");
const FBMY_RESPONSE: &str = include_str!("data/fbmy_response.txt");
const PG: &str = include_str!("data/pg_throughput.txt");
const INNO: &str = include_str!("data/inno_throughput.txt");

fn records(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
}

/// Step, tag and the twenty printed cells of each published line.
fn fbmy_lines() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let mut step = "";
    let mut lines = Vec::new();
    for mut fields in records(FBMY_METRICS) {
        match fields.len() {
            1 => step = fields[0],
            21 => {
                let tag = fields.pop().unwrap();
                lines.push((step, tag, fields));
            }
            other => panic!("{other} fields in {fields:?}"),
        }
    }
    lines
}

const STEPS: [&str; 10] = [
    "l.i0",
    "l.x",
    "l.i1",
    "l.i2",
    "qr100.L1",
    "qp100.L2",
    "qr500.L3",
    "qp500.L4",
    "qr1000.L5",
    "qp1000.L6",
];

/// The column of the throughput table: ips in load steps, qps in the others.
fn fbmy_rates(step: &str) -> Vec<Rate> {
    let column = usize::from(step.starts_with('q'));
    let lines = fbmy_lines();
    let cells = lines.iter().filter(|(of, ..)| *of == step);
    cells
        .map(|(_, _, cells)| Rate {
            per_s: cells[column].parse().unwrap(),
            is_sla_met: true,
        })
        .collect()
}

fn letter(class: Class) -> char {
    match class {
        Class::Plain => '.',
        Class::Worst => 'r',
        Class::Best => 'g',
        Class::Missed | Class::Target => 'x',
        Class::AboveBase => 'b',
        Class::BelowBase => 'y',
    }
}

/// `85034r` -> (85034, 'r').
fn marked(text: &str) -> (u64, char) {
    let class = text.chars().last().filter(char::is_ascii_alphabetic);
    (
        text.trim_end_matches(char::is_alphabetic).parse().unwrap(),
        class.unwrap_or('.'),
    )
}

#[test]
fn colours_of_absolute_throughput() {
    let mut rows = vec![String::new(); 5];
    for step in STEPS {
        let rates = fbmy_rates(step);
        assert_eq!(rates.len(), 5, "{step}");
        for (row, class) in rows
            .iter_mut()
            .zip(classify(&rates.into_iter().map(Some).collect::<Vec<_>>()))
        {
            row.push(letter(class));
        }
    }
    let published: Vec<&str> = records(FBMY_CLASSES)
        .filter(|f| f[0] == "classes")
        .map(|f| f[2])
        .collect();
    assert_eq!(rows, published);
}

#[test]
fn colours_of_relative_throughput() {
    let published: Vec<Vec<&str>> = records(FBMY_CLASSES)
        .filter(|f| f[0] == "relative")
        .collect();
    assert_eq!(published.len(), 5);
    for (column, step) in STEPS.iter().enumerate() {
        let rates = fbmy_rates(step);
        for (row, rate) in published.iter().zip(&rates) {
            let (value, base) = (rate.per_s as f64, rates[0].per_s as f64);
            let mut text = relative::format(value, base);
            match relative::classify(value, base) {
                Class::Plain => {}
                class => text.push(letter(class)),
            }
            assert_eq!(text, row[column + 2], "{step} of {}", row[1]);
        }
    }
}

#[test]
fn colours_with_missed_background_rates() {
    let rows: Vec<Vec<&str>> = records(PG).collect();
    assert_eq!(rows.len(), 14);
    for column in 1..=10 {
        // Only the last two steps have cells that missed their rate.
        let inserts = |row: &Vec<&str>| (column >= 9).then(|| marked(row[column + 2]));
        let cells: Vec<Option<Rate>> = rows
            .iter()
            .map(|row| {
                let is_sla_met = inserts(row).is_none_or(|(ips, _)| !is_missed(ips, 1000.0));
                Some(Rate {
                    per_s: marked(row[column]).0,
                    is_sla_met,
                })
            })
            .collect();
        for (row, class) in rows.iter().zip(classify(&cells)) {
            assert_eq!(
                letter(class),
                marked(row[column]).1,
                "column {column} of {}",
                row[0]
            );
            if let Some((ips, mark)) = inserts(row) {
                assert_eq!(
                    is_missed(ips, 1000.0),
                    mark == 'r',
                    "insert rate {ips} of {}",
                    row[0]
                );
            }
        }
    }
}

#[test]
fn innodb_tables() {
    let rows = |kind: &str| records(INNO).filter(|f| f[0] == kind).collect::<Vec<_>>();
    let (rates, ratios, inserts) = (rows("rates"), rows("relative"), rows("inserts"));
    for column in 2..12 {
        let cells: Vec<_> = rates
            .iter()
            .map(|row| {
                Some(Rate {
                    per_s: marked(row[column]).0,
                    is_sla_met: true,
                })
            })
            .collect();
        for (row, class) in rates.iter().zip(classify(&cells)) {
            assert_eq!(
                letter(class),
                marked(row[column]).1,
                "column {column} of {}",
                row[1]
            );
        }
        for (row, ratio) in rates[1..].iter().zip(&ratios) {
            assert_eq!(
                relative::format(
                    marked(row[column]).0 as f64,
                    marked(rates[0][column]).0 as f64
                ),
                ratio[column],
                "{}",
                row[1]
            );
        }
    }
    for row in inserts {
        for (cell, rate) in row[2..]
            .iter()
            .zip([100.0, 100.0, 500.0, 500.0, 1000.0, 1000.0])
        {
            assert!(!is_missed(cell.parse().unwrap(), 24.0 * rate), "{row:?}");
        }
    }
}

#[test]
fn insert_rates_and_their_targets() {
    assert_eq!(
        [2400.0, 12_000.0, 24_000.0, 1000.0].map(least_rate),
        [2280, 11_400, 22_800, 950]
    );
    for (step, target) in STEPS[4..]
        .iter()
        .zip([2400.0, 2400.0, 12_000.0, 12_000.0, 24_000.0, 24_000.0])
    {
        for (_, tag, cells) in fbmy_lines().iter().filter(|(of, ..)| of == step) {
            assert!(
                !is_missed(cells[0].parse().unwrap(), target),
                "{step} of {tag}"
            );
        }
    }
    assert!(is_missed(949, 1000.0) && !is_missed(950, 1000.0));
}

#[test]
fn a_column_without_a_cell_that_met_its_rate() {
    let missed = |per_s| {
        Some(Rate {
            per_s,
            is_sla_met: false,
        })
    };
    assert_eq!(
        classify(&[missed(10), None, missed(400)]),
        [Class::Missed, Class::Plain, Class::Missed]
    );
    assert_eq!(classify(&[]), []);
    // The only cell that met its rate is the slowest: nothing is red, and it alone is green.
    let met = |per_s| {
        Some(Rate {
            per_s,
            is_sla_met: true,
        })
    };
    assert_eq!(
        classify(&[met(100), missed(400)]),
        [Class::Best, Class::Missed]
    );
    assert_eq!(classify(&[met(100)]), [Class::Best]);
}

#[test]
fn response_time_cells() {
    // Counts that give the published shares of a hundred thousand operations, and a share too small
    // for three decimals.
    let cases = [
        (0, 100_000, ""),
        (1, 10_000_000, "nonzero"),
        (76_511, 100_000, "76.511"),
        (42, 100_000, "0.042"),
        (7, 7, "100.000"),
    ];
    for (count, total, text) in cases {
        assert_eq!(
            response::format_share(count, total),
            text,
            "{count} of {total}"
        );
    }
    for (percent, shade) in [
        (76.511, 15),
        (23.335, 5),
        (0.042, 0),
        (84.292, 17),
        (100.0, 20),
        (2.5, 1),
        (2.4, 0),
    ] {
        assert_eq!(response::shade(percent), shade, "{percent}");
    }
}

#[test]
fn published_response_time_rows() {
    let rows: Vec<Vec<&str>> = records(FBMY_RESPONSE).collect();
    assert_eq!(rows.len(), 20);
    for table in ["l.i0.insert", "l.i1.insert", "l.i1.delete", "qr100.query"] {
        let rows: Vec<_> = rows.iter().filter(|row| row[0] == table).collect();
        let maxima: Vec<Option<f64>> = rows
            .iter()
            .map(|row| row[row.len() - 2].parse().ok())
            .collect();
        for (row, class) in rows.iter().zip(response::classify_max(&maxima)) {
            assert_eq!(
                letter(class).to_string(),
                row[row.len() - 1],
                "maximum of {table} {}",
                row[1]
            );
            for share in &row[3..row.len() - 2] {
                if let Ok(percent) = share.parse::<f64>() {
                    // A share of 10^8 operations prints as it was published.
                    assert_eq!(
                        response::format_share((percent * 1e6).round() as u64, 100_000_000),
                        *share
                    );
                }
            }
        }
    }
}

#[test]
fn metrics_lines_print_as_published() {
    for (step, tag, cells) in fbmy_lines() {
        let values: [Option<f64>; 20] = std::array::from_fn(|i| cells[i].parse().ok());
        assert_eq!(
            metrics_line::cells(&values).to_vec(),
            cells,
            "{step} of {tag}"
        );
    }
    // N=1, 20M rows, 2021, the second step at 1000 inserts/s: my8022, before its first three
    // columns were rounded for the merged table.
    let raw = "998 6046 0.0 0.0 26.5 1.0 0.000 0.000 0.027 1.034 23942 28.4 3.960 188 10.0 50.6 \
              10.3 0.027 6057 5818";
    let values: Vec<Option<f64>> = raw.split(' ').map(|cell| cell.parse().ok()).collect();
    let printed = metrics_line::cells(&values.try_into().unwrap()).join(" ");
    assert_eq!(
        printed,
        "998 6046 0 0.0 26.5 1.0 0.000 0.000 0.027 1.034 23942 28.4 3.960 188 10.0 50.6 10.3 0.027 \
        6057 5818"
    );
}

#[test]
fn host_cpu_per_operation_as_published() {
    // cpups / 100 x CPUs x 10^6 / op rate, with 80 hardware threads: the published cpupq of every
    // line, within its rounding of cpups.
    for (step, tag, cells) in fbmy_lines() {
        let number = |i: usize| cells[i].parse::<f64>().unwrap();
        let rate = number(usize::from(step.starts_with('q')));
        let us = |cpups: f64| cpups / 100.0 * 80.0 * 1e6 / rate;
        let (low, high) = (us(number(11) - 0.05) - 0.5, us(number(11) + 0.05) + 0.5);
        assert!(
            (low..=high).contains(&number(13)),
            "{step} of {tag}: {low} {} {high}",
            cells[13]
        );
    }
}

#[test]
fn relative_lines_print_as_published() {
    let cells = |line: &str| -> [String; 20] {
        line.split(' ')
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .try_into()
            .unwrap()
    };
    let my5649 = cells(
        "998 7227 18 0.1 24.6 1.1 0.002 0.010 0.025 1.178 27970 26.9 3.870 149 10.1 50.6 9.9 0.015 \
        8206 3022",
    );
    let pg1110 = cells(
        "998 7231 6 0.1 488.8 19.1 0.001 0.007 0.490 19.623 28095 28.4 3.886 157 11.9 15.9 0.0 \
        0.005 7240 7032",
    );
    let relative = metrics_line::relative_cells(&pg1110, &my5649).join(" ");
    assert_eq!(
        relative,
        "1.00 1.00 0.33 1.00 19.87 17.36 0.50 0.70 19.60 16.66 1.00 1.06 1.00 1.05 1.18 0.31 0.00 \
        0.33 0.88 2.33"
    );
    let my8022 = cells(
        "998 6046 0 0.0 26.5 1.0 0.000 0.000 0.027 1.034 23942 28.4 3.960 188 10.0 50.6 10.3 0.027 \
        6057 5818",
    );
    let pg131 = cells(
        "999 7744 0 0.0 501.9 18.8 0.000 0.000 0.503 19.295 30015 28.6 3.876 148 12.0 15.7 0.0 \
        0.008 7751 7560",
    );
    let relative = metrics_line::relative_cells(&pg131, &my8022).join(" ");
    assert_eq!(
        relative,
        "1.00 1.28 1 1 18.94 18.80 1 1 18.63 18.66 1.25 1.01 0.98 0.79 1.20 0.31 0.00 0.30 1.28 \
        1.30"
    );
    let mut unknown = cells(&my8022.join(" "));
    unknown[19] = "NA".to_owned();
    assert_eq!(metrics_line::relative_cells(&unknown, &my8022)[19], "NA");
    assert_eq!(relative::format(3.0, 0.0), "inf");
}
