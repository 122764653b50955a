//! What the server's error codes mean for a worker, and errors in our words. By code, never by
//! SQLSTATE: 1205 comes as HY000.

use std::io;

use mysql::DriverError;
use mysql_common::proto::codec::error::PacketCodecError;

use super::wire::WireError;
use crate::{EngineError, ErrorClass, Prepared, SqlError};

/// Characters of a statement that an error quotes: a batch of inserts is thousands long, its
/// beginning says what it is.
const QUOTED_CHARS: usize = 200;

/// The client library's codes, used for what goes wrong on this side of the wire.
const CR_UNKNOWN: i64 = 2000;
const CR_CONNECTION: i64 = 2002;
const CR_SERVER_GONE: i64 = 2006;
const CR_SERVER_LOST: i64 = 2013;
const CR_PACKET_TOO_LARGE: i64 = 2020;
const CR_MALFORMED_PACKET: i64 = 2027;
/// A prepared statement that is not there.
const CR_NO_PREPARE: i64 = 2030;
/// An authentication that this side does not speak.
const CR_AUTH_PLUGIN: i64 = 2059;

/// Codes by meaning. One that is not here is [`ErrorClass::Statement`].
///
/// An error of the server that answers a statement says that the statement failed, and with
/// autocommit its transaction is rolled back. One that says that the session ends lets the
/// operation be tried again ([`ErrorClass::Unsent`]). A connection that ends without such an answer
/// leaves open whether the statement took place ([`ErrorClass::Lost`]), and so do errors about the
/// connection itself that the server may have met while it answered. A storage engine without
/// transactions keeps what a killed statement had done; counting the rows finds that.
const CLASSES: &[(i64, ErrorClass)] = &[
    (1213, ErrorClass::Deadlock),
    // MariaDB with innodb_snapshot_isolation: the row has changed since the snapshot was taken.
    // Only a new transaction helps.
    (1020, ErrorClass::Deadlock),
    // XA: the branch was rolled back to break a deadlock.
    (1614, ErrorClass::Deadlock),
    // Group replication: another member's transaction was first. Nothing of this one is there.
    (3101, ErrorClass::Deadlock),
    (1205, ErrorClass::Busy),
    // NOWAIT; MariaDB has 1205 for it.
    (3572, ErrorClass::Busy),
    (1062, ErrorClass::Duplicate),
    // EE_DISK_FULL, the disk, the table (also InnoDB's word for a full file system).
    (20, ErrorClass::Full),
    (1021, ErrorClass::Full),
    (1114, ErrorClass::Full),
    // Too many connections; a shutdown, which the server tells in place of an answer, or before it
    // reads the statement.
    (1040, ErrorClass::Unsent),
    (1053, ErrorClass::Unsent),
    (1077, ErrorClass::Unsent),
    (1079, ErrorClass::Unsent),
    // KILL QUERY; max_statement_time (MariaDB) and max_execution_time were over. No server says so
    // of what is committed: a statement that is killed while it commits is answered as done, from
    // 5.6 on (tests/error_classes.rs).
    (1317, ErrorClass::Cancelled),
    (1969, ErrorClass::Cancelled),
    (3024, ErrorClass::Cancelled),
    // A connection that was killed (MariaDB); one that was idle too long.
    (1927, ErrorClass::Unsent),
    (4031, ErrorClass::Unsent),
    // Aborted connections and errors on the wire, as the server tells them.
    (1152, ErrorClass::Lost),
    (1153, ErrorClass::Statement),
    (1158, ErrorClass::Lost),
    (1159, ErrorClass::Lost),
    (1160, ErrorClass::Lost),
    (1161, ErrorClass::Lost),
    (1184, ErrorClass::Lost),
    // The client library's own: no connection, a connection that took no statement, one that gave
    // no answer.
    (CR_CONNECTION, ErrorClass::Unsent),
    (2003, ErrorClass::Unsent),
    (CR_SERVER_GONE, ErrorClass::Unsent),
    (CR_SERVER_LOST, ErrorClass::Lost),
    (CR_MALFORMED_PACKET, ErrorClass::Lost),
    (2055, ErrorClass::Lost),
];

