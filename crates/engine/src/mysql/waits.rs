//! What the sessions of MySQL and MariaDB wait for.

use std::collections::BTreeMap;

use crate::waits::{RUNNING, WaitSampler};
use crate::{SqlError, SqlSession};

/// A row if the performance schema records what threads wait for at this moment. It is off by
/// default, because it costs.
const HAS_EVENTS: &str = "select enabled from performance_schema.setup_consumers where name in \
    ('events_waits_current', 'global_instrumentation', 'thread_instrumentation') and enabled = \
    'YES'";
const CONSUMERS: usize = 3;

/// A thread may be in several events at once, each inside the one before: the last is what it waits
/// for. Reading these tables locks nothing.
const EVENTS: &str = "select t.thread_id, coalesce(w.event_name, t.processlist_state, ''), \
    coalesce(w.event_id, 0) from performance_schema.threads t left join \
    performance_schema.events_waits_current w on w.thread_id = t.thread_id and w.timer_end is null \
    where t.processlist_command in ('Query', 'Execute') and t.processlist_id <> connection_id() and \
    t.processlist_db = database()";

/// The stage that each thread is in, which is on by default where the performance schema is.
const STATES: &str = "select thread_id, coalesce(processlist_state, ''), 0 from \
    performance_schema.threads where processlist_command in ('Query', 'Execute') and \
    processlist_id <> connection_id() and processlist_db = database()";

/// Everywhere. Unlike `information_schema.processlist` it makes no temporary table, which a count of
/// those would show.
const LIST: &str = "show processlist";

/// Columns of the process list: session, database, command and state.
const LIST_COLUMNS: [usize; 4] = [0, 3, 4, 6];

pub(super) struct ThreadSampler {
    session: Box<dyn SqlSession>,
    source: Source,
    /// By session the event with its number.
    seen: BTreeMap<u64, (u64, String)>,
}

enum Source {
    Events,
    States,
    /// With this session's own number, and its database.
    List(String, String),
}

impl ThreadSampler {
    /// Looks for the best source that the server has.
    pub fn on(mut session: Box<dyn SqlSession>) -> Result<Self, SqlError> {
        let source = source(&mut *session)?;
        Ok(Self {
            session,
            source,
            seen: BTreeMap::new(),
        })
    }
}

fn source(session: &mut dyn SqlSession) -> Result<Source, SqlError> {
    let mut has_schema = false;
    let on = "select @@performance_schema";
    session.for_each_row(on, &mut |row| has_schema = row.first() == Some(&"1"))?;
    // An account may lack the right to read it.
    let can_read = has_schema && session.for_each_row(STATES, &mut |_| {}).is_ok();
    if can_read {
        let mut consumers = 0;
        session.for_each_row(HAS_EVENTS, &mut |_| consumers += 1)?;
        return Ok(if consumers == CONSUMERS {
            Source::Events
        } else {
            Source::States
        });
    }
    let (mut own, mut database) = (String::new(), String::new());
    let who = "select connection_id(), database()";
    session.for_each_row(who, &mut |row| {
        if let [id, name] = row {
            (own, database) = ((*id).to_owned(), (*name).to_owned());
        }
    })?;
    Ok(Source::List(own, database))
}

impl WaitSampler for ThreadSampler {
    fn source(&self) -> &'static str {
        match self.source {
            Source::Events => "performance_schema.events_waits_current",
            Source::States => "performance_schema.threads",
            Source::List(..) => "show processlist",
        }
    }

    fn sample(&mut self, seen: &mut dyn FnMut(&str)) -> Result<(), SqlError> {
        let sql = match &self.source {
            Source::Events => EVENTS,
            Source::States => STATES,
            Source::List(own, database) => {
                let [id, of, command, state] = LIST_COLUMNS;
                return self.session.for_each_row(LIST, &mut |row| {
                    let value = |column: usize| row.get(column).copied().unwrap_or_default();
                    let is_at_work = ["Query", "Execute"].contains(&value(command));
                    if is_at_work && value(id) != own && value(of) == database {
                        seen(event(value(state)));
                    }
                });
            }
        };
        let last = &mut self.seen;
        last.clear();
        self.session.for_each_row(sql, &mut |row| {
            if let [thread, event, number] = row
                && let (Ok(thread), Ok(number)) = (thread.parse(), number.parse::<u64>())
            {
                let kept = last.entry(thread).or_default();
                if number >= kept.0 {
                    *kept = (number, (*event).to_owned());
                }
            }
        })?;
        last.values().for_each(|(_, of)| seen(event(of)));
        Ok(())
    }
}

/// A thread without a state is between two of them.
fn event(state: &str) -> &str {
    match state {
        "" | "\\N" => RUNNING,
        state => state,
    }
}
