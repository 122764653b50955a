//! What a step is opened with beside its config.

use plimsoll_core::plan::{KvStep, KvWork, Step, Work};
use plimsoll_engine::Settings;

const UNIVERSAL_OPTIONS: &str = "compaction_options_universal";
const TRIVIAL_MOVE: &str = "compaction_options_universal.allow_trivial_move";
const COMPRESSED_SHARE: &str = "compaction_options_universal.compression_size_percent";
const COMPRESSED_SHARE_IN_GROUP: &str = "compression_size_percent=";

/// Whether the config's compaction is universal; else it is leveled.
pub fn is_universal(settings: &Settings) -> bool {
    settings
        .get("compaction_style")
        .is_some_and(|style| style.contains("Universal"))
}

/// The settings that a step's store is opened with: the config's, and for the load what makes it
/// fast. It fills a vector instead of a skip list, and as its files move down untouched, every
/// level has the codec that the lower ones have.
pub fn step_settings(step: &Step, config: &Settings) -> Settings {
    let mut settings = config.clone();
    let Work::Rocksdb(KvStep {
        work: KvWork::Fill, ..
    }) = step.work
    else {
        return settings;
    };
    settings.insert("memtable_factory".to_owned(), "vector".to_owned());
    settings.insert(
        "allow_concurrent_memtable_write".to_owned(),
        "false".to_owned(),
    );
    if is_universal(config) {
        // Written as one group, or each option as a line of its own.
        if let Some(options) = settings
            .get_mut(UNIVERSAL_OPTIONS)
            .filter(|options| options.contains("allow_trivial_move=true"))
        {
            *options = with_all_compressed(options);
        }
        if settings
            .get(TRIVIAL_MOVE)
            .is_some_and(|value| value == "true")
        {
            settings.insert(COMPRESSED_SHARE.to_owned(), "-1".to_owned());
        }
    } else {
        settings.remove("compression_per_level");
    }
    settings
}

/// The options with the share of data that is compressed being all of it.
fn with_all_compressed(options: &str) -> String {
    let inner = options.trim().trim_start_matches('{').trim_end_matches('}');
    let others = inner
        .split(';')
        .map(str::trim)
        .filter(|option| !option.is_empty() && !option.starts_with(COMPRESSED_SHARE_IN_GROUP));
    let all: Vec<String> = others
        .map(str::to_owned)
        .chain([format!("{COMPRESSED_SHARE_IN_GROUP}-1")])
        .collect();
    format!("{{{}}}", all.join(";"))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::plan::Plan;

    use super::*;

    fn of(config: &[(&str, &str)], step: usize) -> Vec<(String, String)> {
        let text =
            "name = \"t\"\nworkload = \"rocksdb\"\nbuilds = [\"rocksdb\"]\nconfigs = [\"lc\"]\n";
        let plan = Plan::parse("t", text).unwrap();
        let config = config
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        step_settings(&plan.cells[0].workload.steps()[step], &config)
            .into_iter()
            .collect()
    }

    #[test]
    fn the_load_alone_is_opened_otherwise() {
        let leveled = [
            ("compression", "kLZ4Compression"),
            ("compression_per_level", "kNoCompression:kLZ4Compression"),
        ];
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        assert_eq!(of(&leveled, 1), leveled.map(pair));
        let load = [
            ("allow_concurrent_memtable_write", "false"),
            ("compression", "kLZ4Compression"),
            ("memtable_factory", "vector"),
        ];
        assert_eq!(of(&leveled, 0), load.map(pair));
        let style = ("compaction_style", "kCompactionStyleUniversal");
        for (options, wanted) in [
            (
                "{compression_size_percent=80; allow_trivial_move=true;size_ratio=1}",
                "{allow_trivial_move=true;size_ratio=1;compression_size_percent=-1}",
            ),
            (
                "{size_ratio=1;allow_trivial_move=true;}",
                "{size_ratio=1;allow_trivial_move=true;compression_size_percent=-1}",
            ),
            (
                "{compression_size_percent=80;allow_trivial_move=false}",
                "{compression_size_percent=80;allow_trivial_move=false}",
            ),
        ] {
            let found = of(&[style, (UNIVERSAL_OPTIONS, options)], 0);
            assert!(
                found.contains(&pair((UNIVERSAL_OPTIONS, wanted))),
                "{found:?}"
            );
        }
        let lines = of(
            &[style, (TRIVIAL_MOVE, "true"), (COMPRESSED_SHARE, "80")],
            0,
        );
        assert!(lines.contains(&pair((COMPRESSED_SHARE, "-1"))), "{lines:?}");
    }
}
