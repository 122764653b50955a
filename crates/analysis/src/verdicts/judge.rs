//! From runs to findings.

use plimsoll_core::planted::{self, Bug};
use plimsoll_stats::{Looks, Screen, Verdict, mean, two_modes};
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{CampaignRecord, CampaignState};

use super::conditions::{by_placement, conditions};
use super::estimates::{Class, InStep, Layout, Levels, Priors, Scales, Spreads, control, estimate};
use super::family::decide;
use super::finding::{
    ALPHA, Basis, Call, Control, Estimate, Finding, Findings, MARGIN, Modes, OfStart,
};
use super::forms::{OfForms, mark_dependent};
use super::hosts::{ByHost, by_host, in_words};
use super::measured::{Judged, Role, judged};
use super::pairs::{Meetings, Pairs, StartPairs, basis, last_disturbance};
use super::stopping::STARTS_TO_LEAVE;
use super::storage::in_flight;
use super::validity::obstacle;
use super::why::why;
use crate::cells::cell_info::CellInfo;
use crate::runs::cell_runs::CellRuns;
use crate::steps::step_view::StepView;

/// The level of intervals and of a screen's prediction.
const LEVEL: f64 = 0.95;
/// Dots that a plot can show.
const DOTS: usize = 100;
/// More turns without an operation than this, and turns are too short for the step.
pub(crate) const MOST_EMPTY_TURNS: f64 = 0.1;

/// What findings are made from.
pub(crate) struct Experiment<'a> {
    /// The cells shown, each with its base.
    pub infos: &'a [CellInfo],
    pub cells: &'a [CellRuns<'a>],
    /// The base of the experiment and its second instance, where the campaign has one.
    pub control: Option<&'a (CellRuns<'a>, CellRuns<'a>)>,
    pub steps: &'a [StepView],
    /// How far starts of this machine lie apart.
    pub spreads: &'a Spreads,
}

/// Everything that can be said of the cells against their bases.
pub(crate) fn find(experiment: &Experiment<'_>) -> Findings {
    let [first, _, ..] = experiment.cells else {
        return Findings::none();
    };
    let judge = Judge::of(experiment, first.campaign);
    let of_control = judge.of_control();
    let questions = judge.questions();
    let asked: Vec<Asked<'_, '_>> = questions.iter().flat_map(Question::asked).collect();
    // What comparisons of a class know of each other, and by how much the control contradicts it.
    let priors = Priors::new(
        judge.basis,
        asked.iter().map(Asked::in_step),
        of_control
            .iter()
            .map(|of| (of.class(), of.step.name.as_str(), &of.pairs)),
    );
    let control = judge.control(&of_control, &priors);
    let scales = judge.scales(&control);
    let mut all: Vec<Finding> = asked
        .iter()
        .filter_map(|asked| judge.finding(asked, &priors, &scales, &control))
        .collect();
    // What depends on turns has no verdict, and lends its certainty to no family.
    mark_dependent(&mut all, &forms(&questions));
    decide(&mut all, &judge.looks, judge.margin, judge.alpha);
    // Companions of a verdict, which decide nothing.
    judge.note_layout(&mut all, &asked, &of_control);
    judge.note_hosts(&mut all);
    judge.note_storage(&mut all);
    judge.note_causes(&mut all);
    Findings {
        all,
        control,
        margin: judge.margin,
        alpha: judge.alpha,
        control_cells: (0..experiment.cells.len())
            .filter(|cell| experiment.cells[*cell].is_control())
            .collect(),
        conditions: conditions(first.campaign),
        taken: judge.taken(),
    }
}

/// Who makes the findings of one experiment.
struct Judge<'a> {
    experiment: &'a Experiment<'a>,
    campaign: &'a CampaignRecord,
    basis: Basis,
    looks: Looks,
    /// What is equivalent differs by no more, as a share.
    margin: f64,
    alpha: f64,
    steps: Vec<&'a StepView>,
}

/// One cell and step.
struct Question<'a> {
    base: &'a CellRuns<'a>,
    cell: &'a CellRuns<'a>,
    /// The places of the two among the experiment's cells.
    base_index: usize,
    cell_index: usize,
    step: &'a StepView,
    is_writing: bool,
    judged: Vec<Judged>,
    meetings: Meetings<'a, 'a>,
}

