//! Files that appear whole, are held by one process, and are known to be unchanged.

pub(crate) mod durable;
pub(crate) mod lock;
pub(crate) mod reserve;
pub(crate) mod seal;
