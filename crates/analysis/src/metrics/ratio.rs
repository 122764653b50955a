//! A value divided by the base's, as tables for people show it. The original's own rule is in
//! [`crate::classic::relative`].

use crate::metrics::Measure;

/// Why there is no ratio although both values are known.
pub const BASE_IS_ZERO: &str = "the base is 0";

/// `value / base` with two decimals, from values in full precision; why there is none.
pub fn divide(value: Option<f64>, base: Option<f64>) -> Result<String, &'static str> {
    match (value, base) {
        (None, _) => Err("there is no value"),
        (_, None) => Err("the base has no value"),
        (_, Some(0.0)) => Err(BASE_IS_ZERO),
        (Some(value), Some(base)) => {
            let ratio = value / base;
            // Two decimals would call it nothing.
            Ok(if ratio > 0.0 && ratio < 0.005 {
                "<0.01".to_owned()
            } else {
                format!("{ratio:.2}")
            })
        }
    }
}

/// The same for metrics. A ratio of lower bounds is one itself, or an upper one, or says nothing.
pub fn divide_measures(
    value: Option<&Measure>,
    base: Option<&Measure>,
) -> Result<String, &'static str> {
    let number = |measure: Option<&Measure>| measure.and_then(|measure| measure.value.value);
    let is_bound =
        |measure: Option<&Measure>| measure.is_some_and(|measure| measure.value.is_lower_bound);
    let ratio = divide(number(value), number(base))?;
    match (is_bound(value), is_bound(base)) {
        (false, false) => Ok(ratio),
        (true, false) => Ok(format!(">={ratio}")),
        (false, true) => Ok(format!("<={ratio}")),
        (true, true) => Err("both are lower bounds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_lower_bounds() {
        let measure = |value: f64, is_lower_bound| Measure {
            metric: crate::metrics::P99_RESPONSE_US,
            value: crate::metrics::value::Value {
                is_lower_bound,
                ..Ok(value).into()
            },
            classic: None,
        };
        for (value, base, expected) in [
            (measure(3.0, false), measure(2.0, false), Ok("1.50")),
            (measure(3.0, true), measure(2.0, false), Ok(">=1.50")),
            (measure(3.0, false), measure(2.0, true), Ok("<=1.50")),
            (
                measure(3.0, true),
                measure(2.0, true),
                Err("both are lower bounds"),
            ),
            (measure(3.0, true), measure(0.0, true), Err(BASE_IS_ZERO)),
        ] {
            assert_eq!(
                divide_measures(Some(&value), Some(&base))
                    .as_deref()
                    .map_err(|reason| *reason),
                expected
            );
        }
    }

    #[test]
    fn ratios_of_values_that_round_to_nothing() {
        let cases = [
            (Some(0.0352), Some(0.0757), Ok("0.46")),
            (Some(0.0), Some(0.0), Err(BASE_IS_ZERO)),
            (Some(3.0), Some(0.0), Err(BASE_IS_ZERO)),
            (Some(0.0), Some(3.0), Ok("0.00")),
            (Some(1.0), Some(1000.0), Ok("<0.01")),
            (Some(5.0), Some(1000.0), Ok("0.01")),
            (Some(2.0), None, Err("the base has no value")),
            (None, Some(2.0), Err("there is no value")),
        ];
        for (value, base, expected) in cases {
            assert_eq!(
                divide(value, base).as_deref().map_err(|reason| *reason),
                expected,
                "{value:?} / {base:?}"
            );
        }
    }
}
