//! Random values, of rows and of parameters.

mod ids;
mod text;

pub(crate) use ids::Ids;
pub(crate) use text::Text;
