//! Operations on store and model, chosen by proptest.

use std::ops::Bound;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use spill::{CachedWrites, ColdReads, Durability, Options};

use super::keys::{FAMILIES, Key, Value};

pub const TABLES: usize = 3;

#[derive(Debug, Clone)]
pub struct Case {
    pub options: Options,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub enum Step {
    Put(usize, Key, Value),
    Delete(usize, Key),
    /// Many consecutive keys of a family.
    Fill {
        table: usize,
        from: Key,
        count: u16,
        value: Value,
    },
    DeleteMany {
        table: usize,
        from: Key,
        count: u16,
    },
    Batch(Vec<(usize, Key, Option<Value>)>),
    TooLong(usize),
    Get(usize, Key),
    MultiGet(usize, Vec<Key>),
    RangeWalk(usize, RangeWalk),
    /// A range that stays open during later steps.
    Hold(usize, RangeWalk),
    WalkOn(usize, Vec<bool>),
    Snapshot,
    ReadSnapshot {
        which: usize,
        table: usize,
        keys: Vec<Key>,
        walk: RangeWalk,
    },
    DropSnapshot(usize),
    Reopen(Options),
    Flush,
    Sync,
    Settle,
    Checkpoint,
    DropTable(usize),
    Scrub,
}

/// A range and how it is read: true is a step from the front. The rest is read from the front.
#[derive(Debug, Clone)]
pub struct RangeWalk {
    pub low: Bound<Key>,
    pub high: Bound<Key>,
    pub ends: Vec<bool>,
}

pub fn case() -> impl Strategy<Value = Case> {
    (options(), vec(step(), 20..90)).prop_map(|(options, steps)| Case { options, steps })
}

fn options() -> impl Strategy<Value = Options> {
    let cold = prop_oneof![Just(ColdReads::Auto), Just(ColdReads::Around), Just(ColdReads::Page)];
    let cached = prop_oneof![
        Just(CachedWrites::Auto),
        Just(CachedWrites::Always),
        Just(CachedWrites::Never)
    ];
    let durability = prop_oneof![
        3 => Just(Durability::None),
        1 => Just(Durability::Interval(Duration::from_millis(3))),
        1 => Just(Durability::Sync),
    ];
    let segment = prop_oneof![4 => Just(64), 1 => Just(128), 1 => Just(1024)];
    let memory = prop_oneof![Just(32), Just(64), Just(128)];
    let space = prop_oneof![Just(1.1), Just(1.5)];
    let small =
        (any::<bool>(), any::<bool>(), 1_usize..3, 2_u64..9, prop_oneof![Just(0), Just(10)]);
    (memory, segment, durability, cold, cached, space, small).prop_map(
        |(memory, segment, durability, cold_reads, cached_writes, space_amplification, small)| {
            let (verify, background, frozen, growth, bloom_bits) = small;
            Options {
                memory: memory << 10,
                segment: segment << 10,
                durability,
                cold_reads,
                cached_writes,
                space_amplification,
                verify,
                background,
                frozen,
                growth,
                bloom_bits,
                throttle: Duration::from_micros(100),
                ..Options::default()
            }
        },
    )
}

fn key() -> impl Strategy<Value = Key> {
    // Few numbers, so that keys repeat.
    let number = prop_oneof![6 => 0_u16..40, 2 => 0_u16..600, 1 => any::<u16>()];
    (0..FAMILIES, number).prop_map(|(family, number)| Key { family, number })
}

fn value() -> impl Strategy<Value = Value> {
    let len = prop_oneof![
        1 => Just(0_u32),
        8 => 1_u32..200,
        3 => 200_u32..3000,
        // Around the length limit of staging, and beyond.
        1 => 7_000_u32..9_000,
        1 => 9_000_u32..60_000,
    ];
    (any::<u16>(), len).prop_map(|(seed, len)| Value { seed, len })
}

fn small_value() -> impl Strategy<Value = Value> {
    (any::<u16>(), 0_u32..120).prop_map(|(seed, len)| Value { seed, len })
}

fn bound() -> impl Strategy<Value = Bound<Key>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        2 => key().prop_map(Bound::Included),
        2 => key().prop_map(Bound::Excluded),
    ]
}

fn walk() -> impl Strategy<Value = RangeWalk> {
    (bound(), bound(), vec(any::<bool>(), 0..40)).prop_map(|(low, high, ends)| RangeWalk {
        low,
        high,
        ends,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let table = 0..TABLES;
    let batch = vec((0..TABLES, key(), proptest::option::weighted(0.8, value())), 0..8);
    // One long value takes what the rest of a batch leaves.
    let batch = batch.prop_map(|mut writes| {
        for (_, _, value) in writes.iter_mut().skip(1) {
            *value = value.map(|value| Value { len: value.len % 500, ..value });
        }
        if let Some((_, _, Some(value))) = writes.first_mut() {
            value.len = value.len.min(50_000);
        }
        writes
    });
    let fill = (table.clone(), key(), 20_u16..260, small_value())
        .prop_map(|(table, from, count, value)| Step::Fill { table, from, count, value });
    let delete_many = (table.clone(), key(), 10_u16..200)
        .prop_map(|(table, from, count)| Step::DeleteMany { table, from, count });
    let read_snapshot = (0_usize..4, table.clone(), vec(key(), 0..6), walk())
        .prop_map(|(which, table, keys, walk)| Step::ReadSnapshot { which, table, keys, walk });
    prop_oneof![
        10 => (table.clone(), key(), value()).prop_map(|(t, k, v)| Step::Put(t, k, v)),
        6 => (table.clone(), key()).prop_map(|(t, k)| Step::Delete(t, k)),
        16 => fill,
        3 => delete_many,
        6 => batch.prop_map(Step::Batch),
        1 => table.clone().prop_map(Step::TooLong),
        6 => (table.clone(), key()).prop_map(|(t, k)| Step::Get(t, k)),
        3 => (table.clone(), vec(key(), 0..30)).prop_map(|(t, k)| Step::MultiGet(t, k)),
        5 => (table.clone(), walk()).prop_map(|(t, w)| Step::RangeWalk(t, w)),
        2 => (table.clone(), walk()).prop_map(|(t, w)| Step::Hold(t, w)),
        3 => (0_usize..3, vec(any::<bool>(), 1..30)).prop_map(|(w, e)| Step::WalkOn(w, e)),
        2 => Just(Step::Snapshot),
        4 => read_snapshot,
        1 => (0_usize..4).prop_map(Step::DropSnapshot),
        2 => options().prop_map(Step::Reopen),
        4 => Just(Step::Flush),
        1 => Just(Step::Sync),
        3 => Just(Step::Settle),
        1 => Just(Step::Checkpoint),
        1 => table.prop_map(Step::DropTable),
        1 => Just(Step::Scrub),
    ]
}
