//! Requests whose parameters have types that the client chose, texts among them: encoded again each
//! time, in one buffer.

use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend::{self, BindError};

use super::fault::Fault;
use crate::{Argument, Parameter};

/// The type's number in `pg_type`: `bigint`, `varchar`.
pub(super) fn oid(parameter: Parameter) -> u32 {
    match parameter {
        Parameter::Integer => 20,
        Parameter::Text => 1043,
    }
}

/// The run of a prepared statement: `Bind`, `Execute` and `Sync`.
#[derive(Debug)]
pub(super) struct TypedRequest {
    name: String,
    parameters: Vec<Parameter>,
    bytes: BytesMut,
}

impl TypedRequest {
    /// The request for the statement that is prepared as `name`. Arguments go and columns come in
    /// binary.
    pub fn new(name: &str, parameters: &[Parameter]) -> Self {
        Self {
            name: name.to_owned(),
            parameters: parameters.to_owned(),
            bytes: BytesMut::new(),
        }
    }

    /// The request with these arguments. One of another type, or a wrong number of them, is an
    /// error.
    #[inline]
    pub fn with(&mut self, arguments: &[Argument<'_>]) -> Result<&[u8], Fault> {
        let fits = |(parameter, argument): (&Parameter, &Argument<'_>)| {
            matches!(
                (parameter, argument),
                (Parameter::Integer, Argument::Integer(_)) | (Parameter::Text, Argument::Text(_))
            )
        };
        if arguments.len() != self.parameters.len()
            || !self.parameters.iter().zip(arguments).all(fits)
        {
            return Err(unfit(&self.parameters, arguments));
        }
        self.bytes.clear();
        let place = |argument: &Argument<'_>, out: &mut BytesMut| {
            match argument {
                Argument::Integer(number) => out.put_i64(*number),
                Argument::Text(text) => out.put_slice(text.as_bytes()),
            }
            Ok(IsNull::No)
        };
        frontend::bind("", &self.name, [1], arguments, place, [1], &mut self.bytes)
            .map_err(refused)?;
        frontend::execute("", 0, &mut self.bytes)
            .map_err(|error| Fault::refused(error.to_string()))?;
        frontend::sync(&mut self.bytes);
        Ok(&self.bytes)
    }
}

#[cold]
fn refused(error: BindError) -> Fault {
    match error {
        BindError::Conversion(error) => Fault::refused(error.to_string()),
        BindError::Serialization(error) => Fault::refused(error.to_string()),
    }
}

#[cold]
fn unfit(parameters: &[Parameter], arguments: &[Argument<'_>]) -> Fault {
    Fault::refused(format!(
        "expected parameters {parameters:?} but got {arguments:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_encoded_anew() {
        let mut request = TypedRequest::new("s7", &[Parameter::Text, Parameter::Integer]);
        let encoded = b"B\0\0\0\x24\0s7\0\0\x01\0\x01\0\x02\0\0\0\x02ab\0\0\0\x08\0\0\0\0\0\0\0\
            \x05\0\x01\0\x01E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        for _ in 0..2 {
            assert_eq!(
                request
                    .with(&[Argument::Text("ab"), Argument::Integer(5)])
                    .unwrap(),
                encoded
            );
        }
        for wrong in [
            &[Argument::Integer(5), Argument::Text("ab")][..],
            &[Argument::Text("ab")],
        ] {
            assert!(
                request
                    .with(wrong)
                    .unwrap_err()
                    .message()
                    .starts_with("expected parameters [Text, Integer]")
            );
        }
    }
}
