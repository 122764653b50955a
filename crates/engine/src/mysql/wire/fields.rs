//! The parts of a payload, one after the other. What is cut off is `None`.

/// What is left of a payload.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Up to a zero, which is taken too.
    pub fn zero_ended(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.bytes(length)?;
        self.byte()?;
        Some(text)
    }

    /// A number in one to nine bytes. The two first bytes that mean no number are none.
    pub fn number(&mut self) -> Option<u64> {
        match self.byte()? {
            small @ ..=0xfa => Some(small.into()),
            0xfc => self.u16().map(u64::from),
            0xfd => self
                .array()
                .map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]).into()),
            0xfe => self.array().map(u64::from_le_bytes),
            0xfb | 0xff => None,
        }
    }

    /// A column of a row in text; the inner `None` is NULL.
    pub fn column(&mut self) -> Option<Option<&'a [u8]>> {
        if self.0.first() == Some(&0xfb) {
            self.byte()?;
            return Some(None);
        }
        let length = usize::try_from(self.number()?).ok()?;
        self.bytes(length).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_lengths() {
        let table: [(&[u8], Option<u64>, usize); 11] = [
            (&[0], Some(0), 0),
            (&[250, 9], Some(250), 1),
            (&[0xfb], None, 0),
            (&[0xfc, 0x34, 0x12], Some(0x1234), 0),
            (&[0xfc, 0x34], None, 1),
            (&[0xfd, 1, 2, 3, 4], Some(0x03_0201), 1),
            (&[0xfd, 1, 2], None, 2),
            (
                &[0xfe, 1, 0, 0, 0, 0, 0, 0, 0x80],
                Some(0x8000_0000_0000_0001),
                0,
            ),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0], None, 7),
            (&[0xff], None, 0),
            (&[], None, 0),
        ];
        for (bytes, expected, left) in table {
            let mut fields = Fields(bytes);
            assert_eq!(
                (fields.number(), fields.0.len()),
                (expected, left),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn a_column_is_text_or_null_or_cut_off() {
        let mut fields = Fields(b"\xfb\x00\x02ab\xfc\x01\x00c\x05abcd");
        assert_eq!(fields.column(), Some(None));
        assert_eq!(fields.column(), Some(Some(&b""[..])));
        assert_eq!(fields.column(), Some(Some(&b"ab"[..])));
        assert_eq!(fields.column(), Some(Some(&b"c"[..])));
        assert_eq!(fields.column(), None);
        assert_eq!(Fields(b"abc\0rest").zero_ended(), Some(&b"abc"[..]));
        assert_eq!(Fields(b"abc").zero_ended(), None);
    }
}
