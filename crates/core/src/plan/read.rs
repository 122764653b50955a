//! From the document to the plan: names resolved, presets filled in, sizes checked, every error
//! with its place.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::document::{Config, Document, Sizes, StepOverride, Tables, Wait, WorkloadName};
use super::file::ReadFile;
use super::insert_benchmark::Sequence;
use super::server::external_server;
use super::{
    Cell, ConfigRef, Definition, Driver, Effect, Ends, Era, InsertBenchmark, InsertWork,
    Partitions, Plan, PlanError, Rows, SessionClient, Step, StepEnd, TablePlacement, TlsMode,
    Transport, Verify, WaitRule, Work, Workload, WriteArrival, presets,
};
use crate::engines::Partitioning;
use crate::name::{BuildName, check_label, check_plan_name, natural_cmp};
use crate::suggest;
use crate::units::{SECOND_NS, format_grouped};

/// Rows a client may ask for: transaction ids stay far inside 63 bits.
pub(super) const MOST_ROWS: u64 = 1_000_000_000_000;
pub(super) const MOST_CLIENTS: u32 = 4096;
const MOST_BLOCKS: u32 = 1000;
/// What MySQL allows.
const MOST_PARTITIONS: u32 = 8192;
/// The setting that `engine` of a config stands for.
const STORAGE_ENGINE: &str = "storage_engine";

/// What the plan runs.
enum Chosen {
    Preset(Definition),
    File(ReadFile),
}

/// A file and its text, for errors with their place.
pub(crate) struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Source<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text }
    }
}

impl Source<'_> {
    pub(crate) fn error(
        &self,
        span: Option<Range<usize>>,
        message: impl Into<String>,
    ) -> PlanError {
        PlanError::at(self.file, self.text, span, message)
    }

    /// The number of the line that begins so, from 1.
    pub(crate) fn line_of(&self, span: Range<usize>) -> usize {
        self.text[..span.start.min(self.text.len())]
            .matches('\n')
            .count()
            + 1
    }
}

impl Source<'_> {
    /// An error whose line is shown without the dsn: that may hold a password.
    fn secret_error(
        &self,
        span: Range<usize>,
        dsn: &Spanned<String>,
        message: String,
    ) -> PlanError {
        let mut error = self.error(Some(span), message);
        let written = &self.text[dsn.span()];
        error.line = if written.contains('\n') {
            String::new()
        } else {
            error.line.replace(written, "\"...\"")
        };
        error
    }
}

