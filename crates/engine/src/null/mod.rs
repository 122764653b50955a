//! An engine that does nothing, at once: it shows the client's own ceiling.
