//! Verdicts on campaigns whose truth is known, and everything for which there must be none.

use plimsoll_analysis::metrics;
use plimsoll_analysis::verdicts::{Role, largest};
use plimsoll_analysis::{
    Basis, Finding, HistoryOptions, Options, Stored, View, analyse_among, explain, history,
    is_decided, verdict_lines,
};
use plimsoll_core::plan::{Budget, Effect, Workload};
use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_report::{Draw, show_json, to_html, to_markdown, to_terminal};
use plimsoll_store::event::{Event, ServerCrashed, Suspect};
use plimsoll_store::{CampaignRecord, CampaignState, TrialRecord, Turn};

use crate::common;
use crate::common::confirm::{BASE, CONTROL, SAME, SLOW, blocks, crash_in, slices};
use crate::view;

fn finding<'a>(view: &'a View, label: &str, step: &str, metric: &str) -> &'a Finding {
    let is_it = |finding: &&Finding| {
        view.cells[finding.cell].label == label
            && finding.step == step
            && finding.metric.name == metric
    };
    view.findings
        .all
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no finding on {label} {step} {metric}"))
}

const UNTOUCHED: common::confirm::Edit<'static> = &|_, _, _| {};

#[test]
fn a_confirm_of_twelve_blocks_tells_slow_from_same() {
    let view = view(&blocks(12, true, UNTOUCHED));
    for step in ["qr100", "qp100"] {
        let slow = finding(&view, SLOW, step, "qps");
        let estimate = slow.estimate.unwrap();
        assert_eq!(
            (slow.call.word(), slow.basis, estimate.pairs),
            ("regression", Basis::Blocks, 12),
            "{slow:?}"
        );
        let (low, high) = estimate.interval.unwrap();
        assert!(
            low < 0.66 && 0.66 < high && high - low < 0.02,
            "{low} {high}"
        );
        assert!(
            slow.p_adjusted.unwrap() < 0.01 && slow.why.ends_with("more code per statement"),
            "{slow:?}"
        );
        assert_eq!(
            finding(&view, SLOW, step, "process_cpu_us_per_op")
                .call
                .word(),
            "regression"
        );
        assert_eq!(finding(&view, SAME, step, "qps").call.word(), "equivalent");
    }
    assert!(
        view.findings
            .all
            .iter()
            .all(|finding| finding.step != "l.x"),
        "only what is confirmed"
    );
    assert!(
        view.findings
            .all
            .iter()
            .all(|finding| view.cells[finding.cell].label != CONTROL),
        "the control is not a candidate"
    );
    assert!(
        view.findings
            .control
            .iter()
            .all(|control| control.is_sound == Some(true))
            && view
                .findings
                .control
                .iter()
                .filter(|control| control.role != Role::Companion)
                .count()
                == 4
    );
    let lines = verdict_lines(&view);
    assert!(
        lines.contains("qr100  sqlite.wal_off vs sqlite.wal_full     regression  -3"),
        "{lines}"
    );
    assert!(
        lines.contains("within +-3 %") && lines.contains("agrees with itself in 4 of 4"),
        "{lines}"
    );
}

#[test]
fn slices_pair_by_round_and_count_starts() {
    let campaign = slices(5, 60, &|_, _, _| {});
    let view = view(&campaign.load());
    let slow = finding(&view, SLOW, "qp100", "qps");
    let estimate = slow.estimate.unwrap();
    assert_eq!(
        (
            slow.call.word(),
            slow.basis,
            estimate.starts,
            estimate.pairs
        ),
        ("regression", Basis::Slices, 5, 300),
        "{slow:?}"
    );
    let (low, high) = estimate.interval.unwrap();
    assert!(
        low < 0.66 && 0.66 < high && high - low < 0.03,
        "{low} {high}"
    );
    assert_eq!(
        finding(&view, SAME, "qp100", "qps").call.word(),
        "equivalent"
    );
    assert!(
        view.findings
            .noise_floor_percent(Role::Throughput, None)
            .unwrap()
            < 2.0
    );
    let page = to_html(&view);
    assert!(page.contains("id=\"verdicts\"") && page.contains("dots are single starts"));
    assert!(page.contains("here in turns of 20.0ms or more, 30.0s at most over 5 starts"));
}

/// It said "in 1 of 5 blocks".
#[test]
fn a_crash_by_slices_is_counted_in_starts() {
    let mut record = slices(5, 60, &|_, _, _| {}).load();
    crash_in(&mut record, SLOW, 2..=2);
    let view = view(&record);
    let reason = &finding(&view, SLOW, "qr100", "qps").reason;
    assert!(
        reason.starts_with("the cell crashed in 1 of 5 starts: "),
        "{reason}"
    );
}

