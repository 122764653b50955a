//! How wide texts are, and what of them may stand in an SVG.

use std::sync::LazyLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// DejaVu Sans with Latin, Greek and Cyrillic letters and some signs.
pub(super) const FONT: &[u8] = include_bytes!("../../../assets/dejavu/DejaVuSans-subset.ttf");

/// The font and what browsers use without it; none of them is wider.
pub(super) const FAMILIES: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// The height of a line, in sizes of its letters.
pub(super) const LINE: f64 = 1.3;

static FACE: LazyLock<FontRef<'static>> =
    LazyLock::new(|| FontRef::new(FONT).expect("the font of the figures is whole"));

/// The width of a text in pixels. A letter that the font lacks counts as a square.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let metrics = FACE.glyph_metrics(Size::new(size as f32), LocationRef::default());
    let letters = FACE.charmap();
    let widths = text.chars().map(|letter| {
        let glyph = letters.map(letter);
        let advance = glyph.and_then(|glyph| metrics.advance_width(glyph));
        advance.map_or(size, f64::from)
    });
    widths.sum()
}

/// The widest of these.
pub(super) fn widest<'a>(texts: impl IntoIterator<Item = &'a str>, size: f64) -> f64 {
    let widths = texts.into_iter().map(|text| width(text, size));
    widths.fold(0.0, f64::max)
}

/// A text from outside without what XML does not allow, breaks of lines, and signs that turn the
/// direction of what follows them.
pub(super) fn clean(text: &str) -> String {
    let is_turning = |letter| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|letter| match letter {
            '\t' | '\n' | '\r' => ' ',
            '\u{feff}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            letter if letter.is_control() || is_turning(letter) => '\u{fffd}',
            letter => letter,
        })
        .collect()
}

/// A text as lines of at most `most` pixels: broken between words, and within a word that is wider
/// than a line.
pub(super) fn wrap(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if let Some(line) = lines.last_mut() {
            let longer = format!("{line} {word}");
            if width(&longer, size) <= most {
                *line = longer;
                continue;
            }
        }
        lines.extend(pieces(word, size, most));
    }
    lines
}

/// A word as pieces that fit; nearly always one.
fn pieces(word: &str, size: f64, most: f64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut filled = 0.0;
    for letter in word.chars() {
        let wide = width(letter.encode_utf8(&mut [0; 4]), size);
        if filled + wide > most && filled > 0.0 {
            pieces.push(String::new());
            filled = 0.0;
        }
        filled += wide;
        pieces.last_mut().expect("there is a piece").push(letter);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        // DejaVu Sans: a digit is 1303 of 2048 units wide, a W 2025.
        assert!((width("0", 2048.0) - 1303.0).abs() < 0.5);
        assert!((width("W00", 20.48) - 46.31).abs() < 0.05);
        assert_eq!(width("\u{4e00}", 10.0), 10.0);
    }

    #[test]
    fn lines_fit_and_lose_nothing() {
        let text = "relative to x.my5651_rel_o2nofp.z12a_c8r32.pk1 and a few more words";
        for most in [60.0, 120.0, 300.0, 3000.0] {
            let lines = wrap(text, 10.0, most);
            assert!(
                lines.iter().all(|line| width(line, 10.0) <= most),
                "{lines:?}"
            );
            let together = |text: &str| text.replace(' ', "");
            assert_eq!(together(&lines.concat()), together(text));
        }
        assert!(wrap("  ", 10.0, 50.0).is_empty());
    }

    #[test]
    fn what_xml_forbids_is_replaced() {
        assert_eq!(
            clean("a\u{0}b\nc\u{202e}d\u{ffff}<&"),
            "a\u{fffd}b c\u{fffd}d\u{fffd}<&"
        );
    }
}
