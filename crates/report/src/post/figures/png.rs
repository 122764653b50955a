//! The picture of a figure, for where an SVG cannot be put.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{ImageHrefResolver, Options, Tree, fontdb};
use thiserror::Error;

use super::text::FONT;

/// Pixels of the picture per pixel of the figure, so that it is sharp on any screen.
const SCALE: f32 = 2.0;
/// The most pixels in a picture's height or width.
const LONGEST: f32 = 32_000.0;

/// Why there is no picture.
#[derive(Debug, Error)]
pub enum FigureError {
    /// The text is not an SVG that can be drawn.
    #[error(
        "draw a picture of a figure: its SVG is not well-formed: {0}; use the .svg file instead"
    )]
    Svg(#[from] Box<resvg::usvg::Error>),
    /// It has too many rows for a picture.
    #[error(
        "draw a picture of a figure: it would have {0} x {1} pixels, and 32000 are the most; \
         use the .svg file instead, or show fewer tests"
    )]
    TooLarge(u32, u32),
    /// The pixels cannot be written as PNG.
    #[error("draw a picture of a figure: {0}; use the .svg file instead")]
    Png(String),
}

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    Arc::new(fonts)
});

/// A figure as PNG, with two pixels for each of its own in both directions. It is drawn with the
/// font that comes with the program and no other, so that it has its text on every machine and is
/// the same on all. A letter that the font lacks is a box. Nothing is loaded that the SVG refers to.
///
/// # Errors
/// If the text is not an SVG, or the picture would be too large.
pub fn png(svg: &str) -> Result<Vec<u8>, FigureError> {
    let options = Options {
        font_family: "DejaVu Sans".to_owned(),
        fontdb: Arc::clone(&FONTS),
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(Box::new)?;
    let wide = (tree.size().width() * SCALE).ceil();
    let high = (tree.size().height() * SCALE).ceil();
    let too_large = FigureError::TooLarge(wide as u32, high as u32);
    if wide > LONGEST || high > LONGEST {
        return Err(too_large);
    }
    let mut pixels = Pixmap::new(wide as u32, high as u32).ok_or(too_large)?;
    pixels.fill(Color::WHITE);
    let scale = Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, scale, &mut pixels.as_mut());
    pixels
        .encode_png()
        .map_err(|error| FigureError::Png(error.to_string()))
}
