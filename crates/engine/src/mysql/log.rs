//! What a server that did not start says in its log about the config.

/// An option the server does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// This version does not know it.
    Unknown(String),
    /// It is the beginning of more than one option's name.
    Ambiguous(String),
    /// It is known, its value is not possible.
    Value {
        /// The option.
        option: String,
        /// The server's words.
        reason: String,
    },
}

/// Finds the option that kept a server from starting. The wording is that of MySQL 5.5 to 9.7 and MariaDB 10.1 to 11.8.
pub(super) fn rejected_option(log: &str) -> Option<Rejected> {
    log.lines().filter(|line| is_error(line)).find_map(|line| {
        let name = |marker: &str| quoted_after(line, marker).map(|text| bare_name(&text));
        if let Some(option) = name("unknown variable ").or_else(|| name("unknown option ")) {
            return Some(Rejected::Unknown(option));
        }
        if let Some(option) = name("ambiguous option ") {
            return Some(Rejected::Ambiguous(option));
        }
        let markers = ["Error while setting value ", "Unknown suffix ", "Incorrect integer value: ", "Unknown option to "];
        let is_value = markers.iter().any(|marker| line.contains(marker));
        let option = ["value '", "used for variable '", "to '", "option '"].iter().filter(|_| is_value).find_map(|_| last_quoted(line))?;
        Some(Rejected::Value { option: bare_name(&option), reason: words(line).to_owned() })
    })
}

/// Warnings tell of options that were marked as loose.
fn is_error(line: &str) -> bool {
    !line.contains("[Warning]") && !line.contains("[Note]") && !line.contains("[System]")
}

/// The text between quotes right behind `marker`; MySQL up to 5.5 opens with a backquote at times.
fn quoted_after(line: &str, marker: &str) -> Option<String> {
    let rest = &line[line.find(marker)? + marker.len()..];
    let rest = rest.strip_prefix(['\'', '`', '"'])?;
    Some(rest[..rest.find(['\'', '`', '"'])?].to_owned())
}

fn last_quoted(line: &str) -> Option<String> {
    let end = line.rfind('\'')?;
    let start = line[..end].rfind('\'')?;
    Some(line[start + 1..end].to_owned())
}

/// `--innodb-log=1` -> `innodb_log`.
fn bare_name(text: &str) -> String {
    let name = text.trim_start_matches('-');
    name[..name.find('=').unwrap_or(name.len())].replace('-', "_")
}

/// A log line without time and level.
fn words(line: &str) -> &str {
    line.rsplit_once("] ").map_or(line, |(_, words)| words).trim()
}

/// The lines of a log that are errors, without time and level, at most `limit`.
pub(super) fn errors(log: &str, limit: usize) -> Vec<&str> {
    log.lines().filter(|line| line.contains("[ERROR]") && !line.ends_with("Aborting")).map(words).take(limit).collect()
}
