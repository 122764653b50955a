//! Names of the sysbench scripts' files: `sb.o.read-only.range100.pk1.dop40`.

/// What such a name tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestFile {
    /// What the file holds: `o`, `met`, `vm`, `io`, `time`, `r.qps`, `prepare.met`, ...
    pub kind: String,
    /// `read-only`.
    pub test: String,
    /// 100.
    pub range: u32,
    /// Tables with a primary key.
    pub has_primary_key: bool,
    /// Clients; files of all thread counts have none.
    pub dop: Option<u32>,
}

/// Kinds of more than one word.
const KINDS: [&str; 14] = [
    "r.qps",
    "r.trx",
    "r.rtavg",
    "r.rtmax",
    "r.rt95",
    "prepare.o",
    "prepare.met",
    "prepare.vm",
    "prepare.io",
    "prepare.ps",
    "o",
    "met",
    "vm",
    "io",
];

impl TestFile {
    /// Reads a name. `None` when it is not one of a test.
    pub fn of(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("sb.")?;
        // Hardware counters have the number of their sample behind the test.
        if let Some(sample) = rest
            .strip_prefix("perf.hw.")
            .and_then(|rest| rest.strip_suffix(".sorted"))
        {
            let (test, number) = sample.rsplit_once('.')?;
            number.parse::<u32>().ok()?;
            return Self::of(&format!("sb.perf-hw.{test}")).map(|file| Self {
                kind: "perf.hw".to_owned(),
                ..file
            });
        }
        let (kind, rest) = KINDS
            .iter()
            .find_map(|kind| {
                Some((
                    (*kind).to_owned(),
                    rest.strip_prefix(kind)?.strip_prefix('.')?,
                ))
            })
            .or_else(|| {
                rest.split_once('.')
                    .map(|(kind, rest)| (kind.to_owned(), rest))
            })?;
        let (test, rest) = rest.split_once(".range")?;
        let mut parts = rest.split('.');
        let range = parts.next()?.parse().ok()?;
        let has_primary_key = match parts.next()? {
            "pk1" => true,
            "pk0" => false,
            _ => return None,
        };
        let dop = match parts.next() {
            None => None,
            Some(part) => Some(part.strip_prefix("dop")?.parse().ok()?),
        };
        (!test.is_empty() && parts.next().is_none()).then(|| Self {
            kind,
            test: test.to_owned(),
            range,
            has_primary_key,
            dop,
        })
    }

    /// What tables call the test: `read-only_range=100`.
    pub fn label(&self) -> String {
        format!("{}_range={}", self.test, self.range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        let file = TestFile::of("sb.o.points-covered-si.warm.range100.pk1.dop40").unwrap();
        assert_eq!(
            (file.kind.as_str(), file.test.as_str(), file.range, file.dop),
            ("o", "points-covered-si.warm", 100, Some(40))
        );
        assert_eq!(
            TestFile::of("sb.r.qps.read-only.range10.pk0").map(|f| (f.kind, f.has_primary_key)),
            Some(("r.qps".to_owned(), false))
        );
        assert_eq!(
            TestFile::of("sb.prepare.met.point-query.warm.range100.pk1")
                .unwrap()
                .kind,
            "prepare.met"
        );
        assert_eq!(
            TestFile::of("sb.time.scan.range100.pk1.dop1")
                .unwrap()
                .label(),
            "scan_range=100"
        );
        let sample = TestFile::of("sb.perf.hw.read-only.range10.pk1.3.sorted").unwrap();
        assert_eq!(
            (
                sample.kind.as_str(),
                sample.test.as_str(),
                sample.range,
                sample.dop
            ),
            ("perf.hw", "read-only", 10, None)
        );
        for name in [
            "sb.o.myvac",
            "sb.o.scan",
            "sb.o.scan.range100",
            "sb.o..range1.pk1",
            "sb.o.x.range1.pk1.dop",
            "o.ib.dop1",
            "sb.o.x.rangex.pk1",
        ] {
            assert_eq!(TestFile::of(name), None, "{name}");
        }
    }
}
