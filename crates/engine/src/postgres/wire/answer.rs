//! Answers, walked message by message to the point where the server is ready for the next request.

use std::io::IoSlice;

use super::connection::{Connection, HEADER_BYTES, Header, LONGEST};
use super::fault::Fault;
use super::request::{Kind, Request, preparation};
use super::typed::{self, TypedRequest};
use crate::{Counts, Parameter};

/// No command's name and count are longer.
const LONGEST_TAG: usize = 256;

/// Bytes of the types of 65,535 parameters and of their count.
const LONGEST_PARAMETERS: usize = 2 + 4 * u16::MAX as usize;

/// To a server that waits for rows of a `copy`.
const COPY_FAIL: &[u8] = b"f\0\0\0\x16nobody sends rows\0";

/// The end of the rows of a `copy`.
const COPY_DONE: &[u8] = b"c\0\0\0\x04";

/// Bytes of such rows in one message.
const COPY_PIECE: usize = 256 << 10;

/// The end of a request in the extended protocol.
pub(super) const SYNC: &[u8] = b"S\0\0\0\x04";

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing came that means something.
    Nothing,
    Rows,
    /// Lines of a copy may come.
    Lines,
    /// Of a copy that has ended.
    LinesEnded,
    /// A command is complete.
    Complete,
}

/// What is done with a copy of rows in an answer.
const COPY_UNASKED: &str = "the statement copies rows out, which nobody takes here; take a select";

impl Connection {
    /// Runs statements in text. `row` gets the length of each row and takes so many bytes off the
    /// connection.
    #[inline]
    pub fn query(
        &mut self,
        sql: &str,
        row: impl FnMut(&mut Self, usize) -> Result<(), Fault>,
    ) -> Result<Counts, Fault> {
        self.send_text(&[sql])?;
        self.count(b"", Progress::Nothing, row)
    }

    /// Runs a prepared query and returns the number of its rows.
    #[inline]
    pub fn count_rows(&mut self, request: &[u8]) -> Result<u64, Fault> {
        self.send(&mut [IoSlice::new(request)])?;
        match self.whole_answer()? {
            Some(rows) => Ok(rows),
            None => self.executed().map(|counts| counts.rows),
        }
    }

    /// Runs a prepared statement.
    #[inline]
    pub fn execute(&mut self, request: &[u8]) -> Result<Counts, Fault> {
        self.send(&mut [IoSlice::new(request)])?;
        self.executed()
    }

    fn executed(&mut self) -> Result<Counts, Fault> {
        let header = self.next()?;
        if header != BIND_COMPLETE {
            return Err(self.instead_of_bind(header));
        }
        // Rows come without a description, which nobody asked for.
        self.count(SYNC, Progress::Rows, Self::skip)
    }

    /// Prepares `sql`, with `$1` and so on, under `name`. The server infers the type of each
    /// parameter from what it is compared with, as it did for the original's `PREPARE name (int)`,
    /// so that an `int` column meets an `int` and the plan is the same. Where it infers something
    /// else (a `float` column, nothing to compare with), it gets the type `bigint`.
    pub fn prepare(&mut self, name: &str, sql: &str) -> Result<Request, Fault> {
        let inferred = self.parse(name, sql, None)?;
        let kinds: Vec<Kind> = inferred
            .iter()
            .map(|&oid| Kind::of(oid).unwrap_or(Kind::Int8))
            .collect();
        if inferred.iter().any(|&oid| Kind::of(oid).is_none()) {
            let types: Vec<u32> = kinds.iter().map(|kind| kind.oid()).collect();
            self.parse(name, sql, Some(&types))?;
        }
        Request::new(name, &kinds)
    }

    /// Prepares `sql` under `name` with parameters of these types, none of which the server infers.
    pub fn prepare_as(
        &mut self,
        name: &str,
        sql: &str,
        parameters: &[Parameter],
    ) -> Result<TypedRequest, Fault> {
        let types: Vec<u32> = parameters
            .iter()
            .map(|parameter| typed::oid(*parameter))
            .collect();
        self.parse(name, sql, Some(&types))?;
        Ok(TypedRequest::new(name, parameters))
    }

