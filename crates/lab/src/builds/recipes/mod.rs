//! Recipes: what can be fetched, and what a build's name means.

pub(crate) mod debian;
pub(crate) mod recipe;
pub(crate) mod resolve;
pub(crate) mod shipped;
