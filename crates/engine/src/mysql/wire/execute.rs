//! The request that runs a prepared statement: encoded once, its values patched in place.

use super::error::WireError;
use super::packets::HEADER_BYTES;
use crate::Argument;

const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_BIGINT: [u8; 2] = [0x08, 0];
const TYPE_VAR_STRING: [u8; 2] = [0xfd, 0];
const VALUE_BYTES: usize = 8;
/// Command, statement, no cursor, one round.
const START_BYTES: usize = 10;

/// A statement on one connection.
pub(super) struct Execute {
    /// The packet: header, start, no NULLs, whether types follow, types, values.
    packet: Vec<u8>,
    placeholders: usize,
    /// Whether the server has the types.
    is_bound: bool,
}

impl Execute {
    pub fn new(statement: u32, placeholders: u16) -> Self {
        let placeholders = usize::from(placeholders);
        let mut packet = vec![0; HEADER_BYTES];
        packet.push(COM_STMT_EXECUTE);
        packet.extend(statement.to_le_bytes());
        packet.push(0);
        packet.extend(1_u32.to_le_bytes());
        if placeholders > 0 {
            packet.resize(packet.len() + placeholders.div_ceil(8), 0);
            packet.push(1);
            packet.extend(TYPE_BIGINT.repeat(placeholders));
            packet.resize(packet.len() + placeholders * VALUE_BYTES, 0);
        }
        let mut execute = Self {
            packet,
            placeholders,
            is_bound: placeholders == 0,
        };
        execute.set_length();
        execute
    }

    /// The request with these values.
    pub fn request(&mut self, arguments: &[i64]) -> Result<&[u8], WireError> {
        if arguments.len() != self.placeholders {
            return Err(WireError::Arguments {
                wanted: self.placeholders,
                given: arguments.len(),
            });
        }
        let values_at = self.packet.len() - self.placeholders * VALUE_BYTES;
        for (place, argument) in self.packet[values_at..]
            .chunks_exact_mut(VALUE_BYTES)
            .zip(arguments)
        {
            place.copy_from_slice(&argument.to_le_bytes());
        }
        Ok(&self.packet)
    }

