//! One worker's session on a connection that is made again after it was lost.
//!
//! The operation that loses the connection gets the error, whether or not it may have taken place.
//! The next call, whichever it is, connects again and prepares what it needs.

use crate::{Parameter, Prepared, SqlError};

/// One engine's connection, as a session sees it.
pub(crate) trait Connection: Sized {
    /// What it takes to connect.
    type Target;
    /// A prepared statement on this connection.
    type Handle;
    type Error;

    /// Whether all statements of a session are prepared as soon as it has connected again, or each
    /// when it is used next.
    const PREPARES_ALL_AT_ONCE: bool;

    /// Connects within [`RECONNECT_LIMIT`](crate::RECONNECT_LIMIT); `sql` is the statement that
    /// needs the connection.
    fn connect_again(target: &Self::Target, sql: &str) -> Result<Self, SqlError>;

    /// Prepares the session's statement number `position`. Without `parameters` the server infers
    /// their types.
    fn prepare(
        &mut self,
        position: usize,
        sql: &str,
        parameters: Option<&[Parameter]>,
    ) -> Result<Self::Handle, Self::Error>;

    /// The error of a statement, with its class.
    fn sql_error(error: &Self::Error, sql: &str) -> SqlError;

    /// The error of a statement that this session has not prepared.
    fn not_prepared(statement: Prepared) -> SqlError;

    /// Whether the connection is of no use after this error, whatever its class.
    fn is_end(_error: &Self::Error) -> bool {
        false
    }

    /// Whether the connection is known to have ended.
    fn is_closed(&self) -> bool {
        false
    }

    /// Ends the connection at the end of its session.
    fn close(self) {}
}

/// A session: a connection and its prepared statements.
pub(crate) struct Reconnecting<C: Connection> {
    target: C::Target,
    /// `None` after it was lost.
    connection: Option<C>,
    statements: Vec<Statement<C::Handle>>,
}

/// A statement's text, from which it is prepared again.
struct Statement<H> {
    sql: Box<str>,
    parameters: Option<Box<[Parameter]>>,
    /// On the present connection; `None` until it is prepared there.
    handle: Option<H>,
}

impl<C: Connection> Reconnecting<C> {
    /// A session on a fresh connection to `target`.
    pub fn new(target: C::Target, connection: C) -> Self {
        Self {
            target,
            connection: Some(connection),
            statements: Vec::new(),
        }
    }

    /// Runs `work` on the connection.
    #[inline]
    pub fn run<T>(
        &mut self,
        sql: &str,
        work: impl FnOnce(&mut C) -> Result<T, C::Error>,
    ) -> Result<T, SqlError> {
        if !self.is_connected() {
            self.connect_again(sql)?;
        }
        let connection = self.connection.as_mut().expect("it is connected");
        work(connection).map_err(|error| self.failed(&error, C::sql_error(&error, sql)))
    }