/// One metric of a question.
struct Asked<'q, 'a> {
    question: &'q Question<'a>,
    judged: Judged,
    pairs: Pairs,
}

/// One metric of the base against its second instance.
struct OfControl<'a> {
    step: &'a StepView,
    is_writing: bool,
    judged: Judged,
    pairs: Pairs,
}

impl<'a> Question<'a> {
    fn asked<'q>(&'q self) -> impl Iterator<Item = Asked<'q, 'a>> {
        self.judged.iter().map(|judged| Asked {
            question: self,
            judged: *judged,
            pairs: self.meetings.pairs(judged),
        })
    }
}

impl Asked<'_, '_> {
    fn class(&self) -> Class {
        (self.question.is_writing, self.judged.metric.name)
    }

    fn in_step(&self) -> InStep<'_> {
        (self.class(), &self.question.step.name, &self.pairs)
    }
}

impl OfControl<'_> {
    fn class(&self) -> Class {
        (self.is_writing, self.judged.metric.name)
    }
}

/// What each question says of turns of other forms.
fn forms<'q>(questions: &'q [Question<'_>]) -> Vec<OfForms<'q, 'q>> {
    let of = questions.iter().map(|of| OfForms {
        cell: of.cell_index,
        step: &of.step.name,
        is_writing: of.is_writing,
        meetings: &of.meetings,
    });
    of.collect()
}

impl<'a> Judge<'a> {
    fn of(experiment: &'a Experiment<'a>, campaign: &'a CampaignRecord) -> Self {
        let header = &campaign.header;
        let confirm = header.confirm.as_ref();
        let (margin, alpha) = confirm.map_or((MARGIN, ALPHA), |of| (of.delta, of.alpha));
        let is_confirmed =
            |step: &&StepView| confirm.is_none_or(|of| of.steps.contains(&step.name));
        Self {
            experiment,
            campaign,
            basis: basis(header),
            looks: looks(header, alpha),
            margin,
            alpha,
            steps: experiment.steps.iter().filter(is_confirmed).collect(),
        }
    }

    fn is_writing(&self, step: &str) -> bool {
        self.experiment.cells[0].is_writing(step)
    }

    /// The mean share of the machine that others took in the steps that are judged: what was loaded
    /// before is in no ratio.
    fn taken(&self) -> Option<f64> {
        let is_judged = |name: &str| self.steps.iter().any(|step| step.name == name);
        let runs = self.experiment.cells.iter().flat_map(|cell| &cell.runs);
        let counted =
            runs.filter(|run| run.is_used && run.done.is_some() && is_judged(&run.step.name));
        let shares: Vec<f64> = counted.map(|run| run.taken).collect();
        (!shares.is_empty()).then(|| mean(&shares))
    }

