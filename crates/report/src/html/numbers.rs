//! Numbers as a page shows them.

/// `1234567.5` -> `1,234,567.5`: thousands of the part before the point separated.
pub(crate) fn group(text: &str) -> String {
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = text
        .find('.')
        .map_or((text, ""), |point| text.split_at(point));
    // Words are left alone.
    if whole.len() < 4 || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{sign}{text}");
    }
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

/// A number with these decimals; one that would show as zero, though it is not, with two
/// significant digits.
pub(crate) fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if value != 0.0 && text.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-')) {
        let digits = (1.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
        return format!("{value:.digits$}");
    }
    group(&text)
}

/// Three significant digits with a unit that fits: `850 us`, `12.3 ms`, `4.21 s`.
pub(crate) fn time_ns(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "us"),
        ns if ns < 999_500_000.0 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let decimals = match value {
        value if value < 9.995 && unit != "ns" => 2,
        value if value < 99.95 && unit != "ns" => 1,
        _ => 0,
    };
    format!("{} {unit}", group(&format!("{value:.decimals$}")))
}

/// `4 GiB`-style axis numbers: `0`, `250`, `15k`, `1.2M`.
pub(crate) fn compact(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{scaled:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Four significant digits for a chart's data: more cannot be seen.
pub(crate) fn for_chart(value: f64) -> String {
    if value == 0.0 || value.abs() >= 1000.0 {
        return format!("{value:.0}");
    }
    let decimals = (3.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        for (text, grouped) in [
            ("1234567.5", "1,234,567.5"),
            ("9999", "9,999"),
            ("999.5", "999.5"),
            ("-12345", "-12,345"),
            ("failed", "failed"),
            ("", ""),
        ] {
            assert_eq!(group(text), grouped);
        }
        for (value, decimals, text) in [
            (0.0123, 1, "0.012"),
            (0.0, 1, "0.0"),
            (0.26, 1, "0.3"),
            (123_456.0, 0, "123,456"),
            (-0.0004, 2, "-0.00040"),
        ] {
            assert_eq!(decimal(value, decimals), text);
        }
        for (ns, text) in [
            (850.0, "850 ns"),
            (1_500.0, "1.50 us"),
            (12_345_678.0, "12.3 ms"),
            (999_600_000.0, "1.00 s"),
            (4.21e9, "4.21 s"),
            (1.2345e12, "1,234 s"),
        ] {
            assert_eq!(time_ns(ns), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (250.0, "250"),
            (15_000.0, "15k"),
            (1_200_000.0, "1.2M"),
            (0.5, "0.5"),
            (2e9, "2G"),
        ] {
            assert_eq!(compact(value), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (15_234.6, "15235"),
            (12.3456, "12.35"),
            (100.0, "100"),
            (0.00123, "0.00123"),
            (2.0, "2"),
        ] {
            assert_eq!(for_chart(value), text);
        }
    }
}