    /// Runs `sql`, a `copy ... from stdin`, on `rows`, and returns how many came in.
    pub fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, Fault> {
        self.send_text(&[sql])?;
        let mut affected = 0;
        let mut is_sent = false;
        self.walk(|connection, header| match (header.kind, is_sent) {
            (b'G', false) => {
                connection.skip(header.length)?;
                for piece in rows.chunks(COPY_PIECE) {
                    let mut head = [b'd'; HEADER_BYTES];
                    head[1..].copy_from_slice(&(4 + piece.len() as u32).to_be_bytes());
                    connection.send_on(&mut [IoSlice::new(&head), IoSlice::new(piece)])?;
                }
                is_sent = true;
                connection.send_on(&mut [IoSlice::new(COPY_DONE)])
            }
            (b'C', true) => {
                affected = connection.affected(header)?;
                Ok(())
            }
            _ => Err(header.unexpected()),
        })?;
        Ok(affected)
    }

    /// Runs a query in text, which must be something that `copy` takes, and hands each row's line
    /// to `line`.
    pub fn copy_out(&mut self, sql: &str, mut line: impl FnMut(&[u8])) -> Result<(), Fault> {
        self.send_text(&["copy (", sql, ") to stdout"])?;
        let mut progress = Progress::Nothing;
        let mut lines = Vec::new();
        self.walk(|connection, header| {
            match (header.kind, progress) {
                (b'H', Progress::Nothing) => progress = Progress::Lines,
                (b'd', Progress::Lines) => {
                    connection.take_into(header.length, &mut lines)?;
                    hand_over(&mut lines, &mut line);
                    return Ok(());
                }
                (b'c', Progress::Lines) => progress = Progress::LinesEnded,
                (b'C', Progress::LinesEnded) => progress = Progress::Complete,
                _ => return Err(header.unexpected()),
            }
            connection.skip(header.length)
        })?;
        if progress == Progress::Complete && lines.is_empty() {
            Ok(())
        } else {
            Err(Fault::nonsense("a copy without its end"))
        }
    }

    /// Sends a statement that is made of `parts`, none of which is copied.
    fn send_text(&mut self, parts: &[&str]) -> Result<(), Fault> {
        let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>() + 1;
        if length >= LONGEST {
            return Err(Fault::refused(format!(
                "a statement of {length} bytes is more than any server takes; make it shorter"
            )));
        }
        if parts.iter().any(|part| part.as_bytes().contains(&0)) {
            return Err(Fault::refused(
                "the statement holds a zero byte, which ends it for the server; take it out",
            ));
        }
        let mut header = [b'Q'; HEADER_BYTES];
        header[1..].copy_from_slice(&(length as u32).to_be_bytes());
        match parts {
            [sql] => self.send(&mut [
                IoSlice::new(&header),
                IoSlice::new(sql.as_bytes()),
                IoSlice::new(b"\0"),
            ]),
            _ => {
                let mut slices = vec![IoSlice::new(&header)];
                slices.extend(parts.iter().map(|part| IoSlice::new(part.as_bytes())));
                slices.push(IoSlice::new(b"\0"));
                self.send(&mut slices)
            }
        }
    }

    /// Walks the answers of one or more commands. `after_copy` is what the server needs after it
    /// was informed that no rows come.
    #[inline]
    fn count(
        &mut self,
        after_copy: &[u8],
        mut progress: Progress,
        mut row: impl FnMut(&mut Self, usize) -> Result<(), Fault>,
    ) -> Result<Counts, Fault> {
        let mut counts = Counts::default();
        let mut has_copied = false;
        self.walk(|connection, header| {
            match (header.kind, progress) {
                (b'D', Progress::Rows) => {
                    counts.rows += 1;
                    return row(connection, header.length);
                }
                (
                    b'C',
                    Progress::Nothing | Progress::Rows | Progress::LinesEnded | Progress::Complete,
                ) => {
                    progress = Progress::Complete;
                    counts.affected = counts.affected.saturating_add(connection.affected(header)?);
                    return Ok(());
                }
                (b'T', Progress::Nothing | Progress::Complete) => progress = Progress::Rows,
                (b'I', Progress::Nothing | Progress::Rows | Progress::Complete)
                    if header.length == 0 =>
                {
                    progress = Progress::Complete
                }
                (b'H', Progress::Nothing | Progress::Rows | Progress::Complete) => {
                    (has_copied, progress) = (true, Progress::Lines)
                }
                (b'd', Progress::Lines) => {}
                (b'c', Progress::Lines) => progress = Progress::LinesEnded,
                (b'G', Progress::Nothing | Progress::Rows | Progress::Complete) => {
                    connection.skip(header.length)?;
                    return connection
                        .send_on(&mut [IoSlice::new(COPY_FAIL), IoSlice::new(after_copy)]);
                }
                _ => return Err(header.unexpected()),
            }
            connection.skip(header.length)
        })?;
        match progress {
            Progress::Complete if has_copied => Err(Fault::refused(COPY_UNASKED)),
            Progress::Complete => Ok(counts),
            _ => Err(Fault::nonsense("an answer without its end")),
        }
    }

