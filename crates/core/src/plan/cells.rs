//! The cells of a plan: builds and configs crossed or listed, in their order, and the servers that
//! some of them run on.

use toml::Spanned;

use super::configs::config_ref;
use super::document::Document;
use super::server::external_server;
use super::sizes::{Own, Shapes};
use super::{Cell, InsertBenchmark, PlanError, Workload};
use crate::engines::Partitioning;
use crate::name::{BuildName, MADE_FROM_SOURCE, check_label, natural_cmp};
use crate::source::Source;
/// Build, config and shape of a cell, as the plan names them.
type NamedCell<'p> = (BuildName, &'p str, &'p (String, Workload));

impl Source<'_> {
    pub(super) fn cells(
        &self,
        document: &Document,
        shapes: &Shapes,
    ) -> Result<Vec<Cell>, PlanError> {
        let named = if document.cells.is_empty() {
            self.crossed_cells(document, shapes)?
        } else {
            self.listed_cells(document, shapes)?
        };
        let mut cells: Vec<Cell> = Vec::new();
        for (build, config, (shape, workload)) in named {
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
                    shape: shape.clone(),
                    workload: workload.clone(),
                });
            }
        }
        self.exclude(document, &mut cells)?;
        self.find_servers(document, &mut cells)?;
        self.check_configs(document, &cells)?;
        Ok(cells)
    }

    /// Every build with every config in every shape.
    fn crossed_cells<'p>(
        &self,
        document: &'p Document,
        shapes: &'p Shapes,
    ) -> Result<Vec<NamedCell<'p>>, PlanError> {
        for (key, list) in [("builds", &document.builds), ("configs", &document.configs)] {
            if list.is_empty() {
                let message = format!(
                    "\"{key}\" is empty: name at least one, or list the cells in \"cells\""
                );
                return Err(self.error(Some(document.name.span()), message));
            }
        }
        let mut cells = Vec::new();
        for build in &document.builds {
            for name in self.with_flags(build, &document.flags)? {
                for config in &document.configs {
                    check_label(config.get_ref(), "config name")
                        .map_err(|error| self.error(Some(config.span()), error.to_string()))?;
                    let of_shapes = shapes.iter();
                    cells.extend(
                        of_shapes.map(|shape| (name.clone(), config.get_ref().as_str(), shape)),
                    );
                }
            }
        }
        Ok(cells)
    }

    /// A build of `builds`; one that is made from source once with each set of `flags`.
    fn with_flags(
        &self,
        build: &Spanned<String>,
        flags: &[Spanned<String>],
    ) -> Result<Vec<BuildName>, PlanError> {
        let name: BuildName = build
            .get_ref()
            .parse()
            .map_err(|error| self.error(Some(build.span()), format!("{error}")))?;
        if flags.is_empty() {
            return Ok(vec![name]);
        }
        if name.source.as_deref() != Some(MADE_FROM_SOURCE) {
            let message = format!(
                "\"flags\" are for builds that are compiled here, and {name} is none: write it as \
                {}@VERSION+{MADE_FROM_SOURCE}, or leave out \"flags\"",
                name.engine
            );
            return Err(self.error(Some(build.span()), message));
        }
        let named = |set: &Spanned<String>| {
            check_label(set.get_ref(), "flag set")
                .map_err(|error| self.error(Some(set.span()), error.to_string()))?;
            Ok(BuildName {
                source: Some(format!("{MADE_FROM_SOURCE}-{}", set.get_ref())),
                ..name.clone()
            })
        };
        flags.iter().map(named).collect()
    }

    fn listed_cells<'p>(
        &self,
        document: &'p Document,
        shapes: &'p Shapes,
    ) -> Result<Vec<NamedCell<'p>>, PlanError> {
        let crossed = [&document.builds, &document.flags, &document.configs];
        if let Some(extra) = crossed.into_iter().flatten().next() {
            return Err(self.error(
                Some(extra.span()),
                "give either \"cells\" or \"builds\", \"flags\" and \"configs\", not both",
            ));
        }
        let cells = document.cells.iter();
        cells.map(|cell| self.split_cell(cell, shapes)).collect()
    }

    /// `build.config` or `build.config.shape`. Config and shape names hold no dot; versions may.
    fn split_cell<'p>(
        &self,
        cell: &'p Spanned<String>,
        shapes: &'p Shapes,
    ) -> Result<NamedCell<'p>, PlanError> {
        let text = cell.get_ref();
        let malformed = |detail: String| self.error(Some(cell.span()), detail);
        let has_shapes = shapes.len() > 1;
        let form = if has_shapes {
            "build.config.shape"
        } else {
            "build.config"
        };
        let not_so = || malformed(format!("write the cell \"{text}\" as {form}"));
        let (rest, shape) = if has_shapes {
            let (rest, last) = text.rsplit_once('.').ok_or_else(not_so)?;
            let shape = shapes.iter().find(|(label, _)| label == last);
            let shape = shape.ok_or_else(|| {
                malformed(format!(
                    "cell \"{text}\" names the shape \"{last}\", which is not in [shapes]; write \
                    {form}"
                ))
            })?;
            (rest, shape)
        } else {
            (text.as_str(), &shapes[0])
        };
        let (build, config) = rest.rsplit_once('.').ok_or_else(not_so)?;
        let build = build
            .parse()
            .map_err(|error| malformed(format!("{error}")))?;
        check_label(config, "config name").map_err(|error| malformed(error.to_string()))?;
        Ok((build, config, shape))
    }

    /// Takes the cells out that the plan excludes.
    fn exclude(&self, document: &Document, cells: &mut Vec<Cell>) -> Result<(), PlanError> {
        for exclude in &document.exclude {
            let before = cells.len();
            cells.retain(|cell| &cell.label != exclude.get_ref());
            if cells.len() == before {
                let message = format!(
                    "exclude \"{}\" is not a cell of this plan",
                    exclude.get_ref()
                );
                return Err(self.error(Some(exclude.span()), message));
            }
        }
        if cells.is_empty() {
            return Err(self.error(
                Some(document.name.span()),
                "no cell is left after \"exclude\"",
            ));
        }
        Ok(())
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

    /// Not every engine can partition a table that has a primary key.
    pub(super) fn check_partitions(&self, cells: &[Cell]) -> Result<(), PlanError> {
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
            let own: Own<InsertBenchmark> = self.own()?;
            let shapes = own.shapes.values().map(|sizes| &sizes.partitions);
            let mut keys = [&own.sizes.partitions].into_iter().chain(shapes).flatten();
            return Err(self.error(
                keys.next().map(Spanned::span),
                format!(
                    "cell {}: {problem}; leave out \"partitions\" or the cell",
                    cell.label
                ),
            ));
        }
        Ok(())
    }

    /// Keys and values for the engine that has them, statements for those that speak SQL.
    pub(super) fn check_engines(
        &self,
        document: &Document,
        cells: &[Cell],
    ) -> Result<(), PlanError> {
        for cell in cells {
            let is_kv = matches!(cell.workload, Workload::Rocksdb(_));
            let engine = cell.build.engine;
            let problem = match (is_kv, engine.has_sql()) {
                (true, false) | (false, true) => continue,
                (false, false) => format!(
                    "{engine} has no SQL: set workload = \"rocksdb\", or leave the cell out"
                ),
                (true, true) => format!(
                    "the workload rocksdb is keys and values, which {engine} has not: take builds \
                    rocksdb@VERSION"
                ),
            };
            let is_build = |text: &Spanned<String>| {
                text.get_ref()
                    .parse::<BuildName>()
                    .is_ok_and(|build| build == cell.build)
            };
            let in_builds = document.builds.iter().find(|build| is_build(build));
            let place = in_builds.or_else(|| {
                document
                    .cells
                    .iter()
                    .find(|known| known.get_ref() == &cell.label)
            });
            return Err(self.error(
                Some(place.map_or(document.workload.span(), Spanned::span)),
                format!("cell {}: {problem}", cell.label),
            ));
        }
        Ok(())
    }
}
