//! Sizes that depend on the machine: `{ram*0.7}`, `{cpus}`, `{cpus*2}` in a config's values.

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
        let text = std::fs::read_to_string("/proc/meminfo").map_err(|error| format!("failed to read /proc/meminfo: {error}"))?;
        let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
        let cpus = std::thread::available_parallelism().map_err(|error| format!("failed to count the CPUs: {error}"))?;
        Ok(Self { ram_bytes: kib.ok_or("/proc/meminfo has no MemTotal")? * 1024, cpus: cpus.get() as u64 })
    }
}

/// Fills the templates of a value. Memory is written in bytes, whole MiB of them.
pub(crate) fn fill(value: &str, machine: Machine) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('{') {
        let (expression, behind) = after.split_once('}').ok_or_else(|| format!("\"{value}\" has no closing brace"))?;
        filled.push_str(before);
        filled.push_str(&evaluate(expression, machine).ok_or_else(|| {
            format!("\"{{{expression}}}\" is not a template: write {{ram*0.7}}, {{cpus}} or {{cpus*2}}, with a factor above 0 and, for ram, below 1")
        })?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn evaluate(expression: &str, machine: Machine) -> Option<String> {
    let (name, factor) = expression.split_once('*').unwrap_or((expression, "1"));
    let factor: f64 = factor.trim().parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0)?;
    match name.trim() {
        "cpus" => Some(((machine.cpus as f64 * factor).round() as u64).max(1).to_string()),
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

    #[test]
    fn sizes_follow_the_machine() {
        let machine = Machine { ram_bytes: 32 << 30, cpus: 8 };
        let cases = [
            ("{ram*0.5}", "17179869184"),
            ("{ ram * 0.25 }B", "8589934592B"),
            ("{cpus}", "8"),
            ("{cpus*0.01}", "1"),
            ("a{cpus*2}b{cpus}", "a16b8"),
            ("plain", "plain"),
        ];
        for (value, wanted) in cases {
            assert_eq!(fill(value, machine).as_deref(), Ok(wanted), "{value}");
        }
        for value in ["{ram}", "{ram*2}", "{ram*-1}", "{disk}", "{ram*0.5", "{}"] {
            assert!(fill(value, machine).is_err(), "{value}");
        }
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::read().unwrap();
        assert!(machine.ram_bytes > 1 << 20 && machine.cpus > 0);
    }
}
