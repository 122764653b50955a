//! The request that runs a prepared statement: encoded once, its values patched in place.

use super::error::WireError;
use super::packets::HEADER_BYTES;

const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_BIGINT: [u8; 2] = [0x08, 0];
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
        let mut execute = Self { packet, placeholders, is_bound: placeholders == 0 };
        execute.set_length();
        execute
    }

    /// The request with these values.
    pub fn request(&mut self, arguments: &[i64]) -> Result<&[u8], WireError> {
        if arguments.len() != self.placeholders {
            return Err(WireError::Arguments { wanted: self.placeholders, given: arguments.len() });
        }
        let values_at = self.packet.len() - self.placeholders * VALUE_BYTES;
        for (place, argument) in self.packet[values_at..].chunks_exact_mut(VALUE_BYTES).zip(arguments) {
            place.copy_from_slice(&argument.to_le_bytes());
        }
        Ok(&self.packet)
    }

    /// The server has run the statement, and knows the types from now on.
    pub fn bind(&mut self) {
        if !self.is_bound {
            self.leave_out_types();
        }
    }

    #[cold]
    fn leave_out_types(&mut self) {
        let types_at = HEADER_BYTES + START_BYTES + self.placeholders.div_ceil(8) + 1;
        self.packet[types_at - 1] = 0;
        self.packet.drain(types_at..types_at + TYPE_BIGINT.len() * self.placeholders);
        self.set_length();
        self.is_bound = true;
    }

    /// 65,535 placeholders, the most there are, fit into one packet.
    fn set_length(&mut self) {
        let length = (self.packet.len() - HEADER_BYTES) as u32;
        self.packet[..3].copy_from_slice(&length.to_le_bytes()[..3]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_go_once_and_values_each_time() {
        let mut none = Execute::new(7, 0);
        assert_eq!(none.request(&[]).unwrap(), b"\x0a\0\0\0\x17\x07\0\0\0\0\x01\0\0\0");
        none.bind();
        assert_eq!(none.request(&[]).unwrap().len(), 14);

        let mut two = Execute::new(0x0102_0304, 2);
        let first = b"\x20\0\0\0\x17\x04\x03\x02\x01\0\x01\0\0\0\0\x01\x08\0\x08\0\x05\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff";
        assert_eq!(two.request(&[5, -1]).unwrap(), first);
        two.bind();
        two.bind();
        let later = b"\x1c\0\0\0\x17\x04\x03\x02\x01\0\x01\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0";
        assert_eq!(two.request(&[1, 2]).unwrap(), later);
        assert!(matches!(two.request(&[1]), Err(WireError::Arguments { wanted: 2, given: 1 })));

        let mut most = Execute::new(1, u16::MAX);
        let length = most.request(&vec![1; 65_535]).unwrap().len();
        assert_eq!(length, 4 + 10 + 8192 + 1 + 65_535 * 10);
    }
}
