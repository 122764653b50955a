//! `show` and `report`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use plimsoll_analysis::{
    Options, Stored, View, analyse_among, brief_lines, changed_files, default_view, verdict_lines,
};
use plimsoll_store::{CampaignDir, CampaignRecord};

use crate::arguments::{Format, Places, Report, Selection, Show};
use crate::failure::{Failure, VerbResult};
use crate::output::print;

pub fn show(places: &Places, arguments: &Show) -> VerbResult {
    let store = places.store();
    let record = store.find(arguments.which.campaign())?.load()?;
    let changes = changes([&record])?;
    let mut view = view(&[record], &arguments.selection, &Stored::newest(&store))?;
    view.note_changed_files(&changes);
    if arguments.json {
        print(&format!("{:#}\n", plimsoll_report::show_json(&view)))?;
    } else {
        print(&plimsoll_report::to_terminal(&view, true))?;
    }
    Ok(0)
}

pub fn report(places: &Places, arguments: &Report) -> VerbResult {
    let store = places.store();
    let wanted: Vec<Option<&str>> = if arguments.campaigns.is_empty() {
        vec![None]
    } else {
        arguments
            .campaigns
            .iter()
            .map(|c| Some(c.as_str()))
            .collect()
    };
    let campaigns = wanted
        .into_iter()
        .map(|campaign| store.find(campaign))
        .collect::<Result<Vec<_>, _>>()?;
    let records = campaigns
        .iter()
        .map(CampaignDir::load)
        .collect::<Result<Vec<_>, _>>()?;
    let changes = changes(&records)?;
    for change in &changes {
        tell!("warning: {change}");
    }
    let mut view = view(&records, &arguments.selection, &Stored::newest(&store))?;
    view.note_changed_files(&changes);
    let text = match arguments.format {
        Format::Html => plimsoll_report::to_html(&view),
        Format::Md => plimsoll_report::to_markdown(&view),
        Format::Csv => plimsoll_report::to_csv(&view),
        Format::Tsv => plimsoll_report::to_tsv(&view),
        Format::Json => plimsoll_report::to_json(&view),
    };
    let out = match (&arguments.out, arguments.format, campaigns.as_slice()) {
        (Some(out), _, _) => {
            write(out, &text)?;
            out.clone()
        }
        (None, Format::Html, [campaign]) => campaign.write_page(&text)?,
        (None, Format::Html, _) => {
            return Err(Failure::usage(
                "a page over several campaigns belongs to none of them: say where with --out FILE",
            ));
        }
        (None, _, _) => {
            print(&text)?;
            return Ok(0);
        }
    };
    print(&format!("report: {}\n", out.display()))?;
    Ok(0)
}

/// What is not as it was sealed, of all campaigns.
fn changes<'a>(
    records: impl IntoIterator<Item = &'a CampaignRecord>,
) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for record in records {
        all.extend(changed_files(record)?);
    }
    Ok(all)
}

fn view(
    records: &[CampaignRecord],
    selection: &Selection,
    stored: &Stored<'_>,
) -> Result<View, Failure> {
    Ok(analyse_among(
        records,
        &Options {
            base: selection.base.clone(),
            builds: selection.builds.clone(),
        },
        stored,
    )?)
}

/// Writes the campaign's own page.
pub fn write_page(campaign: &CampaignDir) -> Result<PathBuf, Failure> {
    let record = campaign.load()?;
    let changes = changes([&record])?;
    let stored = Stored::beside(campaign);
    let mut view = analyse_among(&[record], &Options::default(), &stored)?;
    view.note_changed_files(&changes);
    Ok(campaign.write_page(&plimsoll_report::to_html(&view))?)
}

/// The tables on standard output. `options` are what commands in them repeat.
pub fn print_tables(campaign: &CampaignDir, options: &str) -> Result<(), Failure> {
    let view = with_options(campaign, options)?;
    print(&plimsoll_report::to_terminal(
        &view,
        std::io::stdout().is_terminal(),
    ))
}

fn with_options(campaign: &CampaignDir, options: &str) -> Result<View, Failure> {
    let mut view = default_view(campaign)?;
    options.clone_into(&mut view.options);
    Ok(view)
}

/// What a campaign with verdicts says, on standard output: of a plan in brief.
pub fn print_verdicts(campaign: &CampaignDir, is_json: bool) -> Result<(), Failure> {
    let view = default_view(campaign)?;
    let is_plan = campaign
        .header
        .confirm
        .as_ref()
        .is_some_and(|of| of.of.is_none());
    print(&match (is_json, is_plan) {
        (true, _) => format!("{:#}\n", plimsoll_report::confirm_json(&view)),
        (false, true) => brief_lines(&view),
        (false, false) => verdict_lines(&view),
    })
}

/// What to do next if a confirm campaign has no verdict on any throughput, with these options.
pub fn undecided(campaign: &CampaignDir, options: &str) -> Result<Option<String>, Failure> {
    match campaign.header.confirm {
        Some(_) => Ok(plimsoll_analysis::undecided(
            &with_options(campaign, options)?,
            &campaign.header,
            &campaign.path,
        )),
        None => Ok(None),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        Failure::usage(format!(
            "failed to write {}: {error}; choose another file with --out",
            path.display()
        ))
    })
}