/// Codes that wrap an error of the operating system, whose number is in their text: could not
/// write, could not create, could not extend, the storage engine's error.
const WRAPPERS: &[i64] = &[1, 3, 1004, 1006, 1026, 1030, 1598];

/// ENOSPC and EDQUOT, as these texts have them.
const FULL_DISK: &[&str] = &[
    "rrcode: 28",
    "rror 28",
    "rrcode: 122",
    "rror 122",
    "errno: 28",
    "errno: 122",
    "No space left on device",
];

/// What a server's error means.
pub(super) fn class_of(code: i64, message: &str) -> ErrorClass {
    if WRAPPERS.contains(&code) && FULL_DISK.iter().any(|text| message.contains(text)) {
        return ErrorClass::Full;
    }
    CLASSES
        .iter()
        .find(|(known, _)| *known == code)
        .map_or(ErrorClass::Statement, |(_, class)| *class)
}

/// The error of a statement.
pub(super) fn sql_error(error: &mysql::Error, statement: &str) -> SqlError {
    let (code, message) = match error {
        mysql::Error::MySqlError(error) => (i64::from(error.code), error.message.clone()),
        mysql::Error::IoError(error) | mysql::Error::CodecError(PacketCodecError::Io(error)) => {
            loss(error)
        }
        mysql::Error::CodecError(PacketCodecError::PacketTooLarge)
        | mysql::Error::DriverError(DriverError::PacketTooLarge) => {
            (CR_PACKET_TOO_LARGE, TOO_LONG.to_owned())
        }
        mysql::Error::CodecError(error) => (CR_MALFORMED_PACKET, error.to_string()),
        mysql::Error::DriverError(error) => (driver_code(error), error.to_string()),
        other => (CR_UNKNOWN, other.to_string()),
    };
    sql_error_of(code, message, statement)
}

/// The error of a statement on the thin client.
#[cold]
pub(super) fn wire_error(error: &WireError, statement: &str) -> SqlError {
    let (code, message) = match error {
        WireError::Server { code, message } => (i64::from(*code), message.clone()),
        WireError::Unreachable(error) if is_late(error) => {
            (CR_CONNECTION, "no connection in time".to_owned())
        }
        WireError::Unreachable(error) => (CR_CONNECTION, format!("no connection: {error}")),
        WireError::Io(error) => loss(error),
        WireError::Malformed(what) => (
            CR_MALFORMED_PACKET,
            format!("the server's answer breaks the protocol: {what}"),
        ),
        WireError::Unasked => (
            CR_SERVER_GONE,
            "the server said more than it was asked, and the connection was given up".to_owned(),
        ),
        WireError::TooLong { bytes, allowed } => (
            CR_PACKET_TOO_LARGE,
            format!(
                "{TOO_LONG}: it has {bytes} bytes, and the server takes fewer than {allowed}; \
                raise max_allowed_packet"
            ),
        ),
        WireError::Arguments { wanted, given } => (
            CR_UNKNOWN,
            format!("the statement has {wanted} placeholders and was given {given} values"),
        ),
        WireError::NoInteger(text) => (
            CR_UNKNOWN,
            format!("the answer \"{text}\" is not a whole number"),
        ),
        WireError::Unsupported(what) => (CR_AUTH_PLUGIN, what.clone()),
    };
    sql_error_of(code, message, statement)
}

/// The error of a prepared statement of another session.
#[cold]
pub(super) fn not_prepared(prepared: Prepared) -> SqlError {
    let message = "this session did not prepare the statement; prepare it here first".to_owned();
    sql_error_of(
        CR_NO_PREPARE,
        message,
        &format!("prepared statement {}", prepared.0),
    )
}

const TOO_LONG: &str = "the statement is longer than max_allowed_packet";

fn sql_error_of(code: i64, message: String, statement: &str) -> SqlError {
    SqlError {
        class: class_of(code, &message),
        code,
        message,
        statement: statement.chars().take(QUOTED_CHARS).collect(),
    }
}

/// Code and words for the end of a connection.
fn loss(error: &io::Error) -> (i64, String) {
    let code = if is_unsent(error) {
        CR_SERVER_GONE
    } else {
        CR_SERVER_LOST
    };
    (
        code,
        if is_late(error) {
            "no answer in time".to_owned()
        } else {
            format!("lost connection: {error}")
        },
    )
}

