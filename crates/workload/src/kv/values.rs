//! Values: cut one after the other from a buffer that compresses to half.

use plimsoll_core::plan::VALUE_BYTES;
use plimsoll_core::seed::Draw;

/// The length of a value.
pub(super) const VALUE_LENGTH: usize = VALUE_BYTES as usize;
/// The buffer is made of pieces of this length.
const PIECE_LENGTH: usize = 100;
/// So much of a piece is random, the rest repeats it.
const RANDOM_LENGTH: usize = 50;
/// The buffer is at least this long.
const LEAST_LENGTH: usize = 1 << 20;
/// Random bytes are printable ones, as db_bench draws them.
const FIRST_BYTE: u8 = b' ';
const BYTES: u64 = 95;

/// A worker's values.
pub(super) struct Values {
    buffer: Vec<u8>,
    next: usize,
}

impl Values {
    /// Those of a stream.
    pub fn new(mut draw: Draw) -> Self {
        let pieces = LEAST_LENGTH.div_ceil(PIECE_LENGTH);
        let mut buffer = Vec::with_capacity(pieces * PIECE_LENGTH);
        for _ in 0..pieces {
            let from = buffer.len();
            buffer.extend((0..RANDOM_LENGTH).map(|_| FIRST_BYTE + draw.below(BYTES) as u8));
            buffer.extend_from_within(from..from + RANDOM_LENGTH);
        }
        Self { buffer, next: 0 }
    }

    /// Goes on to the next value.
    #[inline]
    pub fn advance(&mut self) {
        self.next += VALUE_LENGTH;
        if self.next + VALUE_LENGTH > self.buffer.len() {
            self.next = 0;
        }
    }

    #[inline]
    pub fn get(&self) -> &[u8] {
        &self.buffer[self.next..self.next + VALUE_LENGTH]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_repeat_half_of_themselves_and_follow_the_seed() {
        let mut values = Values::new(Draw::new(42, &["v"]));
        let first = values.get().to_vec();
        assert_eq!(first.len(), 400);
        assert!(first.chunks(100).all(|piece| piece[..50] == piece[50..]));
        assert!(first.iter().all(|byte| (b' '..=b'~').contains(byte)));
        assert_eq!(first, Values::new(Draw::new(42, &["v"])).get());
        assert_ne!(first, Values::new(Draw::new(43, &["v"])).get());
        let cycle = values.buffer.len() / VALUE_LENGTH;
        assert_eq!((values.buffer.len(), cycle), (1_048_600, 2621));
        values.advance();
        assert_ne!(values.get(), first);
        (1..cycle).for_each(|_| values.advance());
        assert_eq!(values.get(), first, "the buffer goes round");
    }
}
