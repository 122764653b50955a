//! Markdown that can be pasted into an issue.

use std::fmt::Write as _;

use plimsoll_analysis::groups::group_lines;
use plimsoll_analysis::metrics::{Metric, P99_RESPONSE_US};
use plimsoll_analysis::post::in_words;
use plimsoll_core::toolchain::{COMPILER, OPTIMISATION, PACKAGER, UNKNOWN};

use crate::published;
use plimsoll_analysis::classic::Class;
use plimsoll_analysis::metrics::Measure;
use plimsoll_analysis::metrics::columns::{is_turned, step_columns};
use plimsoll_analysis::metrics::ratio::{BASE_IS_ZERO, divide_measures};
use plimsoll_analysis::metrics::value::at_least;
use plimsoll_analysis::verdicts::{
    Call, Finding, bases, counts, ending, facts, is_news, no_verdicts, percent, repeats, subject,
};
use plimsoll_analysis::view::{
    CampaignInfo, CellInfo, ClassicTable, Outcome, PublishedTable, Ramp, Status, StepView,
    TestTable, View,
};
use plimsoll_analysis::words::brief::brief;
use plimsoll_analysis::words::waiting;

/// The three classic tables, the metrics of every step absolute and relative to the base, and the
/// notes.
pub fn to_markdown(view: &View) -> String {
    let mut text = format!("# {}\n\n", escape(&view.title));
    for campaign in &view.campaigns {
        add_campaign(&mut text, campaign);
    }
    text.push('\n');
    add_beyond_build(&mut text, view);
    for note in &view.notes {
        line(&mut text, &format!("> {}  ", escape(note)));
    }
    add_verdicts(&mut text, view);
    add_words(&mut text, view);
    let summary = &view.summary;
    for table in &summary.tests {
        add_test_table(&mut text, view, table);
    }
    for ramp in &summary.ramps {
        add_ramp(&mut text, view, ramp);
    }
    // Of two cells one is always the best and the other the worst.
    add_classic(&mut text, &summary.absolute, view.cells.len() > 2);
    for table in [
        &summary.relative,
        &summary.index_seconds,
        &summary.insert_rate,
    ] {
        add_classic(&mut text, table, true);
    }
    for table in &view.published {
        add_published(&mut text, table);
    }
    add_legend(&mut text, view);
    for step in &view.steps {
        add_step(&mut text, view, step);
    }
    add_logs(&mut text, view);
    add_what_ran(&mut text, view);
    text
}

fn add_beyond_build(text: &mut String, view: &View) {
    if view.beyond_build.is_empty() {
        return;
    }
    let labels: Vec<&str> = view.cells.iter().map(|cell| cell.label.as_str()).collect();
    line(text, "Differs beyond the build:\n");
    for beyond in &view.beyond_build {
        line(text, &format!("- {}", escape(&beyond.line(&labels))));
    }
    line(text, "");
}

/// The campaign in a line, and below it what its plan is about.
fn add_campaign(text: &mut String, campaign: &CampaignInfo) {
    let (id, plan) = (&campaign.id, escape(&campaign.plan));
    let about = match campaign.state {
        // Imported results have no seed.
        "imported" => format!("Campaign `{id}`, plan {plan}, imported."),
        _ => format!(
            "Campaign `{id}`, plan {plan}, seed {}, {}.",
            campaign.seed, campaign.progress
        ),
    };
    line(text, &about);
    if campaign.description.is_empty() {
        return;
    }
    let description = campaign.description.trim_end();
    let is_closed = description.ends_with(|last: char| last.is_ascii_punctuation() || last == '…');
    let stop = if is_closed { "" } else { "." };
    line(text, &format!("\n{}{stop}", escape(description)));
}

/// A row per test, a column per cell, whose names are above.
fn add_published(text: &mut String, table: &PublishedTable) {
    let title = format!("\n## {}\n\n{}\n", table.title, escape(table.caption));
    line(text, &title);
    for column in published::legend(table) {
        line(text, &format!("{}  ", escape(&column)));
    }
    for section in &table.sections {
        line(text, &format!("\n{}\n", escape(&section.title)));
        let columns = 1..=table.columns.len();
        let columns: Vec<String> = columns.map(|column| format!("col-{column}")).collect();
        header(text, columns.iter().map(String::as_str));
        for of in &section.rows {
            let cells = of.cells.iter().map(|cell| escape(&cell.text()));
            row(text, std::iter::once(escape(&of.label)).chain(cells));
        }
    }
}

