//! Which block is whose. A value that reads no clock and knows no machine.

use std::collections::{BTreeMap, VecDeque};

/// The blocks of a campaign on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Board {
    queue: VecDeque<u32>,
    /// Blocks that have begun on a host, which goes on with them.
    begun: BTreeMap<u32, String>,
    /// By host.
    running: BTreeMap<String, u32>,
    is_closed: bool,
}

/// What a host that is free does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Block(u32),
    /// All blocks run elsewhere; one of them may come back.
    Wait,
    Over,
}

impl Board {
    /// `begun` are blocks that a host has begun with and may go on with, of those in `blocks`.
    pub fn new(blocks: impl IntoIterator<Item = u32>, begun: BTreeMap<u32, String>) -> Self {
        Self {
            queue: blocks.into_iter().collect(),
            begun,
            ..Self::default()
        }
    }

    /// The first block that this host has begun, else the first that nobody has.
    pub fn next(&mut self, host: &str) -> Next {
        if self.is_closed || self.is_over() {
            return Next::Over;
        }
        let own = |block: &u32| self.begun.get(block).is_some_and(|of| of == host);
        let free = |block: &u32| !self.begun.contains_key(block);
        let place = self
            .queue
            .iter()
            .position(own)
            .or_else(|| self.queue.iter().position(free));
        let Some(block) = place.and_then(|place| self.queue.remove(place)) else {
            return Next::Wait;
        };
        self.begun.insert(block, host.to_owned());
        self.running.insert(host.to_owned(), block);
        Next::Block(block)
    }

    /// The host is done with its block.
    pub fn done(&mut self, host: &str) {
        self.running.remove(host);
    }

    /// The host is lost: its block is the next of whoever is free, and so are those that it has
    /// begun before and not finished. The block that it lost.
    pub fn lost(&mut self, host: &str) -> Option<u32> {
        let block = self.running.remove(host);
        self.begun.retain(|_, of| of != host);
        if let Some(block) = block {
            self.queue.push_front(block);
        }
        block
    }

    /// No block begins any more.
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

    /// The last block, of `blocks`, up to which none runs or waits.
    pub fn done_up_to(&self, blocks: u32) -> u32 {
        let open = self.queue.iter().chain(self.running.values());
        open.min().map_or(blocks, |first| first - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_one_host_and_a_host_one_block() {
        let mut board = Board::new(1..=3, BTreeMap::new());
        assert_eq!(board.next("a"), Next::Block(1));
        assert_eq!(board.next("b"), Next::Block(2));
        board.done("b");
        assert_eq!(board.next("b"), Next::Block(3));
        assert_eq!(board.done_up_to(3), 0);
        board.done("a");
        assert_eq!(board.done_up_to(3), 2);
        assert_eq!(board.next("a"), Next::Wait, "b may be lost");
        board.done("b");
        assert_eq!((board.next("a"), board.done_up_to(3)), (Next::Over, 3));
    }

    #[test]
    fn a_lost_host_costs_its_block_which_is_next() {
        let mut board = Board::new(1..=3, BTreeMap::new());
        assert_eq!(board.next("a"), Next::Block(1));
        assert_eq!(board.next("b"), Next::Block(2));
        assert_eq!(board.lost("a"), Some(1));
        board.done("b");
        assert_eq!(board.next("b"), Next::Block(1));
        board.done("b");
        assert_eq!(board.next("a"), Next::Block(3), "it may come back");
        assert_eq!(board.lost("c"), None);
    }

    #[test]
    fn a_block_goes_on_where_it_has_begun_unless_that_host_is_lost() {
        let begun = BTreeMap::from([(2, "b".to_owned())]);
        let mut board = Board::new([2, 3], begun);
        assert_eq!(board.next("a"), Next::Block(3));
        board.done("a");
        assert_eq!(board.next("a"), Next::Wait);
        board.lost("b");
        assert_eq!(board.next("a"), Next::Block(2));
    }

    #[test]
    fn a_closed_board_gives_no_block_and_is_over_when_those_that_run_are() {
        let mut board = Board::new(1..=4, BTreeMap::new());
        assert_eq!(board.next("a"), Next::Block(1));
        board.close();
        assert_eq!(board.next("b"), Next::Over);
        assert!(!board.is_over());
        board.done("a");
        assert!(board.is_over());
    }
}
