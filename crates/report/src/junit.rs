//! The answer of a gate for tools that read JUnit's XML.

use std::path::Path;
use std::time::Duration;

use plimsoll_analysis::{Gate, GateAnswer, GateRow};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

const NAME: &str = "plimsoll gate";

/// A suite per candidate and a test per step: a regression is a failure, what could not be decided
/// an error, a step that is unfit is skipped. Numbers are properties. A gate that refuses to answer
/// has that as the one error of each suite, and what is known of the steps as their output.
///
/// `page` is the campaign's report, if it is there.
pub fn to_junit(gate: &Gate, page: Option<&Path>) -> String {
    let mut report = Report::new(NAME);
    for (candidate, base) in &gate.candidates {
        let mut suite = TestSuite::new(format!("{NAME}: {candidate}"));
        let of_suite = [
            ("campaign", Some(gate.campaign.clone())),
            ("candidate", Some(candidate.clone())),
            ("base", Some(base.clone())),
            ("metric", Some(gate.metric.to_string())),
            ("answer", Some(gate.word().to_owned())),
            ("report", page.map(|page| page.display().to_string())),
        ];
        suite.add_properties(properties(of_suite));
        let rows = gate.rows.iter().filter(|row| row.candidate == *candidate);
        let mut seconds = 0.0;
        for row in rows {
            seconds += row.seconds;
            suite.add_test_case(case(gate, row, page));
        }
        if let Some(refusal) = &gate.refusal {
            let next = gate.next.iter().map(|next| format!("; next: {next}"));
            let message = format!("{refusal}{}", next.collect::<String>());
            let status = not_passed(NonSuccessKind::Error, "refused", &one_line(&message));
            suite.add_test_case(named("gate", candidate, status));
        }
        suite.set_time(duration(seconds));
        report.add_test_suite(suite);
    }
    let seconds: f64 = gate.rows.iter().map(|row| row.seconds).sum();
    report.set_time(duration(seconds));
    report.to_string().expect("memory can be written to")
}

fn case(gate: &Gate, row: &GateRow, page: Option<&Path>) -> TestCase {
    let message = one_line(&row.summary());
    let (status, output) = match status(gate, row, &message) {
        Some(status) if gate.refusal.is_none() => (status, None),
        _ => (TestCaseStatus::success(), Some(&message)),
    };
    let mut case = named(&row.step, &row.candidate, status);
    case.set_time(duration(row.seconds));
    case.add_properties(properties(numbers(row)));
    let page = page.map(|page| page.display().to_string());
    case.add_properties(properties([("report", page)]));
    if let Some(output) = output {
        case.set_system_out(output.as_str());
    }
    case
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn named(name: &str, candidate: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(candidate);
    case
}

/// What is known of a step.
fn numbers(row: &GateRow) -> [(&'static str, Option<String>); 8] {
    let interval = row.estimate.and_then(|estimate| estimate.interval);
    let ratio = |ratio: f64| format!("{ratio:.5}");
    [
        ("answer", Some(row.answer.name().to_owned())),
        ("max_regression", Some(row.max_regression.to_string())),
        ("ratio", row.estimate.map(|estimate| ratio(estimate.ratio))),
        ("low", interval.map(|(low, _)| ratio(low))),
        ("high", interval.map(|(_, high)| ratio(high))),
        ("p", row.p.map(|p| format!("{p:.3e}"))),
        ("starts", row.estimate.map(|of| of.starts.to_string())),
        (
            "floor_percent",
            row.floor_percent.map(|of| format!("{of:.2}")),
        ),
    ]
}

/// Those that have a value.
fn properties<const N: usize>(
    named: [(&'static str, Option<String>); N],
) -> impl Iterator<Item = Property> {
    let known = named.into_iter();
    known.filter_map(|(name, value)| Some(Property::new(name, one_line(&value?))))
}

/// None for a step that passes.
fn status(gate: &Gate, row: &GateRow, message: &str) -> Option<TestCaseStatus> {
    let kind = match row.answer {
        GateAnswer::Pass => return None,
        GateAnswer::Unfit if !gate.is_strict => {
            let mut status = TestCaseStatus::skipped();
            status.set_type(row.answer.name()).set_message(message);
            return Some(status);
        }
        GateAnswer::Regression => NonSuccessKind::Failure,
        GateAnswer::Inconclusive
        | GateAnswer::Refused
        | GateAnswer::Unfit
        | GateAnswer::Invalid => NonSuccessKind::Error,
    };
    Some(not_passed(kind, row.answer.name(), message))
}

fn not_passed(kind: NonSuccessKind, cause: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(cause).set_message(message);
    status
}

/// Readers of attributes turn line breaks into spaces anyway.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
