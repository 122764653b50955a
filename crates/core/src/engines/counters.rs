//! What engines count, as far as reports know it.

use super::ENGINES;

/// The counters of an engine that reports know.
#[derive(Debug)]
pub struct Counters {
    /// What the field looks at, in the order of the table.
    pub front: &'static [FrontCounter],
    /// What an operation costs in counts that are exact: fsyncs, bytes of log, temporary tables.
    pub companions: &'static [Companion],
    /// What the engine reports along with its counters though it goes up and down.
    pub levels: &'static [Names],
    /// Counters that have a level's name.
    pub counted: &'static [Names],
}

/// Of an engine whose counters nobody has sorted yet: all are treated alike.
pub(super) static NO_COUNTERS: Counters = Counters {
    front: &[],
    companions: &[],
    levels: &[],
    counted: &[],
};

/// A counter that stands in front of the others.
#[derive(Debug)]
pub struct FrontCounter {
    /// The engine's name for it.
    pub name: &'static str,
    /// `B`, `us`, or empty for a number.
    pub unit: &'static str,
    pub meaning: &'static str,
}

pub(super) const fn front(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> FrontCounter {
    FrontCounter {
        name,
        unit,
        meaning,
    }
}

/// A count that stands next to a verdict, per operation.
#[derive(Debug)]
pub struct Companion {
    /// In words: the same for the same thing in all engines.
    pub name: &'static str,
    /// `B`, `us`, or empty for a number.
    pub unit: &'static str,
    /// The engine's counters for it, of which each version has one at most; the first is taken.
    pub counters: &'static [&'static str],
}

pub(super) const fn companion(
    name: &'static str,
    unit: &'static str,
    counters: &'static [&'static str],
) -> Companion {
    Companion {
        name,
        unit,
        counters,
    }
}

/// The companions of all engines, in the order of their tables.
pub fn companions() -> impl Iterator<Item = &'static Companion> {
    ENGINES.iter().flat_map(|facts| facts.counters.companions)
}

/// Which names are meant.
#[derive(Debug)]
pub enum Names {
    Is(&'static str),
    StartsWith(&'static str),
    Contains(&'static str),
    EndsWith(&'static str),
}

impl Names {
    fn include(&self, name: &str) -> bool {
        match self {
            Self::Is(known) => name == *known,
            Self::StartsWith(start) => name.starts_with(start),
            Self::Contains(part) => name.contains(part),
            Self::EndsWith(end) => name.ends_with(end),
        }
    }
}

/// The front counters of all engines. A step's table has the cells of several.
pub fn front_counters() -> impl Iterator<Item = &'static FrontCounter> {
    ENGINES.iter().flat_map(|facts| facts.counters.front)
}

/// Whether an engine reports it along with its counters though it goes up and down.
pub fn is_level(name: &str) -> bool {
    let is_in = |names: fn(&'static Counters) -> &'static [Names]| {
        let all = ENGINES.iter().flat_map(|facts| names(facts.counters));
        all.into_iter().any(|names| names.include(name))
    };
    is_in(|counters| counters.levels) && !is_in(|counters| counters.counted)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn companions_count_and_have_one_unit_each() {
        for companion in companions() {
            let levels = companion.counters.iter().filter(|name| is_level(name));
            assert_eq!(levels.count(), 0, "{} has a level", companion.name);
            let named = companions().filter(|other| other.name == companion.name);
            let units: BTreeSet<&str> = named.map(|other| other.unit).collect();
            assert_eq!(units.len(), 1, "{} has several units", companion.name);
        }
    }

    #[test]
    fn what_stands_in_front_is_no_level_and_stands_there_once() {
        for facts in ENGINES {
            let front = facts.counters.front;
            let names: BTreeSet<&str> = front.iter().map(|counter| counter.name).collect();
            assert_eq!(names.len(), front.len(), "{}: each once", facts.key);
            assert!(names.iter().all(|name| !is_level(name)), "{}", facts.key);
        }
    }
}