    /// The base against its second instance, metric by metric.
    fn of_control(&self) -> Vec<OfControl<'a>> {
        let Some((of, again)) = self.experiment.control else {
            return Vec::new();
        };
        let of_step = |step: &&'a StepView| {
            let step = *step;
            let meetings = Meetings::of(self.basis, &[of], again, &step.name);
            let judged = judged(self.basis, step, &self.experiment.infos[0]);
            let of_control = |judged: Judged| OfControl {
                step,
                is_writing: self.is_writing(&step.name),
                judged,
                pairs: meetings.pairs(&judged),
            };
            judged.into_iter().map(of_control).collect::<Vec<_>>()
        };
        self.steps.iter().flat_map(of_step).collect()
    }

    /// Its findings.
    fn control(&self, of_control: &[OfControl<'_>], priors: &Priors) -> Vec<Control> {
        let Some((of, again)) = self.experiment.control else {
            return Vec::new();
        };
        let control = |one: &OfControl<'_>| {
            let prior = priors.of_control(one.class(), &one.step.name);
            control(
                self.basis,
                (of, again),
                one.step,
                &one.judged,
                &one.pairs,
                prior,
            )
        };
        let is_told = |one: &Control| one.role != Role::Companion || one.estimate.is_some();
        of_control.iter().map(control).filter(is_told).collect()
    }

    fn scales(&self, control: &[Control]) -> Scales {
        Scales::new(control.iter().map(|one| {
            let class = (self.is_writing(&one.step), one.metric.name);
            (class, one)
        }))
    }

    /// Every cell of the campaign with a base of its own, in every step.
    fn questions(&self) -> Vec<Question<'a>> {
        let experiment = self.experiment;
        let mut questions = Vec::new();
        for (index, cell) in experiment.cells.iter().enumerate() {
            let base_index = experiment.infos[index].base;
            let is_candidate = base_index != index
                && cell.campaign.header.id == self.campaign.header.id
                && !cell.is_control();
            if !is_candidate {
                continue;
            }
            let base = &experiment.cells[base_index];
            // By slices a cell is compared with both instances of the base.
            let again = experiment
                .control
                .filter(|(of, _)| self.basis == Basis::Slices && of.cell.label == base.cell.label);
            let bases: Vec<&CellRuns<'_>> = [base]
                .into_iter()
                .chain(again.map(|(_, again)| again))
                .collect();
            questions.extend(self.steps.iter().map(|step| Question {
                base,
                cell,
                base_index,
                cell_index: index,
                step,
                is_writing: self.is_writing(&step.name),
                judged: judged(self.basis, step, &experiment.infos[base_index]),
                meetings: Meetings::of(self.basis, &bases, cell, &step.name),
            }));
        }
        questions
    }

    /// The finding before the family is corrected for; `None` where neither side has a number and
    /// nothing went wrong.
    fn finding(
        &self,
        asked: &Asked<'_, '_>,
        priors: &Priors,
        scales: &Scales,
        controls: &[Control],
    ) -> Option<Finding> {
        let Asked {
            question,
            judged,
            pairs,
        } = asked;
        let prior = priors.of_cell(asked.in_step());
        let scale = scales.of(&question.step.name, judged.metric.name);
        let levels = Levels {
            shown: LEVEL,
            look: self.look_level(pairs),
        };
        let estimate = estimate(self.basis, pairs, prior, levels)
            .map(|estimate| estimate.with_errors_times(scale));
        let ByHost { hosts, widening } = by_host(&pairs.of_hosts, self.margin);
        let estimate = estimate.map(|estimate| estimate.widened_by(widening));
        let confirm = self.campaign.header.confirm.as_ref();
        let of_start = |start: &StartPairs| {
            let number = confirm.map_or(1, |confirm| confirm.placement_number(start.start));
            of_start(start, number)
        };
        let by_start: Vec<OfStart> = pairs.starts.iter().map(of_start).collect();
        let placements = confirm.map_or(String::new(), |confirm| by_placement(confirm, &by_start));
        let mut finding = Finding {
            cell: question.cell_index,
            base: question.base_index,
            step: question.step.name.clone(),
            metric: judged.metric,
            role: judged.role,
            basis: self.basis,
            estimate,
            look_level: levels.look,
            p_adjusted: None,
            call: Call::Invalid,
            needed: None,
            reason: String::new(),
            left_out: pairs.left_out,
            too_little_of: None,
            seconds: pairs.seconds,
            dots: dots(pairs),
            by_start,
            by_host: hosts,
            hosts: String::new(),
            layout: None,
            placements,
            modes: modes(pairs),
            forms: Vec::new(),
            turns: String::new(),
            why: String::new(),
        };
        if judged.role == Role::Companion {
            let has_interval = estimate.is_some_and(|estimate| estimate.interval.is_some());
            finding.call = Call::Verdict(Verdict::Inconclusive);
            let is_sound = obstacle(question.base, question.cell, &finding.step).is_none();
            return (has_interval && is_sound).then_some(finding);
        }
        let is_throughput = judged.role == Role::Throughput;
        if let Some(reason) = obstacle(question.base, question.cell, &finding.step) {
            // It is reported once, for the step's throughput.
            return is_throughput.then_some(Finding { reason, ..finding });
        }
        if pairs.done == 0 {
            return None;
        }
        if let Some(reason) = self.too_little(asked, controls) {
            finding.reason = reason;
            finding.too_little_of = Some(pairs.done);
            // A step that has no number in any start is reported, too, when there should be one.
            let has_number = estimate.is_some() || pairs.left_out > 0;
            let has_number = has_number || is_throughput && pairs.done >= STARTS_TO_LEAVE;
            return has_number.then_some(finding);
        }
        let estimate = estimate?;
        if is_throughput && self.basis == Basis::Slices {
            finding.turns = turns_in_words(&estimate, &question.meetings);
        }
        finding.call = match self.basis {
            Basis::Screen => self.screen(question, judged, &estimate),
            _ => Call::Verdict(Verdict::Inconclusive),
        };
        Some(finding)
    }

    /// How much of each interval's width lies between links of a build.
    fn note_layout(
        &self,
        all: &mut [Finding],
        asked: &[Asked<'_, '_>],
        of_control: &[OfControl<'_>],
    ) {
        let of_cells = asked
            .iter()
            .map(|asked| ((asked.question.cell_index, asked.class()), &asked.pairs));
        let of_base = of_control.iter().map(|of| (of.class(), &of.pairs));
        let layout = Layout::of(of_cells, of_base);
        for finding in all {
            let class = (self.is_writing(&finding.step), finding.metric.name);
            let interval = finding.estimate.and_then(|of| of.log_interval());
            let both = interval.zip(layout.share_of_width(finding.cell, class));
            finding.layout = both.map(|(interval, share)| share * interval.half_width());
        }
    }

    /// What each host says.
    fn note_hosts(&self, all: &mut [Finding]) {
        for finding in all {
            let direction = finding.metric.direction;
            finding.hosts = in_words(&finding.by_host, &finding.call, direction, self.margin);
        }
    }

    /// What the numbers per operation say of a difference.
    fn note_causes(&self, all: &mut [Finding]) {
        let cells = self.experiment.cells;
        let is_explained = |finding: &&mut Finding| finding.role != Role::Companion;
        for finding in all.iter_mut().filter(is_explained) {
            let (base, cell) = (&cells[finding.base], &cells[finding.cell]);
            finding.why = why(base, cell, &finding.step, finding.gain());
        }
    }

    /// By slices, which candidates storage works for in the turns of others.
    fn note_storage(&self, all: &mut [Finding]) {
        if self.basis != Basis::Slices {
            return;
        }
        let cells = self.experiment.cells;
        let again = self.experiment.control.map(|(_, again)| again);
        let is_listed = cells.iter().any(CellRuns::is_control);
        let candidates: Vec<&CellRuns<'_>> =
            cells.iter().chain(again.filter(|_| !is_listed)).collect();
        for step in &self.steps {
            let in_flight = in_flight(&candidates, &step.name);
            let of_step = |finding: &&mut Finding| {
                finding.step == step.name && finding.role == Role::Throughput
            };
            for finding in all.iter_mut().filter(of_step) {
                let whose = [("", finding.cell), ("the base: ", finding.base)];
                let words = whose
                    .into_iter()
                    .filter_map(|(who, cell)| Some(format!("{who}{}", in_flight[cell].words()?)));
                let all: Vec<String> = Some(finding.turns.clone())
                    .filter(|turns| !turns.is_empty())
                    .into_iter()
                    .chain(words)
                    .collect();
                finding.turns = all.join("; ");
            }
        }
    }

    /// What one run says, set against how far starts of this machine lie apart, and against what
    /// others took of it meanwhile.
    fn screen(&self, question: &Question<'_>, judged: &Judged, estimate: &Estimate) -> Call {
        let (engine, step) = (question.base.cell.build.engine, &question.step.name);
        let spread = self.experiment.spreads.of(engine, step, judged.metric.name);
        let taken = question.meetings.taken();
        Call::Screen(
            Screen::of(estimate.ratio.ln(), spread, LEVEL).disturbed_by(taken),
            spread,
        )
    }

    /// Why pairs that are there say nothing.
    fn too_little(&self, asked: &Asked<'_, '_>, controls: &[Control]) -> Option<String> {
        let (question, pairs) = (asked.question, &asked.pairs);
        if pairs.left_out == pairs.done {
            let what = match self.basis {
                Basis::Screen => "the run was left out",
                Basis::Blocks => "all blocks were left out; of the last",
                Basis::Slices => "all starts were left out; of the last",
            };
            let seen = last_disturbance(question.base, question.cell, &question.step.name);
            return Some(format!(
                "{what}: {}",
                seen.as_deref().unwrap_or("disturbed from outside")
            ));
        }
        let empty = question.meetings.empty_turns();
        if empty > MOST_EMPTY_TURNS {
            let share = 100.0 * empty;
            return Some(format!(
                "{share:.0} % of the turns ended without an operation: they are too short for this \
                step; use longer turns or blocks"
            ));
        }
        let has_control = controls.iter().any(|control| {
            let is_of_this =
                control.step == question.step.name && control.metric == asked.judged.metric;
            is_of_this && control.estimate.is_some()
        });
        let must_have_control = !planted::is(Bug::ControlNotNeeded);
        let is_alone = self.basis == Basis::Slices && !has_control && must_have_control;
        is_alone.then(|| {
            "there is no A/A control: the base's second instance has no start that counts"
                .to_owned()
        })
    }

    /// The level at which something may be called now: what its last look has when the campaign is
    /// complete as planned, else that of the look it has reached. By slices every start is a look.
    fn look_level(&self, pairs: &Pairs) -> f64 {
        // A budget ends by time and by width, which say nothing of a difference.
        let is_over = match self.campaign.state {
            CampaignState::Complete => true,
            CampaignState::Decided => self.campaign.header.budget().is_some(),
            _ => false,
        };
        let look = if is_over {
            self.looks.all().last().copied()
        } else {
            self.looks.reached(pairs.done)
        };
        look.map_or(0.0, |look| look.level)
    }
}