pub(super) fn check(
    file: &str,
    text: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Plan, PlanError> {
    let source = Source { file, text };
    let document: Document =
        toml::from_str(text).map_err(|error| explain_toml_error(&source, &error, &[]))?;
    source.plan(&document, read)
}

/// An error about a cell's config, at the place where the plan names that config.
pub fn config_error(file: &str, text: &str, cell: &Cell, message: impl Into<String>) -> PlanError {
    let place = toml::from_str(text).ok().and_then(|document: Document| {
        let label = &cell.config.label;
        let table = document
            .config
            .iter()
            .find(|(known, _)| known.get_ref() == label);
        let from = table
            .and_then(|(_, config)| span(&config.from))
            .or_else(|| Some(table?.0.span()));
        let listed = || {
            document
                .configs
                .iter()
                .find(|known| known.get_ref() == label)
        };
        let in_cells = || {
            document
                .cells
                .iter()
                .find(|known| known.get_ref() == &cell.label)
        };
        from.or_else(|| listed().or_else(in_cells).map(Spanned::span))
    });
    PlanError::at(file, text, place, message)
}

/// Serde's message in words of the file, plus the nearest known key where a key is unknown.
/// `hidden` keys are not offered.
pub(crate) fn explain_toml_error(
    source: &Source<'_>,
    error: &toml::de::Error,
    hidden: &[&str],
) -> PlanError {
    let message = error.message();
    if message.starts_with("unknown field `password`") {
        // Its line is not shown.
        let mut error = source.error(
            error.span(),
            "a password in a plan would be kept with its results: name a password_file or a \
            password_env",
        );
        error.line.clear();
        return error;
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let message = match quoted.as_slice() {
        [unknown, known @ ..] if message.starts_with("unknown field") => {
            let known: Vec<&str> = known
                .iter()
                .copied()
                .filter(|key| !hidden.contains(key))
                .collect();
            unknown_key(unknown, &known)
        }
        [unknown, known @ ..] if message.starts_with("unknown variant") => {
            format!(
                "unknown value \"{unknown}\"{}; known here: {}",
                suggest::hint(unknown, known.iter().copied()),
                known.join(", ")
            )
        }
        [missing] if message.starts_with("missing field") => {
            format!("the key \"{missing}\" is missing")
        }
        _ => explain_type_error(message).unwrap_or_else(|| message.to_owned()),
    };
    source.error(error.span(), message)
}

pub(crate) fn unknown_key(unknown: &str, known: &[&str]) -> String {
    format!(
        "unknown key \"{unknown}\"{}; known here: {}",
        suggest::hint(unknown, known.iter().copied()),
        known.join(", ")
    )
}

/// What serde says of a value of a wrong type, without the types of this program.
fn explain_type_error(message: &str) -> Option<String> {
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let (found, wanted) = kinds
        .iter()
        .find_map(|kind| message.strip_prefix(kind))?
        .split_once(", expected ")?;
    let wanted = match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" | "string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in [ ]",
        "a map" => "keys and values, as in { key = 1 }",
        wanted if wanted.starts_with("struct ") => "keys and values, as in { key = 1 }",
        wanted
            if wanted.starts_with("an array of length ")
                || wanted.starts_with("an array of size ") =>
        {
            return Some(format!(
                "expected a list of {} numbers",
                wanted.rsplit(' ').next()?
            ));
        }
        wanted => wanted,
    };
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    let found = match kind {
        "string" => format!("the text {value}"),
        "integer" | "boolean" => value.trim_matches('`').to_owned(),
        "floating" => value
            .trim_start_matches("point ")
            .trim_matches('`')
            .to_owned(),
        "sequence" => "a list".to_owned(),
        "map" => "a table of keys".to_owned(),
        _ => return Some(format!("expected {wanted}")),
    };
    Some(format!("expected {wanted}, not {found}"))
}

impl Source<'_> {
    fn plan(
        &self,
        document: &Document,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Plan, PlanError> {
        let name = document.name.get_ref();
        check_plan_name(name).map_err(|e| self.error(Some(document.name.span()), e.to_string()))?;
        let chosen = match document.workload.get_ref() {
            WorkloadName::Preset(name) => Chosen::Preset(self.preset(document, name)?),
            WorkloadName::File(path) => Chosen::File(self.read_workload(document, path, read)?),
        };
        let blocks = self.ranged(document.blocks.as_ref(), 1, MOST_BLOCKS, "blocks")?;
        let cells = self.cells(document, &chosen)?;
        self.check_engines(document, &cells)?;
        let base = match &document.base {
            None => 0,
            Some(base) => cells
                .iter()
                .position(|cell| &cell.label == base.get_ref())
                .ok_or_else(|| {
                    let labels: Vec<&str> = cells.iter().map(|cell| cell.label.as_str()).collect();
                    let hint = suggest::hint(base.get_ref(), labels.iter().copied());
                    self.error(
                        Some(base.span()),
                        format!(
                            "base \"{}\" is not a cell{hint}; cells: {}",
                            base.get_ref(),
                            labels.join(", ")
                        ),
                    )
                })?,
        };
        let verify = document
            .verify
            .as_ref()
            .map_or(Verify::End, |verify| *verify.get_ref());
        if verify != Verify::Counters
            && cells
                .iter()
                .any(|cell| !cell.build.engine.facts().keeps_rows)
        {
            let span = document
                .verify
                .as_ref()
                .map(Spanned::span)
                .or(Some(document.name.span()));
            return Err(self.error(
                span,
                "the null engine keeps no rows to count: set verify = \"counters\"",
            ));
        }
        self.check_partitions(document, &cells)?;
        let report = self.reported_steps(document, &cells[base].workload)?;
        Ok(Plan {
            name: name.clone(),
            description: document.description.clone(),
            comparable: document.comparable,
            cells,
            base,
            blocks,
            verify,
            seed: document.seed,
            watchdog_ns: self.watchdog_ns(document)?,
            idle_cpus: document.idle_cpus,
            report,
        })
    }

    fn watchdog_ns(&self, document: &Document) -> Result<u64, PlanError> {
        match &document.watchdog {
            None => Ok(super::default_watchdog_ns()),
            Some(limit) if limit.get_ref().0 >= SECOND_NS => Ok(limit.get_ref().0),
            Some(limit) => Err(self.error(
                Some(limit.span()),
                "watchdog must be at least 1s: a server that is only busy answers later",
            )),
        }
    }

    pub(crate) fn ranged(
        &self,
        value: Option<&Spanned<u32>>,
        default: u32,
        most: u32,
        what: &str,
    ) -> Result<u32, PlanError> {
        match value {
            None => Ok(default),
            Some(value) if (1..=most).contains(value.get_ref()) => Ok(*value.get_ref()),
            Some(value) => Err(self.error(
                Some(value.span()),
                format!(
                    "{what} must be 1 to {}, not {}",
                    format_grouped(most.into()),
                    value.get_ref()
                ),
            )),
        }
    }

    fn cells(&self, document: &Document, chosen: &Chosen) -> Result<Vec<Cell>, PlanError> {
        for label in document.shapes.keys() {
            check_label(label.get_ref(), "shape name")
                .map_err(|e| self.error(Some(label.span()), e.to_string()))?;
        }
        let shapes: Vec<(&str, Option<&Sizes>)> = if document.shapes.is_empty() {
            vec![("default", None)]
        } else {
            document
                .shapes
                .iter()
                .map(|(label, sizes)| (label.get_ref().as_str(), Some(sizes)))
                .collect()
        };
        let workloads: BTreeMap<&str, Workload> = shapes
            .iter()
            .map(|(label, sizes)| {
                Ok((
                    *label,
                    self.workload(document, chosen, &document.sizes.with(*sizes))?,
                ))
            })
            .collect::<Result<_, PlanError>>()?;

        let mut cells: Vec<Cell> = Vec::new();
        let mut add = |build: BuildName, config: &str, shape: &str| {
            let config = config_ref(config, document);
            let label = if shapes.len() > 1 {
                format!("{build}.{}.{shape}", config.label)
            } else {
                format!("{build}.{}", config.label)
            };
            if !cells.iter().any(|cell| cell.label == label) {
                cells.push(Cell {
                    label,
                    build,
                    server: None,
                    config,
                    shape: shape.to_owned(),
                    workload: workloads[shape].clone(),
                });
            }
        };
        if document.cells.is_empty() {
            for (key, list) in [("builds", &document.builds), ("configs", &document.configs)] {
                if list.is_empty() {
                    return Err(self.error(
                        Some(document.name.span()),
                        format!(
                            "\"{key}\" is empty: name at least one, or list the cells in \"cells\""
                        ),
                    ));
                }
            }
            for build in &document.builds {
                let build_name: BuildName = build
                    .get_ref()
                    .parse()
                    .map_err(|e| self.error(Some(build.span()), format!("{e}")))?;
                for config in &document.configs {
                    check_label(config.get_ref(), "config name")
                        .map_err(|e| self.error(Some(config.span()), e.to_string()))?;
                    for (shape, _) in &shapes {
                        add(build_name.clone(), config.get_ref(), shape);
                    }
                }
            }
        } else {
            if let Some(extra) = document.builds.first().or(document.configs.first()) {
                return Err(self.error(
                    Some(extra.span()),
                    "give either \"cells\" or \"builds\" and \"configs\", not both",
                ));
            }
            for cell in &document.cells {
                let (build, config, shape) = self.split_cell(cell, &shapes)?;
                add(build, &config, &shape);
            }
        }
        for exclude in &document.exclude {
            let before = cells.len();
            cells.retain(|cell| &cell.label != exclude.get_ref());
            if cells.len() == before {
                return Err(self.error(
                    Some(exclude.span()),
                    format!(
                        "exclude \"{}\" is not a cell of this plan",
                        exclude.get_ref()
                    ),
                ));
            }
        }
        if cells.is_empty() {
            return Err(self.error(
                Some(document.name.span()),
                "no cell is left after \"exclude\"",
            ));
        }
        self.find_servers(document, &mut cells)?;
        for (label, config) in &document.config {
            self.check_config_engine(label, config, &cells)?;
            if let (Some(_), Some(from)) = (&config.file, &config.from) {
                let message = format!(
                    "[config.{}] has \"file\" and \"from\": name one place where it comes from",
                    label.get_ref()
                );
                return Err(self.error(Some(from.span()), message));
            }
            if !cells
                .iter()
                .any(|cell| &cell.config.label == label.get_ref())
            {
                let hint = suggest::hint(
                    label.get_ref(),
                    cells.iter().map(|cell| cell.config.label.as_str()),
                );
                return Err(self.error(
                    Some(label.span()),
                    format!("[config.{}] belongs to no cell{hint}", label.get_ref()),
                ));
            }
        }
        Ok(cells)
    }

    /// Gives the cells whose build names a server of the plan that server.
    fn find_servers(&self, document: &Document, cells: &mut [Cell]) -> Result<(), PlanError> {
        for (label, server) in &document.server {
            let given = external_server(label, server)
                .map_err(|(span, message)| self.secret_error(span, &server.dsn, message))?;
            let mut is_used = false;
            for cell in cells.iter_mut().filter(|cell| {
                cell.build.version.as_ref() == Some(&given.label) && cell.build.source.is_none()
            }) {
                if cell.build.engine != given.engine {
                    let message = format!(
                        "builds say {}, and its dsn is one of {}: make them agree",
                        cell.build, given.engine
                    );
                    return Err(self.error(Some(server.dsn.span()), message));
                }
                is_used = true;
                cell.server = Some(given.clone());
            }
            if !is_used {
                let (span, label) = (label.span(), label.get_ref());
                let message = format!(
                    "[server.{label}] belongs to no cell: name it in builds, as {}@{label}",
                    given.engine
                );
                return Err(self.error(Some(span), message));
            }
        }
        Ok(())
    }

    /// A storage engine is for servers that have more than one, a config sets up only servers that
    /// are ours, and TLS is for the full client.
    fn check_config_engine(
        &self,
        label: &Spanned<String>,
        config: &Config,
        cells: &[Cell],
    ) -> Result<(), PlanError> {
        let name = label.get_ref();
        if let Some(engine) = &config.engine {
            let word = engine.get_ref();
            let is_word =
                !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_word {
                return Err(self.error(
                    Some(engine.span()),
                    format!("engine = \"{word}\" is not a storage engine: write one word"),
                ));
            }
            if config.settings.contains_key(STORAGE_ENGINE) {
                let message = format!(
                    "[config.{name}] names the storage engine twice: keep \"engine\" or \
                    settings.{STORAGE_ENGINE}"
                );
                return Err(self.error(Some(engine.span()), message));
            }
        }
        for cell in cells.iter().filter(|cell| &cell.config.label == name) {
            if let Some(engine) = config
                .engine
                .as_ref()
                .filter(|_| !cell.build.engine.facts().has_storage_engines)
            {
                let message = format!(
                    "cell {}: {} has no storage engines to choose from: leave out \"engine\"",
                    cell.label, cell.build.engine
                );
                return Err(self.error(Some(engine.span()), message));
            }
            if let Some(driver) = config
                .driver
                .as_ref()
                .filter(|driver| *driver.get_ref() == Driver::DbBench)
            {
                self.check_db_bench(driver, cell)?;
            }
            let wants_thin = config
                .client
                .as_ref()
                .filter(|client| *client.get_ref() == SessionClient::Thin);
            if let (Some(client), Some(server)) = (
                wants_thin,
                cell.server
                    .as_ref()
                    .filter(|server| server.tls != TlsMode::Off),
            ) {
                let message = format!(
                    "the sessions of {} are protected by TLS, which the thin client does not \
                    speak: leave out \"client\", or set tls = \"off\" in [server.{}] where the \
                    network is safe",
                    cell.label, server.label
                );
                return Err(self.error(Some(client.span()), message));
            }
            let is_bare = config.settings.keys().all(|key| key == STORAGE_ENGINE)
                && config.file.is_none()
                && config.from.is_none()
                && config.prefix.is_empty()
                && config.env.is_empty()
                && config.transport == Transport::default();
            if cell.server.is_some() && !is_bare {
                let message = format!(
                    "[config.{name}] would set up a server, and {} runs on an external one, whose \
                    settings stay as they are: leave it empty, or with \"engine\" and \"client\" \
                    alone",
                    cell.label
                );
                return Err(self.error(Some(label.span()), message));
            }
        }
        Ok(())
    }

    /// `build.config` or `build.config.shape`. Config and shape names hold no dot; versions may.
    fn split_cell(
        &self,
        cell: &Spanned<String>,
        shapes: &[(&str, Option<&Sizes>)],
    ) -> Result<(BuildName, String, String), PlanError> {
        let text = cell.get_ref();
        let malformed = |detail: String| self.error(Some(cell.span()), detail);
        let wanted = if shapes.len() > 1 {
            "build.config.shape"
        } else {
            "build.config"
        };
        let mut rest = text.as_str();
        let mut shape = shapes[0].0;
        if shapes.len() > 1 {
            let (front, last) = rest
                .rsplit_once('.')
                .ok_or_else(|| malformed(format!("write the cell \"{text}\" as {wanted}")))?;
            shape = shapes
                .iter()
                .map(|(label, _)| *label)
                .find(|label| *label == last)
                .ok_or_else(|| {
                    malformed(format!(
                        "cell \"{text}\" names the shape \"{last}\", which is not in [shapes]; \
                        write {wanted}"
                    ))
                })?;
            rest = front;
        }
        let (build, config) = rest
            .rsplit_once('.')
            .ok_or_else(|| malformed(format!("write the cell \"{text}\" as {wanted}")))?;
        let build = build.parse().map_err(|e| malformed(format!("{e}")))?;
        check_label(config, "config name").map_err(|e| malformed(e.to_string()))?;
        Ok((build, config.to_owned(), shape.to_owned()))
    }

    fn preset(&self, document: &Document, name: &str) -> Result<Definition, PlanError> {
        presets()
            .iter()
            .find(|known| known.name == name)
            .map(|known| known.definition)
            .ok_or_else(|| {
                let known: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
                let hint = match suggest::hint(name, known.iter().copied()) {
                    _ if name.ends_with(".toml") => {
                        format!(" (a file is named as workload = {{ file = \"{name}\" }})")
                    }
                    hint => hint,
                };
                let message = format!(
                    "unknown workload \"{name}\"{hint}; `plimsoll workload list` shows: {}",
                    known.join(", ")
                );
                self.error(Some(document.workload.span()), message)
            })
    }

    fn workload(
        &self,
        document: &Document,
        chosen: &Chosen,
        sizes: &Sizes,
    ) -> Result<Workload, PlanError> {
        match chosen {
            Chosen::Preset(Definition::InsertBenchmark(era)) => self
                .insert_benchmark(document, *era, sizes)
                .map(Workload::InsertBenchmark),
            Chosen::Preset(Definition::Sysbench(preset)) => self
                .sysbench(document, *preset, sizes)
                .map(Workload::Sysbench),
            Chosen::Preset(Definition::Rocksdb) => {
                self.rocksdb(document, sizes).map(Workload::Rocksdb)
            }
            Chosen::File(file) => self
                .file_workload(document, file, sizes)
                .map(Workload::File),
        }
    }

    /// Keys that this workload has no use for: the first one that is there.
    pub(super) fn refuse(
        &self,
        keys: &[(&str, Option<Range<usize>>)],
        what: &str,
    ) -> Result<(), PlanError> {
        match keys
            .iter()
            .find_map(|(key, span)| span.clone().map(|span| (key, span)))
        {
            Some((key, span)) => {
                Err(self.error(Some(span), format!("{what} has no \"{key}\": leave it out")))
            }
            None => Ok(()),
        }
    }

    fn insert_benchmark(
        &self,
        document: &Document,
        era: Era,
        sizes: &Sizes,
    ) -> Result<InsertBenchmark, PlanError> {
        let keys = [
            ("write_duration", span(&sizes.write_duration)),
            ("warm_up", span(&sizes.warm_up)),
            ("rate", span(&sizes.rate)),
            ("ramp", span(&sizes.ramp)),
            ("prepared", span(&sizes.prepared)),
            ("load", span(&sizes.load)),
            ("distribution", span(&sizes.distribution)),
            ("zipfian_exponent", span(&sizes.zipfian_exponent)),
            ("pareto_h", span(&sizes.pareto_h)),
        ];
        self.refuse(&keys, "the Insert Benchmark")?;
        self.refuse_rocksdb_sizes(sizes, "the Insert Benchmark")?;
        self.refuse(
            &[("max_failed", span(&document.max_failed))],
            "the Insert Benchmark, which counts every row,",
        )?;
        if let Some(first) = document.tests.as_ref().and_then(|tests| tests.first()) {
            return Err(self.error(
                Some(first.span()),
                "the Insert Benchmark has no \"tests\": name its steps in \"steps\"",
            ));
        }
        let clients = self.ranged(sizes.clients.as_ref(), 1, MOST_CLIENTS, "clients")?;
        let tables = match sizes
            .tables
            .as_ref()
            .map(|tables| (tables, *tables.get_ref()))
        {
            None => TablePlacement::PerClient,
            Some((_, Tables::Placement(placement))) => placement,
            Some((tables, Tables::Count(_))) => {
                let message = "the Insert Benchmark has a table per client or one for all: write \
                              tables = \"per-client\" or \"shared\"";
                return Err(self.error(Some(tables.span()), message));
            }
        };
        let count = |value: Option<&Spanned<super::document::Count>>, default: u64, key: &str| {
            match value {
                None => Ok(default),
                Some(value) if (1..=MOST_ROWS).contains(&value.get_ref().0) => {
                    Ok(value.get_ref().0)
                }
                Some(value) => Err(self.error(
                    Some(value.span()),
                    format!(
                        "{key} must be 1 to {} rows per client",
                        format_grouped(MOST_ROWS)
                    ),
                )),
            }
        };
        let rows = count(sizes.rows.as_ref(), default_rows(era), "rows")?;
        let write_rows = count(sizes.write_rows.as_ref(), 50_000_000, "write_rows")?;
        let duration =
            |value: Option<&Spanned<super::document::Duration>>, default: u64| match value {
                None => Ok(default),
                Some(value) if value.get_ref().0 >= SECOND_NS => Ok(value.get_ref().0),
                Some(value) => {
                    Err(self.error(Some(value.span()), "a step's duration must be at least 1s"))
                }
            };
        let duration_ns = duration(sizes.duration.as_ref(), default_duration_ns(era))?;
        let deletes_key = sizes.deletes.as_ref();
        let can_delete = era != Era::Year2017;
        let deletes = deletes_key.map_or(
            can_delete && tables == TablePlacement::PerClient,
            |deletes| *deletes.get_ref(),
        );
        let deletes_span = || {
            deletes_key
                .map(Spanned::span)
                .or_else(|| sizes.tables.as_ref().map(Spanned::span))
        };
        if deletes && !can_delete {
            return Err(self.error(
                deletes_span(),
                "the 2017 sequence has no deletes: leave out \"deletes\"",
            ));
        }
        if deletes && tables == TablePlacement::Shared && clients > 1 {
            return Err(self.error(
                deletes_span(),
                "clients that share one table cannot delete per insert (the original refuses it \
                too): use tables = \"per-client\" or deletes = false",
            ));
        }
        let by_default = if era == Era::Current {
            WaitRule::Classic
        } else {
            WaitRule::Fixed { ns: 0 }
        };
        let wait = document
            .wait
            .as_ref()
            .map_or(by_default, |wait| wait.get_ref().rule());
        let end = sizes
            .end
            .as_ref()
            .map_or(StepEnd::Rows, |end| *end.get_ref());
        let sequence = Sequence {
            era,
            clients,
            rows,
            write_rows,
            duration_ns,
            end,
            deletes,
        };
        let mut steps = sequence.steps();
        for (name, change) in &document.step {
            let step = self.find_step(&mut steps, name)?;
            self.override_step(step, change, clients, tables)?;
        }
        if let Some(wanted) = &document.steps {
            let is_optional = |step: &Step| !step.is_writing();
            steps = self.select_steps(steps, wanted, is_optional, "read-write steps")?;
        }
        let partitions = match sizes.partitions.as_ref() {
            None => None,
            count => {
                let count = self.ranged(count, 1, MOST_PARTITIONS, "partitions")?;
                Some(Partitions {
                    count,
                    rows: rows_per_partition(&steps, count, tables),
                })
            }
        };
        let workload = InsertBenchmark {
            era,
            clients,
            tables,
            rows,
            arrival: sizes
                .arrival
                .as_ref()
                .map_or(WriteArrival::Even, |arrival| *arrival.get_ref()),
            wait,
            partitions,
            steps,
        };
        let write_span = sizes
            .write_rows
            .as_ref()
            .or(sizes.rows.as_ref())
            .map(Spanned::span);
        self.check_deletes(&workload, write_span)?;
        Ok(workload)
    }

    fn override_step(
        &self,
        step: &mut Step,
        change: &StepOverride,
        clients: u32,
        tables: TablePlacement,
    ) -> Result<(), PlanError> {
        let keys = [
            ("rate", span(&change.rate)),
            ("warm_up", span(&change.warm_up)),
            ("max_failed", span(&change.max_failed)),
            ("mix", span(&change.mix)),
            ("event", span(&change.event)),
        ];
        self.refuse(&keys, "a step of the Insert Benchmark")?;
        if let Some(value) = &change.clients {
            let most = if tables == TablePlacement::Shared {
                MOST_CLIENTS
            } else {
                clients
            };
            step.clients = self.ranged(
                Some(value),
                clients,
                most,
                &format!("clients of {} (a table each)", step.name),
            )?;
            let is_of_all_tables = matches!(
                step.work,
                Work::InsertBenchmark(InsertWork::Load { .. } | InsertWork::CreateIndexes { .. })
            );
            if is_of_all_tables && step.clients != clients {
                return Err(self.error(
                    Some(value.span()),
                    format!(
                        "{} works on every client's table: its clients cannot differ from the \
                        cell's",
                        step.name
                    ),
                ));
            }
        }
        if let Some(value) = &change.duration {
            let ns = value.get_ref().0;
            match &mut step.ends {
                Ends::RowsAtRate { .. } | Ends::Time { .. } if ns < SECOND_NS => {
                    return Err(
                        self.error(Some(value.span()), "a step's duration must be at least 1s")
                    );
                }
                Ends::RowsAtRate { ns: length } | Ends::Time { ns: length, .. } => *length = ns,
                _ => {
                    let message = format!(
                        "{} ends when its rows are done: it has no duration; set \"rows\" or \
                        \"write_rows\"",
                        step.name
                    );
                    return Err(self.error(Some(value.span()), message));
                }
            }
        }
        self.override_drain(step, change)
    }

    /// The drain after a step and its wait, which any step may have.
    pub(super) fn override_drain(
        &self,
        step: &mut Step,
        change: &StepOverride,
    ) -> Result<(), PlanError> {
        if let Some(value) = &change.wait {
            let Wait::Ns(ns) = value.get_ref() else {
                return Err(self.error(
                    Some(value.span()),
                    "the wait of a single step is a duration such as \"2s\"",
                ));
            };
            step.wait_ns = Some(*ns);
            step.drain_after = true;
        }
        match &change.drain {
            Some(drain) if !drain.get_ref() && change.wait.is_some() => {
                let message =
                    "a wait is a part of the drain: leave \"wait\" or \"drain = false\" out";
                return Err(self.error(Some(drain.span()), message));
            }
            Some(drain) => step.drain_after = *drain.get_ref(),
            None => {}
        }
        Ok(())
    }

    pub(super) fn no_step<'k>(
        &self,
        name: &Spanned<String>,
        known: impl Iterator<Item = &'k str>,
    ) -> PlanError {
        let known: Vec<&str> = known.collect();
        let hint = suggest::hint(name.get_ref(), known.iter().copied());
        let message = format!(
            "this plan runs no step \"{}\"{hint}; steps: {}",
            name.get_ref(),
            suggest::first_few(&known)
        );
        self.error(Some(name.span()), message)
    }

    /// The step that a table `[step.NAME]` is about.
    pub(super) fn find_step<'s>(
        &self,
        steps: &'s mut [Step],
        name: &Spanned<String>,
    ) -> Result<&'s mut Step, PlanError> {
        match steps.iter().position(|step| step.is_called(name.get_ref())) {
            Some(position) => Ok(&mut steps[position]),
            None => Err(self.no_step(name, steps.iter().map(|step| step.name.as_str()))),
        }
    }

    /// A prefix of the sequence keeps its meaning; a hole in it does not, but for `optional` steps:
    /// every other needs the state that the earlier ones leave.
    pub(super) fn select_steps(
        &self,
        steps: Vec<Step>,
        wanted: &[Spanned<String>],
        is_optional: impl Fn(&Step) -> bool,
        optional: &str,
    ) -> Result<Vec<Step>, PlanError> {
        let known: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        let mut last = None;
        for name in wanted {
            let Some(position) = steps.iter().position(|step| step.is_called(name.get_ref()))
            else {
                return Err(self.no_step(name, known.iter().copied()));
            };
            let skips_load = last.is_none() && position > 0;
            if skips_load || last.is_some_and(|last| position <= last) {
                return Err(self.error(
                    Some(name.span()),
                    format!(
                        "steps run in the order {} and begin with the load",
                        known.join(", ")
                    ),
                ));
            }
            if let Some(hole) = steps[last.map_or(0, |last| last + 1)..position]
                .iter()
                .find(|step| !is_optional(step))
            {
                return Err(self.error(
                    Some(name.span()),
                    format!(
                        "\"{}\" needs \"{}\" before it; only {optional} can be left out",
                        name.get_ref(),
                        hole.name
                    ),
                ));
            }
            last = Some(position);
        }
        Ok(steps
            .into_iter()
            .filter(|step| wanted.iter().any(|name| step.is_called(name.get_ref())))
            .collect())
    }

    /// The steps a plan is about, in the order they run.
    fn reported_steps(
        &self,
        document: &Document,
        workload: &Workload,
    ) -> Result<Vec<String>, PlanError> {
        let known: Vec<&str> = workload
            .steps()
            .iter()
            .map(|step| step.name.as_str())
            .collect();
        for name in &document.report {
            if !workload
                .steps()
                .iter()
                .any(|step| step.is_called(name.get_ref()))
            {
                return Err(self.no_step(name, known.iter().copied()));
            }
        }
        if let (Workload::Sysbench(sysbench), true) = (workload, document.report.is_empty()) {
            return Ok(sysbench.reported());
        }
        let is_wanted = |step: &&Step| {
            document
                .report
                .iter()
                .any(|wanted| step.is_called(wanted.get_ref()))
        };
        Ok(workload
            .steps()
            .iter()
            .filter(is_wanted)
            .map(|step| step.name.clone())
            .collect())
    }

    /// Not every engine can partition a table that has a primary key.
    fn check_partitions(&self, document: &Document, cells: &[Cell]) -> Result<(), PlanError> {
        let keys = document
            .sizes
            .partitions
            .iter()
            .chain(document.shapes.values().flat_map(|sizes| &sizes.partitions));
        let span = keys.map(Spanned::span).next();
        let is_partitioned = |cell: &&Cell| {
            cell.workload
                .insert_benchmark()
                .is_some_and(|workload| workload.partitions.is_some())
        };
        for cell in cells.iter().filter(is_partitioned) {
            let (engine, version) = (cell.build.engine, &cell.build.version);
            let facts = engine.facts();
            let problem = match facts.partitions {
                Partitioning::Always => continue,
                Partitioning::Never => format!("{engine} has no partitioned tables"),
                Partitioning::Since(first) => {
                    let is_old = |version: &String| natural_cmp(version, first).is_lt();
                    if !version.as_ref().is_some_and(is_old) {
                        continue;
                    }
                    format!(
                        "{} partitions tables with a primary key since version {first}",
                        facts.title
                    )
                }
            };
            return Err(self.error(
                span,
                format!(
                    "cell {}: {problem}; leave out \"partitions\" or the cell",
                    cell.label
                ),
            ));
        }
        Ok(())
    }

    /// Deletes remove the oldest rows; there must be that many.
    fn check_deletes(
        &self,
        workload: &InsertBenchmark,
        span: Option<Range<usize>>,
    ) -> Result<(), PlanError> {
        let held: u64 = workload.steps.first().map_or(0, Step::inserted_rows);
        for step in &workload.steps {
            if !step.deletes {
                continue;
            }
            // Inserter and deleter may be ten statements apart: the table must outlast that.
            let least = u64::from(step.batch) * 20;
            if held < least {
                let message = format!(
                    "{} deletes in transactions of {} rows and would empty a table of {} rows \
                    per client: load at least {}",
                    step.name,
                    step.batch,
                    format_grouped(held),
                    format_grouped(least)
                );
                return Err(self.error(span, message));
            }
            let written = planned_rows(step);
            if step.makes_data() && written > held.saturating_mul(1000) {
                let message = format!(
                    "{} would delete {} rows from a table of {} rows per client, more than a \
                    thousand times over: lower write_rows or raise rows",
                    step.name,
                    format_grouped(written),
                    format_grouped(held)
                );
                return Err(self.error(span, message));
            }
        }
        Ok(())
    }
}

