//! Our own controller: tries settings and keeps those that do both sides most good.
//!
//! Thresholds on misses say when somebody misses, not whether it costs him anything. This one
//! looks at what is done: packets for each second that workers are busy, and accesses of the
//! neighbours for each second. Its measure is the product of the two, so that a percent of one
//! side weighs as much as a percent of the other. It climbs in three directions, one way at a
//! time: the card's ways, how far the workers may spread below the top, and how
//! far the neighbours may spread above the bottom. After each turn of a knob it lets the cache
//! settle for a window and measures in the next; a trial that costs much ends at once. Turning
//! direct cache access off is tried only where most of what the card writes is gone before it is
//! read: everywhere else it costs what no other knob can. When no neighbouring setting is better it stays,
//! and it begins again when what it sees departs from what it had.

use super::{Controller, PolicyOptions, WayMask, WindowObservation};

/// Gains below this are noise.
const NOISE: f64 = 0.01;
/// A departure from what was had that makes it search again.
const DEPARTURE: f64 = 0.15;
/// Windows after a change until what is seen belongs to it.
const SETTLE: u32 = 1;
/// First step of each direction; halved when nothing is better.
const FIRST_STEP: i32 = 4;
const DIRECTIONS: [(usize, i32); 6] = [(1, -1), (2, -1), (0, -1), (0, 1), (1, 1), (2, 1)];

/// The knob that is the card's ways.
const CARD: usize = 0;
/// A loss that ends a trial at once.
const DISASTER: f64 = 0.10;

/// Ways of the card, the workers and the neighbours.
type WayCounts = [i32; 3];

#[derive(Debug)]
pub struct YieldSearch {
    choice: PolicyOptions,
    best: WayCounts,
    best_yield: Option<f64>,
    tried: WayCounts,
    direction: usize,
    failed: usize,
    step: i32,
    settle: u32,
    resting: bool,
    /// Most of what the card writes is gone before it is read.
    unused: bool,
}

impl YieldSearch {
    pub fn new(choice: PolicyOptions) -> Self {
        let ways = choice.ways as i32;
        let best = [choice.usual as i32, ways, ways];
        YieldSearch {
            choice,
            best,
            best_yield: None,
            tried: best,
            direction: 0,
            failed: 0,
            step: FIRST_STEP,
            settle: SETTLE,
            resting: false,
            unused: false,
        }
    }

    fn setting(&self, point: WayCounts) -> WayMask {
        let [card, workers, neighbours] = point.map(|ways| ways as u32);
        WayMask {
            card: self.choice.highest(card),
            workers: self.choice.highest(workers),
            co_runners: self.choice.lowest(neighbours),
        }
    }

    /// The next point to try that is another one, if there is any left.
    fn propose(&mut self) -> Option<WayCounts> {
        let ways = self.choice.ways as i32;
        while self.failed < DIRECTIONS.len() || self.step > 1 {
            if self.failed >= DIRECTIONS.len() {
                (self.failed, self.step) = (0, self.step / 2);
            }
            let (knob, sign) = DIRECTIONS[self.direction];
            let mut point = self.best;
            let step = if knob == CARD { 1 } else { self.step };
            let least = if knob == CARD && self.unused { 0 } else { 1 };
            point[knob] = (point[knob] + sign * step).clamp(least, ways);
            if point != self.best {
                return Some(point);
            }
            self.turn_away();
        }
        None
    }

    fn turn_away(&mut self) {
        self.direction = (self.direction + 1) % DIRECTIONS.len();
        self.failed += 1;
    }

    fn search_again(&mut self) {
        (self.failed, self.step, self.resting) = (0, FIRST_STEP / 2, false);
        self.best_yield = None;
    }
}

/// What both sides get done, as the logarithm of the product; a side that does nothing counts
/// for nothing.
fn gained(seen: &WindowObservation) -> f64 {
    let side =
        |done: f64, time: f64| if done > 0.0 && time > 0.0 { (done / time).ln() } else { 0.0 };
    let packets = side(seen.answered as f64, seen.busy_seconds);
    // What is dropped was not done.
    let kept = seen.answered as f64 / (seen.answered + seen.dropped).max(1) as f64;
    packets + kept.max(1e-3).ln() + side(seen.co_runner_accesses as f64, seen.seconds)
}

impl Controller for YieldSearch {
    fn window(&self) -> f64 {
        1e-3
    }

    fn begin(&self) -> WayMask {
        self.setting(self.best)
    }

    fn next(&mut self, seen: &WindowObservation) -> WayMask {
        let value = gained(seen);
        let disaster = self.best_yield.is_some_and(|best| value < best - DISASTER);
        if self.settle > 0 && !(disaster && self.tried != self.best) {
            self.settle -= 1;
            return self.setting(self.tried);
        }
        self.unused = seen.read_misses > seen.read_hits;
        match self.best_yield {
            None => self.best_yield = Some(value),
            Some(best) if self.resting => {
                if (value - best).abs() <= DEPARTURE {
                    return self.setting(self.best);
                }
                self.search_again();
                self.best_yield = Some(value);
            }
            Some(best) if value > best + NOISE => {
                // On in the same direction.
                (self.best, self.best_yield, self.failed) = (self.tried, Some(value), 0);
            }
            Some(_) => self.turn_away(),
        }
        let point = self.propose();
        self.resting = point.is_none();
        self.tried = point.unwrap_or(self.best);
        self.settle = SETTLE;
        self.setting(self.tried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: PolicyOptions =
        PolicyOptions { ways: 11, usual: 2, workers: 0x7ff, co_runners: 0x7ff };

    /// A world in which the neighbours gain by each way that they have alone, and the store needs
    /// one way for its card and three for itself.
    fn world(setting: WayMask) -> WindowObservation {
        let shared = setting.workers | setting.card;
        let alone = f64::from((setting.co_runners & !shared).count_ones());
        let store = if setting.card != 0 && setting.workers.count_ones() >= 3 { 1.0 } else { 0.7 };
        WindowObservation {
            seconds: 1.0,
            answered: (1e6 * store) as u64,
            busy_seconds: 1.0,
            co_runner_accesses: (1e6 * (1.0 + alone)) as u64,
            ..WindowObservation::default()
        }
    }

    #[test]
    fn it_finds_the_best_setting_stays_there_and_leaves_when_things_change() {
        let mut search = YieldSearch::new(CHOICE);
        let mut setting = search.begin();
        for _ in 0..200 {
            setting = search.next(&world(setting));
        }
        assert_eq!(setting.workers, 0x700);
        assert!(setting.card != 0 && setting.card & !0x700 == 0, "{setting:x?}");
        assert_eq!(setting.co_runners & 0xff, 0xff);
        assert_eq!(search.next(&world(setting)), setting, "it rests");
        let other = WindowObservation { co_runner_accesses: 10, ..world(setting) };
        for _ in 0..3 {
            search.next(&other);
        }
        assert!(!search.resting, "it searches again");
    }
}