/// A start whose server crashed between two steps voided the first step of the plan, which had left
/// the campaign before.
#[test]
fn a_step_that_has_left_is_not_blamed_for_a_later_start() {
    let campaign = slices(5, 60, &|_, _, _| {});
    let mut record = campaign.load();
    record.header.confirm.as_mut().unwrap().budget = Some(Budget::DEFAULT);
    let schedule = record.header.schedule.clone();
    for trial in &mut record.trials {
        let of = schedule
            .iter()
            .find(|of| of.number == trial.number)
            .unwrap();
        if of.block < 5 {
            continue;
        }
        // `qr100` is known, and not in the fifth start.
        trial.events.retain(|stamped| match &stamped.event {
            Event::StepStart(start) => start.step != "qr100",
            Event::StepDone(done) => done.step != "qr100",
            _ => true,
        });
        for stamped in &mut trial.events {
            if let Event::TrialStart(start) = &mut stamped.event {
                start.steps = vec!["qp100".to_owned()];
            }
        }
        if record.header.plan.cells[of.cell].label == SLOW {
            let begins =
                |event: &Event| matches!(event, Event::StepStart(of) if of.step == "qp100");
            let at = trial
                .events
                .iter()
                .position(|of| begins(&of.event))
                .unwrap();
            trial.events.truncate(at);
            let mut last = trial.events.last().unwrap().clone();
            last.event = Event::ServerCrashed(ServerCrashed {
                step: None,
                status: "signal 9".to_owned(),
                log_tail: String::new(),
            });
            trial.events.push(last);
        }
    }
    let judged = view(&record);
    let word = |view: &View, step: &str| finding(view, SLOW, step, "qps").call.word();
    assert_eq!(word(&judged, "qr100"), "regression");
    assert_eq!(word(&judged, "qp100"), "invalid");

    // The same if the trial did not come so far as to say what it runs: the others of its start do.
    let of_slow = |record: &CampaignRecord, number: u32| {
        let mut schedule = record.header.schedule.iter();
        let of = schedule.find(|of| of.number == number).unwrap();
        of.block == 5 && record.header.plan.cells[of.cell].label == SLOW
    };
    let numbers: Vec<u32> = record.trials.iter().map(|trial| trial.number).collect();
    for (at, number) in numbers.into_iter().enumerate() {
        if of_slow(&record, number) {
            record.trials[at]
                .events
                .retain(|of| matches!(of.event, Event::ServerCrashed(_)));
        }
    }
    let judged = view(&record);
    assert_eq!(word(&judged, "qr100"), "regression");
    assert_eq!(word(&judged, "qp100"), "invalid");
}

#[test]
fn tables_of_slices_have_the_rate_of_the_turns_and_the_ratio_of_the_verdict() {
    let campaign = slices(5, 60, &|_, _, _| {});
    let view = view(&campaign.load());
    let of = |label: &str| {
        let cell = view
            .cells
            .iter()
            .position(|cell| cell.label == label)
            .unwrap();
        let step = view.steps.iter().find(|step| step.name == "qp100").unwrap();
        (cell, &step.outcomes[cell])
    };
    // 400 operations in 18 ms, and 12 ms of CPU for them; what the clients did in all is another
    // number.
    let base = of(BASE).1;
    let (rate, cpu_us) = (
        base.number(metrics::QPS).unwrap(),
        base.number(metrics::PROCESS_CPU_US_PER_OP).unwrap(),
    );
    assert!(
        (rate / 22_222.0 - 1.0).abs() < 0.02 && (cpu_us / 30.0 - 1.0).abs() < 0.02,
        "{rate} {cpu_us}"
    );
    let (cell, slow) = of(SLOW);
    let ratio = finding(&view, SLOW, "qp100", "qps").estimate.unwrap().ratio;
    assert_eq!(slow.paired_ratio, Some(ratio));
    let column = view
        .summary
        .relative
        .columns
        .iter()
        .position(|name| name == "qp100")
        .unwrap();
    assert_eq!(
        view.summary.relative.rows[cell].cells[column].number,
        Some(format!("{ratio:.2}"))
    );
}

#[test]
fn ticks_that_miss_a_turn_are_no_disturbance() {
    // Without run times of its own the kernel tells a turn's CPU in ticks: one turn has too many of
    // them, the next too few.
    let ticks = |_: u32, _: &str, turns: &mut Vec<Turn>| {
        turns.iter_mut().for_each(|turn| {
            turn.foreign_cpu_ns = Some(if turn.round % 2 == 0 {
                16_000_000
            } else {
                -15_000_000
            })
        });
    };
    let campaign = slices(5, 40, &ticks);
    assert_eq!(
        finding(&view(&campaign.load()), SLOW, "qp100", "qps").left_out,
        0
    );
}

#[test]
fn one_start_decides_nothing() {
    let campaign = slices(1, 60, &|_, _, _| {});
    let view = view(&campaign.load());
    let slow = finding(&view, SLOW, "qp100", "qps");
    assert_eq!(slow.call.word(), "inconclusive");
    assert!(
        slow.reason.contains("within one start only"),
        "{}",
        slow.reason
    );
    assert!(slow.estimate.unwrap().interval.is_some());
}

#[test]
fn a_disturbed_start_is_left_out_by_its_witness_and_said() {
    let disturb = |block: u32, label: &str, turns: &mut Vec<Turn>| {
        if block == 2 && label == SLOW {
            // Its numbers are as good as any: only the witness speaks.
            turns
                .iter_mut()
                .for_each(|turn| turn.foreign_cpu_ns = Some(9_000_000));
        }
        if block == 3 && label == SLOW {
            turns
                .iter_mut()
                .for_each(|turn| turn.other_servers_cpu_ns = Some(9_000_000));
        }
    };
    let campaign = slices(5, 40, &disturb);
    let view = view(&campaign.load());
    let slow = finding(&view, SLOW, "qp100", "qps");
    assert_eq!((slow.left_out, slow.estimate.unwrap().starts), (1, 4));
    assert!(verdict_lines(&view).contains("(1 start left out)"));
    assert_eq!(finding(&view, SAME, "qp100", "qps").left_out, 0);
}

