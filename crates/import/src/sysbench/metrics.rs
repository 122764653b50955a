//! `sb.met.*`: what a test cost per operation, as the scripts print it.

use crate::text::{Read, ReadError, end, lines, number, text};

const TITLE: &str = "iostat, vmstat normalized by operation rate";
const IO_HEADER: &str = "samp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s";
const VM_HEADER: &str = "samp\tcs/s\tcpu/s\tcs/o\tcpu/o";

/// One file. The cells are kept as printed: their digits matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// `samp r/s rMB/s w/s wMB/s r/o rKB/o wKB/o o/s`.
    pub io: [String; 9],
    /// `samp cs/s cpu/s cs/o cpu/o`.
    pub vm: [String; 5],
}

impl Metrics {
    /// The operation rate that everything is divided by, as printed.
    pub fn op_rate(&self) -> &str {
        &self.io[8]
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        format!(
            "{TITLE}\n{IO_HEADER}\n{}\n\n{VM_HEADER}\n{}\n",
            self.io.join("\t"),
            self.vm.join("\t")
        )
    }
}

/// Whether this is such a file.
pub fn is_metrics(head: &str) -> bool {
    head.starts_with(TITLE)
}

/// Reads a file.
pub fn read(bytes: &[u8]) -> Read<Metrics> {
    let all = text(bytes);
    let (mut io, mut vm) = (None, None);
    let mut rows = lines(&all);
    while let Some((_, line)) = rows.next() {
        match line {
            IO_HEADER => io = rows.next().map(|(n, row)| cells::<9>(row, n)).transpose()?,
            VM_HEADER => vm = rows.next().map(|(n, row)| cells::<5>(row, n)).transpose()?,
            _ => {}
        }
    }
    let missing = |what: &str| {
        ReadError::new(
            end(&all),
            format!("it has no row of {what}: the file is truncated"),
        )
    };
    Ok(Metrics {
        io: io.ok_or_else(|| missing("iostat averages"))?,
        vm: vm.ok_or_else(|| missing("vmstat averages"))?,
    })
}

fn cells<const N: usize>(row: &str, line: usize) -> Read<[String; N]> {
    let cells: Vec<String> = row.split('\t').map(str::to_owned).collect();
    for cell in &cells {
        number(cell, line)?;
    }
    let found = cells.len();
    cells
        .try_into()
        .map_err(|_| ReadError::new(line, format!("{found} cells where {N} belong")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "iostat, vmstat normalized by operation \
                         rate\nsamp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s\n\
                          60\t1.0\t0.0\t3.5\t0.1\t0.000\t0.001\t0.002\t1234.50\n\nsamp\tcs/s\tcpu/s\tcs/o\tcpu/o\n62\t5000\t12.5\t4.050\t0.010126\n";

    #[test]
    fn reads_and_writes_the_same_bytes() {
        let metrics = read(SAMPLE.as_bytes()).unwrap();
        assert_eq!(
            (metrics.op_rate(), metrics.vm[4].as_str()),
            ("1234.50", "0.010126")
        );
        assert_eq!(metrics.to_text(), SAMPLE);
    }

    #[test]
    fn what_is_cut_or_strange_has_its_place() {
        let cut = &SAMPLE[..SAMPLE.find("\nsamp\tcs").unwrap()];
        assert_eq!(
            read(cut.as_bytes()).unwrap_err().to_string(),
            "line 3: it has no row of vmstat averages: the file is truncated"
        );
        let strange = SAMPLE.replace("3.5", "x");
        assert_eq!(
            read(strange.as_bytes()).unwrap_err().to_string(),
            "line 3: \"x\" is not a number"
        );
        let short = SAMPLE.replace("\t1234.50", "");
        assert_eq!(
            read(short.as_bytes()).unwrap_err().to_string(),
            "line 3: 8 cells where 9 belong"
        );
    }
}
