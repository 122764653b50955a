//! A metric's value, or why there is none.

use plimsoll_core::metric::Metric;

/// What a formula answers: a number, or the reason there is none.
pub(crate) type Answer = Result<f64, String>;

/// A number in its metric's unit, or the reason there is none. Exactly one of the two is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The number, in full precision.
    pub value: Option<f64>,
    /// Why there is none.
    pub unavailable: Option<String>,
}

impl From<Answer> for Value {
    fn from(answer: Answer) -> Self {
        match answer {
            Ok(value) if value.is_finite() => Self { value: Some(value), unavailable: None },
            Ok(_) => Self { value: None, unavailable: Some("it divides by nothing".to_owned()) },
            Err(reason) => Self { value: None, unavailable: Some(reason) },
        }
    }
}

/// A value beside its catalogue entry, which names its unit, direction and meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The catalogue entry.
    pub metric: &'static Metric,
    /// The value.
    pub value: Value,
    /// As the originals print it, digit for digit; only imported results have it.
    pub classic: Option<String>,
}

impl Measure {
    /// The number with the catalogue's decimals.
    pub fn text(&self) -> Option<String> {
        self.value.value.map(|value| format!("{value:.*}", self.metric.decimals))
    }
}

/// The value over several blocks: the median of those there are; without any, the first reason.
pub(crate) fn median_over_blocks(values: &[&Value]) -> Value {
    let mut numbers: Vec<f64> = values.iter().filter_map(|value| value.value).collect();
    if numbers.is_empty() {
        let reason = values.iter().find_map(|value| value.unavailable.clone());
        return Err(reason.unwrap_or_else(|| "no block has it".to_owned())).into();
    }
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    Ok(if numbers.len() % 2 == 1 { numbers[middle] } else { (numbers[middle - 1] + numbers[middle]) / 2.0 }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_pass_over_what_is_missing() {
        let (a, b, c) = (Value::from(Ok(3.0)), Value::from(Ok(9.0)), Value::from(Ok(4.0)));
        let none = Value::from(Err("no clock".to_owned()));
        assert_eq!(median_over_blocks(&[&a, &b, &c]).value, Some(4.0));
        assert_eq!(median_over_blocks(&[&a, &none, &c]).value, Some(3.5));
        assert_eq!(median_over_blocks(&[&none, &none]).unavailable.as_deref(), Some("no clock"));
        assert_eq!(Value::from(Ok(f64::NAN)).value, None);
    }
}
