//! A connection that is logged in: commands and their answers.

use std::time::Duration;

use mysql::Opts;

use super::error::WireError;
use super::execute::Execute;
use super::fields::Fields;
use super::handshake::shake_hands;
use super::packets::{ERROR, FULL, HEADER_BYTES, Packets};
use crate::wire::{Place, Socket};
use crate::{Argument, Counts};

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;

/// The first byte of what is not a row: all is well, a file is asked for, the end of definitions
/// and of rows.
const OK: u8 = 0x00;
const LOCAL_FILE: u8 = 0xfb;
pub(super) const END: u8 = 0xfe;

/// All that is looked at of an answer's beginning: kind, two numbers, status, warnings.
const LONGEST_HEAD: usize = 23;
/// Kind, warnings, status.
pub(super) const END_BYTES: usize = 5;
/// No table or query has more.
const MOST_COLUMNS: u64 = u16::MAX as u64;
pub(super) const MORE_RESULTS: u16 = 0x0008;

/// How an answer begins.
enum Head {
    Done { affected: u64, has_more: bool },
    Rows { columns: u64 },
}

/// Whether the server takes a request of so many bytes.
#[inline]
fn check_length(bytes: usize, allowed: usize) -> Result<(), WireError> {
    if bytes < allowed {
        Ok(())
    } else {
        Err(WireError::TooLong { bytes, allowed })
    }
}

/// A row whose payload comes next.
struct Row {
    /// Of the payload's first packet.
    length: usize,
    /// The payload's first byte.
    kind: u8,
    columns: u64,
}

/// A session of the server.
#[derive(Debug)]
pub(super) struct Link {
    packets: Packets,
    /// The server's `max_allowed_packet`: it takes what is shorter.
    longest: usize,
}

impl Link {
    /// Connects, logs in, and says what every session begins with. `patience` is the limit for each
    /// answer until then; later ones have none.
    pub fn connect(opts: &Opts, patience: Duration) -> Result<Self, WireError> {
        let socket = Socket::connect(&place(opts), patience).map_err(WireError::Unreachable)?;
        let mut packets = Packets::new(socket);
        shake_hands(&mut packets, opts)?;
        let mut link = Self {
            packets,
            longest: FULL,
        };
        let longest = link
            .integer("SELECT @@max_allowed_packet")?
            .and_then(|longest| usize::try_from(longest).ok());
        link.longest = longest
            .filter(|&longest| longest > 0)
            .ok_or(WireError::Malformed("no max_allowed_packet"))?;
        for sql in opts.get_init() {
            link.write(&sql)?;
        }
        link.packets.socket.wait_for_ever()?;
        Ok(link)
    }

    /// A session of a server that has let us in already.
    #[cfg(fuzzing)]
    pub fn on(packets: Packets) -> Self {
        Self {
            packets,
            longest: FULL,
        }
    }

    /// Runs a statement and returns the affected rows.
    pub fn write(&mut self, sql: &str) -> Result<u64, WireError> {
        self.ask(COM_QUERY, sql)?;
        self.answers(|packets, row| packets.skip(row.length))
    }

    /// Runs a query and returns the number of its rows.
    pub fn count(&mut self, sql: &str) -> Result<u64, WireError> {
        Ok(self.perform(sql)?.rows)
    }

