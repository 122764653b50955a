//! Releases and campaigns as a series.

use plimsoll_core::engines::EngineName;
use plimsoll_core::name::{BuildName, natural_cmp};
use plimsoll_core::schedule::Unit;
use plimsoll_stats::{
    Spread, Trend, describe, median, page_trend, penalty_from_blocks, penalty_from_spread, segment,
};
use plimsoll_store::CampaignRecord;
use plimsoll_store::header::CampaignHeader;

use crate::AnalysisError;
use crate::metrics::{self, Direction, rate_of};
use crate::runs::attempts::runs_of_cell;
use crate::runs::cell_runs::step_names;
use crate::runs::status::Status;
use crate::stored::Stored;
use crate::verdicts::{Basis, Spreads, basis, machine};

/// The chance that a series of noise is cut.
const ALPHA: f64 = 0.05;

/// One place of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The release, or the campaign's id.
    pub label: String,
    /// The median over blocks or starts, in the metric's unit.
    pub value: f64,
    /// Blocks or starts behind it.
    pub starts: usize,
    /// Whether the machine was disturbed in all of them.
    pub is_suspect: bool,
}

/// A step's metric over releases or campaigns.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// `releases` or `campaigns`.
    pub over: &'static str,
    /// How its values were measured; those of one kind are never set beside those of another.
    pub kind: &'static str,
    /// What is alike: engine, config and shape, or the cell.
    pub of: String,
    pub step: String,
    pub metric: String,
    /// In order: by version, or by time.
    pub points: Vec<Point>,
    /// What the segmentation says.
    pub words: String,
    /// Page's trend over blocks, where there are at least two of all releases.
    pub trend: Option<Trend>,
    /// What noise was taken to be: the blocks' own, or a spread between starts.
    pub noise: String,
}

impl Series {
    /// Each point by the first one.
    pub fn ratios(&self) -> impl Iterator<Item = f64> {
        let first = self.points.first().map_or(f64::NAN, |point| point.value);
        self.points.iter().map(move |point| point.value / first)
    }
}

/// What to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryOptions {
    /// A metric of the catalogue [default: the step's throughput].
    pub metric: Option<String>,
    /// A step [default: all].
    pub step: Option<String>,
}

/// The releases of a campaign, and every stored campaign of its machine that ran a cell of it by
/// the same plan in the same way, oldest first.
pub fn history(
    campaign: &CampaignRecord,
    stored: &Stored<'_>,
    options: &HistoryOptions,
) -> Result<Vec<Series>, AnalysisError> {
    let steps = step_names(&campaign.header.plan.cells);
    if let Some(step) = &options.step
        && !steps.contains(step)
    {
        return Err(AnalysisError::unknown_step(
            step,
            steps.iter().map(String::as_str),
        ));
    }
    if let Some(metric) = &options.metric
        && !metrics::native().any(|known| known.name == metric)
    {
        return Err(AnalysisError::unknown_metric(metric));
    }
    let spreads = Spreads::of_machine(campaign, stored);
    let mut all = Vec::new();
    for step in steps
        .iter()
        .filter(|step| options.step.as_ref().is_none_or(|wanted| wanted == *step))
    {
        let metric = options
            .metric
            .clone()
            .unwrap_or_else(|| throughput(campaign, step));
        all.extend(releases(campaign, step, &metric, &spreads));
        all.extend(campaigns(campaign, stored, step, &metric, &spreads));
    }
    Ok(all)
}

/// How a campaign measures.
fn kind(campaign: &CampaignHeader) -> &'static str {
    let confirm = campaign.confirm.as_ref();
    let is_probe = confirm.is_some_and(|confirm| confirm.bisection.is_some());
    match (confirm.is_some(), is_probe, basis(campaign)) {
        (false, _, Basis::Screen) => "surveys",
        (false, ..) => "blocks of a plan",
        (true, false, Basis::Slices) => "confirms by slices",
        (true, false, _) => "confirms by blocks",
        (true, true, Basis::Slices) => "probes of a bisection by slices",
        (true, true, _) => "probes of a bisection by blocks",
    }
}

fn throughput(campaign: &CampaignRecord, step: &str) -> String {
    let of_step = campaign
        .header
        .plan
        .cells
        .iter()
        .flat_map(|cell| cell.workload.steps())
        .find(|of| of.name == step);
    of_step.map_or(metrics::QPS, rate_of).name.to_owned()
}

