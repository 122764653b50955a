//! The program as its users run it: the real binary, real files, real signals.

mod bad_input;
mod bisect;
mod build;
mod campaign;
mod confirm;
mod cut_off;
mod db_bench;
mod drawn;
mod external;
mod faults;
mod first_minutes;
mod foreign;
mod gate;
mod gate_example;
mod import;
mod live;
mod perf;
mod resume;
mod rocksdb;
mod servers;
mod slices;
mod support;
mod sysbench;
mod syscalls;
mod verdicts;
mod workload_file;
