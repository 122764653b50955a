//! How a campaign is named in a command that a person is told to type.

use std::path::Path;

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
}
