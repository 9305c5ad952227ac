//! Several stores of one kind that are used at the same time, one on each of several devices.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use model::Unit;

use crate::{Capabilities, Session, Statistic, Store, StoreError, StoreUrl, StoreVisitor, open};

/// Which stores a session of a group uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// One of the stores: the sessions take them in turn, so that as many sessions as a multiple
    /// of the stores are divided evenly.
    InTurn,
    /// All of them: each gets every write, one after the other. Reads use the first.
    All,
}

/// Opens the stores of these URLs, which differ in their paths only, and hands them to the
/// visitor as one. Each directory has been claimed with [`Directory`](crate::Directory).
///
/// # Errors
/// No URL, or the error of opening one of them.
pub fn open_group<V: StoreVisitor>(
    urls: &[StoreUrl],
    distribution: Distribution,
    visitor: V,
) -> Result<Result<V::Output, StoreError>, StoreError> {
    let Some((first, others)) = urls.split_first() else {
        return Err(StoreError::Request("no store is named".to_owned()));
    };
    open(first, Opening { others, sharing: distribution, visitor })
}

struct Opening<'a, V> {
    others: &'a [StoreUrl],
    sharing: Distribution,
    visitor: V,
}

impl<V: StoreVisitor> StoreVisitor for Opening<'_, V> {
    type Output = Result<V::Output, StoreError>;

    fn visit<S: Store>(self, first: S) -> Self::Output {
        let mut members = vec![Member::new(first)];
        for url in self.others {
            let store = S::open(url).map_err(|error| match error {
                StoreError::Failed(words) => {
                    StoreError::Failed(format!("{}: {words}", url.path.display()))
                }
                other => other,
            })?;
            members.push(Member::new(store));
        }
        let group = StoreGroup { members, sharing: self.sharing, next: AtomicUsize::new(0) };
        Ok(self.visitor.visit(group))
    }
}

/// Stores of one kind as one. Their own statistics are summed; `member.1.operations.total` ...
/// count the operations of each.
struct StoreGroup<S> {
    members: Vec<Member<S>>,
    sharing: Distribution,
    /// Number of the next session.
    next: AtomicUsize,
}

struct Member<S> {
    store: S,
    operations: PaddedCounter,
}

/// On a cache line of its own.
#[repr(align(128))]
struct PaddedCounter(AtomicU64);

impl<S> Member<S> {
    fn new(store: S) -> Self {
        Member { store, operations: PaddedCounter(AtomicU64::new(0)) }
    }
}

impl<S: Store> StoreGroup<S> {
    fn first(&self) -> &S {
        // A group is never empty: `Opening` starts with its first store.
        &self.members[0].store
    }
}

impl<S: Store> Store for StoreGroup<S> {
    type Session<'a> = StoreGroupSession<'a, S>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let members = vec![Member::new(S::open(url)?)];
        Ok(StoreGroup { members, sharing: Distribution::InTurn, next: AtomicUsize::new(0) })
    }

    fn capabilities(&self) -> Capabilities {
        self.first().capabilities()
    }

    fn version(&self) -> String {
        self.first().version()
    }

    fn options(&self) -> Vec<(String, String)> {
        self.first().options()
    }

    fn session(&self) -> Result<StoreGroupSession<'_, S>, StoreError> {
        let members = match self.sharing {
            Distribution::All => &self.members[..],
            Distribution::InTurn => {
                let at = self.next.fetch_add(1, Ordering::Relaxed) % self.members.len();
                &self.members[at..=at]
            }
        };
        let sessions =
            members.iter().map(|member| Ok((member.store.session()?, &member.operations)));
        Ok(StoreGroupSession { sessions: sessions.collect::<Result<_, StoreError>>()? })
    }

    fn settle(&self, limit: Duration) -> Result<(), StoreError> {
        // The limit applies to each: the others settle while one is waited for.
        self.members.iter().try_for_each(|member| member.store.settle(limit))
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut sums: Vec<Statistic> = Vec::new();
        for statistic in self.members.iter().flat_map(|member| member.store.statistics()) {
            match sums.iter_mut().find(|sum| sum.name == statistic.name) {
                // Shares and times cannot be summed.
                Some(sum) if matches!(sum.unit, Unit::Count | Unit::Bytes) => {
                    sum.value += statistic.value;
                }
                Some(_) => {}
                None if self.members.len() == 1
                    || matches!(statistic.unit, Unit::Count | Unit::Bytes) =>
                {
                    sums.push(statistic);
                }
                None => {}
            }
        }
        sums.extend(self.members.iter().enumerate().map(|(at, member)| Statistic {
            name: format!("member.{}.operations.total", at + 1),
            value: member.operations.0.load(Ordering::Relaxed) as f64,
            unit: Unit::Count,
        }));
        sums
    }
}