#[test]
fn disturbed_rounds_leave_and_a_disturbed_machine_does_not() {
    // Others had two CPUs in every fifth turn of start 2, and in all turns of start 3.
    let disturb = |block: u32, label: &str, turns: &mut Vec<Turn>| {
        let step = match block {
            2 => 5,
            3 => 1,
            _ => return,
        };
        if label == SLOW {
            let hit = turns.iter_mut().step_by(step);
            hit.for_each(|turn| turn.foreign_cpu_ns = Some(2 * turn.active_ns as i64));
        }
    };
    let campaign = slices(5, 40, &disturb);
    let mut record = campaign.load();
    let rounds = |record: &CampaignRecord, role: Role| -> Vec<(usize, usize)> {
        let view = view(record);
        let is_slow =
            |finding: &&Finding| view.cells[finding.cell].label == SLOW && finding.step == "qp100";
        let mut of_slow = view.findings.all.iter().filter(is_slow);
        let slow = of_slow.find(|finding| finding.role == role).unwrap();
        assert_eq!(slow.left_out, 0);
        assert!(role != Role::Throughput || slow.call.word() == "regression");
        let starts = slow.by_start.iter();
        starts
            .map(|start| (start.rounds, start.disturbed))
            .collect()
    };
    let some_left = [(40, 0), (32, 8), (40, 0), (40, 0), (40, 0)];
    assert_eq!(rounds(&record, Role::Throughput), some_left);
    // It hardly moves CPU per operation.
    assert_eq!(rounds(&record, Role::Cpu), [(40, 0); 5]);
    // Turns that write vary more by themselves.
    for cell in &mut record.header.plan.cells {
        let Workload::InsertBenchmark(benchmark) = &mut cell.workload else {
            panic!("the plan has another workload");
        };
        let mut steps = benchmark.steps.iter_mut();
        steps.find(|step| step.name == "qp100").unwrap().effect = Effect::Writes;
    }
    assert_eq!(rounds(&record, Role::Throughput), [(40, 0); 5]);
}

/// However clear the difference is: nobody knows by how much the base differs from itself.
#[test]
fn without_a_control_there_is_no_verdict() {
    // Servers that should have stood worked in all of its turns.
    let disturb = |_: u32, label: &str, turns: &mut Vec<Turn>| {
        if label == CONTROL {
            turns
                .iter_mut()
                .for_each(|turn| turn.other_servers_cpu_ns = Some(9_000_000));
        }
    };
    let view = view(&slices(5, 40, &disturb).load());
    for (label, step) in [(SLOW, "qp100"), (SAME, "qr100")] {
        let found = finding(&view, label, step, "qps");
        assert_eq!(found.call.word(), "invalid", "{label} {step}");
        assert!(
            found.reason.contains("there is no A/A control"),
            "{}",
            found.reason
        );
    }
}

#[test]
fn turns_without_operations_are_no_measurement() {
    let empty = |_: u32, label: &str, turns: &mut Vec<Turn>| {
        if label == SLOW {
            turns
                .iter_mut()
                .step_by(3)
                .for_each(|turn| turn.operations = 0);
        }
    };
    let campaign = slices(3, 40, &empty);
    let view = view(&campaign.load());
    let slow = finding(&view, SLOW, "qp100", "qps");
    assert_eq!(slow.call.word(), "invalid");
    assert!(
        slow.reason.contains("too short for this step"),
        "{}",
        slow.reason
    );
}

#[test]
fn a_failed_control_widens_the_errors_of_its_step() {
    let moved = |_: u32, label: &str, made: &mut common::Made| {
        if label == CONTROL && made.done.step == "qr100" {
            for client in &mut made.done.clients {
                client.ok = client.ok * 9 / 10;
            }
        }
    };
    let view = view(&blocks(12, true, &moved));
    let slow = finding(&view, SLOW, "qr100", "qps");
    assert_eq!(slow.call.word(), "inconclusive");
    let (estimate, other) = (
        slow.estimate.unwrap(),
        finding(&view, SLOW, "qp100", "qps").estimate.unwrap(),
    );
    assert!(estimate.scale > 3.0 && other.scale == 1.0, "{estimate:?}");
    let width = |interval: Option<(f64, f64)>| {
        let (low, high) = interval.unwrap();
        high - low
    };
    assert!(width(estimate.interval) > 3.0 * width(other.interval));
    assert_eq!(
        finding(&view, SLOW, "qp100", "qps").call.word(),
        "regression",
        "the other step's control is sound"
    );
    assert!(
        verdict_lines(&view).contains(
            "the base differs from itself in 1 of 4 comparisons (99 % intervals): qr100 qps; \
            errors of qr100 qps count 3."
        ),
        "{}",
        verdict_lines(&view)
    );
}

/// Of five versions four had lost a sixth of their scans: all lines of "The largest" were of scans.
#[test]
fn the_largest_are_of_several_steps() {
    let campaign = slices(5, 60, &|_, label, turns| {
        if label == SAME {
            turns
                .iter_mut()
                .for_each(|turn| turn.operations = turn.operations * 8 / 10);
        }
    });
    let view = view(&campaign.load());
    for cell in [SLOW, SAME] {
        for step in ["qr100", "qp100"] {
            assert_eq!(finding(&view, cell, step, "qps").call.word(), "regression");
        }
    }
    let largest = largest(&view.findings, 5).into_iter();
    let told: Vec<(&str, &str)> = largest
        .map(|of| (view.cells[of.cell].label.as_str(), of.step.as_str()))
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.contains(&(SLOW, "qr100")) && told.contains(&(SLOW, "qp100")),
        "{told:?}"
    );
}

