//! Bugs that are planted to see whether the tests find them: see `docs/reliability.md`.
//!
//! They are in builds with the feature `planted-bugs` and debug assertions alone: those of tests,
//! which have the feature from `plimsoll-testkit`. There a bug sleeps until [`VARIABLE`] names it.
//! Everywhere else [`is`] is a constant, so that nothing of this is in the program.

/// The variable that names the bug that is in, as [`Bug::name`] does.
pub const VARIABLE: &str = "PLIMSOLL_PLANTED_BUG";

/// The bugs, each with its name as a variable spells it.
macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident,)*) => {
        /// What can be wrong on purpose.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$doc])* $bug,)*
        }

        impl Bug {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$bug,)*];

            /// As the variable spells it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => stringify!($bug),)*
                }
            }
        }
    };
}

bugs! {
    /// Every hundredth operation of a worker is counted once more.
    OperationCountedTwice,
    /// The histograms of an interval are added to those of a second worker twice.
    HistogramMergedTwice,
    /// An operation that failed for good counts as done.
    FailureCountedAsDone,
    /// The tenth instant of a schedule is passed over.
    DueInstantSkipped,
    /// What an open loop owes at its end is forgotten.
    OwedForgotten,
    /// Operations of the warm-up are recorded.
    WarmUpCounted,
    /// A turn counts from its beginning, whatever is to be discarded.
    DiscardedPartCounted,
    /// The server's CPU in a turn has that of other servers in it.
    OthersCpuCounted,
    /// Events are not synced.
    EventsNotSynced,
    /// The names in a folder are not synced.
    FolderNotSynced,
    /// A file has its name before its content is on the disk.
    NamedBeforeSynced,
    /// A trial's folder is sealed without a sync of what is in it.
    SealedBeforeSynced,
    /// What a killed writer left of a line stays.
    TornLineKept,
    /// The checksum of an event is not looked at.
    ChecksumIgnored,
    /// Files and campaigns are not locked.
    StoreNotLocked,
    /// The data folder is not locked.
    DataNotLocked,
    /// Data of earlier campaigns stays.
    DataLeft,
    /// A process is known by its number alone.
    StartTimeIgnored,
    /// A server that was stopped between its turns is not looked for.
    StoppedServerForgotten,
    /// A server that was stopped between its turns does not go on at the end.
    StoppedServerLeftStopped,
    /// Tables are dropped that the marker does not list.
    MarkerIgnored,
    /// A verdict needs no control.
    ControlNotNeeded,
    /// Errors stay as they are, whatever the control says.
    ControlNotHeeded,
    /// Intervals are those of a known variance.
    DegreesIgnored,
}

/// Whether this bug is in.
///
/// # Panics
/// If the variable names a bug that there is not.
#[cfg(all(feature = "planted-bugs", debug_assertions))]
pub fn is(bug: Bug) -> bool {
    use std::sync::OnceLock;

    static PLANTED: OnceLock<Option<Bug>> = OnceLock::new();
    let planted = PLANTED.get_or_init(|| {
        let name = std::env::var(VARIABLE).ok()?;
        let found = Bug::ALL.iter().find(|bug| bug.name() == name);
        Some(*found.unwrap_or_else(|| panic!("{VARIABLE}={name}: there is no such bug")))
    });
    *planted == Some(bug)
}

/// Whether this bug is in: never.
#[cfg(not(all(feature = "planted-bugs", debug_assertions)))]
#[inline(always)]
pub const fn is(_: Bug) -> bool {
    false
}
