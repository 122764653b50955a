//! One file a verb, or a few that belong together.

pub mod assets;
pub mod bisect;
pub mod build;
pub mod campaign;
pub mod confirm;
pub mod doctor;
pub mod exchange;
pub mod gate;
pub mod host;
pub mod init;
pub mod machine;
pub mod plan;
pub mod post;
pub mod results;
mod running;
pub mod submit;
pub mod survey;
pub mod verdicts;
pub mod workload;
