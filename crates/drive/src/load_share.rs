//! Divides a load among several clients: blocks of operations and arrivals.

use workload::BLOCK;

/// One client's share of a load. All clients together issue what one client with as many threads
/// would: each takes every n-th block of the stream and the arrivals of its own threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadShare {
    /// This client's number, from 0, and how many clients there are.
    pub client: usize,
    pub clients: usize,
    /// This client's first thread among the threads of all clients, and how many those are.
    pub first_thread: usize,
    pub threads: usize,
}

impl LoadShare {
    /// Divides threads as evenly as possible, clients with more of them first. Returns the share
    /// and this client's number of threads.
    pub fn of(client: usize, clients: usize, threads: usize) -> (LoadShare, usize) {
        let (each, more) = (threads / clients, threads % clients);
        let first_thread = client * each + client.min(more);
        let own = each + usize::from(client < more);
        (LoadShare { client, clients, first_thread, threads }, own)
    }

    /// The block of the stream that this client takes at its `turn`, from 0.
    #[inline]
    pub(crate) fn block(&self, turn: u64) -> u64 {
        turn * self.clients as u64 + self.client as u64
    }

    /// How many of the stream's first `all` operations are this client's. Only its last block may be
    /// partial.
    pub(crate) fn operations(&self, all: u64) -> u64 {
        let (client, clients) = (self.client as u64, self.clients as u64);
        let (whole, rest) = (all / BLOCK, all % BLOCK);
        let own = (whole + clients - 1 - client) / clients;
        own * BLOCK + if whole % clients == client { rest } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_belongs_to_one_client() {
        for clients in 1..=5 {
            for all in [0, 1, 63, 64, 65, 640, 1000, 12_345] {
                let mut taken = vec![0; all as usize];
                for client in 0..clients {
                    let (share, _) = LoadShare::of(client, clients, clients);
                    let own = share.operations(all);
                    for n in 0..own {
                        taken[(share.block(n / BLOCK) * BLOCK + n % BLOCK) as usize] += 1;
                    }
                }
                assert!(taken.iter().all(|times| *times == 1), "{all} over {clients}");
            }
        }
    }

    #[test]
    fn every_thread_belongs_to_one_client() {
        for clients in 1..=5 {
            for threads in clients..4 * clients {
                let mut next = 0;
                for client in 0..clients {
                    let (share, own) = LoadShare::of(client, clients, threads);
                    assert_eq!((share.first_thread, share.threads), (next, threads));
                    assert!(own >= 1);
                    next += own;
                }
                assert_eq!(next, threads);
            }
        }
    }
}