#[test]
fn a_base_that_meets_only_itself_has_its_control_and_no_verdict() {
    let campaign = slices(5, 60, &|_, _, _| {});
    let mut record = campaign.load();
    // As `confirm --cells BASE` makes it: the base and its second instance.
    record
        .header
        .plan
        .cells
        .retain(|cell| cell.label == BASE || cell.label == CONTROL);
    record
        .header
        .cells
        .retain(|cell| cell.label == BASE || cell.label == CONTROL);
    record
        .header
        .schedule
        .retain(|scheduled| [0, 3].contains(&scheduled.cell));
    record
        .header
        .schedule
        .iter_mut()
        .for_each(|scheduled| scheduled.cell = scheduled.cell.min(1));
    let numbers: Vec<u32> = record
        .header
        .schedule
        .iter()
        .map(|scheduled| scheduled.number)
        .collect();
    record
        .trials
        .retain(|trial| numbers.contains(&trial.number));
    let view = view(&record);
    let lines = verdict_lines(&view);
    assert!(
        lines.starts_with(
            "No verdicts: the only candidate apart from the base is its second instance, of \
            sqlite.wal_full\n"
        ),
        "{lines}"
    );
    assert!(
        lines.contains("A/A control: the base agrees with itself in 4 of 4")
            && lines.contains("noise floor: throughput"),
        "{lines}"
    );
    assert!(
        lines.contains("qp100  sqlite.wal_full#2 vs sqlite.wal_full  A/A holds"),
        "{lines}"
    );
    let page = to_html(&view);
    assert!(
        page.contains("id=\"verdicts\"")
            && page.contains("A/A, 99 %")
            && !page.contains("class=\"matrix\"")
    );
    assert!(to_markdown(&view).contains("No verdicts: the only candidate"));
}

/// It had no sentence of its own: nothing stood where verdicts were to be.
#[test]
fn a_campaign_without_a_number_on_both_sides_says_so() {
    let mut record = blocks(3, true, UNTOUCHED);
    record.trials.clear();
    let view = view(&record);
    let words = format!("No verdicts: no step has numbers of both {BASE} and a candidate");
    assert!(
        verdict_lines(&view).starts_with(&words),
        "{}",
        verdict_lines(&view)
    );
    assert!(to_markdown(&view).contains(&words));
}

/// A campaign whose budget was used up had the note of one in which all was decided.
#[test]
fn a_campaign_that_ends_within_a_budget_has_a_note_of_its_own() {
    let campaign = slices(4, 20, &|_, _, _| {});
    let mut record = campaign.load();
    record.state = CampaignState::Decided;
    let note = |record: &CampaignRecord| to_markdown(&view(record));
    let by_looks = note(&record);
    assert!(
        by_looks.contains("ended at a planned look, because all was decided"),
        "{by_looks}"
    );
    record.header.confirm.as_mut().unwrap().budget = Some(Budget {
        time_ns: 90_000_000_000,
        reads: 0.01,
        writes: 0.04,
    });
    let within = note(&record);
    assert!(
        within.contains(": all was decided, or no time was left for more.")
            && !within.contains("ended at a planned look"),
        "{within}"
    );
}

#[test]
fn too_few_blocks_say_how_many_would_do() {
    let view = view(&blocks(3, false, UNTOUCHED));
    let slow = finding(&view, SLOW, "qr100", "qps");
    assert_eq!(slow.call.word(), "inconclusive");
    assert!(
        slow.reason.starts_with("cannot be decided with 3 blocks, "),
        "{}",
        slow.reason
    );
    assert!(slow.reason.ends_with(" needed"));
    assert!(verdict_lines(&view).contains("A/A control: none in this campaign"));
}

/// The reason of an `invalid` was in `show` alone.
#[test]
fn what_a_run_ends_with_and_the_page_say_why_a_step_is_invalid() {
    let mut record = blocks(12, true, UNTOUCHED);
    crash_in(&mut record, SAME, 1..=2);
    let mut view = view(&record);
    let reason = &finding(&view, SAME, "qr100", "qps").reason;
    assert!(reason.contains("crashed in 2 of 12 blocks"), "{reason}");
    let line = format!("{SAME} qr100: {reason}");
    let brief = plimsoll_analysis::brief_lines(&view).replace("\n    ", " ");
    assert!(brief.contains(&format!("Not judged:\n  {line}")), "{brief}");
    let page = to_html(&view);
    assert!(page.contains(&format!("<li>{line}</li>")));
    // "No difference is shown" is what was found, and here nothing was.
    for finding in &mut view.findings.all {
        finding.call = plimsoll_analysis::Call::Invalid;
    }
    let lines = verdict_lines(&view);
    assert!(
        lines.contains(&format!("{SAME}: nothing could be judged; 2 are invalid"))
            && !lines.contains("no difference is shown"),
        "{lines}"
    );
}

/// It was over all steps, those that make the data included, and the ratios are over some.
#[test]
fn what_others_took_is_of_the_steps_that_are_judged() {
    let stolen = |in_judged: bool| {
        let steal = move |_: u32, _: &str, made: &mut common::Made| {
            let is_judged = ["qr100", "qp100"].contains(&made.done.step.as_str());
            if is_judged == in_judged {
                let total = made.done.host[HostReading::CpuTotal].value().unwrap();
                let shares = [
                    (HostReading::CpuSteal, 0.3),
                    (HostReading::CpuIdle, 0.2),
                    (HostReading::CpuIowait, 0.0),
                ];
                for (reading, share) in shares {
                    made.done.host.put(reading, Reading::Ok(share * total));
                }
            }
        };
        plimsoll_analysis::machine_taken(&view(&blocks(12, true, &steal)))
    };
    assert_eq!(stolen(false), None);
    assert!(stolen(true).is_some());
}