/// What is concluded about the cells: a row per verdict, or per unusual step of a screen.
fn add_verdicts(text: &mut String, view: &View) {
    let findings = &view.findings;
    if findings.is_empty() {
        return;
    }
    let is_screen = findings.is_screen();
    let title = if is_screen { "Survey" } else { "Verdicts" };
    line(text, &format!("\n## {title}\n\n{}\n", counted(view)));
    for of in facts(findings) {
        line(text, &format!("{}.  ", escape(&of)));
    }
    add_groups(text, view);
    let is_shown =
        |finding: &&Finding| is_news(findings, finding) && finding.call.word() != "usual";
    let shown: Vec<&Finding> = findings.all.iter().filter(is_shown).collect();
    if shown.is_empty() {
        return;
    }
    line(text, "");
    let word = if is_screen { "finding" } else { "verdict" };
    header_with_texts(
        text,
        ["cell", word, "change", "interval", "pairs", "why"].into_iter(),
        &["cell", word, "why"],
    );
    for finding in shown {
        row(text, verdict_cells(view, finding));
    }
}

/// What single runs show, in the sentences of a post.
fn add_words(text: &mut String, view: &View) {
    let groups = in_words(view);
    if groups.is_empty() {
        return;
    }
    line(text, "\n## In words");
    for group in groups {
        line(text, &format!("\n{}:\n", escape(&group.title)));
        for sentence in group.sentences {
            line(text, &format!("- {}", escape(&sentence)));
        }
    }
}

/// A row per group of tests and cell, of throughput.
fn add_groups(text: &mut String, view: &View) {
    let rows = group_lines(view);
    if rows.is_empty() {
        return;
    }
    line(text, "");
    let columns = ["cell", "verdict", "change", "rests on", "tests"];
    header_with_texts(text, columns.into_iter(), &columns);
    for columns in rows {
        row(text, columns.iter().map(|column| escape(column)));
    }
}

/// How many cells came to which verdict, in a sentence.
fn counted(view: &View) -> String {
    let findings = &view.findings;
    if findings.all.is_empty() {
        return format!("{}.", escape(&no_verdicts(view)));
    }
    let caveat = if findings.is_screen() {
        " One run each: no verdict."
    } else {
        ""
    };
    let counts = counts(findings);
    let counts = counts.iter().map(|(word, count)| format!("{count} {word}"));
    let counts: Vec<String> = counts.collect();
    format!(
        "Against {}: {}.{caveat}",
        escape(&bases(view)),
        counts.join(", ")
    )
}

fn verdict_cells(view: &View, finding: &Finding) -> [String; 7] {
    let nothing = || "-".to_owned();
    let estimate = finding.estimate;
    let interval = estimate.and_then(|estimate| estimate.interval);
    let interval = match (finding.call, interval) {
        (Call::Screen(screen, _), _) => format!("z {:+.1}", screen.z),
        (_, Some((low, high))) => format!("{} to {}", percent(low), percent(high)),
        _ => nothing(),
    };
    let word = finding.call.word();
    let against = if view.findings.bases().len() > 1 {
        format!(" vs {}", view.cells[finding.base].label)
    } else {
        String::new()
    };
    [
        escape(&subject(finding)),
        escape(&format!("{}{against}", view.cells[finding.cell].label)),
        word.to_owned(),
        estimate.map_or_else(nothing, |estimate| percent(estimate.ratio)),
        interval,
        estimate.map_or_else(nothing, |estimate| {
            repeats(finding.basis, &estimate, finding.left_out)
        }),
        escape(&ending(finding)),
    ]
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

pub(crate) fn row(text: &mut String, cells: impl IntoIterator<Item = String>) {
    text.push('|');
    for cell in cells {
        write!(text, " {cell} |").expect("writing to a string cannot fail");
    }
    text.push('\n');
}

/// A header and the line under it: the first column to the left, numbers to the right.
fn header<'a>(text: &mut String, columns: impl Iterator<Item = &'a str> + Clone) {
    header_with_texts(text, columns, &[]);
}

