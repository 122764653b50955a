//! SQLite's C functions: those of the library that is compiled into this program, or those of a
//! shared library that is loaded at run time. Both are called through one table, so that all
//! versions are measured with the same client. What leaves this file is safe to use.
//!
//! A shared library stays loaded until the process ends, and there is one per process: two of them
//! would not know of each other's locks on a file, which the system drops for a whole process when
//! any one descriptor of the file is closed.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use libsqlite3_sys as ffi;

use crate::{Argument, EngineError};

type Db = *mut ffi::sqlite3;
type Stmt = *mut ffi::sqlite3_stmt;
type Text = *const c_char;

/// The functions' table, as `sqlite3.h` declares them: of all versions since 3.8 (2013).
macro_rules! functions {
    ($($name:ident: $type:ty;)*) => {
        struct Functions {
            $($name: $type,)*
        }

        static BUNDLED: Library = Library {
            functions: Functions { $($name: ffi::$name,)* },
        };

        impl Functions {
            fn find(library: &Loaded, path: &Path) -> Result<Self, EngineError> {
                Ok(Self {
                    $($name: {
                        let name = stringify!($name);
                        // SAFETY: `sqlite3.h` declares a function of this name with this type in
                        // every version since 3.8, and a library that exports all of the table's
                        // names is SQLite. It is never unloaded.
                        match unsafe { library.get::<$type>(name) } {
                            Ok(function) => *function,
                            Err(_) => return Err(EngineError::new(format!(
                                "{} is not an SQLite that can be used: it lacks the C function \
                                {name}, which 3.8 and newer have; give a shared library that was \
                                made of SQLite alone, libsqlite3.so",
                                path.display()
                            ))),
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    sqlite3_libversion: unsafe extern "C" fn() -> Text;
    sqlite3_sourceid: unsafe extern "C" fn() -> Text;
    sqlite3_threadsafe: unsafe extern "C" fn() -> c_int;
    sqlite3_errstr: unsafe extern "C" fn(c_int) -> Text;
    sqlite3_errmsg: unsafe extern "C" fn(Db) -> Text;
    sqlite3_extended_errcode: unsafe extern "C" fn(Db) -> c_int;
    sqlite3_extended_result_codes: unsafe extern "C" fn(Db, c_int) -> c_int;
    sqlite3_open_v2: unsafe extern "C" fn(Text, *mut Db, c_int, Text) -> c_int;
    sqlite3_close: unsafe extern "C" fn(Db) -> c_int;
    sqlite3_busy_timeout: unsafe extern "C" fn(Db, c_int) -> c_int;
    sqlite3_get_autocommit: unsafe extern "C" fn(Db) -> c_int;
    sqlite3_changes: unsafe extern "C" fn(Db) -> c_int;
    sqlite3_prepare_v2: unsafe extern "C" fn(Db, Text, c_int, *mut Stmt, *mut Text) -> c_int;
    sqlite3_finalize: unsafe extern "C" fn(Stmt) -> c_int;
    sqlite3_step: unsafe extern "C" fn(Stmt) -> c_int;
    sqlite3_reset: unsafe extern "C" fn(Stmt) -> c_int;
    sqlite3_bind_parameter_count: unsafe extern "C" fn(Stmt) -> c_int;
    sqlite3_bind_int64: unsafe extern "C" fn(Stmt, c_int, i64) -> c_int;
    sqlite3_bind_text: unsafe extern "C" fn(
        Stmt, c_int, Text, c_int, Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int;
    sqlite3_column_count: unsafe extern "C" fn(Stmt) -> c_int;
    sqlite3_column_type: unsafe extern "C" fn(Stmt, c_int) -> c_int;
    sqlite3_column_int64: unsafe extern "C" fn(Stmt, c_int) -> i64;
    sqlite3_column_double: unsafe extern "C" fn(Stmt, c_int) -> f64;
    sqlite3_column_text: unsafe extern "C" fn(Stmt, c_int) -> *const c_uchar;
    sqlite3_column_blob: unsafe extern "C" fn(Stmt, c_int) -> *const c_void;
    sqlite3_column_bytes: unsafe extern "C" fn(Stmt, c_int) -> c_int;
}

/// The shared library of this process: a second is refused.
static THE_ONE: Mutex<Option<(PathBuf, &'static Library)>> = Mutex::new(None);

/// An error of the library, or a wrong use of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The extended result code.
    pub code: c_int,
    /// In the library's words.
    pub message: String,
}

impl Failure {
    /// What is refused before the library sees it.
    pub(super) fn misuse(message: impl Into<String>) -> Self {
        Self {
            code: ffi::SQLITE_MISUSE,
            message: message.into(),
        }
    }
}

pub(super) struct Library {
    functions: Functions,
}

impl Library {
    /// The library that is compiled into this program.
    pub(super) fn bundled() -> &'static Self {
        &BUNDLED
    }

    /// Loads a shared library, or returns it when it is loaded already.
    pub(super) fn load(path: &Path) -> Result<&'static Self, EngineError> {
        let path = path.canonicalize().map_err(|error| {
            EngineError::new(format!("read the library {}: {error}", path.display()))
        })?;
        let mut one = THE_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        match &*one {
            Some((loaded, library)) if *loaded == path => return Ok(library),
            Some((loaded, _)) => {
                return Err(EngineError::new(format!(
                    "load {}: this process has loaded {} already, and two versions of SQLite do \
                    not see each other's locks; use one process for each",
                    path.display(),
                    loaded.display()
                )));
            }
            None => {}
        }
        let loaded = open(&path)?;
        let functions = Functions::find(&loaded, &path)?;
        std::mem::forget(loaded);
        let library: &'static Self = Box::leak(Box::new(Self { functions }));
        if !library.has_threads() {
            return Err(EngineError::new(format!(
                "{} was compiled with SQLITE_THREADSAFE=0 and cannot have several workers; compile \
                it with 1 or 2",
                path.display()
            )));
        }
        *one = Some((path, library));
        Ok(library)
    }

    /// `3.39.2`.
    pub(super) fn version(&self) -> String {
        // SAFETY: takes nothing.
        self.text(unsafe { (self.functions.sqlite3_libversion)() })
    }

    /// The check-in that the library was made of: date, time and hash.
    pub(super) fn source_id(&self) -> String {
        // SAFETY: takes nothing.
        self.text(unsafe { (self.functions.sqlite3_sourceid)() })
    }

    /// Whether threads may have connections of their own.
    pub(super) fn has_threads(&self) -> bool {
        // SAFETY: takes nothing.
        unsafe { (self.functions.sqlite3_threadsafe)() != 0 }
    }

    /// Copies a text of the library's.
    fn text(&self, text: Text) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: not null, ends with a zero byte, and stays until the library is called again.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }

    /// What a code means, whatever connection it came from.
    fn described(&self, code: c_int) -> Failure {
        Failure {
            code,
            // SAFETY: takes any number.
            message: self.text(unsafe { (self.functions.sqlite3_errstr)(code) }),
        }
    }

    /// What a connection says of the call that has just ended with this code.
    fn failure(&self, db: NonNull<ffi::sqlite3>, code: c_int) -> Failure {
        Failure {
            code,
            // SAFETY: the connection is open.
            message: self.text(unsafe { (self.functions.sqlite3_errmsg)(db.as_ptr()) }),
        }
    }
}

fn open(path: &Path) -> Result<Loaded, EngineError> {
    // SAFETY: loading runs the library's initialisers. The caller chose the file as a build of
    // SQLite, which has none; a trial and a probe are processes of their own, should one abort.
    unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        // The loader's own words are the source of the error.
        let error =
            std::error::Error::source(&error).map_or_else(|| error.to_string(), |e| e.to_string());
        let path = path.display();
        EngineError::new(format!(
            "load {path}: {error}; try `ldd {path}`, and give libsqlite3.so of this machine's kind"
        ))
    })
}

/// A connection and the statements that it keeps. It belongs to one thread at a time and has no
/// mutex of its own.
pub(super) struct Connection {
    library: &'static Library,
    db: NonNull<ffi::sqlite3>,
    kept: Vec<Kept>,
}

/// A statement that is compiled once.
struct Kept {
    raw: NonNull<ffi::sqlite3_stmt>,
    parameters: usize,
    is_lent: Cell<bool>,
}

// SAFETY: the library is compiled for threads (`load` refuses others, a test looks at the bundled
// one), so that each thread may have connections of its own and hand them to another. Everything
// that borrows a connection ends before it can be handed on, and `Sync` it is not.
unsafe impl Send for Connection {}

impl Connection {
    /// Opens a database file; makes it if `is_made` says so and it is not there. Result codes are
    /// extended, and a lock is an error at once.
    pub(super) fn open(
        library: &'static Library,
        path: &Path,
        is_made: bool,
    ) -> Result<Self, Failure> {
        let functions = &library.functions;
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Failure::misuse("the path holds a zero byte"))?;
        let mut flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_NOMUTEX;
        if is_made {
            flags |= ffi::SQLITE_OPEN_CREATE;
        }
        let mut db = ptr::null_mut();
        // SAFETY: the path ends with a zero byte, and the library writes one pointer.
        let code =
            unsafe { (functions.sqlite3_open_v2)(path.as_ptr(), &mut db, flags, ptr::null()) };
        // Without memory for a connection there is none to ask.
        let db = NonNull::new(db).ok_or_else(|| library.described(code))?;
        let connection = Self {
            library,
            db,
            kept: Vec::new(),
        };
        if code != ffi::SQLITE_OK {
            // SAFETY: a connection that could not be opened can be asked why, and closed.
            let extended = unsafe { (functions.sqlite3_extended_errcode)(db.as_ptr()) };
            return Err(library.failure(db, extended));
        }
        // SAFETY: the connection is open.
        connection
            .check(unsafe { (functions.sqlite3_extended_result_codes)(db.as_ptr(), 1) })
            .map(|()| connection)
    }

    /// How long a call waits for a lock before it is an error; at most 24 days.
    pub(super) fn wait_for_locks(&self, patience: Duration) -> Result<(), Failure> {
        let milliseconds = c_int::try_from(patience.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: the connection is open.
        self.check(unsafe {
            (self.library.functions.sqlite3_busy_timeout)(self.db.as_ptr(), milliseconds)
        })
    }

    /// Whether no transaction is open.
    pub(super) fn is_autocommit(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { (self.library.functions.sqlite3_get_autocommit)(self.db.as_ptr()) != 0 }
    }

    /// Compiles a text with exactly one statement.
    pub(super) fn prepare(&self, sql: &str) -> Result<Statement<'_>, Failure> {
        let (raw, rest) = self.compile(sql)?;
        let raw = raw.ok_or_else(|| Failure::misuse("the text holds no statement"))?;
        let statement = Statement {
            library: self.library,
            db: self.db,
            // SAFETY: just made.
            parameters: unsafe { self.parameters(raw) },
            raw,
            end: End::Finalize(PhantomData),
        };
        let rest = rest.trim_start_matches(|c: char| c == ';' || c.is_ascii_whitespace());
        if !rest.is_empty()
            && let (Some(second), _) = self.compile(rest)?
        {
            // SAFETY: just made, and nobody else has it.
            unsafe { (self.library.functions.sqlite3_finalize)(second.as_ptr()) };
            return Err(Failure::misuse("Multiple statements in one text"));
        }
        Ok(statement)
    }

    /// Compiles a statement and keeps it for as long as the connection is open. Returns its number,
    /// counted from 0.
    pub(super) fn keep(&mut self, sql: &str) -> Result<usize, Failure> {
        let mut statement = self.prepare(sql)?;
        let is_lent = Cell::new(false);
        let kept = Kept {
            raw: statement.raw,
            parameters: statement.parameters,
            is_lent,
        };
        statement.end = End::Nothing;
        drop(statement);
        self.kept.push(kept);
        Ok(self.kept.len() - 1)
    }

    /// A statement that is kept; `None` for a number that was never given.
    pub(super) fn kept(&self, number: usize) -> Option<Statement<'_>> {
        let kept = self.kept.get(number)?;
        let was_lent = kept.is_lent.replace(true);
        assert!(!was_lent, "a kept statement runs once at a time");
        Some(Statement {
            library: self.library,
            db: self.db,
            raw: kept.raw,
            parameters: kept.parameters,
            end: End::GiveBack(&kept.is_lent),
        })
    }

    /// Closes it. The last connection of a database takes the log back into the file.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        self.finalize_kept();
        // SAFETY: the connection is open, and nothing of it is left.
        let code = unsafe { (self.library.functions.sqlite3_close)(self.db.as_ptr()) };
        self.check(code)?;
        std::mem::forget(self);
        Ok(())
    }

    /// The first statement of a text, if it has one, and the text behind it.
    fn compile<'t>(
        &self,
        sql: &'t str,
    ) -> Result<(Option<NonNull<ffi::sqlite3_stmt>>, &'t str), Failure> {
        let functions = &self.library.functions;
        let length =
            c_int::try_from(sql.len()).map_err(|_| self.library.described(ffi::SQLITE_TOOBIG))?;
        let (mut raw, mut tail) = (ptr::null_mut(), ptr::null());
        let start: Text = sql.as_ptr().cast();
        // SAFETY: the connection is open; the text has this length; the library writes two
        // pointers, of which the second is into the text.
        let code = unsafe {
            (functions.sqlite3_prepare_v2)(self.db.as_ptr(), start, length, &mut raw, &mut tail)
        };
        self.check(code)?;
        let used = tail.addr().saturating_sub(start.addr());
        Ok((NonNull::new(raw), sql.get(used..).unwrap_or_default()))
    }

    /// # Safety
    /// The statement is one of this connection's.
    unsafe fn parameters(&self, raw: NonNull<ffi::sqlite3_stmt>) -> usize {
        // SAFETY: as the caller promises.
        let count = unsafe { (self.library.functions.sqlite3_bind_parameter_count)(raw.as_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    fn check(&self, code: c_int) -> Result<(), Failure> {
        match code {
            ffi::SQLITE_OK => Ok(()),
            code => Err(self.library.failure(self.db, code)),
        }
    }

    fn finalize_kept(&mut self) {
        for kept in std::mem::take(&mut self.kept) {
            // SAFETY: made by this connection, and finalized once: it leaves the list.
            unsafe { (self.library.functions.sqlite3_finalize)(kept.raw.as_ptr()) };
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.finalize_kept();
        // SAFETY: closed once. It stays open if a statement was leaked.
        unsafe { (self.library.functions.sqlite3_close)(self.db.as_ptr()) };
    }
}

/// A compiled statement.
pub(super) struct Statement<'c> {
    library: &'static Library,
    db: NonNull<ffi::sqlite3>,
    raw: NonNull<ffi::sqlite3_stmt>,
    parameters: usize,
    end: End<'c>,
}

/// What happens when a statement is no longer needed.
enum End<'c> {
    Finalize(PhantomData<&'c Connection>),
    /// Its connection keeps it.
    GiveBack(&'c Cell<bool>),
    Nothing,
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        match self.end {
            // SAFETY: nobody else has it, and its connection is still open.
            End::Finalize(_) => unsafe {
                (self.library.functions.sqlite3_finalize)(self.raw.as_ptr());
            },
            End::GiveBack(is_lent) => is_lent.set(false),
            End::Nothing => {}
        }
    }
}

/// What a parameter can be set to.
pub(super) trait Bound {
    fn argument(&self) -> Argument<'_>;
}

impl Bound for i64 {
    fn argument(&self) -> Argument<'_> {
        Argument::Integer(*self)
    }
}

impl Bound for Argument<'_> {
    fn argument(&self) -> Argument<'_> {
        *self
    }
}

