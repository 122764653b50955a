//! `vmstat N` as text.

use crate::text::{Read, ReadError, end, lines, text};

/// The columns that are used, of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Context switches per second.
    pub cs: f64,
    /// User and system CPU, percent of all CPUs.
    pub cpu: f64,
}

/// The samples of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Vmstat {
    /// In order; the first one is the average since boot.
    pub samples: Vec<Sample>,
    /// `procs ---memory---` lines.
    pub banners: usize,
}

/// Averages over samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Averages {
    /// Samples they are over.
    pub samples: usize,
    /// Context switches per second.
    pub cs: f64,
    /// User and system CPU, percent of all CPUs.
    pub cpu: f64,
}

impl Vmstat {
    /// As the scripts compute them: every banner but the first counts as a sample of zeros, and the
    /// first sample counts although it is the average since boot.
    pub fn classic(&self) -> Option<Averages> {
        let samples = self.samples.len() + self.banners.saturating_sub(1);
        average(&self.samples, samples)
    }

    /// Over the samples that were taken during the run.
    pub fn clean(&self) -> Option<Averages> {
        let of_run = self.samples.get(1..)?;
        average(of_run, of_run.len())
    }
}

fn average(samples: &[Sample], count: usize) -> Option<Averages> {
    let sum = |pick: fn(&Sample) -> f64| samples.iter().map(pick).sum::<f64>() / count as f64;
    (count > 0).then(|| Averages {
        samples: count,
        cs: sum(|sample| sample.cs),
        cpu: sum(|sample| sample.cpu),
    })
}

/// The samples that a count of samples with banners in it stands for: vmstat prints a banner before
/// every 21st sample, and the first one is not counted.
pub fn samples_without_banners(counted: u64) -> u64 {
    // With d samples there are ceil(d / 21) banners, of which all but one are counted.
    (0..=counted)
        .rev()
        .find(|d| d + d.div_ceil(21).saturating_sub(1) <= counted)
        .unwrap_or(counted)
}

/// Whether this is vmstat's output.
pub fn is_vmstat(head: &str) -> bool {
    head.trim_start().starts_with("procs -")
}

/// Reads the samples. Columns are found by their names.
pub fn read(bytes: &[u8]) -> Read<Vmstat> {
    let all = text(bytes);
    let mut columns: Option<[usize; 3]> = None;
    let mut vmstat = Vmstat {
        samples: Vec::new(),
        banners: 0,
    };
    for (n, line) in lines(&all) {
        if line.trim_start().starts_with("procs ") {
            vmstat.banners += 1;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.contains(&"swpd") {
            let find = |name: &str| words.iter().position(|word| *word == name);
            columns = Some(
                find("cs")
                    .zip(find("us"))
                    .zip(find("sy"))
                    .map(|((cs, us), sy)| [cs, us, sy])
                    .ok_or_else(|| ReadError::new(n, "its header lacks cs, us or sy"))?,
            );
            continue;
        }
        if words.is_empty() {
            continue;
        }
        let columns =
            columns.ok_or_else(|| ReadError::new(n, "numbers come before their header"))?;
        let parsed: Option<Vec<f64>> = columns
            .iter()
            .map(|i| words.get(*i)?.parse::<f64>().ok().filter(|n| n.is_finite()))
            .collect();
        match parsed.as_deref() {
            Some([cs, us, sy]) => vmstat.samples.push(Sample {
                cs: *cs,
                cpu: us + sy,
            }),
            // A process that is ended may leave half a line at the end.
            _ if n == end(&all) => {}
            _ => return Err(ReadError::new(n, "a sample lacks numbers")),
        }
    }
    if vmstat.samples.is_empty() {
        return Err(ReadError::new(end(&all), "it has no samples"));
    }
    Ok(vmstat)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- \
                         ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   \
                         in   cs us sy id wa st\n 3  0      0 100 10 20    0    0  1270  7269 2971 \
                         1000 10 5 85  0  0\n 5  0      0 100 10 20    0    0     0     0 1200 \
                         4000 50 10 40  0  0\n\
        procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   \
                         swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa \
                         st\n 5  0      0 100 10 20    0    0     0     0 1200 6000 60 20 20  0  \
                         0\n";

    #[test]
    fn classic_counts_banners_and_the_time_since_boot() {
        let vmstat = read(SAMPLE.as_bytes()).unwrap();
        assert_eq!((vmstat.samples.len(), vmstat.banners), (3, 2));
        assert_eq!(
            vmstat.classic(),
            Some(Averages {
                samples: 4,
                cs: 2750.0,
                cpu: 38.75
            })
        );
        assert_eq!(
            vmstat.clean(),
            Some(Averages {
                samples: 2,
                cs: 5000.0,
                cpu: 70.0
            })
        );
    }

    #[test]
    fn counted_banners_can_be_taken_out() {
        for (counted, samples) in [
            (665, 635),
            (350, 335),
            (633, 605),
            (21, 21),
            (22, 21),
            (23, 22),
            (0, 0),
            (1, 1),
        ] {
            assert_eq!(samples_without_banners(counted), samples, "{counted}");
        }
    }

    #[test]
    fn a_line_cut_at_the_end_is_forgiven_and_no_other() {
        let cut = format!("{SAMPLE} 5  0      0 100 10 20    0    0     0     0 12");
        assert_eq!(read(cut.as_bytes()).unwrap().samples.len(), 3);
        let broken = SAMPLE.replace(" 4000 50", " 4000 x");
        assert_eq!(
            read(broken.as_bytes()).unwrap_err().to_string(),
            "line 4: a sample lacks numbers"
        );
        assert_eq!(
            read(b"1 2 3\n").unwrap_err().to_string(),
            "line 1: numbers come before their header"
        );
    }
}
