//! Keys: numbers in the order of their bytes.

use plimsoll_core::plan::KEY_BYTES;
use plimsoll_core::seed::Draw;

/// The length of a key.
pub(super) const KEY_LENGTH: usize = KEY_BYTES as usize;

/// Writes the key of a number: 8 bytes, the highest first, then ASCII zeros.
#[inline]
pub(super) fn write_key(number: u64, key: &mut [u8]) {
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[8..].fill(b'0');
}

/// Which keys a worker takes, one after the other.
#[expect(clippy::large_enum_variant, reason = "there is one for each worker")]
pub(super) enum Numbers {
    /// All of them, from 0.
    InOrder { next: u64 },
    /// Each as likely as any other.
    Random {
        /// The worker's own stream.
        draw: Draw,
        /// Numbers from 0 to below this.
        count: u64,
    },
}

impl Numbers {
    #[inline]
    pub fn next(&mut self) -> u64 {
        match self {
            Self::InOrder { next } => {
                *next += 1;
                *next - 1
            }
            Self::Random { draw, count } => draw.below(*count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_numbers_do() {
        let key = |number| {
            let mut key = [0; KEY_LENGTH];
            write_key(number, &mut key);
            key
        };
        assert_eq!(key(258), *b"\0\0\0\0\0\0\x01\x02000000000000");
        let numbers = [0, 1, 255, 256, 1 << 40, u64::MAX];
        assert!(numbers.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
    }

    #[test]
    fn numbers_follow_the_seed() {
        let random = |seed| {
            let mut numbers = Numbers::Random {
                draw: Draw::new(seed, &["x"]),
                count: 1000,
            };
            (0..100).map(|_| numbers.next()).collect::<Vec<_>>()
        };
        assert_eq!(random(7), random(7));
        assert_ne!(random(7), random(8));
        assert!(random(7).iter().all(|&number| number < 1000));
        let mut in_order = Numbers::InOrder { next: 0 };
        assert_eq!(
            [in_order.next(), in_order.next(), in_order.next()],
            [0, 1, 2]
        );
    }
}
