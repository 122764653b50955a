//! What `perf script -F comm,ip,sym,dso` prints, as samples by stack.

use std::collections::BTreeMap;
use std::io::BufRead;

/// Samples by stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Folded {
    pub stacks: BTreeMap<String, u64>,
    pub samples: u64,
    /// Samples whose own function has no name.
    pub nameless: u64,
}

/// Reads samples: a line that names the thread, then a line for each function, the innermost first,
/// then an empty one.
pub(super) fn fold(text: impl BufRead) -> std::io::Result<Folded> {
    let mut folded = Folded::default();
    let mut frames: Vec<String> = Vec::new();
    let mut is_in_sample = false;
    let mut is_nameless = false;
    for line in text.split(b'\n').chain([Ok(Vec::new())]) {
        let line = line?;
        // Names of functions are not always UTF-8.
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            if is_in_sample {
                folded.samples += 1;
                folded.nameless += u64::from(is_nameless || frames.is_empty());
                frames.reverse();
                let stack = if frames.is_empty() {
                    "[no stack]".to_owned()
                } else {
                    frames.join(";")
                };
                *folded.stacks.entry(stack).or_default() += 1;
            }
            frames.clear();
            (is_in_sample, is_nameless) = (false, false);
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        match frame(&line) {
            Some((name, has_symbol)) if is_in_sample => {
                if frames.is_empty() {
                    is_nameless = !has_symbol;
                }
                frames.push(name);
            }
            _ => is_in_sample = true,
        }
    }
    Ok(folded)
}

/// `    7f12ab exec_query (/usr/bin/server)`: the function, and whether it has a name; none of a
/// line that is not a frame.
fn frame(line: &str) -> Option<(String, bool)> {
    let (address, rest) = line
        .strip_prefix([' ', '\t'])?
        .trim_start()
        .split_once(' ')?;
    u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim().replace(" (deleted))", ")");
    let (symbol, object) = rest.rsplit_once(" (").unwrap_or((&rest, ""));
    let object = object.trim_end_matches(')');
    let file = object.rsplit('/').next().unwrap_or(object);
    Some(match symbol.trim() {
        "[unknown]" | "" => (
            format!("[unknown: {}]", if file.is_empty() { "?" } else { file }),
            false,
        ),
        // What separates frames and samples in a folded file.
        symbol => (symbol.replace(';', ":").replace('\n', " "), true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = "\
postgres 
\tffffffff8a0a5d57 finish_task_switch ([kernel.kallsyms])
\t          2f1c2e ExecScan (/opt/pg/bin/postgres)
\t          2f0aa0 exec_simple_query (/opt/pg/bin/postgres)
\t           29d90 [unknown] (/lib/libc.so.6)

postgres 
\t          2f0aa4 exec_simple_query (/opt/pg/bin/postgres)
\t           29d90 [unknown] (/lib/libc.so.6)

connection 
\t          8111aa Item_func::val_int(THD*, bool) (/opt/my/mysqld)

# a comment
connection 
\t     7ffd11112222 [unknown] (/opt/my/mysqld (deleted))

connection 

postgres 
\t          2f0aa8 exec_simple_query (/opt/pg/bin/postgres)
\t           29d90 [unknown] (/lib/libc.so.6)";

    #[test]
    fn stacks_are_counted_from_the_outside_in() {
        let folded = fold(RECORDED.as_bytes()).unwrap();
        let expected = [
            ("Item_func::val_int(THD*, bool)", 1),
            ("[no stack]", 1),
            ("[unknown: libc.so.6];exec_simple_query", 2),
            (
                "[unknown: libc.so.6];exec_simple_query;ExecScan;finish_task_switch",
                1,
            ),
            ("[unknown: mysqld]", 1),
        ];
        assert_eq!(
            folded.stacks,
            expected
                .map(|(stack, samples)| (stack.to_owned(), samples))
                .into()
        );
        assert_eq!(
            (folded.samples, folded.nameless),
            (6, 2),
            "an outer frame without a name is not a sample without one"
        );
        assert_eq!(fold(&b""[..]).unwrap(), Folded::default());
    }
}
