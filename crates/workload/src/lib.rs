//! Benchmarks: their tables, data, statements, steps and roles. A workload makes workers; the load loop runs them.

pub mod insert_benchmark;
