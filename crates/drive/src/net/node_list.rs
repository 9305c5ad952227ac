//! The nodes of a cluster, by numbers that stay.

use std::sync::OnceLock;

use model::Address;

/// The most nodes that may join during a phase: each gets connections of every thread.
const MOST_JOINED: usize = 1000;

/// Nodes that were found at the beginning, and those that joined since. None is removed.
pub(super) struct NodeList {
    found: Vec<Address>,
    joined: Box<[OnceLock<Address>]>,
}

impl NodeList {
    pub(super) fn new(found: Vec<Address>) -> NodeList {
        NodeList { found, joined: (0..MOST_JOINED).map(|_| OnceLock::new()).collect() }
    }

    /// The nodes of the beginning.
    pub(super) fn found(&self) -> &[Address] {
        &self.found
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Address> {
        self.found.iter().chain(self.joined.iter().map_while(OnceLock::get))
    }

    pub(super) fn len(&self) -> usize {
        self.found.len() + self.joined.partition_point(|node| node.get().is_some())
    }

    /// # Panics
    /// No node has the number.
    pub(super) fn get(&self, number: usize) -> &Address {
        let joined = || self.joined.get(number - self.found.len()).and_then(OnceLock::get);
        match self.found.get(number).or_else(joined) {
            Some(node) => node,
            None => panic!("node {number} of {}", self.len()),
        }
    }

    pub(super) fn number(&self, address: &Address) -> Option<u16> {
        self.iter().position(|node| node == address)?.try_into().ok()
    }

    /// Adds nodes that are not known yet, as far as there is room.
    pub(super) fn join<'a>(&self, nodes: impl Iterator<Item = &'a Address>) {
        let mut free = self.joined.iter().skip(self.len() - self.found.len());
        for node in nodes {
            if self.number(node).is_none() {
                let Some(place) = free.next() else { return };
                // Only the one thread that renews the map adds nodes.
                let _ = place.set(node.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(port: u16) -> Address {
        Address::Tcp { host: "n".to_owned(), port }
    }

    #[test]
    fn nodes_that_join_get_the_next_numbers_and_none_changes() {
        let list = NodeList::new(vec![node(1), node(2)]);
        list.join([node(2), node(7), node(7), node(5)].iter());
        list.join([node(5), node(1), node(9)].iter());
        assert_eq!(list.iter().cloned().collect::<Vec<_>>(), [1, 2, 7, 5, 9].map(node));
        assert_eq!((list.len(), list.found().len()), (5, 2));
        for (number, port) in [1, 2, 7, 5, 9].into_iter().enumerate() {
            assert_eq!(*list.get(number), node(port));
            assert_eq!(list.number(&node(port)), Some(number as u16));
        }
        assert_eq!(list.number(&node(3)), None);
    }

    #[test]
    fn a_map_that_names_ever_more_nodes_has_a_limit() {
        let list = NodeList::new(vec![node(1)]);
        list.join((2..5000).map(node).collect::<Vec<_>>().iter());
        assert_eq!((list.len(), list.number(&node(1002))), (1 + MOST_JOINED, None));
    }
}