#[test]
fn blocks_with_steal_stay_and_those_of_a_slow_canary_leave() {
    let steal = |block: u32, label: &str, made: &mut common::Made| {
        if block <= 2 && label == SLOW {
            let all = made.done.host[HostReading::CpuTotal].value().unwrap();
            made.done
                .host
                .put(HostReading::CpuSteal, Reading::Ok(all * 0.05));
        }
    };
    let mut disturbed = blocks(12, true, &steal);
    let stolen = view(&disturbed);
    let slow = finding(&stolen, SLOW, "qr100", "qps");
    assert_eq!(
        (
            slow.left_out,
            slow.estimate.unwrap().pairs,
            slow.call.word()
        ),
        (0, 12, "regression")
    );
    // Two others began on a machine that was slow, for a reason that nobody knows.
    let blocks = |number: u32| {
        let schedule = &disturbed.header.schedule;
        let trial = schedule.iter().find(|trial| trial.number == number);
        trial.is_some_and(|trial| [3, 4].contains(&trial.block))
    };
    let hit: Vec<u32> = disturbed
        .trials
        .iter()
        .map(|trial| trial.number)
        .filter(|number| blocks(*number))
        .collect();
    for trial in disturbed
        .trials
        .iter_mut()
        .filter(|trial| hit.contains(&trial.number))
    {
        let reason = "integer loop 40 % slower than usual before the trial".to_owned();
        let mut last = trial.events.last().unwrap().clone();
        last.event = Event::Suspect(Suspect { reason });
        trial.events.push(last);
    }
    let view = view(&disturbed);
    let slow = finding(&view, SLOW, "qr100", "qps");
    assert_eq!(
        (
            slow.left_out,
            slow.estimate.unwrap().pairs,
            slow.call.word()
        ),
        (2, 10, "regression")
    );
    assert!(verdict_lines(&view).contains("10 blocks (2 left out)"));
    let explanation = explain(&disturbed, &Stored::default(), "qr100", None, Some(SLOW)).unwrap();
    assert!(
        explanation.changes.iter().all(|change| change.pairs == 10),
        "it explains the blocks that the verdict is about"
    );
    let status = &view
        .steps
        .iter()
        .find(|step| step.name == "qr100")
        .unwrap()
        .outcomes[slow.cell];
    assert!(
        status
            .reason
            .as_ref()
            .unwrap()
            .starts_with("block 1 (and 3 more of 12 blocks): "),
        "{status:?}"
    );
}

#[test]
fn what_went_wrong_gives_a_sentence_and_no_verdict() {
    let mut crashed = blocks(12, true, UNTOUCHED);
    crash_in(&mut crashed, SLOW, 1..=6);
    let missed = blocks(12, true, &|block, label, made| {
        if label == BASE && block == 4 && made.done.step == "qr100" {
            made.done.sla_missed = Some(0.8);
        }
    });
    let other_rows = blocks(12, true, &|_, label, made| {
        if label == SLOW && made.done.step == "l.i0" {
            made.done.tables[0].found_rows -= 1;
        }
    });
    let other_bytes = blocks(12, true, &|_, label, made| {
        if label == SLOW {
            made.done.tables[0].checksum = Some("cafe".to_owned());
        }
    });
    let mut shapes = blocks(12, true, UNTOUCHED);
    if let Workload::InsertBenchmark(workload) = &mut shapes.header.plan.cells[1].workload {
        workload.clients = 7;
    }
    for (record, reason) in [
        (&crashed, "the cell crashed in 6 of 12 blocks: signal 11"),
        (
            &missed,
            "the base missed its rate in 1 of 12 blocks: the background writers reached 80.0 %",
        ),
        (
            &other_rows,
            "the data states differ: pi1 holds 400100 rows in the base and pi1 holds 400099 in the \
            cell",
        ),
        (&other_bytes, "the data states differ: the checksums"),
        (&shapes, "the cells' shapes differ"),
    ] {
        let view = view(record);
        let slow = finding(&view, SLOW, "qr100", "qps");
        assert_eq!(slow.call.word(), "invalid", "{reason}");
        assert!(slow.reason.starts_with(reason), "{}", slow.reason);
        assert!(to_terminal(&view, false).contains("invalid"));
    }
}

#[test]
fn a_campaign_under_way_waits_for_its_look() {
    let mut record = blocks(24, true, UNTOUCHED);
    let done = |record: &CampaignRecord, blocks: u32| -> Vec<u32> {
        record
            .header
            .schedule
            .iter()
            .filter(|trial| trial.block <= blocks)
            .map(|trial| trial.number)
            .collect()
    };
    let all = record.trials.clone();
    for (blocks, word) in [(8, "inconclusive"), (12, "regression"), (24, "regression")] {
        let numbers = done(&record, blocks);
        record.trials = all
            .iter()
            .filter(|trial| numbers.contains(&trial.number))
            .cloned()
            .collect();
        record.state = if blocks == 24 {
            CampaignState::Complete
        } else {
            CampaignState::Running
        };
        let view = view(&record);
        let slow = finding(&view, SLOW, "qr100", "qps");
        assert_eq!(slow.call.word(), word, "{blocks} blocks: {slow:?}");
        if blocks == 8 {
            assert_eq!(
                slow.reason,
                "8 blocks so far: it cannot be judged before 12 blocks"
            );
            assert_eq!(
                finding(&view, SAME, "qr100", "qps").call.word(),
                "inconclusive",
                "what is the same waits for its look, too"
            );
            // It said "no difference is shown in 2 steps; 2 are inconclusive".
            let lines = verdict_lines(&view);
            let waits = format!(
                "{SLOW}: 2 of 2 steps cannot be judged yet: 8 blocks so far, and 12 are needed\n"
            );
            assert!(
                lines.contains(&waits) && !lines.contains("no difference is shown"),
                "{lines}"
            );
        }
    }
}