/// A session of one store, or of all.
struct StoreGroupSession<'a, S: Store> {
    sessions: Vec<(S::Session<'a>, &'a PaddedCounter)>,
}

impl<'a, S: Store> StoreGroupSession<'a, S> {
    #[inline]
    fn first(&mut self) -> &mut S::Session<'a> {
        let (session, operations) = &mut self.sessions[0];
        operations.0.fetch_add(1, Ordering::Relaxed);
        session
    }

    #[inline]
    fn each(
        &mut self,
        mut write: impl FnMut(&mut S::Session<'a>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for (session, operations) in &mut self.sessions {
            operations.0.fetch_add(1, Ordering::Relaxed);
            write(session)?;
        }
        Ok(())
    }
}

impl<S: Store> Session for StoreGroupSession<'_, S> {
    #[inline]
    fn read(&mut self, key: &[u8], on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        self.first().read(key, on_value)
    }

    #[inline]
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.each(|session| session.update(key, value))
    }

    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.each(|session| session.insert(key, value))
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.each(|session| session.delete(key))
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        self.first().scan(from, limit, on_pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct CountOperations(Distribution);

    impl StoreVisitor for CountOperations {
        type Output = Vec<u64>;
        fn visit<S: Store>(self, store: S) -> Vec<u64> {
            let mut sessions: Vec<_> = (0..6).map(|_| store.session().unwrap()).collect();
            for (at, session) in sessions.iter_mut().enumerate() {
                let key = [at as u8];
                session.insert(&key, b"value").unwrap();
                let mut stored = Vec::new();
                assert!(session.read(&key, |value| stored = value.to_vec()).unwrap());
                assert_eq!(stored, b"value", "{:?}", self.0);
            }
            let statistics = store.statistics();
            (1..=3)
                .map(|member| {
                    let name = format!("member.{member}.operations.total");
                    statistics.iter().find(|one| one.name == name).unwrap().value as u64
                })
                .collect()
        }
    }

    fn operations_by_member(sharing: Distribution) -> Vec<u64> {
        let folder = tempfile::tempdir().unwrap();
        let urls: Vec<StoreUrl> = (0..3)
            .map(|at| {
                let url: StoreUrl =
                    format!("spill:{}", folder.path().join(at.to_string()).display())
                        .parse()
                        .unwrap();
                std::fs::create_dir_all(url.data_path()).unwrap();
                url
            })
            .collect();
        open_group(&urls, sharing, CountOperations(sharing)).unwrap().unwrap()
    }

    #[test]
    fn sessions_take_the_stores_in_turn_or_write_to_all() {
        // Six sessions, each with one write and one read.
        assert_eq!(operations_by_member(Distribution::InTurn), [4, 4, 4]);
        assert_eq!(operations_by_member(Distribution::All), [12, 6, 6]);
    }

    #[test]
    fn no_store_is_refused() {
        let error =
            open_group(&[], Distribution::All, CountOperations(Distribution::All)).unwrap_err();
        assert!(matches!(error, StoreError::Request(_)), "{error}");
    }
}
