//! Replacement policies.

/// How a victim is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The least recently used line.
    Lru,
    /// A tree of bits that point away from used lines (tree pseudo-LRU).
    TreePlru,
    /// Any line, each with the same chance.
    Random,
    /// Static re-reference interval prediction with 2 bits a line (Jaleel et al., ISCA 2010).
    Rrip,
}

/// Re-reference predictions: near, as a new line gets it, and far.
const NEAR: u8 = 0;
const LONG: u8 = 2;
const DISTANT: u8 = 3;

/// Replacement state of all sets.
#[derive(Debug, Clone)]
pub(super) enum Order {
    Lru {
        ages: Vec<u8>,
        row: usize,
    },
    /// The bits of each set, and for each way the bits on its path and their values after its use:
    /// they point to the other half.
    TreePlru {
        bits: Vec<u32>,
        leaves: u32,
        paths: Vec<(u32, u32)>,
    },
    Random {
        state: u64,
    },
    Rrip {
        intervals: Vec<u8>,
        row: usize,
    },
}

impl Order {
    pub fn new(kind: Replacement, sets: usize, ways: u32, seed: u64) -> Order {
        // Whole vectors.
        let row = (ways as usize).next_multiple_of(8);
        match kind {
            Replacement::Lru => {
                let ages = (0..sets * row).map(|i| (i % row) as u8).collect();
                Order::Lru { ages, row }
            }
            Replacement::TreePlru => {
                let leaves = ways.next_power_of_two();
                let paths = (0..leaves).map(|way| path(way, leaves)).collect();
                Order::TreePlru { bits: vec![0; sets], leaves, paths }
            }
            Replacement::Random => Order::Random { state: model::random::mix(seed) | 1 },
            Replacement::Rrip => Order::Rrip { intervals: vec![DISTANT; sets * row], row },
        }
    }

    /// Notes that a line was used; `fresh` when it has just come in.
    #[inline(always)]
    pub fn touch(&mut self, set: usize, way: u32, fresh: bool) {
        match self {
            Order::Random { .. } => {}
            Order::Lru { ages, row } => {
                let ages = &mut ages[set * *row..][..*row];
                let own = ages[way as usize];
                for age in ages.iter_mut() {
                    *age += u8::from(*age < own);
                }
                ages[way as usize] = 0;
            }
            Order::TreePlru { bits, paths, .. } => {
                let (passed, used) = paths[way as usize];
                bits[set] = (bits[set] & !passed) | used;
            }
            Order::Rrip { intervals, row } => {
                intervals[set * *row + way as usize] = if fresh { LONG } else { NEAR };
            }
        }
    }

    /// One of the ways of `mask`, which is not empty.
    #[inline(always)]
    pub fn victim(&mut self, set: usize, mask: u32) -> u32 {
        match self {
            Order::Random { state } => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                let among = u64::from(mask.count_ones());
                nth_way(mask, (((*state >> 32) * among) >> 32) as u32)
            }
            Order::Lru { ages, row } => {
                let ages = &ages[set * *row..][..*row];
                ways_of(mask).max_by_key(|way| ages[*way as usize]).unwrap_or_default()
            }
            Order::TreePlru { bits, leaves, .. } => {
                let bits = bits[set];
                let (mut node, mut low, mut size) = (1_u32, 0, *leaves);
                while size > 1 {
                    size /= 2;
                    let half = |from: u32| mask & ((((1_u64 << size) - 1) as u32) << from);
                    let points_right = bits >> node & 1 == 1;
                    let right = match points_right {
                        true => half(low + size) != 0,
                        false => half(low) == 0,
                    };
                    low += if right { size } else { 0 };
                    node = node * 2 + u32::from(right);
                }
                low
            }
            Order::Rrip { intervals, row } => {
                let intervals = &mut intervals[set * *row..][..*row];
                let oldest = ways_of(mask).map(|way| intervals[way as usize]).max();
                let step = DISTANT - oldest.unwrap_or(DISTANT);
                for way in ways_of(mask) {
                    intervals[way as usize] += step;
                }
                let distant = |way: &u32| intervals[*way as usize] == DISTANT;
                ways_of(mask).find(distant).unwrap_or_default()
            }
        }
    }
}

/// The bits on the path from the root to a leaf, and their values after its use.
fn path(way: u32, leaves: u32) -> (u32, u32) {
    let (mut passed, mut used) = (0, 0);
    let (mut node, mut low, mut size) = (1_u32, 0, leaves);
    while size > 1 {
        size /= 2;
        let right = way >= low + size;
        passed |= 1 << node;
        used |= u32::from(!right) << node;
        low += if right { size } else { 0 };
        node = node * 2 + u32::from(right);
    }
    (passed, used)
}

/// The `n`-th way of a mask, counted from 0.
#[inline(always)]
fn nth_way(mut mask: u32, n: u32) -> u32 {
    for _ in 0..n {
        mask &= mask - 1;
    }
    mask.trailing_zeros()
}

/// The ways of a mask in rising order.
pub(crate) fn ways_of(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let way = mask.trailing_zeros();
        (mask != 0).then(|| {
            mask &= mask - 1;
            way
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_points_away_from_used_ways_within_the_mask() {
        let mut order = Order::new(Replacement::TreePlru, 1, 11, 0);
        for way in 0..11 {
            order.touch(0, way, false);
            assert_ne!(order.victim(0, 0x7ff), way);
            assert_eq!(order.victim(0, 1 << way), way);
            assert!(order.victim(0, 0x600) >= 9);
        }
    }

    #[test]
    fn the_victim_of_lru_is_the_oldest_of_the_mask() {
        let mut order = Order::new(Replacement::Lru, 1, 8, 0);
        for way in [3, 1, 0, 2, 7, 6, 5, 4] {
            order.touch(0, way, false);
        }
        assert_eq!(order.victim(0, 0xff), 3);
        assert_eq!(order.victim(0, 0b0111_0000), 6);
    }

    #[test]
    fn rrip_evicts_lines_not_reused() {
        let mut order = Order::new(Replacement::Rrip, 1, 4, 0);
        for way in 0..4 {
            order.touch(0, way, true);
        }
        order.touch(0, 0, false);
        order.touch(0, 1, false);
        assert_eq!(order.victim(0, 0xf), 2);
    }

    #[test]
    fn random_gives_each_way_of_the_mask_its_share() {
        let mut order = Order::new(Replacement::Random, 1, 11, 7);
        let mut counts = [0_u32; 11];
        for _ in 0..30_000 {
            counts[order.victim(0, 0b101_0000_0001) as usize] += 1;
        }
        let drawn: Vec<u32> = counts.iter().copied().filter(|n| *n > 0).collect();
        assert_eq!(drawn.len(), 3);
        assert!(drawn.iter().all(|n| n.abs_diff(10_000) < 400), "{counts:?}");
    }
}