/// A cell's values of a metric.
struct Values {
    /// By start, or by block and part.
    by_block: Vec<(Unit, f64)>,
    /// Whether a witness saw the machine disturbed in all of them.
    is_suspect: bool,
}

/// The finished runs of a cell that met their SLA, without the suspect ones where there are others.
fn values(campaign: &CampaignRecord, cell: usize, step: &str, metric: &str) -> Values {
    let runs = runs_of_cell(campaign, cell);
    let of = |status: Status| -> Vec<(Unit, f64)> {
        let used = runs
            .iter()
            .filter(|run| run.is_used && run.step.name == step && run.status == status);
        used.filter_map(|run| Some((run.unit, run.number(metric)?)))
            .filter(|(_, value)| *value > 0.0)
            .collect()
    };
    let trusted = of(Status::Ok);
    let is_suspect = trusted.is_empty();
    Values {
        by_block: if is_suspect {
            of(Status::Suspect)
        } else {
            trusted
        },
        is_suspect,
    }
}

/// What releases of one series have in common: engine, source, config and shape.
type Line = (EngineName, Option<String>, String, String);

fn releases(campaign: &CampaignRecord, step: &str, metric: &str, spreads: &Spreads) -> Vec<Series> {
    let plan = &campaign.header.plan;
    let mut groups: Vec<(Line, Vec<usize>)> = Vec::new();
    for (i, cell) in plan
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| !campaign.header.is_control(&cell.label))
    {
        let key = (
            cell.build.engine,
            cell.build.source.clone(),
            cell.config.label.clone(),
            cell.shape.clone(),
        );
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cells)) => cells.push(i),
            None => groups.push((key, vec![i])),
        }
    }
    let mut found = Vec::new();
    for ((engine, source, config, shape), mut cells) in groups {
        let version = |cell: usize| {
            version_of(
                &plan.cells[cell].build,
                &campaign.header.cells[cell].version,
            )
        };
        cells.sort_by(|a, b| natural_cmp(&version(*a), &version(*b)));
        cells.dedup_by_key(|cell| version(*cell));
        let of_cells = cells
            .iter()
            .map(|cell| (*cell, values(campaign, *cell, step, metric)));
        let by_block: Vec<(usize, Values)> = of_cells
            .filter(|(_, values)| !values.by_block.is_empty())
            .collect();
        if by_block.len() < 2 {
            continue;
        }
        let points: Vec<Point> = by_block
            .iter()
            .map(|(cell, values)| point(version(*cell), values))
            .collect();
        let blocks = complete_blocks(
            &by_block
                .iter()
                .map(|(_, values)| values.by_block.as_slice())
                .collect::<Vec<_>>(),
        );
        let of = format!(
            "{engine}{} {config} {shape}",
            source.map_or(String::new(), |source| format!("+{source}"))
        );
        let of = Of {
            over: "releases",
            kind: kind(&campaign.header),
            of,
            step,
            metric,
        };
        found.push(series(
            of,
            points,
            &blocks,
            spreads.of(engine, step, metric),
        ));
    }
    found
}

fn version_of(build: &BuildName, stated: &str) -> String {
    build.version.clone().unwrap_or_else(|| stated.to_owned())
}

/// ln(value) of each release in the blocks that have all of them.
fn complete_blocks(releases: &[&[(Unit, f64)]]) -> Vec<Vec<f64>> {
    let Some(first) = releases.first() else {
        return Vec::new();
    };
    let in_block = |values: &[(Unit, f64)], block: Unit| {
        values
            .iter()
            .find(|(at, _)| *at == block)
            .map(|(_, value)| value.ln())
    };
    first
        .iter()
        .filter_map(|(block, _)| {
            releases
                .iter()
                .map(|values| in_block(values, *block))
                .collect()
        })
        .collect()
}

fn point(label: String, of: &Values) -> Point {
    let values: Vec<f64> = of.by_block.iter().map(|(_, value)| *value).collect();
    Point {
        label,
        value: median(&values).unwrap_or(f64::NAN),
        starts: values.len(),
        is_suspect: of.is_suspect,
    }
}