/// With a budget the level is spent by this start: most steps that can be decided are by then, and
/// what comes later narrows intervals.
const SPENT_BY: u32 = 16;

/// The looks of a campaign: by slices every start is one.
fn looks(header: &CampaignHeader, alpha: f64) -> Looks {
    let starts = header.confirm.as_ref().and_then(|confirm| confirm.starts);
    let spent_by = header.budget().map_or(u32::MAX, |_| SPENT_BY);
    match (basis(header), starts) {
        (Basis::Slices, Some(starts)) => Looks::every_start(starts.min(spent_by) as usize, alpha),
        _ => Looks::new(header.plan.blocks.max(1) as usize, alpha),
    }
}

fn of_start(start: &StartPairs, placement: u32) -> OfStart {
    OfStart {
        start: start.start,
        load: start.load,
        link: start.link,
        placement,
        ratio: start.whole.exp(),
        within: start.ratio().within,
        typical: start.typical().map(f64::exp),
        rounds: start.rounds.len(),
        disturbed: start.disturbed,
    }
}

fn modes(pairs: &Pairs) -> Option<Modes> {
    let starts = pairs.start_ratios();
    let ratios: Vec<f64> = starts.iter().map(|start| start.ratio).collect();
    let within: Vec<f64> = starts
        .iter()
        .filter_map(|start| Some(start.within?.variance.sqrt()))
        .collect();
    let modes = two_modes(&ratios, mean(&within))?;
    let (low, high) = modes.means();
    Some(Modes {
        ratios: (low.exp(), high.exp()),
        starts: (modes.low.len(), modes.high.len()),
    })
}

