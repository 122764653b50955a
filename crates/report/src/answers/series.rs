//! Releases or campaigns as a series, drawn.

use plimsoll_analysis::Series;
use plimsoll_analysis::verdicts::headline;
use serde_json::{Value, json};

use super::Draw;

/// A rise or fall with at most this p is reported.
const TREND: f64 = 0.01;

impl Draw for Series {
    fn to_text(&self) -> String {
        let kind = if self.over == "campaigns" {
            format!(" ({})", self.kind)
        } else {
            String::new()
        };
        let mut lines = vec![format!(
            "{} {} over {}{kind}: {}",
            self.step,
            headline(&self.metric),
            self.over,
            self.of
        )];
        let width = self
            .points
            .iter()
            .map(|point| point.label.chars().count())
            .max()
            .unwrap_or(0);
        lines.extend(self.points.iter().zip(self.ratios()).map(|(point, ratio)| {
            let decimals = if point.value < 100.0 { 2 } else { 0 };
            let starts = if point.starts == 1 {
                "1 start".to_owned()
            } else {
                format!("{} starts", point.starts)
            };
            let mark = if point.is_suspect {
                ", machine disturbed"
            } else {
                ""
            };
            format!(
                "  {:<width$}  {:>12.decimals$}  {ratio:>6.2}  {starts}{mark}",
                point.label, point.value
            )
        }));
        lines.push(format!("  {} (noise: {})", self.words, self.noise));
        if let Some(trend) = self.trend {
            let told = [(trend.p_falling, "falls"), (trend.p_rising, "rises")]
                .into_iter()
                .find(|(p, _)| *p <= TREND);
            lines.extend(told.map(|(p, way)| {
                format!("  it {way} from release to release (Page's L, p {p:.2e})")
            }));
        }
        lines.join("\n") + "\n"
    }

    fn to_json(&self) -> Value {
        json!({
            "over": self.over,
            "kind": self.kind,
            "of": self.of,
            "step": self.step,
            "metric": self.metric,
            "points": self.points.iter().map(|point| json!({
                "label": point.label,
                "value": point.value,
                "starts": point.starts,
                "suspect": point.is_suspect,
            })).collect::<Vec<_>>(),
            "words": self.words,
            "noise": self.noise,
            "p_rising": self.trend.map(|trend| trend.p_rising),
            "p_falling": self.trend.map(|trend| trend.p_falling),
        })
    }
}
