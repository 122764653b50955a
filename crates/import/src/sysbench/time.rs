//! `sb.time.*`: GNU time of the client.

use crate::text::{Read, ReadError, number, shown, text};

/// CPU of the client over its whole life, its warm-up and start included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientTime {
    /// User seconds.
    pub user_s: f64,
    /// System seconds.
    pub system_s: f64,
}

/// Whether this is such a file: `641.87user 712.53system 5:35.05elapsed 404%CPU (...)`.
pub fn is_time(head: &str) -> bool {
    head.lines()
        .any(|line| line.contains("user ") && line.contains("system ") && line.contains("elapsed "))
}

/// Reads the line.
pub fn read(bytes: &[u8]) -> Read<ClientTime> {
    let all = text(bytes);
    let found = (1..)
        .zip(all.lines())
        .find(|(_, line)| line.contains("elapsed "));
    let (n, line) =
        found.ok_or_else(|| ReadError::new(1, "it has no line with user, system and elapsed"))?;
    let seconds = |unit: &str| {
        let word = line
            .split_whitespace()
            .find_map(|word| word.strip_suffix(unit));
        number(
            word.ok_or_else(|| {
                ReadError::new(n, format!("\"{}\" has no {unit} seconds", shown(line)))
            })?,
            n,
        )
    };
    Ok(ClientTime {
        user_s: seconds("user")?,
        system_s: seconds("system")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_gnu_time() {
        let text = "641.87user 712.53system 5:35.05elapsed 404%CPU (0avgtext+0avgdata \
                   21000maxresident)k\n0inputs+8outputs (0major+0minor)pagefaults 0swaps\n";
        assert!(is_time(text));
        assert_eq!(
            read(text.as_bytes()).unwrap(),
            ClientTime {
                user_s: 641.87,
                system_s: 712.53
            }
        );
        assert_eq!(
            read(b"x\n").unwrap_err().to_string(),
            "line 1: it has no line with user, system and elapsed"
        );
        assert_eq!(
            read(b"xuser 1system 1elapsed \n").unwrap_err().to_string(),
            "line 1: \"x\" is not a number"
        );
    }
}
