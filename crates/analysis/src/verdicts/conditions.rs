//! Under what conditions a campaign's ratios hold.

use std::collections::BTreeSet;

use plimsoll_core::plan::Step;
use plimsoll_stats::{as_percent, mean};
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{CampaignRecord, Confirm, Design, Placement, TrialRecord};

use super::finding::OfStart;
use crate::runs::attempts::server_ready;

/// `by slices: 1 client; clients on CPU 0, servers on CPU 1; 5 candidates take turns of at least 5
/// ms, of 50 ms in steps that write; autovacuum is held meanwhile; 4 links of each build that has
/// several`; empty for a survey.
pub(super) fn conditions(campaign: &CampaignRecord) -> String {
    let header = &campaign.header;
    let Some(confirm) = &header.confirm else {
        return String::new();
    };
    let design = match confirm.design {
        Design::Slices => "by slices",
        Design::Blocks => "by blocks",
    };
    let mut parts = vec![format!("{design}: {}", clients(header, confirm))];
    let placements: Vec<String> = confirm.placements().map(Placement::to_string).collect();
    parts.extend(Some(placements.join(" or ")).filter(|text| !text.is_empty()));
    if confirm.design == Design::Slices {
        parts.push(turns(header, confirm));
    }
    let ready = campaign.trials.iter().filter_map(server_ready);
    let held: Vec<Option<&str>> = ready.map(|ready| ready.held.as_deref()).collect();
    let names: BTreeSet<&str> = held.iter().copied().flatten().collect();
    parts.extend(names.into_iter().map(|name| {
        let count = held.iter().filter(|of| **of == Some(name)).count();
        match count == held.len() {
            true => format!("{name} is held meanwhile"),
            false => format!(
                "{name} is held meanwhile in {count} of {} trials",
                held.len()
            ),
        }
    }));
    let ran = campaign.trials.iter().filter_map(TrialRecord::start);
    parts.extend(links(header, &ran.filter_map(|of| of.link).collect()));
    parts.join("; ")
}

/// How many links of the builds ran, if a build was linked several times.
fn links(header: &CampaignHeader, ran: &BTreeSet<u32>) -> Option<String> {
    let builds = header.cells.iter().filter_map(|cell| cell.build.as_ref());
    let most = builds.map(|build| build.links.len()).max()?;
    let of_each = match ran.len() {
        _ if most == 0 => return None,
        0 | 1 => "1 link of each build, so that what layout moves is not in the intervals".into(),
        ran => format!("{ran} links of each build that has several"),
    };
    Some(of_each)
}

/// The confirmed steps of the base.
fn steps<'a>(header: &'a CampaignHeader, confirm: &'a Confirm) -> impl Iterator<Item = &'a Step> {
    let base = header
        .plan
        .cells
        .iter()
        .find(|cell| cell.label == confirm.base);
    let steps = base.into_iter().flat_map(|base| base.workload.steps());
    steps.filter(|step| confirm.steps.contains(&step.name))
}

fn clients(header: &CampaignHeader, confirm: &Confirm) -> String {
    let clients = || steps(header, confirm).map(|step| step.clients);
    match (clients().min(), clients().max()) {
        (Some(1), Some(1)) | (None, _) | (_, None) => "1 client".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} clients"),
        (Some(least), Some(most)) => format!("{least} to {most} clients"),
    }
}

fn turns(header: &CampaignHeader, confirm: &Confirm) -> String {
    let ms = |ns: u64| format!("{} ms", ns as f64 / 1e6);
    let (read, write) = (ms(confirm.turn_ns_read), ms(confirm.turn_ns_write));
    let writes = steps(header, confirm)
        .filter(|step| step.is_writing())
        .count();
    let lengths = match (writes, steps(header, confirm).count()) {
        (0, _) => read,
        (writes, all) if writes == all => write,
        _ if read == write => read,
        _ => format!("{read}, of {write} in steps that write"),
    };
    format!(
        "{} candidates take turns of at least {lengths}",
        header.plan.cells.len()
    )
}

/// `clients on CPU 0, servers on CPU 1: -3.1 % in 3 starts; clients on CPU 1, servers on CPU 0: -4.0
/// % in 3 starts`; empty with one placement.
pub(super) fn by_placement(confirm: &Confirm, starts: &[OfStart]) -> String {
    if confirm.more_placements.is_empty() {
        return String::new();
    }
    let of_placement = |(number, placement): (u32, &Placement)| {
        let logs: Vec<f64> = starts
            .iter()
            .filter(|start| start.placement == number)
            .map(|start| start.ratio.ln())
            .collect();
        let noun = if logs.len() == 1 { "start" } else { "starts" };
        (!logs.is_empty()).then(|| {
            let change = as_percent(mean(&logs));
            format!("{placement}: {change:+.1} % in {} {noun}", logs.len())
        })
    };
    let found: Vec<String> = (1..)
        .zip(confirm.placements())
        .filter_map(of_placement)
        .collect();
    found.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_placement_has_its_ratio() {
        let placement = |client: &str, server: &str| serde_json::json!({"client_cpus": client, "server_cpus": server});
        let mut confirm: Confirm = serde_json::from_value(serde_json::json!({
            "design": "slices", "steps": [], "base": "a", "control": "a#2", "turn_ns_read": 1,
            "turn_ns_write": 1, "time_ns": 1, "loads": 2, "delta": 0.03, "alpha": 0.05,
            "placement": placement("0", "1"), "more_placements": [placement("1", "0")],
        }))
        .unwrap();
        let numbers: Vec<u32> = (1..=6)
            .map(|start| confirm.placement_number(start))
            .collect();
        assert_eq!(numbers, [1, 1, 2, 2, 1, 1], "each with both loads");
        let start = |placement, ratio| OfStart {
            start: 1,
            link: None,
            load: 1,
            placement,
            ratio,
            within: None,
            typical: None,
            rounds: 10,
            disturbed: 0,
        };
        let starts = [start(1, 0.9), start(2, 0.8), start(2, 0.8)];
        assert_eq!(
            by_placement(&confirm, &starts),
            "clients on CPU 0, servers on CPU 1: -10.0 % in 1 start, clients on CPU 1, servers on \
            CPU 0: -20.0 % in 2 starts"
        );
        confirm.more_placements.clear();
        assert_eq!(by_placement(&confirm, &starts), "");
    }
}
