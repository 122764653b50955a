//! Folders and tags that name a build with its config.

use super::version::Version;

/// A build with its config, as a folder or tag names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellName {
    /// The whole name.
    pub original: String,
    /// `my9500_rel_o2nofp`.
    pub build: String,
    /// `z12a_c8r32`; empty where the name does not tell.
    pub config: String,
}

impl CellName {
    /// `x.<build>.<config>.pk<0|1>`: the sysbench scripts. Tables without a primary key keep `pk0`
    /// in their config.
    pub fn of_sysbench(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("x.")?;
        let (rest, key) = rest.rsplit_once(".pk")?;
        let (build, config) = rest.split_once('.')?;
        let is_complete = !build.is_empty() && !config.is_empty() && matches!(key, "0" | "1");
        let config = if key == "0" {
            format!("{config}_pk0")
        } else {
            config.to_owned()
        };
        is_complete.then(|| Self {
            original: name.to_owned(),
            build: build.to_owned(),
            config,
        })
    }

    /// A column of a published table: the folder's name, or what edited tables leave of it, without
    /// `x.` and `.pk1`.
    pub fn of_published(name: &str) -> Self {
        let whole = Self::of_sysbench(name);
        let edited = || {
            let whole = Self::of_sysbench(&format!("x.{name}.pk1"))?;
            let original = name.to_owned();
            Some(Self { original, ..whole })
        };
        whole
            .or_else(edited)
            .unwrap_or_else(|| Self::verbatim(name))
    }

    /// `[<rows>m.]<build>.c<config>`: the Insert Benchmark's folders and tags. The build must tell
    /// its version, or rows must be before it.
    pub fn of_insert_benchmark(name: &str) -> Option<Self> {
        let rows = name.split_once('.').filter(|(rows, _)| {
            rows.strip_suffix('m')
                .is_some_and(|n| n.parse::<u64>().is_ok())
        });
        let rest = rows.map_or(name, |(_, rest)| rest);
        let (build, config) = rest.split_once('.')?;
        let is_named = rows.is_some() || (Version::of(build).is_some() && config.starts_with('c'));
        (is_named && !build.is_empty() && !config.is_empty()).then(|| Self {
            original: name.to_owned(),
            build: build.to_owned(),
            config: config.to_owned(),
        })
    }

    /// A name that follows no scheme stands for itself.
    pub fn verbatim(name: &str) -> Self {
        Self {
            original: name.to_owned(),
            build: name.to_owned(),
            config: String::new(),
        }
    }

    /// `build.config`.
    pub fn label(&self) -> String {
        if self.config.is_empty() {
            self.build.clone()
        } else {
            format!("{}.{}", self.build, self.config)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_scripts() {
        let name = CellName::of_sysbench("x.my9500_rel_o2nofp.z12a_c8r32.pk1").unwrap();
        assert_eq!(
            (name.build.as_str(), name.config.as_str()),
            ("my9500_rel_o2nofp", "z12a_c8r32")
        );
        assert_eq!(
            CellName::of_sysbench("x.a.b.pk0").unwrap().label(),
            "a.b_pk0"
        );
        for name in [
            "my9500.z12a.pk1",
            "x.my9500.pk1",
            "x..z.pk1",
            "x.a.b.pk2",
            "x",
            "x.a.b",
        ] {
            assert_eq!(CellName::of_sysbench(name), None, "{name}");
        }
        let name = CellName::of_insert_benchmark("480m.my8033_rel_native_lto.cz10a_u").unwrap();
        assert_eq!(name.label(), "my8033_rel_native_lto.cz10a_u");
        assert_eq!(
            CellName::of_insert_benchmark("my5649.cx6d.badcnf")
                .unwrap()
                .config,
            "cx6d.badcnf"
        );
        assert_eq!(
            CellName::of_insert_benchmark("my5649.cx6d")
                .unwrap()
                .label(),
            "my5649.cx6d"
        );
        for name in [
            "insert_benchmark_17_fields",
            "20m",
            "a.b",
            "m.a.b",
            "ibench.jan2021",
        ] {
            assert_eq!(CellName::of_insert_benchmark(name), None, "{name}");
        }
        assert_eq!(CellName::verbatim("x").label(), "x");
        for name in ["x.my9500_rel.z12a.pk1", "my9500_rel.z12a"] {
            let published = CellName::of_published(name);
            assert_eq!(published.label(), "my9500_rel.z12a");
            assert_eq!(published.original, name);
        }
        assert_eq!(CellName::of_published("mine").label(), "mine");
    }
}