/// Rows per client that a step inserts by its plan, before batches are whole.
fn planned_rows(step: &Step) -> u64 {
    match step.effect {
        Effect::MakesData {
            rows: Rows::PerClient(rows),
            ..
        } => rows,
        _ => 0,
    }
}

/// As the original's scripts do: all rows that a table will ever have been given, over the
/// partitions. The batch of the index step counts once for all clients.
fn rows_per_partition(steps: &[Step], count: u32, tables: TablePlacement) -> u64 {
    let rows = |step: &Step| match step.work {
        Work::InsertBenchmark(InsertWork::Load { .. } | InsertWork::Write) => {
            planned_rows(step) * u64::from(step.clients)
        }
        Work::InsertBenchmark(InsertWork::CreateIndexes { rows }) => rows,
        Work::InsertBenchmark(InsertWork::ReadWrite { rate, .. }) => {
            let seconds = step.duration_ns().unwrap_or(0) / SECOND_NS;
            rate * seconds * u64::from(step.clients)
        }
        _ => 0,
    };
    let all: u64 = steps.iter().map(rows).sum();
    let tables = match tables {
        TablePlacement::PerClient => steps.first().map_or(1, |step| step.clients),
        TablePlacement::Shared => 1,
    };
    (all / u64::from(count) / u64::from(tables)).max(1)
}

