//! Requests of the extended protocol: encoded once, and patched in place.

use std::num::TryFromIntError;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend::{self, BindError};

use super::fault::Fault;

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `smallint`
    Int2,
    /// `int`
    Int4,
    /// `bigint`
    Int8,
}

impl Kind {
    /// The integer type of this number in `pg_type`.
    pub fn of(oid: u32) -> Option<Self> {
        [Self::Int2, Self::Int4, Self::Int8]
            .into_iter()
            .find(|kind| kind.oid() == oid)
    }

    /// Its number in `pg_type`.
    pub fn oid(self) -> u32 {
        match self {
            Self::Int2 => 21,
            Self::Int4 => 23,
            Self::Int8 => 20,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Int2 => 2,
            Self::Int4 => 4,
            Self::Int8 => 8,
        }
    }
}

/// An argument of a request: where it is, and what.
#[derive(Clone, Copy, Debug)]
struct Argument {
    offset: usize,
    kind: Kind,
}

/// The run of a prepared statement: `Bind`, `Execute` and `Sync`.
#[derive(Debug)]
pub(super) struct Request {
    bytes: BytesMut,
    arguments: Vec<Argument>,
}

impl Request {
    /// The request for the statement that is prepared as `name`. Arguments go and columns come in
    /// binary.
    pub fn new(name: &str, kinds: &[Kind]) -> Result<Self, Fault> {
        let mut bytes = BytesMut::new();
        let mut arguments = Vec::with_capacity(kinds.len());
        let place = |kind: &Kind, out: &mut BytesMut| {
            arguments.push(Argument {
                offset: out.len(),
                kind: *kind,
            });
            out.extend_from_slice(&[0; 8][..kind.bytes()]);
            Ok(IsNull::No)
        };
        frontend::bind(
            "",
            name,
            kinds.iter().map(|_| 1),
            kinds,
            place,
            [1],
            &mut bytes,
        )
        .map_err(|error| match error {
            BindError::Conversion(error) => Fault::refused(error.to_string()),
            BindError::Serialization(error) => Fault::refused(error.to_string()),
        })?;
        frontend::execute("", 0, &mut bytes).map_err(|error| Fault::refused(error.to_string()))?;
        frontend::sync(&mut bytes);
        Ok(Self { bytes, arguments })
    }

    /// The request with these arguments. One that does not fit, or a wrong number of them, is an
    /// error.
    #[inline]
    pub fn with(&mut self, values: &[i64]) -> Result<&[u8], Fault> {
        if values.len() != self.arguments.len() {
            return Err(miscounted(self.arguments.len(), values.len()));
        }
        for (position, (argument, &value)) in self.arguments.iter().zip(values).enumerate() {
            patch(&mut self.bytes, *argument, value)
                .map_err(|error| unfit(position, value, argument.kind, error))?;
        }
        Ok(&self.bytes)
    }
}

#[inline]
fn patch(bytes: &mut [u8], argument: Argument, value: i64) -> Result<(), TryFromIntError> {
    let place = &mut bytes[argument.offset..][..argument.kind.bytes()];
    match argument.kind {
        Kind::Int2 => place.copy_from_slice(&i16::try_from(value)?.to_be_bytes()),
        Kind::Int4 => place.copy_from_slice(&i32::try_from(value)?.to_be_bytes()),
        Kind::Int8 => place.copy_from_slice(&value.to_be_bytes()),
    }
    Ok(())
}

#[cold]
fn miscounted(expected: usize, given: usize) -> Fault {
    Fault::refused(format!("expected {expected} parameters but got {given}"))
}

#[cold]
fn unfit(position: usize, value: i64, kind: Kind, error: TryFromIntError) -> Fault {
    Fault::refused(format!(
        "argument {} is {value}, and an integer of {} bytes is asked for: {error}",
        position + 1,
        kind.bytes()
    ))
}

/// `Parse`, `Describe` and `Sync` of a statement. With `types`, those of its parameters, it
/// replaces the one of this name.
pub(super) fn preparation(name: &str, sql: &str, types: Option<&[u32]>) -> Result<BytesMut, Fault> {
    let mut out = BytesMut::new();
    let mut encode = || {
        if types.is_some() {
            frontend::close(b'S', name, &mut out)?;
        }
        frontend::parse(
            name,
            sql,
            types.unwrap_or_default().iter().copied(),
            &mut out,
        )?;
        frontend::describe(b'S', name, &mut out)
    };
    encode().map_err(|error: std::io::Error| {
        Fault::refused(format!("the statement cannot be sent: {error}"))
    })?;
    frontend::sync(&mut out);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_patched_in_place() {
        let mut request = Request::new("s7", &[Kind::Int4, Kind::Int8, Kind::Int2]).unwrap();
        let encoded = b"B\0\0\0\x30\0s7\0\0\x03\0\x01\0\x01\0\x01\0\x03\0\0\0\x04\0\0\0\x07\0\0\
            \0\x08\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\x02\x7f\xff\0\x01\0\x01E\0\0\0\x09\0\0\
            \0\0\0S\0\0\0\x04";
        assert_eq!(request.with(&[7, -2, 32_767]).unwrap(), encoded);
        let length = request.with(&[0, 0, 0]).unwrap().len();
        assert_eq!(length, encoded.len());
        for (values, wanted) in [
            (&[1, 2][..], "expected 3 parameters but got 2"),
            (&[1, 2, 3, 4], "expected 3 parameters but got 4"),
            (
                &[1 << 31, 2, 3],
                "argument 1 is 2147483648, and an integer of 4 bytes",
            ),
            (
                &[1, 2, -32_769],
                "argument 3 is -32769, and an integer of 2 bytes",
            ),
        ] {
            let fault = request.with(values).unwrap_err();
            assert!(fault.message().starts_with(wanted), "{}", fault.message());
            assert_eq!((fault.sqlstate(), fault.is_over()), ("22023", false));
        }
        // What failed before leaves nothing behind.
        assert_eq!(request.with(&[7, -2, 32_767]).unwrap(), encoded);

        let mut plain = Request::new("s0", &[]).unwrap();
        assert_eq!(
            plain.with(&[]).unwrap(),
            b"B\0\0\0\x10\0s0\0\0\0\0\0\0\x01\0\x01E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
        );
    }

    #[test]
    fn a_preparation_may_replace_another() {
        assert_eq!(
            &preparation("s0", "select 1", None).unwrap()[..],
            b"P\0\0\0\x12s0\0select 1\0\0\0D\0\0\0\x08Ss0\0S\0\0\0\x04"
        );
        let replaced = preparation("s0", "x", Some(&[20, 21])).unwrap();
        assert_eq!(
            &replaced[..],
            b"C\0\0\0\x08Ss0\0P\0\0\0\x13s0\0x\0\0\x02\0\0\0\x14\0\0\0\x15\
            D\0\0\0\x08Ss0\0S\0\0\0\x04"
        );
        assert!(
            preparation("s0", "select '\0'", None)
                .unwrap_err()
                .message()
                .contains("the statement cannot be sent")
        );
    }

    #[test]
    fn integers_keep_their_type() {
        for (oid, kind) in [
            (20, Some(Kind::Int8)),
            (21, Some(Kind::Int2)),
            (23, Some(Kind::Int4)),
            (25, None),
            (701, None),
            (0, None),
        ] {
            assert_eq!(Kind::of(oid), kind);
        }
    }
}
