//! The layout of the originals' sysbench files, whatever the numbers in them come from.

use std::fmt::Write as _;

use plimsoll_analysis::classic::relative;

/// What stands where a number is not known.
pub(crate) const NOTHING: &str = "NA";

/// `qps.abs` and `qps.rel`: what is in front, what the columns are, and a line per test.
pub(crate) fn rates_tsv(lead: &str, folders: &[&str], rows: &[(&str, Vec<String>)]) -> String {
    let mut text = lead.to_owned();
    for (i, folder) in folders.iter().enumerate() {
        writeln!(text, "col-{} : {folder}", i + 1).expect("writing to a string cannot fail");
    }
    let headings: Vec<String> = (1..=folders.len()).map(|i| format!("col-{i}")).collect();
    writeln!(text, "\n{}", headings.join("\t")).expect("writing to a string cannot fail");
    for (name, cells) in rows {
        writeln!(text, "{}\t{name}", cells.join("\t")).expect("writing to a string cannot fail");
    }
    text
}

/// The same with the name first, and without what the columns are.
pub(crate) fn rates_csv(rows: &[(&str, Vec<String>)]) -> String {
    rows.iter()
        .map(|(name, cells)| format!("{name},{}\n", cells.join(",")))
        .collect()
}

/// What is in front of `qps.rel`.
pub(crate) fn lead_of_ratios(base: &str) -> String {
    format!("Relative to: {base}\n")
}

/// `sb.met`: of iostat the samples, r/s, rMB/s, w/s, wMB/s, r/o, rKB/o, wKB/o and o/s; of vmstat
/// the samples, cs/s, cpu/s, cs/o and cpu/o. Each is a line with tabs.
pub(crate) fn metrics(storage: &str, host: &str) -> String {
    format!(
        "iostat, vmstat normalized by operation rate\n\
         samp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s\n\
         {storage}\n\nsamp\tcs/s\tcpu/s\tcs/o\tcpu/o\n{host}\n"
    )
}

/// A block of `o.met`: cpu/o, cs/o, r/o, rKB/o, wKB/o and o/s of each folder, and those divided by
/// the first, computed from what is printed.
pub(crate) fn costs(title: &str, lines: &[(&str, [String; 6])]) -> String {
    let mut text = format!("{title}\n--- absolute\ncpu/o\t\tcs/o\tr/o\trKB/o\twKB/o\to/s\tdbms\n");
    for (folder, cells) in lines {
        writeln!(text, "{}\t{folder}", cells.join("\t")).expect("writing to a string cannot fail");
    }
    text.push_str("--- relative to first result\n");
    if let Some(((_, base), others)) = lines.split_first() {
        for (folder, cells) in others {
            let ratios: Vec<String> = cells
                .iter()
                .zip(base)
                .map(|(value, base)| printed_ratio(value, base))
                .collect();
            writeln!(
                text,
                "{}\t\t{}\t{folder}",
                ratios[0],
                ratios[1..].join("\t")
            )
            .expect("writing to a string cannot fail");
        }
    }
    text.push('\n');
    text
}

/// Of two printed numbers.
pub(crate) fn printed_ratio(value: &str, base: &str) -> String {
    match (value.parse(), base.parse()) {
        (Ok(value), Ok(base)) => relative::format(value, base),
        _ => NOTHING.to_owned(),
    }
}
