//! What a server that did not start says in its log.

/// An option that the server does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mysql) enum Rejected {
    /// This version does not know it.
    Unknown(String),
    /// It is the beginning of more than one option's name.
    Ambiguous(String),
    /// It is known, and cannot have this value.
    Value { option: String, value: String },
}

/// Finds the option that kept a server from starting. The wording is the same from MySQL 5.5 to 9.7
/// and MariaDB 10.1 to 11.8. The first complaint counts: a version whose storage engine fails over
/// a value goes on to call the option unknown.
pub(in crate::mysql) fn rejected_option(log: &str) -> Option<Rejected> {
    // An option marked as loose is a warning.
    log.lines()
        .filter(|line| !line.contains("[Warning]"))
        .find_map(|line| {
            let name = |marker: &str| quoted_after(line, marker).map(bare_name);
            let unknown = name("unknown variable ")
                .or_else(|| name("unknown option "))
                .map(Rejected::Unknown);
            let ambiguous = || name("ambiguous option ").map(Rejected::Ambiguous);
            let value = || {
                let value = quoted_after(line, "Error while setting value ")?.to_owned();
                Some(Rejected::Value {
                    option: name("' to ")?,
                    value,
                })
            };
            unknown.or_else(ambiguous).or_else(value)
        })
}

/// The text between quotes right behind `marker`.
fn quoted_after<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    let rest = &line[line.find(marker)? + marker.len()..];
    let rest = rest.strip_prefix('\'')?;
    Some(&rest[..rest.find('\'')?])
}

/// `--innodb-log=1` -> `innodb_log`.
fn bare_name(text: &str) -> String {
    let name = text.trim_start_matches('-');
    name[..name.find('=').unwrap_or(name.len())].replace('-', "_")
}

/// The first errors of a log, without time, level and code.
pub(in crate::mysql) fn errors(log: &str, limit: usize) -> Vec<&str> {
    let texts = log
        .lines()
        .filter_map(|line| line.split_once("[ERROR] "))
        .map(|(_, text)| text);
    let texts = texts.map(|text| {
        text.strip_prefix("[MY-")
            .and_then(|rest| rest.split_once("] [")?.1.split_once("] "))
            .map_or(text, |(_, text)| text)
    });
    texts
        .map(str::trim)
        .filter(|text| !text.is_empty() && *text != "Aborting")
        .take(limit)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_not_taken_are_found_in_all_dialects() {
        let unknown = |name: &str| Some(Rejected::Unknown(name.to_owned()));
        let table = [
            (
                "2026-11-21 10:14:25 21559 [ERROR] /opt/mysqld: unknown variable \
                'nonsense_option=1'",
                unknown("nonsense_option"),
            ),
            (
                "261121 10:14:25 [ERROR] /opt/mysqld: unknown option '--nonsense-option'",
                unknown("nonsense_option"),
            ),
            (
                "2026-11-21T10:14:22.3Z 0 [ERROR] [MY-000067] [Server] unknown variable \
                'innodb_log_file_size=1G'.",
                unknown("innodb_log_file_size"),
            ),
            (
                "2026-11-21T10:14:22.3Z 0 [Warning] [MY-000067] [Server] unknown variable \
                'loose_x=1'.",
                None,
            ),
            (
                "mysqld: [ERROR] ambiguous option '--innodb_buffer=1' \
                (innodb_buffer_pool_instances, innodb_buffer_pool_size)",
                Some(Rejected::Ambiguous("innodb_buffer".to_owned())),
            ),
            (
                "2026-11-21 10:14:26 0 [Note] InnoDB: log sequence number 0",
                None,
            ),
            (
                "Unknown suffix 'Q' used for variable 'innodb-buffer-pool-size' (value '4Q')\n\
                 2026-11-21 10:42:12 30230 [ERROR] /opt/mysqld: Error while setting value '4Q' to \
                'innodb-buffer-pool-size'\n\
                 2026-11-21 10:42:12 30230 [ERROR] /opt/mysqld: unknown variable \
                'innodb_buffer_pool_size=4Q'",
                Some(Rejected::Value {
                    option: "innodb_buffer_pool_size".to_owned(),
                    value: "4Q".to_owned(),
                }),
            ),
        ];
        for (line, expected) in table {
            let log = format!(
                "2026-11-21 10:14:26 0 [Note] one\n{line}\n2026-11-21 10:14:26 0 [ERROR] Aborting\n"
            );
            assert_eq!(rejected_option(&log), expected, "{line}");
        }
    }

    #[test]
    fn errors_come_without_time_and_code() {
        let log = "2026-11-21T10:14:26.765888Z 0 [ERROR] [MY-010095] [Server] Failed to access \
                  directory\n\
                   2026-11-21T10:14:26.765910Z 0 [ERROR] [MY-010119] [Server] Aborting\n\
                   2026-11-21 10:14:26 0 [ERROR] Unknown/unsupported storage engine: InnoDB\n\
                   2026-11-21 10:14:26 0 [Note] fine\n";
        assert_eq!(
            errors(log, 9),
            [
                "Failed to access directory",
                "Unknown/unsupported storage engine: InnoDB"
            ]
        );
        assert_eq!(errors(log, 1).len(), 1);
    }
}