    /// Hands each message to `take`, which takes its body off the connection, until the server is
    /// ready for the next request. Of errors the first one is reported; after one nothing else
    /// comes in an answer. An error of `take` is the end of the connection.
    #[inline]
    fn walk(
        &mut self,
        mut take: impl FnMut(&mut Self, Header) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut complaint = None;
        loop {
            let step = match self.next() {
                Ok(READY) => match self.skip(READY.length) {
                    Ok(()) => return complaint.map_or(Ok(()), Err),
                    Err(fault) => Err(fault),
                },
                Ok(header) if header.kind == b'E' => {
                    self.complaint(header.length).and_then(|fault| {
                        let is_over = fault.is_over();
                        let first = complaint.take().unwrap_or(fault);
                        if is_over {
                            return Err(first);
                        }
                        complaint = Some(first);
                        Ok(())
                    })
                }
                Ok(header) if complaint.is_some() => Err(header.unexpected()),
                Ok(header) => take(self, header),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = step {
                return Err(complaint.unwrap_or(fault).over());
            }
        }
    }

    /// Has the server parse and describe a statement, and returns the types of its parameters. With
    /// `told` it gets them, instead of those it has inferred for the same name.
    fn parse(&mut self, name: &str, sql: &str, told: Option<&[u32]>) -> Result<Vec<u32>, Fault> {
        let request = preparation(name, sql, told)?;
        self.send(&mut [IoSlice::new(&request)])?;
        let mut due: &[&[u8]] = if told.is_some() {
            &[b"3", b"1", b"t", b"Tn"]
        } else {
            &[b"1", b"t", b"Tn"]
        };
        let mut types = None;
        self.walk(|connection, header| {
            let Some((_, later)) = due
                .split_first()
                .filter(|(kinds, _)| kinds.contains(&header.kind))
            else {
                return Err(header.unexpected());
            };
            due = later;
            if header.kind != b't' {
                return connection.skip(header.length);
            }
            if header.length > LONGEST_PARAMETERS {
                return Err(header.unexpected());
            }
            types = connection.take(header.length, parameter_types)?;
            Ok(())
        })?;
        types
            .filter(|_| due.is_empty())
            .ok_or_else(|| Fault::nonsense("a prepared statement without its parameters"))
    }

    /// The rows that a command affected, in the body of its `CommandComplete`.
    #[inline]
    fn affected(&mut self, header: Header) -> Result<u64, Fault> {
        if header.length > LONGEST_TAG {
            return Err(header.unexpected());
        }
        self.take(header.length, affected_rows)?
            .ok_or_else(|| header.unexpected())
    }

    /// What is wrong when the arguments were not taken.
    #[cold]
    fn instead_of_bind(&mut self, header: Header) -> Fault {
        if header.kind != b'E' {
            return header.unexpected();
        }
        let fault = match self.complaint(header.length) {
            Ok(fault) if !fault.is_over() => fault,
            Ok(fault) | Err(fault) => return fault,
        };
        match self.walk(|_, header| Err(header.unexpected())) {
            Ok(()) => fault,
            Err(_) => fault.over(),
        }
    }
}

/// The server has taken the arguments of a prepared statement.
pub(super) const BIND_COMPLETE: Header = Header {
    kind: b'2',
    length: 0,
};

/// The server is ready for the next request. Its body says whether a transaction is open.
pub(super) const READY: Header = Header {
    kind: b'Z',
    length: 1,
};

/// The count at the end of a command's tag (`INSERT 0 100`, `SELECT 1`); 0 where there is none
/// (`CREATE TABLE`). `None` when it is not a text that ends with a zero.
#[inline]
fn affected_rows(tag: &[u8]) -> Option<u64> {
    let word = tag
        .strip_suffix(b"\0")?
        .rsplit(|&byte| byte == b' ')
        .next()?;
    let digit = |byte: u8| char::from(byte).to_digit(10).map(u64::from);
    Some(
        word.iter()
            .try_fold(0_u64, |rows, &byte| {
                rows.checked_mul(10)?.checked_add(digit(byte)?)
            })
            .unwrap_or(0),
    )
}

/// The types of a statement's parameters: their count in two bytes, and four bytes each.
fn parameter_types(body: &[u8]) -> Option<Vec<u32>> {
    let (count, types) = body.split_first_chunk()?;
    let (types, rest) = types.as_chunks();
    (rest.is_empty() && types.len() == usize::from(u16::from_be_bytes(*count))).then(|| {
        types
            .iter()
            .map(|bytes| u32::from_be_bytes(*bytes))
            .collect()
    })
}

/// Hands the whole lines of `lines` over, without their ends, and keeps what is left.
fn hand_over(lines: &mut Vec<u8>, line: &mut impl FnMut(&[u8])) {
    let Some(last) = lines.iter().rposition(|&byte| byte == b'\n') else {
        return;
    };
    lines[..last].split(|&byte| byte == b'\n').for_each(line);
    lines.drain(..=last);
}

/// The first column of a row in text: `None` when there is none or it is NULL. What is longer than
/// `beginning` is cut off.
pub(super) fn first_column(beginning: &[u8]) -> Option<&[u8]> {
    let (count, rest) = beginning.split_first_chunk()?;
    let (length, text) = rest.split_first_chunk()?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    (i16::from_be_bytes(*count) != 0).then(|| &text[..length.min(text.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_ends_with_its_count() {
        for (tag, rows) in [
            (&b"INSERT 0 100\0"[..], Some(100)),
            (b"INSERT 16384 1\0", Some(1)),
            (b"DELETE 0\0", Some(0)),
            (b"SELECT 18446744073709551615\0", Some(u64::MAX)),
            (b"UPDATE 18446744073709551616\0", Some(0)),
            (b"CREATE TABLE\0", Some(0)),
            (b"FETCH 7x\0", Some(0)),
            (b"7\0", Some(7)),
            (b"\0", Some(0)),
            (b"", None),
            (b"INSERT 0 1", None),
        ] {
            assert_eq!(affected_rows(tag), rows, "{}", String::from_utf8_lossy(tag));
        }
    }

    #[test]
    fn parameters_are_as_many_as_they_say() {
        for (body, types) in [
            (&[0, 0][..], Some(vec![])),
            (&[0, 2, 0, 0, 0, 23, 0, 0, 0, 20], Some(vec![23, 20])),
            (&[0, 1], None),
            (&[0, 1, 0, 0, 0], None),
            (&[0, 0, 0, 0, 0, 23], None),
            (&[0, 1, 0, 0, 0, 23, 0], None),
            (&[0], None),
            (&[], None),
        ] {
            assert_eq!(parameter_types(body), types, "{body:?}");
        }
    }

    #[test]
    fn a_column_is_cut_where_the_row_is() {
        for (row, column) in [
            (&[0, 1, 0, 0, 0, 2, b'4', b'2'][..], Some(&b"42"[..])),
            (&[0, 2, 0, 0, 0, 1, b'4', 0, 0, 0, 1, b'2'], Some(b"4")),
            (&[0, 1, 0, 0, 0, 0], Some(b"")),
            (&[0, 1, 255, 255, 255, 255], None),
            (&[0, 0], None),
            (&[0, 0, 0, 0, 0, 1, b'4'], None),
            (&[0, 1, 0, 0, 0, 9, b'4'], Some(b"4")),
            (&[0, 1, 0, 0], None),
            (&[], None),
        ] {
            assert_eq!(first_column(row), column, "{row:?}");
        }
    }

    #[test]
    fn lines_come_whole() {
        let mut lines = Vec::new();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for piece in [&b"1\ta"[..], b"b", b"\n2", b"\n\n3\n4\n5", b"\n"] {
            lines.extend_from_slice(piece);
            hand_over(&mut lines, &mut |line: &[u8]| seen.push(line.to_vec()));
        }
        assert_eq!(seen, [&b"1\tab"[..], b"2", b"", b"3", b"4", b"5"]);
        assert!(lines.is_empty());
    }
}
