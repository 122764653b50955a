//! The normal, Student's t, chi-squared and the F distribution, from `statrs`.

use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// The share of the standard normal distribution below `z`.
pub fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The `z` below which a share `p` in (0, 1) of the standard normal distribution lies.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

fn student(degrees: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees).expect("degrees of freedom are above 0")
}

/// The `t` below which a share `p` in (0, 1) of Student's distribution with `degrees` > 0 of
/// freedom lies.
pub fn student_quantile(p: f64, degrees: f64) -> f64 {
    student(degrees).inverse_cdf(p)
}

/// The two-sided p of a `t` under Student's distribution with `degrees` > 0 of freedom.
pub fn student_two_sided(t: f64, degrees: f64) -> f64 {
    2.0 * student(degrees).cdf(-t.abs())
}

/// The `F` below which a share `p` in (0, 1) of the F distribution with `above` and `below` > 0
/// degrees of freedom lies.
pub fn f_quantile(p: f64, above: f64, below: f64) -> f64 {
    FisherSnedecor::new(above, below)
        .expect("degrees of freedom are above 0")
        .inverse_cdf(p)
}

/// The share of the chi-squared distribution with `degrees` > 0 of freedom above `value`.
pub fn chi_squared_above(value: f64, degrees: f64) -> f64 {
    ChiSquared::new(degrees)
        .expect("degrees of freedom are above 0")
        .sf(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_old() {
        // scipy 1.17: norm.ppf(.975), t.ppf(.975, [2, 9]), t.sf(3, 4)*2
        for (value, expected) in [
            (normal_quantile(0.975), 1.959_963_984_540_054),
            (student_quantile(0.975, 2.0), 4.302_652_729_911_275),
            (student_quantile(0.975, 9.0), 2.262_157_162_740_991_5),
            (student_two_sided(3.0, 4.0), 0.039_941_968_071_718_24),
            (normal_cdf(-1.0), 0.158_655_253_931_457_05),
            // The 95 % quantiles of tables: chi-squared with 10 degrees, F with 4 and 11.
            (chi_squared_above(18.307_038_053_275_147, 10.0), 0.05),
        ] {
            assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        }
    }
}
