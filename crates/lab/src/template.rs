//! Sizes that depend on the machine: `{ram*0.7}`, `{cpus}`, `{cpus*2}` in a config's values. Other
//! braces are the engine's own, as in RocksDB's `{filter_policy=bloomfilter:10}`, and stay as they
//! are.

use plimsoll_core::suggest;
use plimsoll_host::{Memory, Proc};

const NAMES: [&str; 2] = ["ram", "cpus"];

/// What templates are filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Memory in bytes.
    pub ram_bytes: u64,
    /// Logical CPUs.
    pub cpus: u64,
}

impl Machine {
    /// This machine.
    pub fn read() -> Result<Self, String> {
        let cpus = std::thread::available_parallelism()
            .map_err(|error| format!("failed to count the CPUs: {error}"))?;
        Ok(Self {
            ram_bytes: Memory::read(&Proc::new()).total?,
            cpus: cpus.get() as u64,
        })
    }
}

/// Fills the templates of a value. Memory is written in bytes, whole MiB of them.
pub(crate) fn fill(value: &str, machine: Machine) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let end = after.find(['{', '}']).unwrap_or(after.len());
        let inside = &after[..end];
        if !is_template(inside) {
            // A template may still be inside these braces.
            filled.push('{');
            rest = after;
            continue;
        }
        if !after[end..].starts_with('}') {
            return Err(format!("\"{{{inside}\" has no closing brace"));
        }
        filled.push_str(&evaluate(inside, machine).ok_or_else(|| {
            let name = split(inside).0;
            let hint = if NAMES.contains(&name) {
                String::new()
            } else {
                suggest::hint(name, NAMES)
            };
            format!(
                "\"{{{inside}}}\" is not a template{hint}: write {{ram*0.7}}, {{cpus}} or \
                {{cpus*2}}, with a factor above 0 and, for ram, below 1"
            )
        })?);
        rest = &after[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Whether braces around this are meant for us: one of our names alone or with a factor, or what a
/// mistyped one looks like, which is any word alone or with a number.
fn is_template(inside: &str) -> bool {
    let (name, factor) = split(inside);
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    !inside.contains(['=', ';'])
        && (NAMES.contains(&name) || (is_word && factor.is_none_or(is_number)))
}

/// Name and factor.
fn split(expression: &str) -> (&str, Option<&str>) {
    let (name, factor) = expression
        .split_once('*')
        .map_or((expression, None), |(name, factor)| {
            (name, Some(factor.trim()))
        });
    (name.trim(), factor)
}

fn evaluate(expression: &str, machine: Machine) -> Option<String> {
    let (name, factor) = split(expression);
    let factor: f64 = factor
        .unwrap_or("1")
        .parse()
        .ok()
        .filter(|factor: &f64| factor.is_finite() && *factor > 0.0)?;
    match name {
        "cpus" => Some(
            ((machine.cpus as f64 * factor).round() as u64)
                .max(1)
                .to_string(),
        ),
        "ram" if factor < 1.0 => {
            let mib = ((machine.ram_bytes as f64 * factor) as u64 >> 20).max(1);
            Some((mib << 20).to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine {
        ram_bytes: 32 << 30,
        cpus: 8,
    };

    #[test]
    fn sizes_follow_the_machine() {
        let cases = [
            ("{ram*0.5}", "17179869184"),
            ("{ ram * 0.25 }B", "8589934592B"),
            ("{cpus}", "8"),
            ("{cpus*0.01}", "1"),
            ("a{cpus*2}b{cpus}", "a16b8"),
            ("plain", "plain"),
        ];
        for (value, wanted) in cases {
            assert_eq!(fill(value, MACHINE).as_deref(), Ok(wanted), "{value}");
        }
    }

    #[test]
    fn mistyped_templates_are_errors() {
        for (value, wanted) in [
            ("{ram}", "\"{ram}\" is not a template: write {ram*0.7}"),
            ("{ram*2}", "below 1"),
            ("{ram*-1}", "above 0"),
            ("{ram*half}", "\"{ram*half}\" is not a template"),
            ("{cpus*}", "\"{cpus*}\" is not a template"),
            (
                "{rma*0.5}",
                "\"{rma*0.5}\" is not a template (did you mean \"ram\"?)",
            ),
            ("{cpu}", "(did you mean \"cpus\"?)"),
            ("{disk}", "\"{disk}\" is not a template: write"),
            ("{ram*0.5", "\"{ram*0.5\" has no closing brace"),
            ("{ram*0.5{cpus}", "has no closing brace"),
        ] {
            let error = fill(value, MACHINE).unwrap_err();
            assert!(error.contains(wanted), "{value}: {error}");
        }
    }

    #[test]
    fn the_engines_own_braces_stay() {
        for value in [
            "block_based_table_factory={filter_policy=bloomfilter:10:false;whole_key_filtering=1}",
            "a={b={c=1};d={}}",
            "{a;b}",
            "{",
            "}{",
            "{}",
            "{a b}",
            "{2.5*x}",
            "{10}",
            "{a,b}",
            "{ram=1;cpus*2}",
        ] {
            assert_eq!(fill(value, MACHINE).as_deref(), Ok(value));
        }
        assert_eq!(
            fill("f={cache={ram*0.5};n={cpus}}", MACHINE).as_deref(),
            Ok("f={cache=17179869184;n=8}")
        );
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::read().unwrap();
        assert!(machine.ram_bytes > 1 << 20 && machine.cpus > 0);
    }
}