#[test]
fn a_campaign_is_decided_at_a_look_when_all_its_steps_are() {
    let mut record = blocks(24, true, UNTOUCHED);
    let (all, schedule) = (record.trials.clone(), record.header.schedule.clone());
    record.state = CampaignState::Running;
    for (blocks, expected) in [(6, false), (11, false), (12, true), (13, false), (18, true)] {
        let is_done = |number: u32| {
            schedule
                .iter()
                .any(|trial| trial.number == number && trial.block <= blocks)
        };
        record.trials = all
            .iter()
            .filter(|trial| is_done(trial.number))
            .cloned()
            .collect();
        assert_eq!(is_decided(&record, blocks), expected, "{blocks} blocks");
    }
    // What was decided stays so when the campaign has ended there.
    record.trials.retain(|trial| {
        schedule
            .iter()
            .any(|of| of.number == trial.number && of.block <= 12)
    });
    record.state = CampaignState::Decided;
    let mut within_budget = record.clone();
    within_budget.header.confirm.as_mut().unwrap().budget = Some(Budget {
        time_ns: 480_000_000_000,
        reads: 0.01,
        writes: 0.04,
    });
    let view = view(&record);
    for (record, ended) in [
        (&record, "ended early: all was decided"),
        (&within_budget, "ended; its budget was 8m00s"),
    ] {
        let shown = to_terminal(&crate::view(record), false);
        assert!(shown.contains(ended), "{shown}");
    }
    assert_eq!(
        finding(&view, SLOW, "qr100", "qps").call.word(),
        "regression"
    );
    assert!(
        view.notes
            .iter()
            .any(|note| note.contains("ended at a planned look")),
        "{:?}",
        view.notes
    );
    assert!(
        !is_decided(&blocks(12, false, UNTOUCHED), 12),
        "no confirm campaign"
    );
}