/// Every stored campaign of the machine that ran a cell of this one by the same plan and in the
/// same way.
fn campaigns(
    campaign: &CampaignRecord,
    stored: &Stored<'_>,
    step: &str,
    metric: &str,
    spreads: &Spreads,
) -> Vec<Series> {
    let here = machine(campaign);
    let is_alike = |other: &CampaignHeader| {
        other.plan_text == campaign.header.plan_text && kind(other) == kind(&campaign.header)
    };
    let is_of_here = |other: &&CampaignRecord| {
        other.imported.is_none() && here.is_some() && machine(other) == here
    };
    let mut alike: Vec<&CampaignRecord> = stored.load(is_alike).filter(is_of_here).collect();
    alike.sort_by(|a, b| (&a.header.created, &a.header.id).cmp(&(&b.header.created, &b.header.id)));
    let mut found = Vec::new();
    for cell in campaign
        .header
        .plan
        .cells
        .iter()
        .filter(|cell| !campaign.header.is_control(&cell.label))
    {
        let points: Vec<Point> = alike
            .iter()
            .filter_map(|other| {
                let index = other
                    .header
                    .plan
                    .cells
                    .iter()
                    .position(|of| of.label == cell.label)?;
                let values = values(other, index, step, metric);
                (!values.by_block.is_empty()).then(|| point(other.header.id.clone(), &values))
            })
            .collect();
        if points.len() > 1 {
            let of = Of {
                over: "campaigns",
                kind: kind(&campaign.header),
                of: cell.label.clone(),
                step,
                metric,
            };
            found.push(series(
                of,
                points,
                &[],
                spreads.of(cell.build.engine, step, metric),
            ));
        }
    }
    found
}

/// What a series is of.
struct Of<'a> {
    over: &'static str,
    kind: &'static str,
    of: String,
    step: &'a str,
    metric: &'a str,
}

fn series(
    Of {
        over,
        kind,
        of,
        step,
        metric,
    }: Of<'_>,
    points: Vec<Point>,
    blocks: &[Vec<f64>],
    spread: Spread,
) -> Series {
    let logs: Vec<f64> = points.iter().map(|point| point.value.ln()).collect();
    let labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
    let (penalty, noise) = match penalty_from_blocks(blocks, ALPHA, 1) {
        Some(penalty) => (penalty, format!("that of {} blocks", blocks.len())),
        None => {
            let starts = points.iter().map(|point| point.starts).min().unwrap_or(1) as f64;
            let source = if spread.is_prior() {
                "assumed".to_owned()
            } else {
                format!("from {} starts", spread.starts)
            };
            let sd = spread.sd / starts.sqrt();
            (
                penalty_from_spread(logs.len(), sd, ALPHA, 1),
                format!("{:.1} % between starts, {source}", 100.0 * spread.sd),
            )
        }
    };
    let doubt = match points.iter().filter(|point| point.is_suspect).count() {
        0 => String::new(),
        all if all == points.len() => {
            ", of runs that were disturbed: no more than a hint".to_owned()
        }
        some => format!(
            ", {some} of {} values of runs that were disturbed: no more than a hint",
            points.len()
        ),
    };
    Series {
        over,
        kind,
        of,
        step: step.to_owned(),
        metric: metric.to_owned(),
        words: describe(&segment(&logs, penalty), &labels, rise_and_fall(metric)) + &doubt,
        trend: page_trend(blocks),
        noise,
        points,
    }
}

/// What a rise and a fall of a metric is called.
fn rise_and_fall(metric: &str) -> (&'static str, &'static str) {
    let known = metrics::native().find(|known| known.name == metric);
    known
        .map_or(Direction::Neutral, |known| known.direction)
        .rise_and_fall()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of metrics that gain stood in a list here, which missed some.
    #[test]
    fn a_rising_share_of_the_rate_was_called_a_loss() {
        for metric in [
            "qps",
            "ips",
            "tps",
            "krps",
            "rate_share",
            "sustained_rate",
            "mb_sec",
        ] {
            assert_eq!(rise_and_fall(metric), ("gain", "loss"), "{metric}");
        }
        for metric in ["p99_service_us", "server_cpu_us_per_op"] {
            assert_eq!(rise_and_fall(metric), ("loss", "gain"), "{metric}");
        }
        assert_eq!(rise_and_fall("rps"), ("rise", "fall"));
    }
}