impl Statement<'_> {
    /// How many columns its rows have; 0 if it returns none.
    pub(super) fn column_count(&self) -> usize {
        usize::try_from(self.columns()).unwrap_or(0)
    }

    /// Runs a statement that returns no rows. The answer is the number of rows that the newest
    /// write of the connection changed.
    pub(super) fn execute(&mut self, arguments: &[impl Bound]) -> Result<u64, Failure> {
        self.bind(arguments)?;
        let code = self.step();
        let reset = self.reset();
        match code {
            ffi::SQLITE_DONE if reset == ffi::SQLITE_OK => {
                // SAFETY: the connection is open.
                let rows = unsafe { (self.library.functions.sqlite3_changes)(self.db.as_ptr()) };
                Ok(u64::try_from(rows).unwrap_or(0))
            }
            ffi::SQLITE_DONE => Err(self.library.failure(self.db, reset)),
            ffi::SQLITE_ROW => Err(Failure::misuse("Execute returned results, and runs writes")),
            code => Err(self.library.failure(self.db, code)),
        }
    }

    /// Begins a statement that returns rows.
    pub(super) fn rows(&mut self, arguments: &[impl Bound]) -> Result<Rows<'_>, Failure> {
        self.bind(arguments)?;
        Ok(Rows {
            statement: self,
            columns: 0,
            is_over: false,
        })
    }

    fn bind(&self, arguments: &[impl Bound]) -> Result<(), Failure> {
        if arguments.len() != self.parameters {
            return Err(Failure::misuse(format!(
                "Wrong number of parameters: the statement has {}, not {}",
                self.parameters,
                arguments.len()
            )));
        }
        let functions = &self.library.functions;
        let raw = self.raw.as_ptr();
        for (number, argument) in (1..).zip(arguments) {
            let code = match argument.argument() {
                // SAFETY: the statement is not running, and what does not fit it is an error.
                Argument::Integer(value) => unsafe {
                    (functions.sqlite3_bind_int64)(raw, number, value)
                },
                Argument::Text(text) => match c_int::try_from(text.len()) {
                    // SAFETY: as above; the library copies the text, which has this length.
                    Ok(length) => unsafe {
                        let text = text.as_ptr().cast();
                        let copied = ffi::SQLITE_TRANSIENT();
                        (functions.sqlite3_bind_text)(raw, number, text, length, copied)
                    },
                    Err(_) => ffi::SQLITE_TOOBIG,
                },
            };
            if code != ffi::SQLITE_OK {
                return Err(self.library.failure(self.db, code));
            }
        }
        Ok(())
    }

    fn step(&self) -> c_int {
        // SAFETY: the statement is compiled, and its connection is open.
        unsafe { (self.library.functions.sqlite3_step)(self.raw.as_ptr()) }
    }

    fn reset(&self) -> c_int {
        // SAFETY: as above. Values of its row are not borrowed: they borrow the rows.
        unsafe { (self.library.functions.sqlite3_reset)(self.raw.as_ptr()) }
    }

    fn columns(&self) -> c_int {
        // SAFETY: the statement is compiled.
        unsafe { (self.library.functions.sqlite3_column_count)(self.raw.as_ptr()) }
    }
}