/// The same with `texts` among the columns, which are to the left too.
pub(crate) fn header_with_texts<'a>(
    text: &mut String,
    columns: impl Iterator<Item = &'a str> + Clone,
    texts: &[&str],
) {
    row(
        text,
        std::iter::once(String::new()).chain(columns.clone().map(escape)),
    );
    let alignment = |column: &str| {
        if texts.contains(&column) {
            ":--"
        } else {
            "--:"
        }
        .to_owned()
    };
    row(
        text,
        std::iter::once(":--".to_owned()).chain(columns.map(alignment)),
    );
}

/// Colours do not survive in Markdown: what stands out is bold.
fn add_classic(text: &mut String, table: &ClassicTable, has_bold: bool) {
    if table.columns.is_empty() {
        return;
    }
    line(
        text,
        &format!("\n## {}\n\n{}\n", table.title, escape(table.caption)),
    );
    header(text, table.columns.iter().map(String::as_str));
    for of in &table.rows {
        let label = if of.is_base {
            format!("**{}** (base)", escape(&of.label))
        } else {
            format!("{}{}", escape(&of.label), of.mark)
        };
        let cells = of.cells.iter().map(|cell| {
            let number = escape(&cell.text());
            if has_bold
                && matches!(
                    cell.class,
                    Class::Worst | Class::Best | Class::AboveBase | Class::BelowBase
                )
            {
                format!("**{number}**")
            } else {
                number
            }
        });
        row(text, std::iter::once(label).chain(cells));
    }
}

fn add_test_table(text: &mut String, view: &View, table: &TestTable) {
    line(
        text,
        &format!("\n## {}\n\n{}\n", table.title, escape(&table.caption)),
    );
    for section in &table.sections {
        line(text, &format!("\n### {}\n", section.title));
        let labels: Vec<String> = view
            .cells
            .iter()
            .enumerate()
            .map(|(i, cell)| {
                if i == 0 {
                    format!("{} (base)", cell.label)
                } else {
                    format!("{}{}", cell.label, cell.mark())
                }
            })
            .collect();
        header(text, labels.iter().map(String::as_str));
        for of in &section.rows {
            row(
                text,
                std::iter::once(escape(&of.step))
                    .chain(of.cells.iter().map(|cell| escape(&cell.text()))),
            );
        }
    }
}

fn add_ramp(text: &mut String, view: &View, ramp: &Ramp) {
    line(
        text,
        &format!(
            "\n## Ramp of {}\n\n{} over clients; service times in microseconds\n",
            escape(&ramp.test),
            escape(ramp.rate.unit)
        ),
    );
    let number =
        |value: Option<f64>| value.map_or_else(|| "NA".to_owned(), |value| format!("{value:.0}"));
    for (cell, of) in view.cells.iter().zip(&ramp.cells) {
        let users = |place: Option<usize>| {
            place.map_or_else(|| "NA".to_owned(), |place| ramp.users[place].to_string())
        };
        line(
            text,
            &format!(
                "\n{}{}: peak at {} clients, knee at {}\n",
                escape(&cell.label),
                cell.mark(),
                users(of.peak),
                users(of.knee)
            ),
        );
        let events = ramp.events_heading();
        let response = ramp.is_open_loop().then_some("response p99");
        header(
            text,
            [ramp.rate.name, events, "mean", "p95", "p99", "max"]
                .into_iter()
                .chain(response),
        );
        for (users, level) in ramp.users.iter().zip(&of.levels) {
            let rate = format!("{}{}", number(level.rate), escape(level.status.mark()));
            let response = response.map(|_| {
                format!(
                    "{}{}",
                    at_least(level.is_lower_bound),
                    number(level.p99_response_us)
                )
            });
            let values = std::iter::once(level.tps)
                .chain(level.service_us)
                .map(number)
                .chain(response);
            row(text, [users.to_string(), rate].into_iter().chain(values));
        }
        for (users, level) in ramp.users.iter().zip(&of.levels) {
            if let Some(seconds) = level.excluded_wait_s {
                line(
                    text,
                    &format!("\n{users} clients: {}", waiting::excludes(seconds)),
                );
            }
        }
    }
}

