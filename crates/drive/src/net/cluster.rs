//! The nodes of a cluster and their slots, which all threads share. The map is renewed by a thread of
//! its own when a worker meets a change, never on the way of an operation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Address;
use store::wire::{ClusterMap, SLOTS};
use store::{Remote, ReplicaReads, StoreError};

use super::node_list::NodeList;

/// The least time between two renewals.
const RENEWAL_PAUSE: Duration = Duration::from_millis(50);

/// A node that is cut off must not keep the others from being asked.
const RENEWAL_LIMIT: Duration = Duration::from_millis(500);

/// Asks one node for the map; its arguments are the node's address and the longest wait.
pub(super) type ReadMap =
    Box<dyn Fn(&Address, Duration) -> Result<ClusterMap, UnreadMap> + Send + Sync>;

/// Why a node gave no map.
pub(super) struct UnreadMap {
    pub(super) error: StoreError,
    /// It answers, and refuses: the node is there.
    pub(super) is_refusal: bool,
}

/// What nodes answered.
type MapAnswers = Vec<(Address, Result<ClusterMap, UnreadMap>)>;

/// The nodes of a cluster, and its slots as they are now.
pub(crate) struct Cluster {
    /// All nodes, replicas among them.
    pub(super) nodes: NodeList,
    pub(super) reads: ReplicaReads,
    routes: Mutex<Arc<Routes>>,
    /// Counts the renewals that changed something.
    version: AtomicU64,
    is_renewing: AtomicBool,
    read: ReadMap,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("nodes", &self.nodes.found()).finish_non_exhaustive()
    }
}

/// Which node serves a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Routes {
    /// The primary of each slot; [`ClusterMap::NOBODY`] without one.
    pub(super) owners: Vec<u16>,
    /// Live replicas of each node.
    pub(super) replicas: Vec<Vec<u16>>,
}

impl Cluster {
    /// Finds the nodes by the named servers; the others must take the login too.
    /// Nodes that cannot be reached are left to a failover.
    ///
    /// # Errors
    /// No server answers, servers are of different clusters, a node refuses, the cluster does not
    /// serve all slots, or it lacks replicas that are wanted.
    pub(super) fn find(
        remote: &Remote,
        reads: ReplicaReads,
        read: ReadMap,
    ) -> Result<Self, StoreError> {
        let (first, map) = agreed(ask_all(&remote.servers, &read, remote.timeout))?;
        let live = map.nodes.iter().filter(|node| !node.failed).map(|node| node.address.clone());
        let others: Vec<Address> = live.filter(|node| !remote.servers.contains(node)).collect();
        let mut all = vec![(first, Ok(map))];
        all.extend(ask_all(&others, &read, remote.timeout.min(RENEWAL_LIMIT)));
        let (_, map) = agreed(all)?;
        let names: Vec<String> = remote.servers.iter().map(Address::to_string).collect();
        let names = names.join(", ");
        let missing = map.uncovered();
        if missing > 0 {
            return Err(StoreError::Request(format!(
                "{names}: the cluster serves {} of {SLOTS} slots; add the others to its nodes",
                SLOTS - missing
            )));
        }
        let nodes: Vec<Address> = map.nodes.iter().map(|node| node.address.clone()).collect();
        let nodes = NodeList::new(nodes);
        let routes = Routes::of(&map, &nodes);
        if reads == ReplicaReads::Only {
            let slots = map.slots();
            let without =
                (0..slots.len()).find(|at| slots[*at] > 0 && routes.replicas[*at].is_empty());
            if let Some(at) = without {
                return Err(StoreError::Request(format!(
                    "`replicas=only`, but {} has none; take `prefer`, or add one",
                    nodes.get(at)
                )));
            }
        }
        Ok(Cluster {
            nodes,
            reads,
            routes: Mutex::new(Arc::new(routes)),
            version: AtomicU64::new(0),
            is_renewing: AtomicBool::new(false),
            read,
        })
    }

    /// The node that a redirect names; None of one that joined since the map was renewed.
    pub(super) fn target(&self, to: &str, from: usize) -> Option<u16> {
        let (host, port) = to.rsplit_once(':')?;
        let host = match (host, self.nodes.get(from)) {
            ("" | "?", Address::Tcp { host, .. }) => host,
            (host, _) => host.trim_start_matches('[').trim_end_matches(']'),
        };
        self.nodes.number(&Address::Tcp { host: host.to_owned(), port: port.parse().ok()? })
    }

