//! What workloads send to the engine that reads none of it: standard SQL.

use plimsoll_core::engines::EngineName;

use crate::SqlForms;

#[derive(Clone, Copy, Debug)]
pub struct NullForms;

impl SqlForms for NullForms {
    fn engine(&self) -> EngineName {
        EngineName::Null
    }
}