/// Where a key is written, if it is.
pub(crate) fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}

fn config_ref(label: &str, document: &Document) -> ConfigRef {
    let empty = Config::default();
    let config = document
        .config
        .iter()
        .find(|(name, _)| name.get_ref() == label)
        .map_or(&empty, |(_, config)| config);
    ConfigRef {
        label: label.to_owned(),
        file: config.file.clone(),
        from: config.from.as_ref().map(|from| from.get_ref().clone()),
        settings: {
            let engine = config
                .engine
                .iter()
                .map(|engine| (STORAGE_ENGINE.to_owned(), engine.get_ref().clone()));
            config
                .settings
                .iter()
                .map(|(name, value)| (name.clone(), value.0.clone()))
                .chain(engine)
                .collect()
        },
        prefix: config.prefix.clone(),
        env: config.env.clone(),
        transport: config.transport,
        client: config
            .client
            .as_ref()
            .map_or_else(SessionClient::default, |client| *client.get_ref()),
        driver: config
            .driver
            .as_ref()
            .map_or_else(Driver::default, |driver| *driver.get_ref()),
    }
}

fn default_rows(era: Era) -> u64 {
    match era {
        Era::Current | Era::May2023 => 20_000_000,
        Era::Year2017 => 31_250_000, // 500M rows over 16 clients
    }
}

