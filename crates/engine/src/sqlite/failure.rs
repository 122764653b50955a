//! What SQLite's result codes mean for a worker, and errors in our words.

use std::time::{Duration, Instant};

use libsqlite3_sys as ffi;

use super::library::Failure;
use crate::{EngineError, ErrorClass, SqlError};

/// Characters of a statement that an error quotes: a batch of inserts is thousands long, its
/// beginning says what it is.
const QUOTED_CHARS: usize = 200;

/// Between two tries where nothing is measured.
const PAUSE: Duration = Duration::from_millis(2);

/// Result codes by meaning; an extended code that is not here counts as its primary code (the low
/// byte), and a primary code that is not here as [`ErrorClass::Statement`].
const CLASSES: &[(i32, ErrorClass)] = &[
    // Every transaction takes the write lock first, so even a stale snapshot (an extended code of
    // BUSY) is cured by starting again.
    (ffi::SQLITE_BUSY, ErrorClass::Busy),
    (ffi::SQLITE_LOCKED, ErrorClass::Busy),
    // A race for the locks of the WAL that lasted for many tries of the library.
    (ffi::SQLITE_PROTOCOL, ErrorClass::Busy),
    (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, ErrorClass::Duplicate),
    (ffi::SQLITE_CONSTRAINT_ROWID, ErrorClass::Duplicate),
    (ffi::SQLITE_CONSTRAINT_UNIQUE, ErrorClass::Duplicate),
    (ffi::SQLITE_INTERRUPT, ErrorClass::Cancelled),
    (ffi::SQLITE_FULL, ErrorClass::Full),
    // The WAL's index could not be made larger; the library has no better word for a disk that
    // filled up there.
    (ffi::SQLITE_IOERR_SHMSIZE, ErrorClass::Full),
    // The file cannot be read or written as it should: no statement of this connection will do
    // better.
    (ffi::SQLITE_IOERR, ErrorClass::Io),
    (ffi::SQLITE_CORRUPT, ErrorClass::Io),
    (ffi::SQLITE_CANTOPEN, ErrorClass::Io),
    (ffi::SQLITE_NOTADB, ErrorClass::Io),
    (ffi::SQLITE_READONLY_DBMOVED, ErrorClass::Io),
];

/// What an extended result code means.
pub(super) fn class_of(extended_code: i32) -> ErrorClass {
    let class = |code: i32| {
        CLASSES
            .iter()
            .find(|(known, _)| *known == code)
            .map(|(_, class)| *class)
    };
    class(extended_code)
        .or_else(|| class(extended_code & 0xff))
        .unwrap_or(ErrorClass::Statement)
}

/// The error of a statement.
pub(super) fn sql_error(failure: &Failure, statement: &str) -> SqlError {
    SqlError {
        class: class_of(failure.code),
        code: i64::from(failure.code),
        message: failure.message.clone(),
        statement: statement.chars().take(QUOTED_CHARS).collect(),
    }
}

/// The error of something done for the server itself, with what to do about it.
pub(super) fn engine_error(statement: &str, failure: &Failure) -> EngineError {
    let error = sql_error(failure, statement);
    let next = match error.class {
        ErrorClass::Busy | ErrorClass::Deadlock => {
            "end the program that holds the database's lock, or wait for it"
        }
        ErrorClass::Full => "free space on the disk of the data directory, or take a smaller plan",
        ErrorClass::Io | ErrorClass::Lost | ErrorClass::Unsent => {
            "check that the data directory exists, can be written and holds no foreign or damaged \
            file"
        }
        ErrorClass::Statement | ErrorClass::Duplicate | ErrorClass::Cancelled => {
            "check the config's settings and the tables' names"
        }
    };
    EngineError::new(format!("{error}; {next}"))
}

/// Tries again while the lock is taken, until `deadline`. For work that nobody measures: an
/// operation under load gets its error at once, because waiting is the load loop's business.
pub(super) fn wait_while_busy<T>(
    deadline: Instant,
    mut attempt: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < deadline => std::thread::sleep(PAUSE),
            answer => return answer,
        }
    }
}

/// Whether another connection's lock is in the way.
pub(super) fn is_busy(failure: &Failure) -> bool {
    class_of(failure.code) == ErrorClass::Busy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_class() {
        use ErrorClass::{Busy, Cancelled, Duplicate, Full, Io, Statement};
        let table = [
            (ffi::SQLITE_BUSY, Busy),
            (ffi::SQLITE_BUSY_RECOVERY, Busy),
            (ffi::SQLITE_BUSY_SNAPSHOT, Busy),
            (ffi::SQLITE_BUSY_TIMEOUT, Busy),
            (ffi::SQLITE_LOCKED, Busy),
            (ffi::SQLITE_LOCKED_SHAREDCACHE, Busy),
            (ffi::SQLITE_PROTOCOL, Busy),
            (ffi::SQLITE_INTERRUPT, Cancelled),
            (ffi::SQLITE_FULL, Full),
            (ffi::SQLITE_IOERR_SHMSIZE, Full),
            (ffi::SQLITE_IOERR, Io),
            (ffi::SQLITE_IOERR_WRITE, Io),
            (ffi::SQLITE_IOERR_FSYNC, Io),
            (ffi::SQLITE_CORRUPT, Io),
            (ffi::SQLITE_CORRUPT_INDEX, Io),
            (ffi::SQLITE_NOTADB, Io),
            (ffi::SQLITE_CANTOPEN, Io),
            (ffi::SQLITE_CANTOPEN_ISDIR, Io),
            (ffi::SQLITE_READONLY_DBMOVED, Io),
            (ffi::SQLITE_READONLY, Statement),
            (ffi::SQLITE_ERROR, Statement),
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, Duplicate),
            (ffi::SQLITE_MISUSE, Statement),
            (ffi::SQLITE_TOOBIG, Statement),
            (ffi::SQLITE_NOMEM, Statement),
        ];
        for (code, class) in table {
            assert_eq!(class_of(code), class, "{code}: {}", ffi::code_to_str(code));
        }
    }

    #[test]
    fn a_statement_is_quoted_by_whole_characters() {
        let statement = "é".repeat(QUOTED_CHARS + 1);
        let error = sql_error(&Failure::misuse("wrong"), &statement);
        assert_eq!(error.statement, "é".repeat(QUOTED_CHARS));
        assert_eq!((error.class, error.code), (ErrorClass::Statement, 21));
    }

    #[test]
    fn waiting_ends_with_the_lock_with_another_error_and_with_the_deadline() {
        let failure = |code| Failure {
            code,
            message: String::new(),
        };
        let later = Instant::now() + Duration::from_secs(60);
        let mut tries = 0;
        let answer = wait_while_busy(later, || {
            tries += 1;
            if tries < 3 {
                Err(failure(ffi::SQLITE_BUSY_RECOVERY))
            } else {
                Ok(tries)
            }
        });
        assert_eq!(answer.unwrap(), 3);

        for (deadline, code) in [
            (Instant::now(), ffi::SQLITE_BUSY),
            (later, ffi::SQLITE_FULL),
        ] {
            let mut tries = 0;
            let answer = wait_while_busy(deadline, || {
                tries += 1;
                Err::<(), _>(failure(code))
            });
            assert_eq!((answer.is_err(), tries), (true, 1), "{code}");
        }
    }
}
