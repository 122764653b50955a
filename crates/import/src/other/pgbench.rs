//! Standard output of pgbench.

use crate::text::{Read, ReadError, count, end, lines, number, text};

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pgbench {
    /// `16.1`, where the banner is there.
    pub version: Option<String>,
    /// `<builtin: TPC-B (sort of)>`.
    pub script: String,
    /// Scale factor.
    pub scale: Option<u64>,
    pub clients: Option<u64>,
    /// Transactions done.
    pub transactions: u64,
    /// Transactions that failed, since PostgreSQL 15.
    pub failed: Option<u64>,
    /// Mean latency in milliseconds, as printed.
    pub latency_ms: Option<String>,
    /// Transactions per second without the time of connecting, as printed.
    pub tps: String,
    /// `--progress`: seconds, transactions per second, mean latency in milliseconds.
    pub progress: Vec<(f64, f64, f64)>,
}

/// Whether this is pgbench's output.
pub fn is_pgbench(all: &str) -> bool {
    all.contains("number of transactions actually processed")
        || all
            .lines()
            .take(3)
            .any(|line| line.starts_with("pgbench ("))
}

/// Reads a run.
pub fn read(bytes: &[u8]) -> Read<Pgbench> {
    let all = text(bytes);
    let mut run = Pgbench::default();
    let mut is_connecting_apart = false;
    let mut transactions = None;
    for (n, line) in lines(&all) {
        if let Some(rest) = line.strip_prefix("pgbench (") {
            run.version = rest.split([')', ' ']).next().map(str::to_owned);
        } else if let Some(script) = line.strip_prefix("transaction type: ") {
            run.script = script.to_owned();
        } else if let Some(scale) = line.strip_prefix("scaling factor: ") {
            run.scale = Some(count(scale.trim(), n)?);
        } else if let Some(clients) = line.strip_prefix("number of clients: ") {
            run.clients = Some(count(clients.trim(), n)?);
        } else if let Some(done) = line.strip_prefix("number of transactions actually processed: ")
        {
            transactions = Some(count(done.split('/').next().unwrap_or_default().trim(), n)?);
        } else if let Some(failed) = line.strip_prefix("number of failed transactions: ") {
            run.failed = Some(count(failed.split(' ').next().unwrap_or_default(), n)?);
        } else if let Some(latency) = line
            .strip_prefix("latency average = ")
            .or_else(|| line.strip_prefix("latency average: "))
        {
            let latency = latency.split(' ').next().unwrap_or_default();
            number(latency, n)?;
            run.latency_ms = Some(latency.to_owned());
        } else if let Some(tps) = line.strip_prefix("tps = ") {
            let rate = tps.split(' ').next().unwrap_or_default();
            number(rate, n)?;
            // Older versions print the rate with the time of connecting first, newer ones only that
            // without.
            if !is_connecting_apart {
                run.tps = rate.to_owned();
                is_connecting_apart = !tps.contains("including");
            }
        } else if let Some(rest) = line.strip_prefix("progress: ") {
            run.progress.extend(progress(rest));
        }
    }
    run.transactions = transactions.ok_or_else(|| {
        ReadError::new(
            end(&all),
            "it does not tell its transactions: the run did not finish",
        )
    })?;
    if run.tps.is_empty() {
        return Err(ReadError::new(
            end(&all),
            "it has no \"tps =\": the file is truncated",
        ));
    }
    Ok(run)
}

/// `5.0 s, 1234.5 tps, lat 4.050 ms stddev 1.203, 0 failed`.
fn progress(rest: &str) -> Option<(f64, f64, f64)> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let finite = |word: &&str| word.parse::<f64>().ok().filter(|number| number.is_finite());
    let latency = words
        .iter()
        .position(|word| *word == "lat")
        .and_then(|i| words.get(i + 1));
    Some((
        words.first().and_then(finite)?,
        words.get(2).and_then(finite)?,
        latency.and_then(finite)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_and_old_layouts() {
        let new = "pgbench (16.1)\nprogress: 5.0 s, 1200.5 tps, lat 4.050 ms stddev 1.203, 0 \
                  failed\ntransaction type: <builtin: select only>\n\
                   scaling factor: 10\nnumber of clients: 4\nnumber of transactions actually \
                  processed: 6000\nnumber of failed transactions: 2 (0.033%)\n\
                   latency average = 3.332 ms\ninitial connection time = 8.1 ms\ntps = 1200.480192 \
                  (without initial connection time)\n";
        let run = read(new.as_bytes()).unwrap();
        assert_eq!(
            (
                run.version.as_deref(),
                run.clients,
                run.transactions,
                run.failed
            ),
            (Some("16.1"), Some(4), 6000, Some(2))
        );
        assert_eq!(
            (run.tps.as_str(), run.latency_ms.as_deref()),
            ("1200.480192", Some("3.332"))
        );
        assert_eq!(run.progress, [(5.0, 1200.5, 4.05)]);
        let old = "transaction type: TPC-B (sort of)\nscaling factor: 1\nnumber of clients: \
                  2\nnumber of transactions actually processed: 50/50\n\
                   tps = 85.1 (including connections establishing)\ntps = 85.2 (excluding \
                  connections establishing)\n";
        assert_eq!(
            (
                read(old.as_bytes()).unwrap().tps.as_str(),
                read(old.as_bytes()).unwrap().transactions
            ),
            ("85.2", 50)
        );
        let cut = &new[..new.find("tps = ").unwrap()];
        assert_eq!(
            read(cut.as_bytes()).unwrap_err().to_string(),
            "line 9: it has no \"tps =\": the file is truncated"
        );
    }
}
