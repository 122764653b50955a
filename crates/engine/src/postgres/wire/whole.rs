//! A prepared query's answer that has come at once, as most do: walked in one pass over the buffer.

use super::answer::{BIND_COMPLETE, READY};
use super::connection::{HEADER_BYTES, Header};

/// An answer with rows, complete, after which the server is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WholeAnswer {
    pub rows: u64,
    /// All bytes of its messages.
    pub length: usize,
}

impl WholeAnswer {
    /// The answer that these bytes begin with. `None` for whatever else they are (half an answer,
    /// an error, something between that the server says unasked, nonsense), which the caller walks
    /// message by message.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut messages = Messages(bytes);
        if messages.next()? != BIND_COMPLETE {
            return None;
        }
        let mut rows = 0;
        loop {
            match messages.next()?.kind {
                b'D' => rows += 1,
                b'C' => break,
                _ => return None,
            }
        }
        let is_ready = messages.next()? == READY;
        is_ready.then(|| Self {
            rows,
            length: bytes.len() - messages.0.len(),
        })
    }
}

struct Messages<'a>(&'a [u8]);

impl Messages<'_> {
    /// The next message's header, when the message is there as a whole. Its body is passed over.
    #[inline(always)]
    fn next(&mut self) -> Option<Header> {
        let header = Header::read(self.0.first_chunk()?)?;
        self.0 = self.0.get(HEADER_BYTES + header.length..)?;
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x01xD\0\0\0\x0a\0\x01\0\0\0\0C\0\
        \0\0\x0dSELECT 2\0Z\0\0\0\x05I";

    #[test]
    fn rows_are_counted_to_the_end() {
        let length = ANSWER.len();
        assert_eq!(
            WholeAnswer::read(ANSWER),
            Some(WholeAnswer { rows: 2, length })
        );
        // What follows is not looked at.
        assert_eq!(
            WholeAnswer::read(&[ANSWER, b"N\0\0"].concat()),
            Some(WholeAnswer { rows: 2, length })
        );
        assert_eq!(
            WholeAnswer::read(b"2\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05I"),
            Some(WholeAnswer {
                rows: 0,
                length: 17
            })
        );
    }

    #[test]
    fn half_of_it_and_anything_else_is_left_to_others() {
        for end in 0..ANSWER.len() {
            assert_eq!(WholeAnswer::read(&ANSWER[..end]), None, "{end}");
        }
        for at in [0, 5, 17, 28, 42] {
            let mut other = ANSWER.to_vec();
            other[at] = b'N';
            assert_eq!(WholeAnswer::read(&other), None, "{at}");
        }
        let mut negative = ANSWER.to_vec();
        negative[6] = 0xff;
        assert_eq!(WholeAnswer::read(&negative), None);
    }
}
