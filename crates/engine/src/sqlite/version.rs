//! Whether a build's name means the library in this program.

use plimsoll_core::name::BuildName;

use super::ORIGIN;
use super::library::Library;
use crate::EngineError;

/// Whether a name means the library in this program: its own source, or no source and no version
/// but a leading part of the library's.
pub(super) fn is_bundled(build: &BuildName) -> bool {
    is_named(build, &Library::bundled().version())
}

fn is_named(build: &BuildName, there: &str) -> bool {
    match (&build.source, &build.version) {
        (Some(source), _) => source == ORIGIN,
        (None, Some(wanted)) => is_leading_part(wanted, there),
        (None, None) => true,
    }
}

/// Compares what `build` asks for with the version that is there.
pub(super) fn check(build: &BuildName, there: &str) -> Result<(), EngineError> {
    match &build.version {
        Some(wanted) if !is_leading_part(wanted, there) => Err(EngineError::new(format!(
            "sqlite {wanted} is not there, this program carries {there}: write \"sqlite\" or \
            \"sqlite@{there}\", or \"sqlite@{wanted}+source\" for one that is compiled here"
        ))),
        _ => Ok(()),
    }
}

/// Whether `wanted` names `there` or its first components: 3.5 leads to 3.5.1, not to 3.50.
fn is_leading_part(wanted: &str, there: &str) -> bool {
    let mut components = there.split('.');
    wanted
        .split('.')
        .all(|component| components.next() == Some(component))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_match_by_whole_components() {
        let table = [
            ("sqlite", true, true),
            ("sqlite@3", true, true),
            ("sqlite@3.50", true, true),
            ("sqlite@3.50.4", true, true),
            ("sqlite@3.50.4+bundled", true, true),
            ("sqlite@3.5", false, false),
            ("sqlite@3.5+bundled", true, false),
            ("sqlite@3.50.40", false, false),
            ("sqlite@3.50.4.1", false, false),
            ("sqlite@3.", false, false),
            ("sqlite@2", false, false),
            ("sqlite+source", false, true),
            ("sqlite@3.50+source", false, true),
            ("sqlite+mine", false, true),
        ];
        for (text, is_meant, is_right) in table {
            let build: BuildName = text.parse().unwrap();
            assert_eq!(is_named(&build, "3.50.4"), is_meant, "{text}");
            assert_eq!(check(&build, "3.50.4").is_ok(), is_right, "{text}");
        }
        let message = check(&"sqlite@3.5+bundled".parse().unwrap(), "3.50.4")
            .unwrap_err()
            .message;
        assert_eq!(
            message,
            "sqlite 3.5 is not there, this program carries 3.50.4: write \"sqlite\" or \
            \"sqlite@3.50.4\", or \"sqlite@3.5+source\" for one that is compiled here"
        );
    }
}
