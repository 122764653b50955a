//! A segmented series in words.

use crate::estimates::estimate::as_percent;
use crate::series::segments::Segment;

/// A change of at least this share of the whole is reported as a separate step; smaller ones in a
/// row are gradual.
const STEP_SHARE: f64 = 0.2;

/// What a segmented series of log ratios did, with the names of its places:
/// `one step between B and C (-20.1 %)`, or
/// `-42 % in all: step between A and B (about half of the loss), then gradual to F`.
/// `(rise, fall)` is what a rise and a fall of the whole are called: a gain and a loss, if more is
/// better.
pub fn describe(segments: &[Segment], labels: &[&str], (rise, fall): (&str, &str)) -> String {
    struct Change<'a> {
        from: &'a str,
        to: &'a str,
        size: f64,
    }
    let changes: Vec<Change<'_>> = segments
        .windows(2)
        .map(|pair| Change {
            from: labels[pair[0].end - 1],
            to: labels[pair[1].first],
            size: pair[1].mean - pair[0].mean,
        })
        .collect();
    let total: f64 = changes.iter().map(|change| change.size).sum();
    let percent = |size: f64| format!("{:+.1} %", as_percent(size));
    match changes.as_slice() {
        [] => return "no step: the releases differ by no more than noise".to_owned(),
        [only] => {
            return format!(
                "one step between {} and {} ({})",
                only.from,
                only.to,
                percent(only.size)
            );
        }
        _ => {}
    }
    // Against the sum of what moved, so that a fall that was won back is not a share of nearly
    // nothing.
    let moved: f64 = changes.iter().map(|change| change.size.abs()).sum();
    let is_one_way = (total.abs() - moved).abs() < 1e-9 * moved;
    let whole = if total > 0.0 { rise } else { fall };
    let mut parts: Vec<String> = Vec::new();
    let mut is_gradual = false;
    for change in &changes {
        let share = change.size.abs() / moved;
        if share >= STEP_SHARE {
            let size = if is_one_way {
                format!("{} of the {whole}", share_in_words(share))
            } else {
                percent(change.size)
            };
            parts.push(format!(
                "step between {} and {} ({size})",
                change.from, change.to
            ));
            is_gradual = false;
        } else if is_gradual {
            // The last part already says gradual: it now reaches further.
            parts.pop();
            parts.push(format!("gradual to {}", change.to));
        } else {
            parts.push(format!("gradual to {}", change.to));
            is_gradual = true;
        }
    }
    format!("{} in all: {}", percent(total), parts.join(", then "))
}

fn share_in_words(share: f64) -> &'static str {
    match share {
        share if share >= 0.9 => "nearly all",
        share if share >= 0.6 => "most",
        share if share >= 0.42 => "about half",
        share if share >= 0.28 => "about a third",
        _ => "about a quarter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::segments::segment;

    #[test]
    fn words_of_series() {
        let labels = ["5.6.51", "5.7.5", "5.7.10", "5.7.44", "8.0.11", "8.0.36"];
        let cases: [(&[f64], &str); 5] = [
            (
                &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
                "no step: the releases differ by no more than noise",
            ),
            (
                &[0.0, 0.0, 0.0, -0.3, -0.3, -0.3],
                "one step between 5.7.10 and 5.7.44 (-25.9 %)",
            ),
            (
                &[0.0, -0.2, -0.25, -0.3, -0.35, -0.4],
                "-33.0 % in all: step between 5.6.51 and 5.7.5 (about half of the loss), then \
                gradual to 8.0.36",
            ),
            (
                &[0.0, 0.0, -0.3, -0.3, -0.1, -0.1],
                "-9.5 % in all: step between 5.7.5 and 5.7.10 (-25.9 %), then step between 5.7.44 \
                and 8.0.11 (+22.1 %)",
            ),
            (
                &[0.0, 0.05, 0.1, 0.15, 0.2, 0.25],
                "+28.4 % in all: step between 5.6.51 and 5.7.5 (about a quarter of the gain), then",
            ),
        ];
        for (series, expected) in cases {
            let words = describe(&segment(series, 1e-4), &labels, ("gain", "loss"));
            assert!(words.starts_with(expected), "{words}");
        }
        assert!(
            describe(&segment(cases[4].0, 1e-4), &labels, ("loss", "gain")).contains("of the loss")
        );
    }

    #[test]
    fn shares_of_a_change_have_words() {
        for (changes, expected) in [
            (
                [-0.95, -0.05],
                "step between a and b (nearly all of the loss), then gradual to c",
            ),
            (
                [-0.7, -0.3],
                "step between a and b (most of the loss), then step between b and c (about a third \
                of the loss)",
            ),
        ] {
            let means = [0.0, changes[0], changes[0] + changes[1]];
            let segments: Vec<Segment> = (0..)
                .zip(means)
                .map(|(first, mean)| Segment {
                    first,
                    end: first + 1,
                    mean,
                })
                .collect();
            let words = describe(&segments, &["a", "b", "c"], ("gain", "loss"));
            assert!(words.ends_with(expected), "{words}");
        }
    }
}
