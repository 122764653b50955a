//! What a post about a campaign is made of: its text as Markdown and as a page, its figures, and
//! its tables as files.

mod checked;
mod drawn;
pub mod figures;
mod files;
mod markdown;
mod page;
mod tables;

pub use checked::{checked_to_json, checked_to_text};
pub use files::{PostFile, to_post_files};
pub use markdown::to_post_markdown;
