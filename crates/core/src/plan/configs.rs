//! The configs of a plan, and what of them a cell cannot have.

use toml::Spanned;

use super::document::{Config, Document};
use super::{Cell, ConfigRef, Driver, PlanError, SessionClient, TlsMode, Transport};
use crate::source::{Source, span};
use crate::suggest;

/// The setting that `engine` of a config stands for.
const STORAGE_ENGINE: &str = "storage_engine";

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

pub(super) fn config_ref(label: &str, document: &Document) -> ConfigRef {
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
        waits_hz: config
            .waits
            .as_ref()
            .or(document.waits.as_ref())
            .map(|waits| waits.get_ref().0),
    }
}

impl Source<'_> {
    pub(super) fn check_configs(
        &self,
        document: &Document,
        cells: &[Cell],
    ) -> Result<(), PlanError> {
        for (label, config) in &document.config {
            self.check_storage_engine(label, config)?;
            let own = |cell: &&Cell| &cell.config.label == label.get_ref();
            for cell in cells.iter().filter(own) {
                self.check_config_of_cell(label, config, cell)?;
            }
            if let (Some(_), Some(from)) = (&config.file, &config.from) {
                let message = format!(
                    "[config.{}] has \"file\" and \"from\": name one place where it comes from",
                    label.get_ref()
                );
                return Err(self.error(Some(from.span()), message));
            }
            if !cells.iter().any(|cell| own(&cell)) {
                let labels = cells.iter().map(|cell| cell.config.label.as_str());
                let hint = suggest::hint(label.get_ref(), labels);
                return Err(self.error(
                    Some(label.span()),
                    format!("[config.{}] belongs to no cell{hint}", label.get_ref()),
                ));
            }
        }
        Ok(())
    }

    /// A storage engine is one word, and named once.
    fn check_storage_engine(
        &self,
        label: &Spanned<String>,
        config: &Config,
    ) -> Result<(), PlanError> {
        let Some(engine) = &config.engine else {
            return Ok(());
        };
        let word = engine.get_ref();
        let is_word =
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let message = if !is_word {
            format!("engine = \"{word}\" is not a storage engine: write one word")
        } else if config.settings.contains_key(STORAGE_ENGINE) {
            format!(
                "[config.{}] names the storage engine twice: keep \"engine\" or \
                settings.{STORAGE_ENGINE}",
                label.get_ref()
            )
        } else {
            return Ok(());
        };
        Err(self.error(Some(engine.span()), message))
    }

    /// A storage engine is for servers that have more than one, a config sets up only servers that
    /// are ours, and TLS is for the full client.
    fn check_config_of_cell(
        &self,
        label: &Spanned<String>,
        config: &Config,
        cell: &Cell,
    ) -> Result<(), PlanError> {
        let has_choice = cell.build.engine.facts().has_storage_engines;
        if let (Some(engine), false) = (&config.engine, has_choice) {
            let message = format!(
                "cell {}: {} has no storage engines to choose from: leave out \"engine\"",
                cell.label, cell.build.engine
            );
            return Err(self.error(Some(engine.span()), message));
        }
        if let Some(driver) = &config.driver
            && *driver.get_ref() == Driver::DbBench
        {
            self.check_db_bench(driver, cell)?;
        }
        let Some(server) = &cell.server else {
            return Ok(());
        };
        if let Some(client) = &config.client
            && *client.get_ref() == SessionClient::Thin
            && server.tls != TlsMode::Off
        {
            let message = format!(
                "the sessions of {} are protected by TLS, which the thin client does not speak: \
                leave out \"client\", or set tls = \"off\" in [server.{}] where the network is \
                safe",
                cell.label, server.label
            );
            return Err(self.error(Some(client.span()), message));
        }
        // The storage engine is that of our tables, and no setting of the server.
        let is_bare = config.settings.keys().all(|key| key == STORAGE_ENGINE)
            && config.file.is_none()
            && config.from.is_none()
            && config.prefix.is_empty()
            && config.env.is_empty()
            && config.transport == Transport::default();
        if !is_bare {
            let message = format!(
                "[config.{}] would set up a server, and {} runs on an external one, whose settings \
                stay as they are: leave it empty, or with \"engine\" and \"client\" alone",
                label.get_ref(),
                cell.label
            );
            return Err(self.error(Some(label.span()), message));
        }
        Ok(())
    }
}