/// The rows of a statement that runs. It is reset when they are dropped.
pub(super) struct Rows<'s> {
    statement: &'s Statement<'s>,
    columns: c_int,
    is_over: bool,
}

impl Rows<'_> {
    /// The next row; `None` behind the last one.
    pub(super) fn step(&mut self) -> Result<Option<Row<'_>>, Failure> {
        if self.is_over {
            return Ok(None);
        }
        let statement = self.statement;
        match statement.step() {
            ffi::SQLITE_ROW => {
                // The first step may compile the statement again, for another schema.
                if self.columns == 0 {
                    self.columns = statement.columns();
                }
                Ok(Some(Row {
                    statement,
                    columns: self.columns,
                }))
            }
            code => {
                self.is_over = true;
                let reset = statement.reset();
                match (code, reset) {
                    (ffi::SQLITE_DONE, ffi::SQLITE_OK) => Ok(None),
                    (ffi::SQLITE_DONE, code) | (code, _) => {
                        Err(statement.library.failure(statement.db, code))
                    }
                }
            }
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.statement.reset();
        }
    }
}

/// The row that a statement has reached.
pub(super) struct Row<'r> {
    statement: &'r Statement<'r>,
    columns: c_int,
}

/// A column of a row, where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'r> {
    Null,
    Integer(i64),
    Real(f64),
    /// UTF-8, unless somebody wrote something else.
    Text(&'r [u8]),
    Blob(&'r [u8]),
}

impl<'r> Row<'r> {
    /// All columns, in their order.
    pub(super) fn values(&self) -> impl Iterator<Item = Value<'r>> {
        (0..self.columns).map(|column| self.value(column))
    }

    /// A column, counted from 0; null if there is none of this number.
    pub(super) fn value(&self, column: c_int) -> Value<'r> {
        if !(0..self.columns).contains(&column) {
            return Value::Null;
        }
        let functions = &self.statement.library.functions;
        let raw = self.statement.raw.as_ptr();
        // SAFETY: the statement is at a row that has this column, and stays there for `'r`. A value
        // is read as what it is, so that nothing converts it and its bytes stay where they are; a
        // text is asked for its length after it.
        unsafe {
            match (functions.sqlite3_column_type)(raw, column) {
                ffi::SQLITE_INTEGER => {
                    Value::Integer((functions.sqlite3_column_int64)(raw, column))
                }
                ffi::SQLITE_FLOAT => Value::Real((functions.sqlite3_column_double)(raw, column)),
                ffi::SQLITE_TEXT => {
                    let start = (functions.sqlite3_column_text)(raw, column);
                    let length = (functions.sqlite3_column_bytes)(raw, column);
                    Value::Text(bytes(start, length))
                }
                ffi::SQLITE_BLOB => {
                    let start = (functions.sqlite3_column_blob)(raw, column);
                    let length = (functions.sqlite3_column_bytes)(raw, column);
                    Value::Blob(bytes(start.cast(), length))
                }
                _ => Value::Null,
            }
        }
    }
}

