//! Files of finished trials that are no longer what they were when the trial was sealed.

use plimsoll_store::{CampaignRecord, CampaignState, Change, StoreError, check_seal};

use crate::view::View;

/// Sentences that a note holds.
const SHOWN: usize = 3;

/// A sentence for each of them. Reads every file of the campaign.
pub fn changed_files(campaign: &CampaignRecord) -> Result<Vec<String>, StoreError> {
    let is_over = campaign.state != CampaignState::Running;
    let mut told = Vec::new();
    for trial in &campaign.trials {
        let dir = trial.dir.display();
        match check_seal(&trial.dir) {
            Err(error) => match error.damage() {
                Some(damage) => told.push(format!(
                    "{damage}: whether other files of its trial were changed is not known"
                )),
                None => return Err(error),
            },
            Ok(None) if is_over && trial.is_complete() => told.push(format!(
                "{dir} has no seal.json: whether its files were changed is not known"
            )),
            Ok(found) => told.extend(found.unwrap_or_default().into_iter().map(|mismatch| {
                let change = match mismatch.change {
                    Change::Changed => "was changed",
                    Change::Missing => "is missing",
                    Change::Added => "was added",
                };
                let file = trial.dir.join(mismatch.path);
                format!("{} {change} after its trial ended", file.display())
            })),
        }
    }
    Ok(told)
}

impl View {
    /// Says of what [`changed_files`] found that the numbers may not be those that were measured,
    /// before every other note but that of a shortened plan.
    pub fn note_changed_files(&mut self, changes: &[String]) {
        if changes.is_empty() {
            return;
        }
        let shown = &changes[..changes.len().min(SHOWN)];
        let more = match changes.len() - shown.len() {
            0 => String::new(),
            more => {
                let names: Vec<&str> = self.campaigns.iter().map(|of| of.name.as_str()).collect();
                let report = format!("plimsoll report {}", names.join(" "));
                format!("; and {more} more, which `{report}` lists")
            }
        };
        let note = format!(
            "Files are not as they were sealed, and numbers may not be what was measured: {}{more}.",
            shown.join("; ")
        );
        self.notes.insert(usize::from(!self.is_comparable), note);
    }
}