/// Whether the kernel refused to send because the other side is closed: the server cannot have read
/// a whole statement. The client crate makes errors of the same kind for an answer that did not
/// come; those have no number of the kernel's.
fn is_unsent(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error())
}

/// Whether the limit of a connection's answers was over.
fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// The client library's code for what the client crate found wrong.
fn driver_code(error: &DriverError) -> i64 {
    match error {
        DriverError::ConnectTimeout | DriverError::CouldNotConnect(_) => CR_CONNECTION,
        DriverError::PacketOutOfSync | DriverError::UnexpectedPacket => CR_MALFORMED_PACKET,
        DriverError::Timeout | DriverError::SetupError => CR_SERVER_LOST,
        _ => CR_UNKNOWN,
    }
}

/// The error of something done for the server itself, with what to do about it.
pub(super) fn engine_error(statement: &str, error: &mysql::Error) -> EngineError {
    advise(&sql_error(error, statement))
}

/// The same of the thin client.
pub(super) fn wire_engine_error(statement: &str, error: &WireError) -> EngineError {
    advise(&wire_error(error, statement))
}

fn advise(error: &SqlError) -> EngineError {
    let next = match error.class {
        ErrorClass::Busy | ErrorClass::Deadlock => "end what holds the lock, or wait for it",
        ErrorClass::Full => "free space on the disk of the data directory, or take a smaller plan",
        ErrorClass::Lost | ErrorClass::Unsent | ErrorClass::Io => {
            "look into the server's log, and check that max_connections is large enough"
        }
        ErrorClass::Statement | ErrorClass::Duplicate | ErrorClass::Cancelled => {
            "check the config's settings and the tables' names"
        }
    };
    EngineError::new(format!("{error}; {next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_class() {
        use ErrorClass::{Busy, Cancelled, Deadlock, Full, Lost, Statement, Unsent};
        let table = [
            (
                1213,
                "Deadlock found when trying to get lock; try restarting transaction",
                Deadlock,
            ),
            (
                1020,
                "Record has changed since last read in table 'pi1'",
                Deadlock,
            ),
            (
                1205,
                "Lock wait timeout exceeded; try restarting transaction",
                Busy,
            ),
            (1040, "Too many connections", Unsent),
            (2006, "MySQL server has gone away", Unsent),
            (2013, "Lost connection to MySQL server during query", Lost),
            (
                2002,
                "Can't connect to local MySQL server through socket",
                Unsent,
            ),
            (2003, "Can't connect to MySQL server on '127.0.0.1'", Unsent),
            (1053, "Server shutdown in progress", Unsent),
            (1927, "Connection was killed", Unsent),
            (1114, "The table 'pi1' is full", Full),
            (
                1021,
                "Disk full (/tmp); waiting for someone to free some space",
                Full,
            ),
            (
                3,
                "Error writing file './ib/pi1.frm' (Errcode: 28 - No space left on device)",
                Full,
            ),
            (3, "Error writing file './ib/pi1.frm' (Errcode: 28)", Full),
            (3, "Error writing file './ib/pi1.frm' (errno: 122)", Full),
            (
                3,
                "Error writing file './ib/pi1.frm' (Errcode: 5 - Input/output error)",
                Statement,
            ),
            (
                1026,
                "Error writing file 'binlog.000001' (errno: 28 \"No space left on device\")",
                Full,
            ),
            (1030, "Got error 28 from storage engine", Full),
            (1030, "Got error 168 from storage engine", Statement),
            (
                1064,
                "You have an error in your SQL syntax near 'Errcode: 28'",
                Statement,
            ),
            (1146, "Table 'ib.pi1' doesn't exist", Statement),
            (1317, "Query execution was interrupted", Cancelled),
            (
                3024,
                "Query execution was interrupted, maximum statement execution time exceeded",
                Cancelled,
            ),
            (
                1969,
                "Query execution was interrupted (max_statement_time exceeded)",
                Cancelled,
            ),
            (
                3572,
                "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is \
                set.",
                Busy,
            ),
            (
                3101,
                "Plugin instructed the server to rollback the current transaction.",
                Deadlock,
            ),
            (1160, "Got an error writing communication packets", Lost),
            (
                1153,
                "Got a packet bigger than 'max_allowed_packet' bytes",
                Statement,
            ),
        ];
        for (code, message, class) in table {
            assert_eq!(class_of(code, message), class, "{code}: {message}");
        }
    }

    #[test]
    fn what_the_client_finds_has_the_client_librarys_codes() {
        let gone = mysql::Error::IoError(io::Error::from(io::ErrorKind::UnexpectedEof));
        let refused = mysql::Error::DriverError(DriverError::CouldNotConnect(None));
        let closed = mysql::Error::IoError(rustix::io::Errno::PIPE.into());
        let no_answer = mysql::Error::IoError(io::Error::new(
            io::ErrorKind::BrokenPipe,
            "server disconnected",
        ));
        let too_long = mysql::Error::DriverError(DriverError::PacketTooLarge);
        let arguments = mysql::Error::DriverError(DriverError::MismatchedStmtParams(2, 1));
        let table = [
            (gone, CR_SERVER_LOST, ErrorClass::Lost),
            (refused, CR_CONNECTION, ErrorClass::Unsent),
            (closed, CR_SERVER_GONE, ErrorClass::Unsent),
            (no_answer, CR_SERVER_LOST, ErrorClass::Lost),
            (too_long, CR_PACKET_TOO_LARGE, ErrorClass::Statement),
            (arguments, CR_UNKNOWN, ErrorClass::Statement),
        ];
        for (error, code, class) in table {
            let error = sql_error(&error, "select 1");
            assert_eq!((error.code, error.class), (code, class), "{error}");
        }
    }

    #[test]
    fn what_the_thin_client_finds_has_them_too() {
        let table = [
            (
                WireError::Server {
                    code: 1213,
                    message: "Deadlock found".into(),
                },
                1213,
                ErrorClass::Deadlock,
            ),
            (
                WireError::Unreachable(io::ErrorKind::ConnectionRefused.into()),
                CR_CONNECTION,
                ErrorClass::Unsent,
            ),
            (
                WireError::Unreachable(io::ErrorKind::TimedOut.into()),
                CR_CONNECTION,
                ErrorClass::Unsent,
            ),
            (
                WireError::Io(io::ErrorKind::UnexpectedEof.into()),
                CR_SERVER_LOST,
                ErrorClass::Lost,
            ),
            (
                WireError::Io(rustix::io::Errno::CONNRESET.into()),
                CR_SERVER_LOST,
                ErrorClass::Lost,
            ),
            (
                WireError::Io(rustix::io::Errno::PIPE.into()),
                CR_SERVER_GONE,
                ErrorClass::Unsent,
            ),
            (
                WireError::Malformed("half an error"),
                CR_MALFORMED_PACKET,
                ErrorClass::Lost,
            ),
            (WireError::Unasked, CR_SERVER_GONE, ErrorClass::Unsent),
            (
                WireError::TooLong {
                    bytes: 2,
                    allowed: 1,
                },
                CR_PACKET_TOO_LARGE,
                ErrorClass::Statement,
            ),
            (
                WireError::Arguments {
                    wanted: 2,
                    given: 1,
                },
                CR_UNKNOWN,
                ErrorClass::Statement,
            ),
            (
                WireError::NoInteger("1.5".into()),
                CR_UNKNOWN,
                ErrorClass::Statement,
            ),
            (
                WireError::Unsupported("parsec".into()),
                CR_AUTH_PLUGIN,
                ErrorClass::Statement,
            ),
        ];
        for (error, code, class) in table {
            let error = wire_error(&error, "select 1");
            assert_eq!((error.code, error.class), (code, class), "{error}");
        }
    }

    #[test]
    fn a_statement_is_quoted_by_whole_characters() {
        let error = sql_error(
            &mysql::Error::DriverError(DriverError::Timeout),
            &"é".repeat(QUOTED_CHARS + 1),
        );
        assert_eq!(error.statement, "é".repeat(QUOTED_CHARS));
    }
}
