//! kvmeter's own controller: a search for the setting that is best for both sides.
//!
//! Misses alone do not show a cost, so the objective is work: packets per busy second of the
//! workers times accesses per second of the co-runners, which weighs relative changes of both
//! sides equally. It is hill climbing along three axes, one way at a time: the card's ways, how far
//! the workers extend below the top, and how far the co-runners extend above the bottom. After each
//! change the cache settles for a window, and the next is measured; a trial with a large loss ends
//! at once. Direct cache access is turned off only where most lines of the card are evicted before
//! they are read. At a local optimum it stays, and searches again when the observations change.

use super::{Controller, PolicyOptions, WayMask, WindowObservation};

/// Gains below this are noise.
const NOISE: f64 = 0.01;
/// Relative change of the objective that restarts the search.
const RESTART_CHANGE: f64 = 0.15;
/// Windows that the cache takes to settle after a change.
const SETTLE: u32 = 1;
/// First step of each direction; halved when nothing is better.
const FIRST_STEP: i32 = 4;
const DIRECTIONS: [(usize, i32); 6] = [(1, -1), (2, -1), (0, -1), (0, 1), (1, 1), (2, 1)];

/// The knob that is the card's ways.
const CARD: usize = 0;
/// A loss that ends a trial at once.
const ABORT_LOSS: f64 = 0.10;

/// Ways of the card, the workers and the co-runners.
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
    /// Most lines of the card are evicted before they are read.
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
        let [card, workers, co_runners] = point.map(|ways| ways as u32);
        WayMask {
            card: self.choice.highest(card),
            workers: self.choice.highest(workers),
            co_runners: self.choice.lowest(co_runners),
        }
    }

    /// The next untried point, if there is one.
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

/// The objective: the logarithm of the product of both sides' work; an idle side is left out.
fn objective(observed: &WindowObservation) -> f64 {
    let side =
        |done: f64, time: f64| if done > 0.0 && time > 0.0 { (done / time).ln() } else { 0.0 };
    let packets = side(observed.answered as f64, observed.busy_seconds);
    // Dropped packets do not count as work.
    let answered_share =
        observed.answered as f64 / (observed.answered + observed.dropped).max(1) as f64;
    packets
        + answered_share.max(1e-3).ln()
        + side(observed.co_runner_accesses as f64, observed.seconds)
}

impl Controller for YieldSearch {
    fn window(&self) -> f64 {
        1e-3
    }

    fn begin(&self) -> WayMask {
        self.setting(self.best)
    }

    fn next(&mut self, observed: &WindowObservation) -> WayMask {
        let value = objective(observed);
        let disaster = self.best_yield.is_some_and(|best| value < best - ABORT_LOSS);
        if self.settle > 0 && !(disaster && self.tried != self.best) {
            self.settle -= 1;
            return self.setting(self.tried);
        }
        self.unused = observed.read_misses > observed.read_hits;
        match self.best_yield {
            None => self.best_yield = Some(value),
            Some(best) if self.resting => {
                if (value - best).abs() <= RESTART_CHANGE {
                    return self.setting(self.best);
                }
                self.search_again();
                self.best_yield = Some(value);
            }
            Some(best) if value > best + NOISE => {
                // Continue in the same direction.
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

    /// A model in which the co-runners gain by each exclusive way, and the store needs one way for its
    /// card and three for itself.
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
    fn finds_the_best_setting_and_searches_again_after_a_change() {
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