    /// The slots as they are known now, and their version.
    pub(super) fn routes(&self) -> (u64, Arc<Routes>) {
        // The version first: the routes may be newer, never older.
        let version = self.version.load(Ordering::Acquire);
        (version, Arc::clone(&self.lock()))
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Primaries: the nodes that serve slots now.
    pub(super) fn primaries(&self) -> Vec<usize> {
        let routes = Arc::clone(&self.lock());
        (0..self.nodes.len()).filter(|at| routes.owners.contains(&(*at as u16))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Routes>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the map in a thread of its own, unless one does it already. `unsure` is the node that
    /// is not asked.
    pub(super) fn renew(self: &Arc<Self>, unsure: Option<usize>) {
        if self.is_renewing.swap(true, Ordering::AcqRel) {
            return;
        }
        let cluster = Arc::clone(self);
        let started = std::thread::Builder::new().name("cluster map".to_owned()).spawn(move || {
            cluster.renew_now(unsure);
            std::thread::sleep(RENEWAL_PAUSE);
            cluster.is_renewing.store(false, Ordering::Release);
        });
        if started.is_err() {
            self.is_renewing.store(false, Ordering::Release);
        }
    }

    fn renew_now(&self, unsure: Option<usize>) {
        let known = Arc::clone(&self.lock());
        // Primaries first: a replica may be cut off.
        let mut order: Vec<usize> =
            (0..self.nodes.len()).filter(|at| Some(*at) != unsure).collect();
        order.sort_by_key(|at| !known.owners.contains(&(*at as u16)));
        for at in order {
            let Ok(map) = (self.read)(self.nodes.get(at), RENEWAL_LIMIT) else { continue };
            let live = map.nodes.iter().filter(|node| !node.failed);
            self.nodes.join(live.map(|node| &node.address));
            let routes = Routes::of(&map, &self.nodes);
            if routes != *known {
                *self.lock() = Arc::new(routes);
                self.version.fetch_add(1, Ordering::AcqRel);
            }
            return;
        }
    }
}

/// Reads the map from all nodes at once.
fn ask_all(nodes: &[Address], read: &ReadMap, limit: Duration) -> MapAnswers {
    let failed =
        |why: &str| Err(UnreadMap { error: StoreError::Failed(why.to_owned()), is_refusal: false });
    std::thread::scope(|scope| {
        let ask = |node| {
            let thread = std::thread::Builder::new().name("cluster map".to_owned());
            (node, thread.spawn_scoped(scope, move || read(node, limit)))
        };
        let asked: Vec<_> = nodes.iter().map(ask).collect();
        let answer = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|_| failed("its thread panicked")),
            Err(error) => failed(&error.to_string()),
        };
        asked.into_iter().map(|(node, thread)| (node.clone(), answer(thread))).collect()
    })
}

/// The first node that answered and its map, where all that answered are of one cluster.
fn agreed(answers: MapAnswers) -> Result<(Address, ClusterMap), StoreError> {
    let answered = answers.iter().find_map(|(node, map)| Some((node, map.as_ref().ok()?)));
    let Some((first, map)) = answered.map(|(node, map)| (node.clone(), map.clone())) else {
        let last = answers.into_iter().rev().find_map(|(_, map)| map.err());
        let none = || StoreError::Request("no server is named".to_owned());
        return Err(last.map_or_else(none, |unread| unread.error));
    };
    for (node, answer) in answers {
        match answer {
            Ok(other) if !other.shares_a_node_with(&map) => {
                return Err(StoreError::Request(format!(
                    "{node} belongs to another cluster than {first}: no node is in both; name \
                     nodes of one cluster"
                )));
            }
            Err(UnreadMap { error, is_refusal: true }) => {
                return Err(StoreError::Request(format!(
                    "{error}; {first} answers, and all nodes of a cluster need the same login"
                )));
            }
            _ => {}
        }
    }
    Ok((first, map))
}

impl Routes {
    /// The routes of a map by the numbers of known nodes; others serve nobody.
    fn of(map: &ClusterMap, nodes: &NodeList) -> Routes {
        let numbers: Vec<_> = map.nodes.iter().map(|node| nodes.number(&node.address)).collect();
        let number = |at: u16| *numbers.get(usize::from(at))?;
        let owners =
            map.owners.iter().map(|owner| number(*owner).unwrap_or(ClusterMap::NOBODY)).collect();
        let mut replicas = vec![Vec::new(); nodes.len()];
        for (at, node) in (0..).zip(&map.nodes) {
            if let (Some(primary), Some(own), false) =
                (node.follows.and_then(number), number(at), node.failed)
            {
                replicas[usize::from(primary)].push(own);
            }
        }
        Routes { owners, replicas }
    }
}
