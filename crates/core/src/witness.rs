//! When a machine counts as disturbed from outside. Whoever looks, the orchestrator or the report, looks with these limits.

/// More of all CPU time given to other guests than this share.
pub const STEAL_LIMIT: f64 = 0.01;

/// More CPU than this, in cores, used by others than the clients and the engine. The kernel's own threads count as others, and some of them
/// do the engine's I/O: a limit of 0.02 cores, say, would flag every step bound by fsync.
pub const FOREIGN_CORES_LIMIT: f64 = 0.25;

/// More CPU than this, in cores, used in a contestant's turns by servers whose turn it is not (leakage). No kernel thread is among them, and the
/// one that leaks does not suffer itself: what it takes from the others shifts every ratio to it, and the A/A control cannot see that.
pub const LEAK_CORES_LIMIT: f64 = 0.05;
