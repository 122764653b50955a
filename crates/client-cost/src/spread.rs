//! Medians, with what is beside them.

/// Values of several rounds.
#[derive(Clone, Debug, Default)]
pub struct Spread(Vec<f64>);

impl FromIterator<f64> for Spread {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl Spread {
    pub fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        match self.0.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => self.0[middle],
            _ => f64::midpoint(self.0[middle - 1], self.0[middle]),
        }
    }

    /// Median, smallest and largest, with so many digits after the point.
    pub fn show(&self, digits: usize) -> String {
        let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        format!(
            "{:.digits$} [{:.digits$}..{:.digits$}]",
            self.median(),
            end(self.0.first()),
            end(self.0.last())
        )
    }
}
