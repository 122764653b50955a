//! Do groups of log ratios agree, say those of several machines?
//!
//! ```text
//! s^2      pooled variance within groups, N - M degrees of freedom
//! t_i      (mean_i - mean of all others) / (s sqrt(1 / n_i + 1 / (N - n_i)))
//! widening sqrt(MSB / S^2): MSB the mean square between groups, S^2 the variance of all
//! ```
//!
//! The mean of all has the variance MSB / N if groups differ by chance (one way, random effects,
//! groups of about one size), and S^2 / N is its variance when groups are not looked at.

use crate::numbers::distribution::student_two_sided;
use crate::numbers::order::mean;

/// A group set against all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// The mean of its values.
    pub mean: f64,
    /// How many they are.
    pub count: usize,
    /// The mean of all other values.
    pub others: f64,
    /// The two-sided p of "it differs from the others by chance", times the number of groups; none
    /// with fewer than two values in it, or in the others.
    pub p: Option<f64>,
}

/// All groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// In their order.
    pub groups: Vec<Group>,
    /// How many times as wide an interval of the mean of all is that has what groups differ by in
    /// it; never below 1.
    pub widening: f64,
}

/// Compares groups of values; `None` with fewer than two groups. Groups without a value are refused
/// by leaving them out before.
pub fn compare_groups(values: &[Vec<f64>]) -> Option<Groups> {
    if values.len() < 2 || values.iter().any(Vec::is_empty) {
        return None;
    }
    let all: Vec<f64> = values.concat();
    let (count, groups) = (all.len() as f64, values.len() as f64);
    let grand = mean(&all);
    let square = |x: f64| x * x;
    let within: f64 = values
        .iter()
        .map(|group| {
            let own = mean(group);
            group.iter().map(|value| square(value - own)).sum::<f64>()
        })
        .sum();
    let between: f64 = values
        .iter()
        .map(|group| group.len() as f64 * square(mean(group) - grand))
        .sum();
    let degrees = count - groups;
    let pooled = (within / degrees).sqrt();
    let of = |index: usize| {
        let group = &values[index];
        let rest: Vec<f64> = values
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .flat_map(|(_, group)| group.iter().copied())
            .collect();
        let (own, others) = (mean(group), mean(&rest));
        let error = pooled * (1.0 / group.len() as f64 + 1.0 / rest.len() as f64).sqrt();
        let is_told = group.len() >= 2 && rest.len() >= 2 && degrees >= 2.0 && error > 0.0;
        Group {
            mean: own,
            count: group.len(),
            others,
            p: is_told
                .then(|| (groups * student_two_sided((own - others) / error, degrees)).min(1.0)),
        }
    };
    let total = (within + between) / (count - 1.0);
    let widening = match total > 0.0 {
        true => (between / (groups - 1.0) / total).sqrt().max(1.0),
        false => 1.0,
    };
    Some(Groups {
        groups: (0..values.len()).map(of).collect(),
        widening,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::random::Stream;

    /// R: t.test-like with the pooled variance of a one-way layout:
    /// x <- c(1,2,3, 2,3,4, 9,10,11); within = 6, df = 6, s = 1;
    /// group 3 against the rest: (10 - 2.5) / sqrt(1/3 + 1/6) = 10.607, 3 * 2 * pt(-10.607, 6) =
    /// 1.24e-4. MSB = 57, S^2 = (6 + 114) / 8 = 15, widening = sqrt(57 / 15) = 1.949.
    #[test]
    fn a_group_that_is_far_from_the_others_is_told() {
        let values = [
            vec![1.0, 2.0, 3.0],
            vec![2.0, 3.0, 4.0],
            vec![9.0, 10.0, 11.0],
        ];
        let found = compare_groups(&values).unwrap();
        let third = found.groups[2];
        assert_eq!((third.mean, third.others, third.count), (10.0, 2.5, 3));
        let p = third.p.unwrap();
        assert!((p - 1.24e-4).abs() < 2e-6, "{p}");
        assert!((found.widening - 1.9494).abs() < 1e-3, "{}", found.widening);
    }

    #[test]
    fn too_little_is_not_judged() {
        assert_eq!(compare_groups(&[vec![1.0, 2.0]]), None);
        assert_eq!(compare_groups(&[vec![1.0], vec![]]), None);
        let alone = compare_groups(&[vec![1.0], vec![9.0, 9.1, 9.2, 9.3]]).unwrap();
        assert_eq!(alone.groups[0].p, None);
        let equal = compare_groups(&[vec![1.0; 3], vec![1.0; 3]]).unwrap();
        assert_eq!((equal.groups[0].p, equal.widening), (None, 1.0));
    }

    /// Groups that differ by nothing are found to differ no more often than the level says.
    #[test]
    fn the_level_holds() {
        let mut stream = Stream::new(24);
        let (mut told, tries) = (0, 2000);
        for _ in 0..tries {
            let mut group = || (0..4).map(|_| stream.normal()).collect::<Vec<f64>>();
            let found = compare_groups(&[group(), group(), group()]).unwrap();
            let is_far = |group: &Group| group.p.is_some_and(|p| p < 0.05);
            told += u32::from(found.groups.iter().any(is_far));
        }
        let share = f64::from(told) / f64::from(tries);
        assert!((0.02..0.06).contains(&share), "{share}");
    }

    /// R: t = 8 / (sqrt(0.5) sqrt(1/2 + 1/2)) = 11.314; 2 * 2 * pt(-11.314, 2) = 0.01544.
    #[test]
    fn two_values_on_each_side_are_enough() {
        let found = compare_groups(&[vec![1.0, 2.0], vec![9.0, 10.0]]).unwrap();
        for group in &found.groups {
            let p = group.p.unwrap();
            assert!((p - 0.015_444).abs() < 1e-5, "{p}");
        }
    }
}