/// One side stalls more than the other if so many times as many of its turns hold a stall.
const STALLS_APART: f64 = 1.5;
/// A typical turn is told from a whole start if they differ by more than this, as a share.
const LEAST_STALLED: f64 = 0.01;

/// `-1.0 % in a typical turn; 4 % of its turns hold stalls of 60 to 140 ms`; empty where typical
/// turns say the same as whole starts.
fn turns_in_words(estimate: &Estimate, meetings: &Meetings<'_, '_>) -> String {
    let Some(typical) = estimate.typical else {
        return String::new();
    };
    if (estimate.ratio / typical).ln().abs() < LEAST_STALLED {
        return String::new();
    }
    let (base, cell) = meetings.stalls();
    let mut words = vec![format!(
        "{:+.1} % in a typical turn",
        100.0 * (typical - 1.0)
    )];
    // Stalls that both sides have alike are the machine's, or of every build.
    match (cell.share(), base.share()) {
        (cell_share, base_share) if cell_share >= STALLS_APART * base_share => {
            words.extend(cell.words("its"));
            words.extend(base.words("the base's"));
        }
        (cell_share, base_share) if base_share >= STALLS_APART * cell_share => {
            words.extend(base.words("the base's"));
            words.extend(cell.words("its"));
        }
        _ => {}
    }
    words.join("; ")
}

/// What each start says, which shows starts that fall into groups; of one start its rounds, and
/// otherwise blocks. Up to a hundred, evenly taken.
fn dots(pairs: &Pairs) -> Vec<f64> {
    let all = match pairs.starts.len() {
        0 | 1 => pairs.all(),
        _ => pairs.starts.iter().map(|start| start.whole).collect(),
    };
    let every = all.len().div_ceil(DOTS).max(1);
    all.iter().step_by(every).map(|ratio| ratio.exp()).collect()
}