    /// Runs `work` on the connection with a statement that is prepared there.
    #[inline]
    pub fn run_prepared<T>(
        &mut self,
        statement: Prepared,
        work: impl FnOnce(&mut C, &mut C::Handle) -> Result<T, C::Error>,
    ) -> Result<T, SqlError> {
        if !self.is_ready(statement) {
            self.make_ready(statement)?;
        }
        let (
            Some(connection),
            Some(Statement {
                sql,
                handle: Some(handle),
                ..
            }),
        ) = (&mut self.connection, self.statements.get_mut(statement.0))
        else {
            return Err(C::not_prepared(statement));
        };
        match work(connection, handle) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let sql_error = C::sql_error(&error, sql);
                Err(self.failed(&error, sql_error))
            }
        }
    }

    /// Prepares a statement for this session.
    pub fn prepare_statement(
        &mut self,
        sql: &str,
        parameters: Option<&[Parameter]>,
    ) -> Result<Prepared, SqlError> {
        let position = self.statements.len();
        let handle = self.run(sql, |connection| {
            connection.prepare(position, sql, parameters)
        })?;
        self.statements.push(Statement {
            sql: sql.into(),
            parameters: parameters.map(Into::into),
            handle: Some(handle),
        });
        Ok(Prepared(position))
    }

    #[inline]
    fn is_connected(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| !connection.is_closed())
    }

    #[inline]
    fn is_ready(&self, statement: Prepared) -> bool {
        let known = self.statements.get(statement.0);
        self.is_connected() && known.is_some_and(|known| known.handle.is_some())
    }

    /// Makes the connection, and the statement on it, where either is missing.
    #[cold]
    fn make_ready(&mut self, prepared: Prepared) -> Result<(), SqlError> {
        let position = prepared.0;
        let Some(statement) = self.statements.get(position) else {
            return Err(C::not_prepared(prepared));
        };
        if !self.is_connected() {
            let sql = statement.sql.clone();
            self.connect_again(&sql)?;
        }
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let statement = &mut self.statements[position];
        if statement.handle.is_some() {
            return Ok(());
        }
        match statement.prepare(connection, position) {
            Ok(()) => Ok(()),
            Err(error) => {
                let sql_error = C::sql_error(&error, &statement.sql).before_sending();
                Err(self.failed(&error, sql_error))
            }
        }
    }

    #[cold]
    fn connect_again(&mut self, sql: &str) -> Result<(), SqlError> {
        self.forget_connection();
        let mut connection = C::connect_again(&self.target, sql)?;
        if C::PREPARES_ALL_AT_ONCE {
            for (position, statement) in self.statements.iter_mut().enumerate() {
                statement
                    .prepare(&mut connection, position)
                    .map_err(|error| C::sql_error(&error, &statement.sql).before_sending())?;
            }
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// Gives up the connection if this error is the end of it.
    #[cold]
    fn failed(&mut self, error: &C::Error, sql_error: SqlError) -> SqlError {
        if C::is_end(error) || sql_error.class.is_disconnected() {
            self.forget_connection();
        }
        sql_error
    }

    fn forget_connection(&mut self) {
        self.connection = None;
        for statement in &mut self.statements {
            statement.handle = None;
        }
    }
}

impl<H> Statement<H> {
    fn prepare<C: Connection<Handle = H>>(
        &mut self,
        connection: &mut C,
        position: usize,
    ) -> Result<(), C::Error> {
        let parameters = self.parameters.as_deref();
        self.handle = Some(connection.prepare(position, &self.sql, parameters)?);
        Ok(())
    }
}

impl<C: Connection> Drop for Reconnecting<C> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::ErrorClass;

    /// What a server was asked, and how it answers next.
    #[derive(Default)]
    struct Script {
        log: Vec<String>,
        answers: Vec<ErrorClass>,
    }

    type Server = Rc<RefCell<Script>>;

    /// A connection whose errors are classes; `LAZY` ones prepare statements when they are used.
    struct Fake<const LAZY: bool> {
        server: Server,
        is_closed: bool,
    }

    fn ask(server: &Server, request: String) -> Result<(), ErrorClass> {
        let mut server = server.borrow_mut();
        server.log.push(request);
        server.answers.pop().map_or(Ok(()), Err)
    }

    fn error(class: ErrorClass, sql: &str) -> SqlError {
        SqlError {
            class,
            code: 0,
            message: String::new(),
            statement: sql.to_owned(),
        }
    }

    impl<const LAZY: bool> Connection for Fake<LAZY> {
        type Target = Server;
        type Handle = usize;
        type Error = ErrorClass;

        const PREPARES_ALL_AT_ONCE: bool = !LAZY;

        fn connect_again(server: &Server, sql: &str) -> Result<Self, SqlError> {
            ask(server, "connect".to_owned()).map_err(|class| error(class, sql))?;
            Ok(Self {
                server: server.clone(),
                is_closed: false,
            })
        }

        fn prepare(
            &mut self,
            position: usize,
            sql: &str,
            _parameters: Option<&[Parameter]>,
        ) -> Result<usize, ErrorClass> {
            ask(&self.server, format!("prepare {sql}")).map(|()| position)
        }

        fn sql_error(class: &ErrorClass, sql: &str) -> SqlError {
            error(*class, sql)
        }

        fn not_prepared(statement: Prepared) -> SqlError {
            error(ErrorClass::Statement, &format!("{statement:?}"))
        }

        fn is_end(class: &ErrorClass) -> bool {
            *class == ErrorClass::Io
        }

        fn is_closed(&self) -> bool {
            self.is_closed
        }

        fn close(self) {
            self.server.borrow_mut().log.push("close".to_owned());
        }
    }

    fn session<const LAZY: bool>() -> (Server, Reconnecting<Fake<LAZY>>) {
        let server = Server::default();
        let connection = Fake::connect_again(&server, "").unwrap();
        let mut session = Reconnecting::new(server.clone(), connection);
        for sql in ["a", "b"] {
            session.prepare_statement(sql, None).unwrap();
        }
        server.borrow_mut().log.clear();
        (server, session)
    }

    impl<const LAZY: bool> Reconnecting<Fake<LAZY>> {
        fn execute(&mut self, statement: usize) -> Result<(), ErrorClass> {
            self.run_prepared(Prepared(statement), |connection, handle| {
                ask(&connection.server, format!("execute {handle}"))
            })
            .map_err(|error| error.class)
        }
    }

    fn log(server: &Server) -> String {
        std::mem::take(&mut server.borrow_mut().log).join(", ")
    }

    fn fail_with(server: &Server, answers: &[ErrorClass]) {
        server.borrow_mut().answers = answers.iter().rev().copied().collect();
    }

    #[test]
    fn the_call_after_the_loss_connects_and_prepares() {
        let (server, mut session) = session::<true>();
        fail_with(&server, &[ErrorClass::Lost]);
        assert_eq!(session.execute(1), Err(ErrorClass::Lost));
        assert_eq!(session.execute(1), Ok(()));
        assert_eq!(log(&server), "execute 1, connect, prepare b, execute 1");
        assert_eq!(session.execute(0), Ok(()));
        assert_eq!(log(&server), "prepare a, execute 0");
        drop(session);
        assert_eq!(log(&server), "close");

        let (server, mut session) = self::session::<false>();
        fail_with(&server, &[ErrorClass::Unsent]);
        assert_eq!(session.execute(1), Err(ErrorClass::Unsent));
        assert!(session.run("text", |_| Ok(())).is_ok());
        assert_eq!(log(&server), "execute 1, connect, prepare a, prepare b");
        assert_eq!(session.execute(0), Ok(()));
        assert_eq!(log(&server), "execute 0");
    }

    #[test]
    fn errors_that_are_no_end_keep_the_connection() {
        let (server, mut session) = session::<true>();
        for class in [ErrorClass::Deadlock, ErrorClass::Statement] {
            fail_with(&server, &[class]);
            assert_eq!(session.execute(0), Err(class));
        }
        assert_eq!(session.execute(0), Ok(()));
        assert_eq!(log(&server), "execute 0, execute 0, execute 0");
        // One that the class does not show, and an end that nobody has met yet.
        fail_with(&server, &[ErrorClass::Io]);
        assert_eq!(session.execute(0), Err(ErrorClass::Io));
        assert_eq!(session.execute(0), Ok(()));
        session.connection.as_mut().unwrap().is_closed = true;
        assert_eq!(session.execute(0), Ok(()));
        assert_eq!(
            log(&server),
            "execute 0, connect, prepare a, execute 0, connect, prepare a, execute 0"
        );
    }

    #[test]
    fn what_fails_before_the_statement_is_sent_has_not_taken_place() {
        let (server, mut session) = session::<true>();
        fail_with(&server, &[ErrorClass::Lost, ErrorClass::Unsent]);
        assert_eq!(session.execute(0), Err(ErrorClass::Lost));
        assert_eq!(session.execute(0), Err(ErrorClass::Unsent), "no connection");
        assert_eq!(session.execute(1), Ok(()));
        fail_with(&server, &[ErrorClass::Lost]);
        assert_eq!(session.execute(0), Err(ErrorClass::Unsent), "not prepared");
        assert_eq!(session.execute(0), Ok(()));
        assert_eq!(
            log(&server),
            "execute 0, connect, connect, prepare b, execute 1, prepare a, connect, prepare a, \
             execute 0"
        );
        let unknown = session.execute(2);
        assert_eq!(unknown, Err(ErrorClass::Statement));
        assert_eq!(log(&server), "", "it was not asked");
    }
}