    /// The request with these values, which may be texts of any length. The types of one
    /// statement's values are always the same.
    pub fn request_of(&mut self, arguments: &[Argument<'_>]) -> Result<&[u8], WireError> {
        if arguments.len() != self.placeholders {
            return Err(WireError::Arguments {
                wanted: self.placeholders,
                given: arguments.len(),
            });
        }
        let types_at = self.types_at();
        if !self.is_bound {
            for (place, argument) in self.packet[types_at..]
                .chunks_exact_mut(TYPE_BIGINT.len())
                .zip(arguments)
            {
                place.copy_from_slice(match argument {
                    Argument::Integer(_) => &TYPE_BIGINT,
                    Argument::Text(_) => &TYPE_VAR_STRING,
                });
            }
        }
        if self.placeholders > 0 {
            self.packet.truncate(
                types_at
                    + if self.is_bound {
                        0
                    } else {
                        TYPE_BIGINT.len() * self.placeholders
                    },
            );
        }
        for argument in arguments {
            match argument {
                Argument::Integer(number) => self.packet.extend_from_slice(&number.to_le_bytes()),
                Argument::Text(text) => push_text(&mut self.packet, text.as_bytes()),
            }
        }
        self.set_length();
        Ok(&self.packet)
    }

    fn types_at(&self) -> usize {
        HEADER_BYTES + START_BYTES + self.placeholders.div_ceil(8) + 1
    }

    /// The server has run the statement, and knows the types from now on.
    pub fn bind(&mut self) {
        if !self.is_bound {
            self.leave_out_types();
        }
    }

    #[cold]
    fn leave_out_types(&mut self) {
        let types_at = self.types_at();
        self.packet[types_at - 1] = 0;
        self.packet
            .drain(types_at..types_at + TYPE_BIGINT.len() * self.placeholders);
        self.set_length();
        self.is_bound = true;
    }

    /// 65,535 placeholders, the most there are, fit into one packet.
    fn set_length(&mut self) {
        let length = (self.packet.len() - HEADER_BYTES) as u32;
        self.packet[..3].copy_from_slice(&length.to_le_bytes()[..3]);
    }
}

/// A text behind its length.
fn push_text(packet: &mut Vec<u8>, text: &[u8]) {
    let length = text.len() as u64;
    match length {
        0..0xfb => packet.push(length as u8),
        0xfb..0x1_0000 => {
            packet.push(0xfc);
            packet.extend_from_slice(&length.to_le_bytes()[..2]);
        }
        0x1_0000..0x100_0000 => {
            packet.push(0xfd);
            packet.extend_from_slice(&length.to_le_bytes()[..3]);
        }
        _ => {
            packet.push(0xfe);
            packet.extend_from_slice(&length.to_le_bytes());
        }
    }
    packet.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_length_and_types_go_once() {
        let mut two = Execute::new(7, 2);
        let values = [Argument::Text("ab"), Argument::Integer(3)];
        let first =
            b"\x1b\0\0\0\x17\x07\0\0\0\0\x01\0\0\0\0\x01\xfd\0\x08\0\x02ab\x03\0\0\0\0\0\0\0";
        assert_eq!(two.request_of(&values).unwrap(), first);
        assert_eq!(two.request_of(&values).unwrap(), first);
        two.bind();
        let later = b"\x18\0\0\0\x17\x07\0\0\0\0\x01\0\0\0\0\0\x03abc\x04\0\0\0\0\0\0\0";
        assert_eq!(
            two.request_of(&[Argument::Text("abc"), Argument::Integer(4)])
                .unwrap(),
            later
        );
        assert!(matches!(
            two.request_of(&[]),
            Err(WireError::Arguments {
                wanted: 2,
                given: 0
            })
        ));
        let mut none = Execute::new(7, 0);
        assert_eq!(none.request_of(&[]).unwrap().len(), 14);

        let lengths = [
            (0xfa, 1),
            (0xfb, 3),
            (0xffff, 3),
            (0x1_0000, 4),
            (0xff_ffff, 4),
            (0x100_0000, 9),
        ];
        for (length, head) in lengths {
            let mut packet = Vec::new();
            push_text(&mut packet, &vec![b'x'; length]);
            assert_eq!(packet.len(), head + length, "{length}");
        }
    }

    #[test]
    fn types_go_once_and_values_each_time() {
        let mut none = Execute::new(7, 0);
        assert_eq!(
            none.request(&[]).unwrap(),
            b"\x0a\0\0\0\x17\x07\0\0\0\0\x01\0\0\0"
        );
        none.bind();
        assert_eq!(none.request(&[]).unwrap().len(), 14);

        let mut two = Execute::new(0x0102_0304, 2);
        let first = b"\x20\0\0\0\x17\x04\x03\x02\x01\0\x01\0\0\0\0\x01\x08\0\x08\0\x05\0\0\0\0\0\
            \0\0\xff\xff\xff\xff\xff\xff\xff\xff";
        assert_eq!(two.request(&[5, -1]).unwrap(), first);
        two.bind();
        two.bind();
        let later =
            b"\x1c\0\0\0\x17\x04\x03\x02\x01\0\x01\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0";
        assert_eq!(two.request(&[1, 2]).unwrap(), later);
        assert!(matches!(
            two.request(&[1]),
            Err(WireError::Arguments {
                wanted: 2,
                given: 1
            })
        ));

        let mut most = Execute::new(1, u16::MAX);
        let length = most.request(&vec![1; 65_535]).unwrap().len();
        assert_eq!(length, 4 + 10 + 8192 + 1 + 65_535 * 10);
    }
}
