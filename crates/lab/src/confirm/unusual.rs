//! What a confirm measures where nobody names a step.

use plimsoll_analysis::{Unusual, default_view, unusual};
use plimsoll_store::CampaignDir;

use crate::error::LabError;

/// The steps of a campaign that are unusual, or open where it has verdicts, of these cells or of
/// all.
///
/// # Errors
/// When the campaign cannot be read.
pub fn unusual_steps(survey: &CampaignDir, cells: &[String]) -> Result<Unusual, LabError> {
    let view = default_view(survey)?;
    let has_verdicts = survey.header.confirm.is_some();
    Ok(unusual(&view, &survey.header.plan, cells, has_verdicts))
}
