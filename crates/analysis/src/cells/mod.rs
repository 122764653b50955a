//! What tells one cell from another: settings, machines, versions; and how cells are chosen.

pub(crate) mod beyond;
pub(crate) mod campaigns;
pub(crate) mod cell_info;
pub(crate) mod differences;
pub(crate) mod machines;
pub mod selection;
pub(crate) mod setting_value;
pub(crate) mod settings;
pub(crate) mod version_groups;