#[test]
fn a_screen_says_unusual_at_most_and_where_its_spread_comes_from() {
    let screen = blocks(1, false, UNTOUCHED);
    let alone = view(&screen);
    let slow = finding(&alone, SLOW, "qr100", "qps");
    assert_eq!((slow.call.word(), slow.basis), ("unusual", Basis::Screen));
    assert_eq!(finding(&alone, SAME, "qr100", "qps").call.word(), "usual");
    let lines = verdict_lines(&alone);
    assert!(
        lines.contains("no verdict") && lines.contains("(spread of starts 3.0 %, assumed)"),
        "{lines}"
    );
    assert!(
        !["regression", "improvement", "equivalent"]
            .iter()
            .any(|word| lines.contains(word)),
        "{lines}"
    );

    let stored = [blocks(12, false, UNTOUCHED), screen.clone()];
    let known = analyse_among(
        std::slice::from_ref(&screen),
        &Options::default(),
        &Stored::of(&stored),
    )
    .unwrap();
    let value = show_json(&known);
    let of_slow = value["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["cell"] == SLOW && of["step"] == "qr100" && of["metric"] == "qps")
        .unwrap();
    assert_eq!(
        (&of_slow["verdict"], &of_slow["screen"]["word"]),
        (&serde_json::Value::Null, &serde_json::json!("unusual"))
    );
    // Three cells of twelve starts each, with a spread of 0.6 %.
    assert_eq!(of_slow["screen"]["spread_starts"], 36);
    let spread = of_slow["screen"]["spread"].as_f64().unwrap();
    assert!(spread > 0.005 && spread < 0.02, "{spread}");
}

#[test]
fn explaining_works_on_screens_and_says_what_it_is() {
    let screen = blocks(1, false, UNTOUCHED);
    let text = explain(&screen, &Stored::default(), "qr100", None, None)
        .unwrap()
        .to_text();
    assert!(
        text.contains(SLOW)
            && text.contains("this is unconfirmed")
            && text.contains("more code per statement"),
        "{text}"
    );
    let confirmed = blocks(12, true, UNTOUCHED);
    let explanation = explain(&confirmed, &Stored::default(), "qp100", None, Some(SLOW)).unwrap();
    assert!(!explanation.is_screen && !explanation.to_text().contains("unconfirmed"));
    assert!(
        explanation
            .changes
            .windows(2)
            .all(|pair| pair[0].standardised.abs() >= pair[1].standardised.abs())
    );
    assert_eq!(explanation.to_json()["verdict"], "regression");
    let text = explanation.to_text();
    assert!(
        text.contains("One build, with other settings: synchronous off (base: full)."),
        "{text}"
    );
    let wrong = explain(&screen, &Stored::default(), "qr101", None, None)
        .unwrap_err()
        .to_string();
    assert!(
        wrong.contains("qr101") && wrong.contains("qr100"),
        "{wrong}"
    );
    let nobody = explain(&screen, &Stored::default(), "qr100", None, Some("nobody"))
        .unwrap_err()
        .to_string();
    assert!(nobody.contains("nobody"), "{nobody}");
}

#[test]
fn cpu_that_differs_where_throughput_does_not_is_named() {
    let dearer = |_: u32, label: &str, made: &mut common::Made| {
        if label == SAME {
            let seconds = made.done.host[HostReading::ProcessCpu].value().unwrap();
            made.done
                .host
                .put(HostReading::ProcessCpu, Reading::Ok(seconds * 1.113));
        }
    };
    let record = blocks(12, true, &dearer);
    let explanation = explain(&record, &Stored::default(), "qr100", None, Some(SAME)).unwrap();
    let text = explanation.to_text();
    assert!(
        text.contains("Throughput: no difference is shown. process CPU/op: regression +11."),
        "{text}"
    );
    assert!(
        text.contains("Likely: process CPU/op +11.") && !text.contains("If there is one"),
        "{text}"
    );
    assert_eq!(explanation.to_json()["cost"]["verdict"], "regression");
    let markdown = to_markdown(&view(&record));
    assert!(
        markdown.contains("| qr100 process CPU/op | sqlite.wal_normal | regression | +11."),
        "as in the terminal: {markdown}"
    );
    assert!(
        markdown.contains("| 12 blocks |")
            && !markdown.contains("| qr100 process CPU/op | sqlite.wal_off"),
        "{markdown}"
    );
}

#[test]
fn a_run_that_was_over_at_once_is_not_judged_in_a_screen() {
    let short = |_: u32, label: &str, made: &mut common::Made| {
        if label == SLOW && made.done.step == "qr100" {
            made.done.elapsed_ns = 80_000_000;
        }
    };
    let screen = view(&blocks(1, false, &short));
    let slow = finding(&screen, SLOW, "qr100", "qps");
    assert_eq!(
        (slow.call.word(), slow.reason.as_str()),
        ("invalid", "the cell ran 0.08 s: too short to tell")
    );
    assert!(
        verdict_lines(&screen).contains(&format!(
            "not judged  {SLOW} qr100: the cell ran 0.08 s: too short to tell"
        )),
        "{}",
        verdict_lines(&screen)
    );
    assert_eq!(
        finding(&view(&blocks(12, true, &short)), SLOW, "qr100", "qps")
            .call
            .word(),
        "regression",
        "twelve tell"
    );
}

#[test]
fn campaigns_of_one_kind_are_a_series_and_no_others() {
    let options = HistoryOptions {
        step: Some("qr100".to_owned()),
        metric: None,
    };
    let record = blocks(12, true, UNTOUCHED);
    let named = |mut other: CampaignRecord, id: &str| {
        other.header.id = id.to_owned();
        other
    };
    // The folder must outlive the question: turns are read from it.
    let by_slices = slices(12, 10, &|_, _, _| {});
    let mut probe = blocks(12, true, UNTOUCHED);
    probe.header.confirm.as_mut().unwrap().bisection = Some(plimsoll_store::BisectionProbe {
        search: String::new(),
        candidates: vec![BASE.to_owned(), SLOW.to_owned()],
        probe: None,
    });
    let stored = [
        record.clone(),
        named(by_slices.load(), "slices"),
        named(probe, "probe"),
    ];
    assert_eq!(
        history(&record, &Stored::of(&stored), &options).unwrap(),
        []
    );
    let stored = [&stored[..], &[named(blocks(12, true, UNTOUCHED), "again")]].concat();
    let series = history(&record, &Stored::of(&stored), &options).unwrap();
    assert_eq!(
        series.len(),
        3,
        "one per candidate, none for the control: {series:?}"
    );
    assert!(series.iter().all(|of| of.points.len() == 2));
    assert!(
        series[0]
            .to_text()
            .starts_with("qr100 qps over campaigns (confirms by blocks): sqlite.wal_full\n"),
        "{}",
        series[0].to_text()
    );
}

#[test]
fn a_metric_that_is_none_is_an_error_that_helps() {
    let options = HistoryOptions {
        step: None,
        metric: Some("qsp".to_owned()),
    };
    let error = history(&blocks(1, false, UNTOUCHED), &Stored::default(), &options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("(did you mean \"qps\"?)"), "{error}");
}

#[test]
fn a_series_of_disturbed_runs_is_a_hint() {
    let mut record = common::servers::series(6);
    for stamped in record.trials.iter_mut().flat_map(|trial| &mut trial.events) {
        if let Event::StepDone(done) = &mut stamped.event {
            let all = done.host[HostReading::CpuTotal].value().unwrap();
            done.host
                .put(HostReading::CpuSteal, Reading::Ok(all * 0.05));
        }
    }
    let series = history(
        &record,
        &Stored::default(),
        &HistoryOptions {
            step: Some("qr100".to_owned()),
            metric: None,
        },
    )
    .unwrap();
    assert!(
        series[0]
            .words
            .starts_with("one step between 5.7.22 and 8.0.4 (-2"),
        "{}",
        series[0].words
    );
    assert!(
        series[0]
            .words
            .ends_with("), of runs that were disturbed: no more than a hint"),
        "{}",
        series[0].words
    );
}

#[test]
fn releases_are_a_series_in_the_order_of_versions() {
    // Configs stand in for releases: the engine is the same, so the campaigns' own series is what a
    // campaign of one release has.
    let (mut older, newer) = (blocks(1, false, UNTOUCHED), blocks(1, false, UNTOUCHED));
    older.header.id = "20261120T080000Z-sample".to_owned();
    older.header.created = "2026-11-20T08:00:00Z".to_owned();
    let options = HistoryOptions {
        step: Some("qr100".to_owned()),
        metric: None,
    };
    let series = history(&newer, &Stored::of(&[newer.clone(), older]), &options).unwrap();
    assert_eq!(series.len(), 3, "one per cell");
    assert_eq!(series[0].over, "campaigns");
    let labels: Vec<&str> = series[0]
        .points
        .iter()
        .map(|point| point.label.as_str())
        .collect();
    assert_eq!(
        labels,
        ["20261120T080000Z-sample", "20261121T080000Z-sample"]
    );
    assert!(
        series[0].words.starts_with("no step"),
        "{}",
        series[0].to_text()
    );

    let mut record = common::servers::series(6);
    let series = history(
        &record,
        &Stored::default(),
        &HistoryOptions {
            step: Some("qr100".to_owned()),
            metric: None,
        },
    )
    .unwrap();
    assert_eq!(series.len(), 1, "{series:?}");
    let labels: Vec<&str> = series[0]
        .points
        .iter()
        .map(|point| point.label.as_str())
        .collect();
    assert_eq!(
        labels,
        ["5.7.22", "8.0.4", "8.0.33"],
        "8.0.4 comes before 8.0.33"
    );
    assert!(
        series[0]
            .words
            .starts_with("one step between 5.7.22 and 8.0.4 (-2"),
        "{}",
        series[0].to_text()
    );
    assert!(
        series[0].noise.contains("6 blocks") && series[0].to_json()["points"][2]["starts"] == 6
    );
    record.trials.clear();
    assert_eq!(
        history(&record, &Stored::default(), &HistoryOptions::default()).unwrap(),
        []
    );
}

/// What a run ends with had no mark at builds of other compilers, and said nothing of them.
#[test]
fn verdicts_mark_builds_that_are_not_strictly_comparable() {
    let campaign = slices(5, 60, &|_, _, _| {});
    let mut record = campaign.load();
    for cell in &mut record.header.cells {
        let level = if cell.label == SLOW { "-O1" } else { "-O2" };
        let build = serde_json::json!({
            "name": cell.label,
            "server_sha256": level,
            "toolchain": {"packager": "p", "compiler": "gcc 12.2.0", "optimisation": level},
        });
        cell.build = serde_json::from_value(build).unwrap();
    }
    let text = plimsoll_analysis::brief_lines(&view(&record));
    let head = text
        .lines()
        .find(|line| line.contains("(A/A, 99 %)"))
        .unwrap();
    assert!(head.contains(&format!("{SLOW} †")), "{text}");
    assert_eq!(text.matches('†').count(), 3, "{text}");
    let why = "\n† not strictly comparable (gcc 12 -O2 vs gcc 12 -O1)\n";
    assert!(text.contains(why), "{text}");
}

/// Adds a second attempt at a start: a copy of the first, changed.
fn try_again(record: &mut CampaignRecord, block: u32, change: impl Fn(&mut TrialRecord)) {
    let schedule = record.header.schedule.iter();
    let of_block = schedule.filter(|of| of.block == block).map(|of| of.number);
    let numbers: Vec<u32> = of_block.collect();
    let trials = record.trials.iter();
    let of_start = trials.filter(|trial| numbers.contains(&trial.number));
    let second: Vec<TrialRecord> = of_start
        .map(|trial| {
            let mut again = trial.clone();
            again.attempt = 2;
            change(&mut again);
            again
        })
        .collect();
    record.trials.extend(second);
    let order = |trial: &TrialRecord| (trial.number, trial.attempt);
    record.trials.sort_by_key(order);
}

/// The base broke in the first attempt, and the cell in the second: both were complete once, and
/// counted as a pair.
#[test]
fn trials_that_were_not_up_together_are_no_pair() {
    let campaign = slices(5, 60, &|_, _, _| {});
    let mut record = campaign.load();
    try_again(&mut record, 5, |_| {});
    let cells = &record.header.plan.cells;
    let label_of = |number| {
        let mut schedule = record.header.schedule.iter();
        let of = schedule.find(|of| of.number == number && of.block == 5)?;
        Some(cells[of.cell].label.as_str())
    };
    for trial in &mut record.trials {
        let broken_in = match label_of(trial.number) {
            Some(BASE) => 1,
            Some(SLOW) => 2,
            _ => continue,
        };
        let is_later = |event: &Event| {
            matches!(
                event,
                Event::StepStart(_) | Event::StepDone(_) | Event::TrialDone(_)
            )
        };
        if trial.attempt == broken_in {
            trial.events.retain(|stamped| !is_later(&stamped.event));
        }
    }
    let view = view(&record);
    let slow = finding(&view, SLOW, "qp100", "qps");
    let starts: Vec<u32> = slow.by_start.iter().map(|of| of.start).collect();
    assert_eq!(starts, [1, 2, 3, 4], "in start 5 never both were up");
}

/// Start 2 broke in its last step. What it had measured before was gone when it ran again without
/// that step, and a crash in it was forgotten.
#[test]
fn a_start_that_runs_again_loses_no_step_that_was_measured() {
    let campaign = slices(5, 60, &|_, _, _| {});
    let mut record = campaign.load();
    record.header.confirm.as_mut().unwrap().budget = Some(Budget::DEFAULT);
    try_again(&mut record, 2, |again| {
        again.events.retain(|stamped| match &stamped.event {
            Event::StepStart(start) => start.step != "qr100",
            Event::StepDone(done) => done.step != "qr100",
            _ => true,
        });
        let events = again.events.iter_mut();
        for event in events.map(|stamped| &mut stamped.event) {
            if let Event::TrialStart(start) = event {
                start.steps = vec!["qp100".to_owned()];
            }
        }
    });
    let view = view(&record);
    for step in ["qp100", "qr100"] {
        let starts = finding(&view, SLOW, step, "qps").by_start.len();
        assert_eq!(starts, 5, "{step}");
    }
}

/// The list that a trial is to run is another than what it did.
#[test]
fn a_step_that_was_done_is_not_dropped_for_a_list() {
    let campaign = slices(5, 60, &|_, _, _| {});
    let mut record = campaign.load();
    let events = record.trials.iter_mut().flat_map(|trial| &mut trial.events);
    for event in events.map(|stamped| &mut stamped.event) {
        if let Event::TrialStart(start) = event {
            start.steps = vec!["qp100".to_owned()];
        }
    }
    let view = view(&record);
    assert_eq!(finding(&view, SLOW, "qr100", "qps").by_start.len(), 5);
}
