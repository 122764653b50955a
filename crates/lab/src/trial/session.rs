//! What the workers' sessions are like.

use std::collections::BTreeMap;

use plimsoll_core::plan::Workload;
use plimsoll_engine::{EngineError, Sessions, SqlForms};
use plimsoll_workload::SharedServer;

/// How statements go to the server, next to what it says of the session itself.
const STATEMENTS: &str = "statements";

/// Opens a session as the workers do, asks it what it is like, and closes it. None for an engine
/// without SQL, and for one that has nothing to tell.
///
/// # Errors
/// If there is no connection or a question fails.
pub(super) fn facts(
    server: &SharedServer,
    workload: &Workload,
) -> Result<Option<BTreeMap<String, String>>, EngineError> {
    let Sessions::Sql(sql) = server.sessions() else {
        return Ok(None);
    };
    let forms = sql.forms();
    let mut session = sql.connect()?;
    let mut facts = forms
        .session_facts(&mut *session)
        .map_err(|error| EngineError::new(format!("read back the session's facts: {error}")))?;
    if facts.is_empty() {
        return Ok(None);
    }
    facts.insert(STATEMENTS.to_owned(), statements(forms, workload));
    Ok(Some(facts))
}

/// Whether the workload prepares its statements. That is the client's choice, and no server tells.
fn statements(forms: &dyn SqlForms, workload: &Workload) -> String {
    let form = |is_text: bool| if is_text { "text" } else { "prepared" };
    match workload {
        Workload::InsertBenchmark(_) => format!(
            "inserts text, queries {}, deletes {}",
            form(forms.has_text_queries()),
            form(forms.has_text_deletes())
        ),
        Workload::Sysbench(settings) => form(!settings.prepared).to_owned(),
        Workload::File(settings) => form(!settings.prepared).to_owned(),
        Workload::Rocksdb(_) => "calls".to_owned(),
    }
}