fn add_legend(text: &mut String, view: &View) {
    let quarters = if view.cells.len() > 2 {
        "in the best or worst quarter of its column; "
    } else {
        ""
    };
    line(
        text,
        &format!(
            "\nBold: {quarters}more than 5 % from the base; a background rate that missed its \
            SLA.  "
        ),
    );
    if view.cells.len() > 1 {
        line(text, &format!("`-` in a line of ratios: {BASE_IS_ZERO}.  "));
    }
    if view.cells.iter().any(|cell| cell.caveat.is_some()) {
        line(
            text,
            "† build and base are not strictly comparable: see the notes above.  ",
        );
    }
    if view.cells.iter().any(|cell| cell.other_machine.is_some()) {
        line(
            text,
            "‡ ran on another machine than the base: see the notes above.  ",
        );
    }
    for status in [
        Status::SlaMissed,
        Status::Suspect,
        Status::Failed,
        Status::Crashed,
        Status::Hung,
        Status::Damaged,
        Status::Missing,
    ] {
        if view
            .steps
            .iter()
            .flat_map(|step| &step.outcomes)
            .any(|outcome| outcome.status == status)
        {
            let mark = if status.mark().is_empty() {
                status.in_place()
            } else {
                status.mark()
            };
            line(text, &format!("`{mark}` {}.  ", escape(status.meaning())));
        }
    }
}

fn add_step(text: &mut String, view: &View, step: &StepView) {
    line(
        text,
        &format!(
            "\n## {}\n\n{}\n",
            escape(&step.name),
            escape(&step.description)
        ),
    );
    let columns = step_columns(step);
    let rows = || {
        view.cells
            .iter()
            .zip(&step.outcomes)
            .filter(|(_, outcome)| !outcome.measures.is_empty())
    };
    if is_turned(&columns) && rows().next().is_some() {
        add_turned(text, view, step, &columns);
    } else if rows().next().is_some() {
        header(text, columns.iter().map(|metric| metric.name));
        for (cell, outcome) in rows() {
            row(
                text,
                std::iter::once(escape(&cell.label))
                    .chain(columns.iter().map(|metric| value(outcome, metric))),
            );
        }
    }
    for (i, (cell, outcome)) in view
        .cells
        .iter()
        .zip(&step.outcomes)
        .enumerate()
        .filter(|_| !is_turned(&columns))
    {
        let base = &step.outcomes[cell.base];
        if i != cell.base
            && [base, outcome]
                .iter()
                .all(|outcome| !outcome.measures.is_empty())
        {
            let label = format!("{} / base{}", escape(&cell.label), cell.mark());
            row(
                text,
                std::iter::once(label)
                    .chain(columns.iter().map(|metric| ratio(outcome, base, metric))),
            );
        }
    }
    add_events(text, view, step);
    add_waiting(text, view, step);
    for (cell, outcome) in view.cells.iter().zip(&step.outcomes) {
        if let Some(reason) = outcome
            .reason
            .as_deref()
            .filter(|_| outcome.status != Status::Ok)
        {
            line(
                text,
                &format!(
                    "\n{} {}: {}",
                    escape(&cell.label),
                    outcome.status.name(),
                    escape(&brief(reason).0)
                ),
            );
        }
    }
}

/// A row per metric: the value of each cell, and behind it the ratio to the base.
fn add_turned(text: &mut String, view: &View, step: &StepView, columns: &[&Metric]) {
    let has_bases = view.cells.iter().any(|cell| cell.base != 0);
    let label = |(i, cell): (usize, &CellInfo)| match has_bases && i == cell.base {
        true => format!("{} (base)", cell.label),
        false => cell.label.clone(),
    };
    let labels: Vec<String> = view.cells.iter().enumerate().map(label).collect();
    header(text, labels.iter().map(String::as_str));
    for metric in columns {
        let cell = |(i, outcome): (usize, &Outcome)| match ratio(
            outcome,
            &step.outcomes[view.cells[i].base],
            metric,
        ) {
            ratio if i != view.cells[i].base && !matches!(ratio.as_str(), "-" | "NA") => {
                format!("{} ({ratio})", value(outcome, metric))
            }
            _ => value(outcome, metric),
        };
        row(
            text,
            std::iter::once(escape(metric.name)).chain(step.outcomes.iter().enumerate().map(cell)),
        );
    }
}

