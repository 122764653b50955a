//! Whether the linked library is the one a build name asks for.

use plimsoll_core::name::BuildName;

use super::ORIGIN;
use crate::EngineError;

/// Compares what `build` asks for with the version that is there.
pub(super) fn check(build: &BuildName, there: &str) -> Result<(), EngineError> {
    if let Some(source) = &build.source
        && source != ORIGIN
    {
        return Err(EngineError::new(format!(
            "sqlite has no source \"{source}\", only \"{ORIGIN}\" ({there}): write \"sqlite\" or \
            \"sqlite@{there}+{ORIGIN}\""
        )));
    }
    match &build.version {
        Some(wanted) if !is_leading_part(wanted, there) => Err(EngineError::new(format!(
            "sqlite {wanted} is not there, this program carries {there}: write \"sqlite\" or \
            \"sqlite@{there}\""
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
            ("sqlite", None),
            ("sqlite@3", None),
            ("sqlite@3.50", None),
            ("sqlite@3.50.4", None),
            ("sqlite@3.50.4+bundled", None),
            (
                "sqlite@3.5",
                Some(
                    "sqlite 3.5 is not there, this program carries 3.50.4: write \"sqlite\" or \
                    \"sqlite@3.50.4\"",
                ),
            ),
            ("sqlite@3.50.40", Some("carries 3.50.4")),
            ("sqlite@3.50.4.1", Some("carries 3.50.4")),
            ("sqlite@3.", Some("carries 3.50.4")),
            ("sqlite@2", Some("carries 3.50.4")),
            (
                "sqlite+debian",
                Some("no source \"debian\", only \"bundled\" (3.50.4)"),
            ),
        ];
        for (build, error) in table {
            let answer = check(&build.parse().unwrap(), "3.50.4");
            match error {
                None => assert!(answer.is_ok(), "{build}: {answer:?}"),
                Some(part) => {
                    let message = answer.unwrap_err().message;
                    assert!(message.contains(part), "{build}: {message}");
                }
            }
        }
    }
}
