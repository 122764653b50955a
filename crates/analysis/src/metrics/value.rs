//! A metric's value, or why there is none.

/// What a formula answers: a number, or the reason there is none.
pub(crate) type Answer = Result<f64, String>;

/// A number in its metric's unit, or the reason there is none. Exactly one of the two is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The number, in full precision.
    pub value: Option<f64>,
    /// Why there is none.
    pub unavailable: Option<String>,
    /// The number is the least that it may be: of response times, where operations were due and
    /// never sent.
    pub is_lower_bound: bool,
}

impl From<Answer> for Value {
    fn from(answer: Answer) -> Self {
        match answer {
            Ok(value) if value.is_finite() => Self {
                value: Some(value),
                unavailable: None,
                is_lower_bound: false,
            },
            Ok(_) => Self {
                value: None,
                unavailable: Some("it divides by nothing".to_owned()),
                is_lower_bound: false,
            },
            Err(reason) => Self {
                value: None,
                unavailable: Some(reason),
                is_lower_bound: false,
            },
        }
    }
}

/// What stands before a number that is a lower bound.
pub fn at_least(is_lower_bound: bool) -> &'static str {
    if is_lower_bound { ">=" } else { "" }
}

/// The value over several blocks: the median of those there are; without any, the first reason. It
/// is a lower bound where one of those that it is made of, or that are less, may be longer than is
/// known.
pub(crate) fn median_over_blocks(values: &[&Value]) -> Value {
    let mut numbers: Vec<f64> = values.iter().filter_map(|value| value.value).collect();
    if numbers.is_empty() {
        let reason = values.iter().find_map(|value| value.unavailable.clone());
        return Err(reason.unwrap_or_else(|| "no block has it".to_owned())).into();
    }
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let median = if numbers.len() % 2 == 1 {
        numbers[middle]
    } else {
        (numbers[middle - 1] + numbers[middle]) / 2.0
    };
    let may_be_longer = |value: &&Value| {
        value.is_lower_bound && value.value.is_some_and(|value| value <= numbers[middle])
    };
    Value {
        is_lower_bound: values.iter().any(may_be_longer),
        ..Value::from(Ok(median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_pass_over_what_is_missing() {
        let (a, b, c) = (
            Value::from(Ok(3.0)),
            Value::from(Ok(9.0)),
            Value::from(Ok(4.0)),
        );
        let none = Value::from(Err("no clock".to_owned()));
        assert_eq!(median_over_blocks(&[&a, &b, &c]).value, Some(4.0));
        assert_eq!(median_over_blocks(&[&a, &none, &c]).value, Some(3.5));
        assert_eq!(
            median_over_blocks(&[&none, &none]).unavailable.as_deref(),
            Some("no clock")
        );
        assert_eq!(Value::from(Ok(f64::NAN)).value, None);
        let [at_least_3, at_least_9] = [&a, &b].map(|value| Value {
            is_lower_bound: true,
            ..value.clone()
        });
        for (values, is_lower_bound) in [
            ([&a, &b, &c], false),
            ([&at_least_3, &b, &c], true),
            // Whatever is above the middle stays there.
            ([&a, &at_least_9, &c], false),
            ([&a, &at_least_9, &none], true),
        ] {
            assert_eq!(
                median_over_blocks(&values).is_lower_bound,
                is_lower_bound,
                "{values:?}"
            );
        }
    }
}