/// The kinds of events of a step, each by itself.
fn add_events(text: &mut String, view: &View, step: &StepView) {
    let Some(first) = step.events.first() else {
        return;
    };
    line(text, "");
    // Without a schedule there is no response time.
    let shown = first.numbers().len() - usize::from(!step.has_event_responses());
    let names = first.numbers().map(|(name, _, _)| name);
    header_with_texts(
        text,
        std::iter::once("cell").chain(names.into_iter().take(shown)),
        &["cell"],
    );
    for of in &step.events {
        let number = |value: Option<f64>| {
            value.map_or_else(
                || "NA".to_owned(),
                |value| format!("{value:.1}").trim_end_matches(".0").to_owned(),
            )
        };
        let is_bound = |name: &str| name == P99_RESPONSE_US.name && of.is_response_lower_bound();
        let cells = of
            .numbers()
            .into_iter()
            .take(shown)
            .map(|(name, _, value)| at_least(is_bound(name)).to_owned() + &number(value));
        row(
            text,
            [escape(&of.kind), escape(&view.cells[of.cell].label)]
                .into_iter()
                .chain(cells),
        );
    }
}

/// What the service times of the step do not have.
fn add_waiting(text: &mut String, view: &View, step: &StepView) {
    for (i, (cell, outcome)) in view.cells.iter().zip(&step.outcomes).enumerate() {
        for of in &outcome.operations {
            if let Some(seconds) = step.excluded_wait_s(i, &of.kind) {
                line(
                    text,
                    &format!(
                        "\n{} {}: {}",
                        escape(&cell.label),
                        escape(&of.kind),
                        waiting::excludes(seconds)
                    ),
                );
            }
        }
    }
}

/// The end of the log of every server that crashed.
fn add_logs(text: &mut String, view: &View) {
    for step in &view.steps {
        for (cell, outcome) in view.cells.iter().zip(&step.outcomes) {
            let Some(crash) = &outcome.crash else {
                continue;
            };
            line(
                text,
                &format!(
                    "\n## Log of {} in {}\n\n{}\n",
                    escape(&cell.label),
                    escape(&step.name),
                    escape(&crash.status)
                ),
            );
            for of_log in crash.log_tail.lines() {
                // Indented, so that no fence can end it.
                line(
                    text,
                    &format!("    {}", of_log.replace(char::is_control, " ")),
                );
            }
        }
    }
}

fn add_what_ran(text: &mut String, view: &View) {
    line(text, "\n## What ran\n");
    let columns = [
        "cell",
        "version",
        "origin",
        "packager",
        "compiler",
        "flags",
        "server sha256",
    ];
    row(text, columns.map(str::to_owned));
    row(text, columns.map(|_| ":--".to_owned()));
    for cell in &view.cells {
        let nothing = if cell.server_sha256.is_some() || cell.is_embedded == Some(false) {
            UNKNOWN
        } else {
            "built in"
        };
        let tool = |key: &str| cell.toolchain.get(key).map_or(nothing, String::as_str);
        let sha256 = cell.server_sha256.as_deref().unwrap_or(nothing);
        let cells = [
            &cell.label,
            &cell.version,
            &cell.origin,
            tool(PACKAGER),
            tool(COMPILER),
            tool(OPTIMISATION),
            sha256,
        ];
        row(text, cells.map(escape));
    }
}

/// A metric with the catalogue's decimals; `NA` where there is no value.
fn value(outcome: &Outcome, metric: &Metric) -> String {
    outcome
        .measure(metric)
        .and_then(Measure::text)
        .unwrap_or_else(|| "NA".to_owned())
}

fn ratio(outcome: &Outcome, base: &Outcome, metric: &Metric) -> String {
    match divide_measures(outcome.measure(metric), base.measure(metric)) {
        Ok(ratio) => escape(&ratio),
        Err(BASE_IS_ZERO) => "-".to_owned(),
        Err(_) => "NA".to_owned(),
    }
}

/// Text from outside that no renderer takes for a cell's end, markup or HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = None;
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let is_inner = |of: Option<&char>| of.is_some_and(|c| c.is_alphanumeric());
        match c {
            // Between letters it does not emphasise: names are full of them.
            '_' if !(is_inner(before.as_ref()) && is_inner(letters.peek())) => {
                escaped.push_str("\\_");
            }
            '|' | '*' | '`' | '[' | ']' | '\\' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
        before = Some(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_nobodys_markup() {
        assert_eq!(escape("read-write_range=100"), "read-write_range=100");
        assert_eq!(escape("_under_*star*"), "\\_under\\_\\*star\\*");
        assert_eq!(escape("a__b [x](y)"), "a\\_\\_b \\[x\\](y)");
    }
}
