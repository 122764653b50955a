//! From what was read to campaigns of the store.

mod builder;
mod device;
mod import;
mod insert_benchmark;
mod other;
mod perf_join;
mod ratios;
mod rocksdb;
mod rocksdb_tables;
mod sysbench;
mod sysbench_costs;
mod sysbench_tables;
mod thread_counts;

use plimsoll_store::imported::Imported;

pub use import::{ImportError, ImportedUnit, Options, Summary, import};

/// A campaign per family that the files have results of.
fn assemble(files: &[import::File], options: &Options) -> Vec<Imported> {
    [
        sysbench::assemble(files, options),
        insert_benchmark::assemble(files, options),
        rocksdb::assemble(files),
        other::assemble(files),
    ]
    .into_iter()
    .flatten()
    .collect()
}