/// # Safety
/// `start` is null, or has `length` bytes that nobody changes for `'r`.
unsafe fn bytes<'r>(start: *const u8, length: c_int) -> &'r [u8] {
    match usize::try_from(length) {
        // SAFETY: as the caller promises.
        Ok(length) if !start.is_null() => unsafe { std::slice::from_raw_parts(start, length) },
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &[i64] = &[];

    fn memory() -> Connection {
        Connection::open(Library::bundled(), Path::new(":memory:"), true).unwrap()
    }

    #[test]
    fn the_bundled_library_is_what_its_header_says() {
        let library = Library::bundled();
        let header = ffi::SQLITE_VERSION.to_str().unwrap();
        assert_eq!(library.version(), header);
        assert!(
            library.source_id().starts_with("20"),
            "{}",
            library.source_id()
        );
        assert!(library.has_threads());
    }

    #[test]
    fn values_come_back_as_they_were_bound() {
        let mut connection = memory();
        let select = connection.keep("select ?, ?, 0.5, x'00ff', null").unwrap();
        for text in [
            "",
            "é\0x",
            "a long text that is longer than any small buffer is",
        ] {
            let mut statement = connection.kept(select).unwrap();
            let arguments = [Argument::Integer(i64::MIN), Argument::Text(text)];
            let mut rows = statement.rows(&arguments).unwrap();
            let row = rows.step().unwrap().unwrap();
            let values: Vec<_> = row.values().collect();
            let wanted = [
                Value::Integer(i64::MIN),
                Value::Text(text.as_bytes()),
                Value::Real(0.5),
                Value::Blob(&[0, 0xff]),
                Value::Null,
            ];
            assert_eq!(values, wanted);
            assert_eq!((row.value(5), row.value(-1)), (Value::Null, Value::Null));
            assert!(rows.step().unwrap().is_none());
            assert!(rows.step().unwrap().is_none(), "over is over");
        }
        assert!(connection.kept(select + 1).is_none());
    }

    #[test]
    #[should_panic(expected = "runs once at a time")]
    fn a_kept_statement_is_lent_once() {
        let mut connection = memory();
        let select = connection.keep("select 1").unwrap();
        let _first = connection.kept(select);
        connection.kept(select);
    }

    #[test]
    fn rows_that_are_left_end_the_statement() {
        let mut connection = memory();
        let select = connection.keep("select 1 union all select 2").unwrap();
        for _ in 0..2 {
            let mut statement = connection.kept(select).unwrap();
            let mut rows = statement.rows(NONE).unwrap();
            let row = rows.step().unwrap().unwrap();
            assert_eq!(row.value(0), Value::Integer(1));
        }
        connection.close().unwrap();
    }

    #[test]
    fn a_text_has_one_statement() {
        let connection = memory();
        for (sql, problem) in [
            ("select 1", None),
            ("select 1;", None),
            ("select 1; -- and a comment", None),
            ("select 1;; \n;", None),
            ("select 1; select 2", Some("Multiple statements")),
            ("select 1;; select 2", Some("Multiple statements")),
            ("select 1; nonsense", Some("syntax error")),
            ("", Some("holds no statement")),
            ("-- nothing", Some("holds no statement")),
        ] {
            let found = connection.prepare(sql).err().map(|failure| failure.message);
            match (found, problem) {
                (None, None) => {}
                (Some(found), Some(problem)) => assert!(found.contains(problem), "{sql}: {found}"),
                (found, _) => panic!("{sql}: {found:?}"),
            }
        }
        connection.close().unwrap();
    }

    #[test]
    fn what_is_not_sqlite_is_refused_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("libsqlite3.so");
        std::fs::write(&text, "not a library").unwrap();
        for (path, problem) in [
            (text.as_path(), "try `ldd "),
            (
                Path::new("/nowhere/libsqlite3.so"),
                "read the library /nowhere/",
            ),
        ] {
            let message = Library::load(path).err().unwrap().message;
            assert!(message.contains(problem), "{message}");
        }
        // A library of this machine that is certainly there and another one.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps
            .lines()
            .filter_map(|line| line.split_whitespace().last())
            .find(|path| path.contains("/libc.so") || path.contains("/libc-"));
        let message = Library::load(Path::new(libc.unwrap()))
            .err()
            .unwrap()
            .message;
        assert!(
            message.contains("lacks the C function sqlite3_libversion") && message.contains("give"),
            "{message}"
        );
    }
}
