//! The answer of a gate for tools that read JUnit's XML.

use plimsoll_analysis::{Gate, GateAnswer, GateRow};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

const NAME: &str = "plimsoll gate";

/// A test per step: a regression is a failure, what could not be decided an error. A gate that
/// refuses to answer has that as its one error, and what is known of the steps as their output.
pub fn to_junit(gate: &Gate) -> String {
    let mut suite = TestSuite::new(NAME);
    let mut add = |name: &str, status: TestCaseStatus, output: Option<String>| {
        let mut case = TestCase::new(name, status);
        case.set_classname(gate.candidate.as_str());
        if let Some(output) = output {
            case.set_system_out(output);
        }
        suite.add_test_case(case);
    };
    for row in &gate.rows {
        let message = one_line(&row.summary());
        match status(row, &message) {
            Some(status) if gate.refusal.is_none() => add(&row.step, status, None),
            _ => add(&row.step, TestCaseStatus::success(), Some(message)),
        }
    }
    if let Some(refusal) = &gate.refusal {
        let status = not_passed(NonSuccessKind::Error, "refused", &one_line(refusal));
        add("gate", status, None);
    }
    let mut report = Report::new(NAME);
    report.add_test_suite(suite);
    report.to_string().expect("memory can be written to")
}

/// None for a step that passes.
fn status(row: &GateRow, message: &str) -> Option<TestCaseStatus> {
    let kind = match row.answer {
        GateAnswer::Pass => return None,
        GateAnswer::Regression => NonSuccessKind::Failure,
        GateAnswer::Inconclusive | GateAnswer::Invalid => NonSuccessKind::Error,
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