fn default_duration_ns(era: Era) -> u64 {
    match era {
        Era::Current | Era::May2023 => 1800 * SECOND_NS,
        Era::Year2017 => 5000 * SECOND_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: &str = r#"
name = "t"
workload = "insert-benchmark"
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_full"
"#;

    fn insert_benchmark(plan: &Plan) -> &InsertBenchmark {
        plan.cells[0].workload.insert_benchmark().unwrap()
    }

    fn error(text: &str) -> String {
        Plan::parse("t.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn the_preset_has_the_published_sizes() {
        let plan = Plan::parse("t.toml", QUICK).unwrap();
        assert_eq!(
            plan.cells
                .iter()
                .map(|c| c.label.as_str())
                .collect::<Vec<_>>(),
            ["sqlite.wal_full", "sqlite.wal_off"]
        );
        let workload = insert_benchmark(&plan);
        let steps: Vec<_> = workload
            .steps
            .iter()
            .map(|s| (s.name.as_str(), s.inserted_rows(), s.batch))
            .collect();
        assert_eq!(
            steps,
            [
                ("l.i0", 20_000_000, 100),
                ("l.x", 100, 100),
                ("l.i1", 40_000_000, 50),
                ("l.i2", 10_000_000, 5),
                ("qr100", 180_000, 50),
                ("qp100", 180_000, 50),
                ("qr500", 900_000, 50),
                ("qp500", 900_000, 50),
                ("qr1000", 1_800_000, 50),
                ("qp1000", 1_800_000, 50),
            ]
        );
        assert_eq!(workload.wait.ns(480_000_000), 540 * SECOND_NS);
        assert_eq!(workload.wait.ns(4_000_000_000), 1200 * SECOND_NS);
        assert_eq!(plan.cells[0].workload.connections(), 3);
    }

    #[test]
    fn older_presets() {
        let plan = Plan::parse(
            "t.toml",
            &QUICK.replace("insert-benchmark", "insert-benchmark-2023-05"),
        )
        .unwrap();
        let names: Vec<_> = plan.cells[0]
            .workload
            .steps()
            .iter()
            .map(|s| s.name.clone())
            .collect();
        assert_eq!(names, ["l.i0", "l.x", "l.i1", "q100", "q500", "q1000"]);
        let plan = Plan::parse(
            "t.toml",
            &QUICK.replace("insert-benchmark", "insert-benchmark-2017"),
        )
        .unwrap();
        let steps: Vec<_> = plan.cells[0]
            .workload
            .steps()
            .iter()
            .map(|s| (s.name.as_str(), s.inserted_rows()))
            .collect();
        assert_eq!(
            steps,
            [
                ("l", 31_250_000),
                ("scan", 0),
                ("q1000", 5_000_000),
                ("q100", 500_000)
            ]
        );
    }

    #[test]
    fn errors_name_the_place_and_the_way_out() {
        let cases = [
            (
                QUICK.replace("builds", "bulids"),
                "t.toml:4:1: unknown key \"bulids\" (did you mean \"builds\"?",
            ),
            (
                QUICK.replace("\"sqlite\"]", "\"sqlit\"]"),
                "t.toml:4:11: unknown engine \"sqlit\"",
            ),
            (
                QUICK.replace("insert-benchmark", "insert-bench"),
                "t.toml:3:12: unknown workload \"insert-bench\"",
            ),
            (
                format!("{QUICK}[sizes]\nclients = 0\n"),
                "t.toml:8:11: clients must be 1 to 4,096, not 0",
            ),
            (
                format!("{QUICK}[sizes]\nrows = \"20 X\"\n"),
                "t.toml:8:8: \"20 X\" is not a number of rows",
            ),
            (
                format!("{QUICK}[sizes]\nrows = 100\n"),
                "t.toml:8:8: l.i1 deletes in transactions of 50 rows",
            ),
            (
                format!("{QUICK}[sizes]\nrows = \"10K\"\nwrite_rows = \"50M\"\n"),
                "l.i1 would delete 40,000,000 rows from a table of 10,000 rows",
            ),
            (
                format!("{QUICK}[sizes]\ntables = \"shared\"\nclients = 2\ndeletes = true\n"),
                "clients that share one table cannot delete per insert",
            ),
            (
                format!("{QUICK}[sizes]\narrival = \"evn\"\n"),
                "unknown value \"evn\" (did you mean \"even\"?",
            ),
            (
                QUICK.replace("sqlite.wal_full", "sqlite.wal"),
                "t.toml:6:8: base \"sqlite.wal\" is not a cell (did you mean",
            ),
            (
                format!("{QUICK}[step.qr10]\nduration = \"2s\"\n"),
                "this plan runs no step \"qr10\" (did you mean one of qr100, qr1000?",
            ),
            (
                format!("{QUICK}[step.\"l.i0\"]\nduration = \"2s\"\n"),
                "it has no duration",
            ),
            (
                format!("{QUICK}[step.\"l.i2\"]\nwait = \"2s\"\ndrain = false\n"),
                "a wait is a part of the drain",
            ),
            (
                QUICK.replace("base", "watchdog = \"900ms\"\nbase"),
                "t.toml:6:12: watchdog must be at least 1s",
            ),
            (
                QUICK.replace("base", "blocks = 0\nbase"),
                "blocks must be 1 to 1,000, not 0",
            ),
            (
                QUICK.replace("base", "steps = [\"qr100\"]\nbase"),
                "steps run in the order",
            ),
            (
                QUICK.replace("base", "exclude = [\"x\"]\nbase"),
                "exclude \"x\" is not a cell",
            ),
            (
                QUICK
                    .replace("[\"sqlite\"]", "[\"null\"]")
                    .replace("sqlite.", "null."),
                "set verify = \"counters\"",
            ),
            (
                format!("{QUICK}[sizes]\npartitions = 4\n"),
                "t.toml:8:14: cell sqlite.wal_full: sqlite has no partitioned tables; leave out",
            ),
            (
                format!(
                    "{}[sizes]\npartitions = 4\n",
                    QUICK
                        .replace("[\"sqlite\"]", "[\"postgres@10\"]")
                        .replace("sqlite.", "postgres@10.")
                ),
                "cell postgres@10.wal_full: PostgreSQL partitions tables with a primary key since \
                version 11",
            ),
            (
                QUICK.replace("base", "report = [\"l.y\"]\nbase"),
                "this plan runs no step \"l.y\" (did you mean \"l.x\"?",
            ),
            (
                format!("{QUICK}[config.wal_off]\nfile = \"a\"\nfrom = \"wal_full\"\n"),
                "[config.wal_off] has \"file\" and \"from\"",
            ),
            (
                "name = 3".to_owned(),
                "t.toml:1:8: expected a text in quotes, not 3",
            ),
            (
                "name = \"x\"\n".to_owned(),
                "the key \"workload\" is missing",
            ),
        ];
        for (text, wanted) in cases {
            let found = error(&text);
            assert!(
                found.contains(wanted),
                "wanted {wanted:?}\nfound  {found:?}"
            );
        }
    }

    #[test]
    fn settings_are_texts_numbers_and_switches() {
        let config =
            |settings: &str| format!("{QUICK}[config.wal_off]\nsettings = {{ {settings} }}\n");
        let plan = Plan::parse("t.toml", &config("a = \"x\", b = 8, c = true, d = false")).unwrap();
        let settings: Vec<(&str, &str)> = plan.cells[1]
            .config
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            settings,
            [("a", "x"), ("b", "8"), ("c", "true"), ("d", "false")]
        );
        let found = error(&config("a = [1]"));
        assert!(
            found.contains("expected a string, an integer, true or false, not a list"),
            "{found}"
        );
    }

    #[test]
    fn partitions_share_all_rows_a_table_is_ever_given() {
        let mysql = QUICK
            .replace("[\"sqlite\"]", "[\"mysql\"]")
            .replace("sqlite.", "mysql.");
        let rows = |sizes: &str| {
            Plan::parse("t.toml", &format!("{mysql}[sizes]\n{sizes}"))
                .unwrap()
                .cells[0]
                .workload
                .insert_benchmark()
                .unwrap()
                .partitions
        };
        // 20M + 50M + 100 + (100 + 100 + 500 + 500 + 1000 + 1000) x 1800
        assert_eq!(
            rows("partitions = 8\n"),
            Some(Partitions {
                count: 8,
                rows: 75_760_100 / 8
            })
        );
        assert_eq!(
            rows("partitions = 8\nclients = 4\n"),
            Some(Partitions {
                count: 8,
                rows: (75_760_000 * 4 + 100) / 8 / 4
            })
        );
        assert_eq!(rows("clients = 4\n"), None);
    }

    #[test]
    fn a_plan_may_be_about_some_of_its_steps() {
        let text = format!("{QUICK}[step.\"l.i2\"]\ndrain = false\n[step.\"l.x\"]\ndrain = true\n");
        let steps = Plan::parse("t.toml", &text).unwrap().cells[0]
            .workload
            .steps()
            .to_vec();
        let drained: Vec<&str> = steps
            .iter()
            .filter(|step| step.drain_after)
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(drained, ["l.x"]);
        let text = QUICK.replace("base", "report = [\"qp100\", \"l.x\"]\nbase");
        assert_eq!(
            Plan::parse("t.toml", &text).unwrap().report,
            ["l.x", "qp100"]
        );
        assert!(Plan::parse("t.toml", QUICK).unwrap().report.is_empty());
    }

    #[test]
    fn the_wait_is_a_minimum_unless_the_plan_wants_the_other_reading() {
        let wait = |text: &str| {
            let plan = Plan::parse(
                "t.toml",
                &QUICK.replace("base", &format!("wait = \"{text}\"\nbase")),
            )
            .unwrap();
            insert_benchmark(&plan).wait
        };
        let seconds = |rule: WaitRule, rows: u64| rule.ns(rows) / SECOND_NS;
        for (rows, least, most) in [
            (0, 60, 1200),
            (20_000_000, 80, 1200),
            (4_800_000_000, 1200, 4860),
        ] {
            assert_eq!(
                (
                    seconds(wait("classic"), rows),
                    seconds(wait("classic-max"), rows),
                    seconds(wait("7s"), rows)
                ),
                (least, most, 7)
            );
        }
    }

    #[test]
    fn partial_matrix_and_shapes() {
        let text = r#"
name = "t"
workload = "insert-benchmark"
cells = ["sqlite@3.50.4.wal_full.one", "sqlite@3.50.4.wal_full.four"]
base = "sqlite@3.50.4.wal_full.one"
[sizes]
rows = "1M"
[shapes.one]
clients = 1
[shapes.four]
clients = 4
tables = "shared"
"#;
        let plan = Plan::parse("t.toml", text).unwrap();
        assert_eq!(plan.cells.len(), 2);
        assert_eq!(plan.cells[1].label, "sqlite@3.50.4.wal_full.four");
        let four = plan.cells[1].workload.insert_benchmark().unwrap();
        assert_eq!((four.clients, four.table_count()), (4, 1));
        assert_eq!(
            four.steps[2].connections(),
            4,
            "a shared table has no deletes"
        );
    }
}
