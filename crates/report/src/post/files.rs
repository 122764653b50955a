//! Everything that a post is written to.

use plimsoll_analysis::post::{Figure, Part, Post};

use super::figures::{FigureError, png};
use super::{drawn, markdown, page, tables};

/// A file of a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostFile {
    /// Below the post's folder: `post.md`, `tables/relative.5.6.51.tsv`.
    pub path: String,
    pub bytes: Vec<u8>,
}

impl PostFile {
    fn text(path: impl Into<String>, text: String) -> Self {
        Self {
            path: path.into(),
            bytes: text.into_bytes(),
        }
    }
}

/// The text as Markdown and as a page, each table as Markdown, TSV and CSV, each figure as SVG and
/// PNG, the plan and large configs. The same post gives the same bytes.
///
/// # Errors
/// A figure that is too large for a picture.
pub fn to_post_files(post: &Post) -> Result<Vec<PostFile>, FigureError> {
    let mut files = vec![
        PostFile::text("post.md", markdown::to_post_markdown(post)),
        PostFile::text("post.html", page::to_page(post)),
    ];
    let beside = post.files.iter();
    files.extend(beside.map(|(name, text)| PostFile::text(name, text.clone())));
    for table in &post.tables {
        let name = |end: &str| format!("tables/{}.{end}", table.name);
        files.push(PostFile::text(name("md"), tables::to_markdown(table)));
        files.push(PostFile::text(
            name("tsv"),
            tables::to_delimited(table, b'\t'),
        ));
        files.push(PostFile::text(
            name("csv"),
            tables::to_delimited(table, b','),
        ));
    }
    for figure in figures(post) {
        for drawing in drawn::draw(figure) {
            let name = |end: &str| format!("figures/{}.{end}", drawing.name);
            let picture = png(&drawing.svg)?;
            files.push(PostFile::text(name("svg"), drawing.svg));
            files.push(PostFile {
                path: name("png"),
                bytes: picture,
            });
        }
    }
    Ok(files)
}

fn figures(post: &Post) -> impl Iterator<Item = &Figure> {
    let parts = post.sections.iter().flat_map(|section| &section.parts);
    parts.filter_map(|part| match part {
        Part::Figure(figure) => Some(figure),
        _ => None,
    })
}
