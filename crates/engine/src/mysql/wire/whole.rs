//! A query's answer that has come at once, as most do: walked in one pass over the buffer.

use super::link::{END, END_BYTES, MORE_RESULTS};
use super::packets::{ERROR, FULL, HEADER_BYTES, header};

/// An answer of one result set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WholeAnswer {
    pub rows: u64,
    /// All bytes of its packets.
    pub length: usize,
    /// The number of the packet after it.
    pub next_number: u8,
}

impl WholeAnswer {
    /// The answer that these bytes begin with, its first packet having this number. `None` for
    /// whatever else they are (half an answer, a success without rows, an error, more than one
    /// result set, more than 250 columns, nonsense), which the caller walks packet by packet.
    ///
    /// `is_row` tells by the first byte of a payload that is neither an error nor an end whether it
    /// can be a row's.
    #[inline]
    pub fn read(bytes: &[u8], number: u8, is_row: impl Fn(u8) -> bool) -> Option<Self> {
        let mut packets = Packets {
            rest: bytes,
            number,
        };
        let columns = match *packets.next()? {
            [columns @ 1..=250] => columns,
            _ => return None,
        };
        for _ in 0..columns {
            if matches!(packets.next()?[0], ERROR | END) {
                return None;
            }
        }
        if packets.next()?[0] != END {
            return None;
        }
        let mut rows = 0;
        loop {
            let payload = packets.next()?;
            match payload[0] {
                END if payload.len() == END_BYTES && payload[3] & MORE_RESULTS as u8 == 0 => break,
                ERROR | END => return None,
                kind if is_row(kind) => rows += 1,
                _ => return None,
            }
        }
        Some(Self {
            rows,
            length: bytes.len() - packets.rest.len(),
            next_number: packets.number,
        })
    }
}

struct Packets<'a> {
    rest: &'a [u8],
    number: u8,
}

impl<'a> Packets<'a> {
    /// The next payload, when it is there as a whole, not empty, in order, and ends with its
    /// packet.
    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, number) = header(self.rest.first_chunk()?);
        let payload = self.rest.get(HEADER_BYTES..HEADER_BYTES + length)?;
        if number != self.number || length == 0 || length == FULL {
            return None;
        }
        self.rest = &self.rest[HEADER_BYTES + length..];
        self.number = number.wrapping_add(1);
        Some(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of one column, in packets from number 1.
    const ANSWER: &[u8] =
        b"\x01\0\0\x01\x01\x03\0\0\x02\x03de\x05\0\0\x03\xfe\0\0\x02\0\x02\0\0\x04\0a\x02\0\0\
            \x05\0b\x05\0\0\x06\xfe\0\0\x02\0";

    fn read(bytes: &[u8]) -> Option<WholeAnswer> {
        WholeAnswer::read(bytes, 1, |kind| kind == 0)
    }

    #[test]
    fn rows_are_counted_to_the_end() {
        let whole = Some(WholeAnswer {
            rows: 2,
            length: ANSWER.len(),
            next_number: 7,
        });
        assert_eq!(read(ANSWER), whole);
        // What follows is not looked at.
        assert_eq!(read(&[ANSWER, b"\x01"].concat()), whole);
    }

    #[test]
    fn half_of_it_and_anything_else_is_left_to_others() {
        for end in 0..ANSWER.len() {
            assert_eq!(read(&ANSWER[..end]), None, "{end}");
        }
        assert_eq!(WholeAnswer::read(ANSWER, 2, |kind| kind == 0), None);
        // Numbers out of order, an error for the answer, a definition, an end or a row, a row that
        // is none, another answer after this one.
        let changed = [
            (8, 9),
            (4, 0xff),
            (9, 0xff),
            (16, 0xff),
            (25, 0xff),
            (31, 7),
            (37, 0xff),
            (40, 10),
            (4, 0),
            (4, 0xfb),
            (4, 0xfe),
        ];
        for (at, byte) in changed {
            let mut other = ANSWER.to_vec();
            other[at] = byte;
            assert_eq!(read(&other), None, "{at} {byte}");
        }
    }
}
