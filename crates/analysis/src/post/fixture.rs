//! Subjects for tests: versions of MySQL with one group of tests.

use super::material::{Group, Kind, Subject, Test};
use super::noise::Noise;
use super::releases::{Release, speakers};
use super::thresholds::Band;
use crate::runs::status::Status;

/// Rates by test in the order of the versions; NaN where there is none.
pub(super) fn subject(versions: &[&str], rates: &[(&str, &[f64])]) -> Subject {
    let releases: Vec<Release> = versions
        .iter()
        .enumerate()
        .map(|(cell, version)| Release::of_mysql(cell, version))
        .collect();
    let tests: Vec<Test> = rates
        .iter()
        .enumerate()
        .map(|(step, (name, rates))| Test {
            name: (*name).to_owned(),
            step,
            rates: rates
                .iter()
                .map(|rate| Some(*rate).filter(|rate| !rate.is_nan()))
                .collect(),
            statuses: rates
                .iter()
                .map(|rate| match rate.is_nan() {
                    true => Status::Failed,
                    false => Status::Ok,
                })
                .collect(),
        })
        .collect();
    let groups = vec![Group {
        title: "writes".to_owned(),
        tests: (0..tests.len()).collect(),
        is_claimed: true,
    }];
    let noise = Noise::of(&releases, &tests, &groups, None);
    Subject {
        kind: Kind::Statements,
        product: "MySQL".to_owned(),
        config: String::new(),
        is_series: true,
        each: "version",
        speakers: speakers(&releases, |_| true),
        base: 0,
        groups,
        band: Band::new(noise.p95()),
        runs: 1,
        releases,
        tests,
        noise,
    }
}
