//! What a post about a campaign is made of.

pub mod figures;