    /// Runs a query and hands each row's columns to `row`. `None` is NULL.
    pub fn each_row(
        &mut self,
        sql: &str,
        mut row: impl FnMut(&[Option<&[u8]>]),
    ) -> Result<(), WireError> {
        self.ask(COM_QUERY, sql)?;
        let mut payload = Vec::new();
        self.answers(|packets, next| {
            packets.copy(next.length, &mut payload)?;
            let mut fields = Fields(&payload);
            let columns: Option<Vec<_>> = (0..next.columns).map(|_| fields.column()).collect();
            match columns {
                Some(columns) if fields.0.is_empty() => row(&columns),
                _ => {
                    return Err(WireError::Malformed(
                        "a row with other columns than announced",
                    ));
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The first column of a query's first row. `None` for NULL and for no row.
    pub fn integer(&mut self, sql: &str) -> Result<Option<i64>, WireError> {
        let mut first: Option<Option<String>> = None;
        self.each_row(sql, |columns| {
            first.get_or_insert_with(|| {
                columns[0].map(|text| String::from_utf8_lossy(text).into_owned())
            });
        })?;
        first
            .flatten()
            .map(|text| text.parse().map_err(|_| WireError::NoInteger(text)))
            .transpose()
    }

    pub fn prepare(&mut self, sql: &str) -> Result<Execute, WireError> {
        self.ask(COM_STMT_PREPARE, sql)?;
        let mut message = Vec::new();
        self.packets.message(&mut message)?;
        let mut fields = Fields(&message);
        let prepared = (|| {
            let kind = fields.byte()?;
            Some((kind, fields.u32()?, fields.u16()?, fields.u16()?))
        })();
        let Some((OK, statement, columns, placeholders)) = prepared else {
            return Err(WireError::Malformed("half a prepared statement"));
        };
        for definitions in [placeholders, columns] {
            if definitions > 0 {
                self.skip_definitions(definitions.into())?;
            }
        }
        Ok(Execute::new(statement, placeholders))
    }

    /// Runs a prepared query and returns the number of its rows.
    pub fn count_prepared(
        &mut self,
        statement: &mut Execute,
        arguments: &[i64],
    ) -> Result<u64, WireError> {
        self.send_execute(statement.request(arguments)?)?;
        Ok(self.executed(statement)?.rows)
    }

    /// Runs a prepared statement and returns the affected rows.
    pub fn write_prepared(
        &mut self,
        statement: &mut Execute,
        arguments: &[i64],
    ) -> Result<u64, WireError> {
        self.send_execute(statement.request(arguments)?)?;
        let affected = self.answers(skip_binary)?;
        statement.bind();
        Ok(affected)
    }

    /// Runs a statement, and says what it fetched and affected.
    pub fn perform(&mut self, sql: &str) -> Result<Counts, WireError> {
        self.ask(COM_QUERY, sql)?;
        match self.packets.whole_answer(|_| true)? {
            Some(rows) => Ok(Counts { rows, affected: 0 }),
            None => self.count_all(|packets, row| packets.skip(row.length)),
        }
    }

    /// The same with a prepared statement.
    pub fn perform_prepared(
        &mut self,
        statement: &mut Execute,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, WireError> {
        self.send_execute(statement.request_of(arguments)?)?;
        self.executed(statement)
    }

    /// Takes the answer to a prepared statement.
    #[inline]
    fn executed(&mut self, statement: &mut Execute) -> Result<Counts, WireError> {
        let counts = match self.packets.whole_answer(|kind| kind == OK)? {
            Some(rows) => Counts { rows, affected: 0 },
            None => self.count_all(skip_binary)?,
        };
        statement.bind();
        Ok(counts)
    }

    /// Says that this is the end, and waits for nothing.
    pub fn quit(mut self) {
        // A server that is gone need not hear it.
        let _ = self.packets.send_command(COM_QUIT, b"");
    }

    fn ask(&mut self, command: u8, text: &str) -> Result<(), WireError> {
        check_length(1 + text.len(), self.longest)?;
        self.packets.send_command(command, text.as_bytes())
    }

    fn send_execute(&mut self, request: &[u8]) -> Result<(), WireError> {
        // A packet that is full would need another behind it.
        check_length(request.len() - HEADER_BYTES, self.longest.min(FULL))?;
        self.packets.send_request(request)
    }

    /// Takes all answers to a command and counts their rows, which `row` passes over.
    fn count_all(
        &mut self,
        mut row: impl FnMut(&mut Packets, &Row) -> Result<(), WireError>,
    ) -> Result<Counts, WireError> {
        let mut rows = 0;
        let affected = self.answers(|packets, next| {
            rows += 1;
            row(packets, next)
        })?;
        Ok(Counts { rows, affected })
    }

    /// Takes all answers to a command. What the first affected is returned, and `row` gets its
    /// rows.
    fn answers(
        &mut self,
        row: impl FnMut(&mut Packets, &Row) -> Result<(), WireError>,
    ) -> Result<u64, WireError> {
        let (affected, has_more) = self.answer(row)?;
        if has_more {
            self.skip_answers()?;
        }
        Ok(affected)
    }

    #[cold]
    fn skip_answers(&mut self) -> Result<(), WireError> {
        while self.answer(|packets, row| packets.skip(row.length))?.1 {}
        Ok(())
    }

    /// Takes an answer. Returns what was affected, and whether another answer follows.
    fn answer(
        &mut self,
        mut row: impl FnMut(&mut Packets, &Row) -> Result<(), WireError>,
    ) -> Result<(u64, bool), WireError> {
        let columns = match self.head()? {
            Head::Done { affected, has_more } => return Ok((affected, has_more)),
            Head::Rows { columns } => columns,
        };
        self.skip_definitions(columns)?;
        loop {
            let (length, kind) = self.packets.next_kind()?;
            match kind {
                ERROR => return Err(self.packets.error(length)),
                // A row begins like this when its first column is as long as a packet.
                END if length < FULL => return Ok((0, self.end(length)?)),
                _ => row(
                    &mut self.packets,
                    &Row {
                        length,
                        kind,
                        columns,
                    },
                )?,
            }
        }
    }

    fn head(&mut self) -> Result<Head, WireError> {
        let (length, kind) = self.packets.next_kind()?;
        if kind == ERROR {
            return Err(self.packets.error(length));
        }
        let mut fields = Fields(self.packets.show(length.min(LONGEST_HEAD))?);
        let head = match kind {
            OK => done(&mut fields).ok_or(WireError::Malformed("half a success"))?,
            LOCAL_FILE => return Err(WireError::Malformed("the server asks for a local file")),
            END => return Err(WireError::Malformed("an end where an answer was due")),
            _ => match fields.number() {
                Some(columns @ 1..=MOST_COLUMNS) if fields.0.is_empty() => Head::Rows { columns },
                _ => return Err(WireError::Malformed("a number of columns that is none")),
            },
        };
        self.packets.skip(length)?;
        Ok(head)
    }

    /// Passes over definitions of columns and over their end.
    fn skip_definitions(&mut self, count: u64) -> Result<(), WireError> {
        for _ in 0..count {
            let (length, kind) = self.packets.next_kind()?;
            match kind {
                ERROR => return Err(self.packets.error(length)),
                END => return Err(WireError::Malformed("fewer columns than announced")),
                _ => self.packets.skip(length)?,
            }
        }
        let (length, kind) = self.packets.next_kind()?;
        match kind {
            ERROR => Err(self.packets.error(length)),
            END => self.end(length).map(drop),
            _ => Err(WireError::Malformed("more columns than announced")),
        }
    }

    /// Takes an end mark. Returns whether another answer follows.
    fn end(&mut self, length: usize) -> Result<bool, WireError> {
        if length != END_BYTES {
            return Err(WireError::Malformed("an end of another length"));
        }
        let seen = self.packets.show(END_BYTES)?;
        let status = u16::from_le_bytes([seen[3], seen[4]]);
        self.packets.skip(END_BYTES)?;
        Ok(status & MORE_RESULTS != 0)
    }
}

fn done(fields: &mut Fields<'_>) -> Option<Head> {
    let _kind = fields.byte()?;
    let affected = fields.number()?;
    let _id = fields.number()?;
    let status = fields.u16()?;
    let _warnings = fields.u16()?;
    Some(Head::Done {
        affected,
        has_more: status & MORE_RESULTS != 0,
    })
}

fn skip_binary(packets: &mut Packets, row: &Row) -> Result<(), WireError> {
    if row.kind != OK {
        return Err(WireError::Malformed("a row that is none"));
    }
    packets.skip(row.length)
}

fn place(opts: &Opts) -> Place {
    match opts.get_socket() {
        Some(path) => Place::Unix(path.into()),
        None => Place::Tcp(opts.get_ip_or_hostname().into_owned(), opts.get_tcp_port()),
    }
}
