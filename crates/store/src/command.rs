//! How a campaign is named in a command that a person is told to type.

use std::path::Path;

use crate::campaign::fleet::Fleet;

/// The store that commands look into if nobody names another.
pub const DEFAULT_STORE: &str = "plimsoll-runs";

/// A campaign's folder as commands take it: its id, behind `--store DIR` if its store is not the
/// default one.
pub fn in_commands(campaign: &Path) -> String {
    let word = |path: &Path| shell_word(&path.to_string_lossy());
    match (campaign.parent(), campaign.file_name().map(Path::new)) {
        (Some(store), Some(id)) if store == Path::new(DEFAULT_STORE) => word(id),
        (Some(store), Some(id)) if !store.as_os_str().is_empty() => {
            format!("--store {} {}", word(store), word(id))
        }
        _ => word(campaign),
    }
}

/// The command that runs what is missing of a campaign.
pub fn continuing(fleet: Option<&Fleet>, campaign: &Path) -> String {
    match fleet {
        Some(Fleet::Slurm { .. }) => format!(
            "plimsoll submit --again {} --slurm",
            shell_word(&campaign.to_string_lossy())
        ),
        _ => format!("plimsoll resume {}", in_commands(campaign)),
    }
}

/// A word as a shell takes it.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,".contains(c);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_outside_of_the_default_store_is_named_with_its_store() {
        for (path, expected) in [
            ("plimsoll-runs/20261121T095947Z-q", "20261121T095947Z-q"),
            (
                "/tmp/s/20261121T095947Z-q",
                "--store /tmp/s 20261121T095947Z-q",
            ),
            ("old/plimsoll-runs/c", "--store old/plimsoll-runs c"),
            ("/tmp/it's mine/c", "--store '/tmp/it'\\''s mine' c"),
            ("c", "c"),
        ] {
            assert_eq!(in_commands(Path::new(path)), expected);
        }
    }

    #[test]
    fn a_campaign_of_slurm_is_submitted_again() {
        let path = Path::new("/tmp/s/20261121T095947Z-q");
        let spool = "/tmp".to_owned();
        let command = continuing(Some(&Fleet::Slurm { spool }), path);
        assert_eq!(
            command,
            "plimsoll submit --again /tmp/s/20261121T095947Z-q --slurm"
        );
        let command = continuing(None, path);
        assert_eq!(command, "plimsoll resume --store /tmp/s 20261121T095947Z-q");
    }
}
