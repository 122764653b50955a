//! Which unit is whose, a block or a part of one. A value that reads no clock and knows no machine.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_core::schedule::Unit;

/// The units of a campaign on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Board {
    queue: VecDeque<Unit>,
    /// Units that have begun on a host, which goes on with them.
    begun: BTreeMap<Unit, String>,
    /// By host.
    running: BTreeMap<String, Unit>,
    is_closed: bool,
}

/// What a host that is free does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Unit(Unit),
    /// All units run elsewhere; one of them may come back.
    Wait,
    Over,
}

impl Board {
    /// `begun` are units that a host has begun with and may go on with, of those in `units`.
    pub fn new(units: impl IntoIterator<Item = Unit>, begun: BTreeMap<Unit, String>) -> Self {
        Self {
            queue: units.into_iter().collect(),
            begun,
            ..Self::default()
        }
    }

    /// The first unit that this host has begun, else the first that nobody has.
    pub fn next(&mut self, host: &str) -> Next {
        if self.is_closed || self.is_over() {
            return Next::Over;
        }
        let own = |unit: &Unit| self.begun.get(unit).is_some_and(|of| of == host);
        let free = |unit: &Unit| !self.begun.contains_key(unit);
        let place = self
            .queue
            .iter()
            .position(own)
            .or_else(|| self.queue.iter().position(free));
        let Some(unit) = place.and_then(|place| self.queue.remove(place)) else {
            return Next::Wait;
        };
        self.begun.insert(unit, host.to_owned());
        self.running.insert(host.to_owned(), unit);
        Next::Unit(unit)
    }

    /// The host is done with its unit.
    pub fn done(&mut self, host: &str) {
        self.running.remove(host);
    }

    /// The host is lost: its unit is the next of whoever is free, and so are those that it has
    /// begun before and not finished. The unit that it lost.
    pub fn lost(&mut self, host: &str) -> Option<Unit> {
        let unit = self.running.remove(host);
        self.begun.retain(|_, of| of != host);
        if let Some(unit) = unit {
            self.queue.push_front(unit);
        }
        unit
    }

    /// No unit begins any more.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether nothing is left, and nothing can come back.
    pub fn is_over(&self) -> bool {
        self.running.is_empty() && (self.queue.is_empty() || self.is_closed)
    }

    /// The last block, of `blocks`, up to which nothing runs or waits.
    pub fn done_up_to(&self, blocks: u32) -> u32 {
        let open = self.queue.iter().chain(self.running.values());
        open.min().map_or(blocks, |first| first.block - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(block: u32) -> Unit {
        Unit { block, part: None }
    }

    #[test]
    fn a_block_has_one_host_and_a_host_one_block() {
        let mut board = Board::new((1..=3).map(whole), BTreeMap::new());
        assert_eq!(board.next("a"), Next::Unit(whole(1)));
        assert_eq!(board.next("b"), Next::Unit(whole(2)));
        board.done("b");
        assert_eq!(board.next("b"), Next::Unit(whole(3)));
        assert_eq!(board.done_up_to(3), 0);
        board.done("a");
        assert_eq!(board.done_up_to(3), 2);
        assert_eq!(board.next("a"), Next::Wait, "b may be lost");
        board.done("b");
        assert_eq!((board.next("a"), board.done_up_to(3)), (Next::Over, 3));
    }

    #[test]
    fn a_lost_host_costs_its_block_which_is_next() {
        let mut board = Board::new((1..=3).map(whole), BTreeMap::new());
        assert_eq!(board.next("a"), Next::Unit(whole(1)));
        assert_eq!(board.next("b"), Next::Unit(whole(2)));
        assert_eq!(board.lost("a"), Some(whole(1)));
        board.done("b");
        assert_eq!(board.next("b"), Next::Unit(whole(1)));
        board.done("b");
        assert_eq!(board.next("a"), Next::Unit(whole(3)), "it may come back");
        assert_eq!(board.lost("c"), None);
    }

    #[test]
    fn a_block_goes_on_where_it_has_begun_unless_that_host_is_lost() {
        let begun = BTreeMap::from([(whole(2), "b".to_owned())]);
        let mut board = Board::new([2, 3].map(whole), begun);
        assert_eq!(board.next("a"), Next::Unit(whole(3)));
        board.done("a");
        assert_eq!(board.next("a"), Next::Wait);
        board.lost("b");
        assert_eq!(board.next("a"), Next::Unit(whole(2)));
    }

    #[test]
    fn a_closed_board_gives_no_block_and_is_over_when_those_that_run_are() {
        let mut board = Board::new((1..=4).map(whole), BTreeMap::new());
        assert_eq!(board.next("a"), Next::Unit(whole(1)));
        board.close();
        assert_eq!(board.next("b"), Next::Over);
        assert!(!board.is_over());
        board.done("a");
        assert!(board.is_over());
    }

    #[test]
    fn a_block_is_done_when_all_of_its_parts_are() {
        let of = |block, part| Unit {
            block,
            part: Some(part),
        };
        let mut board = Board::new([of(1, 1), of(1, 2), of(2, 1)], BTreeMap::new());
        assert_eq!(board.next("a"), Next::Unit(of(1, 1)));
        assert_eq!(board.next("b"), Next::Unit(of(1, 2)));
        board.done("b");
        assert_eq!(board.next("b"), Next::Unit(of(2, 1)));
        assert_eq!(board.done_up_to(2), 0);
        assert_eq!(board.lost("a"), Some(of(1, 1)));
        board.done("b");
        assert_eq!(
            (board.next("b"), board.done_up_to(2)),
            (Next::Unit(of(1, 1)), 0)
        );
        board.done("b");
        assert_eq!(board.done_up_to(2), 2);
    }
}
