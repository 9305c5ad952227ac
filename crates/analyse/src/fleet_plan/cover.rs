//! Minimum-cost integer covering, by branch and bound.

/// More nodes are not visited; the gap is stated then.
const MAX_NODES: u64 = 2_000_000;
/// A sum this close to the need covers it: rounding of sums.
const ROUNDING: f64 = 1e-9;

/// An item, of which any whole number may be taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CoverItem {
    /// What one covers; above zero.
    pub weight: f64,
    /// What one costs; not below zero.
    pub cost: f64,
}

/// Numbers of items, in their order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cover {
    pub counts: Vec<u64>,
    pub cost: f64,
    /// How much cheaper another cover might be at most, as a share of this one's cost; 0: this one is
    /// optimal.
    pub gap: f64,
}

/// `min sum c x` with `sum w x >= need + spares max(w of those taken)` and `sum x >= least`.
///
/// The spare term: the heaviest items taken may fail. For each item that may be the heaviest one the
/// need is fixed, and is covered by branch and bound. The bound is that of the linear relaxation, the
/// remaining need times the least cost per weight. None without an item.
/// Source: Land and Doig, Econometrica 28(3), 1960.
pub(super) fn cheapest_cover(
    items: &[CoverItem],
    need: f64,
    spares: u64,
    least: u64,
) -> Option<Cover> {
    let mut best: Option<Cover> = None;
    let mut bound = f64::INFINITY;
    let mut nodes = 0;
    for heaviest in items {
        let mut order: Vec<usize> =
            (0..items.len()).filter(|at| items[*at].weight <= heaviest.weight).collect();
        let rate = |at: &usize| items[*at].cost / items[*at].weight;
        order.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        let need = (need + spares as f64 * heaviest.weight) * (1.0 - ROUNDING);
        let mut branch = CoverBranch {
            items,
            rates: order.iter().map(rate).collect(),
            order,
            least,
            counts: vec![0; items.len()],
            best: best.take(),
            nodes,
            is_cut: false,
        };
        let relaxed = need * branch.rates.first().copied().unwrap_or(0.0);
        branch.visit(0, need, 0, 0.0);
        nodes = branch.nodes;
        if branch.is_cut {
            bound = bound.min(relaxed);
        }
        best = branch.best;
    }
    best.map(|cover| {
        let gap = ((cover.cost - bound) / cover.cost).max(0.0);
        Cover { gap: if gap.is_finite() { gap } else { 0.0 }, ..cover }
    })
}

struct CoverBranch<'i> {
    items: &'i [CoverItem],
    /// Positions by rising cost for each weight.
    order: Vec<usize>,
    /// In that order.
    rates: Vec<f64>,
    least: u64,
    counts: Vec<u64>,
    best: Option<Cover>,
    nodes: u64,
    is_cut: bool,
}

impl CoverBranch<'_> {
    /// Decides on the `nth` item and those after it.
    fn visit(&mut self, nth: usize, need: f64, taken: u64, cost: f64) {
        self.nodes += 1;
        if self.nodes > MAX_NODES && self.best.is_some() {
            self.is_cut = true;
            return;
        }
        let Some(at) = self.order.get(nth).copied() else { return };
        let cheapest = cost + need.max(0.0) * self.rates[nth];
        if self.best.as_ref().is_some_and(|best| cheapest >= best.cost) {
            return;
        }
        let CoverItem { weight, cost: each } = self.items[at];
        let fill = (need.max(0.0) / weight).ceil() as u64;
        let all = fill.max(self.least.saturating_sub(taken));
        // As many as are enough by themselves; then fewer, with the items after it.
        self.counts[at] = all;
        self.keep(cost + all as f64 * each);
        if nth + 1 < self.order.len() {
            for count in (0..all).rev() {
                self.counts[at] = count;
                let (need, cost) = (need - count as f64 * weight, cost + count as f64 * each);
                let is_beaten = self.is_beaten(nth + 1, need, cost);
                if is_beaten && need > 0.0 {
                    // Fewer of the cheaper item only raise the bound.
                    break;
                } else if is_beaten {
                    continue;
                }
                self.visit(nth + 1, need, taken + count, cost);
                if self.is_cut {
                    break;
                }
            }
        }
        self.counts[at] = 0;
    }

    fn is_beaten(&self, nth: usize, need: f64, cost: f64) -> bool {
        let cheapest = cost + need.max(0.0) * self.rates[nth];
        self.best.as_ref().is_some_and(|best| cheapest >= best.cost)
    }

    fn keep(&mut self, cost: f64) {
        if self.best.as_ref().is_none_or(|best| cost < best.cost) {
            self.best = Some(Cover { counts: self.counts.clone(), cost, gap: 0.0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::{Draws, below};

    /// Every combination up to what each alone would need.
    fn by_enumeration(items: &[CoverItem], need: f64, spares: u64, least: u64) -> f64 {
        let limit = |item: &CoverItem| {
            let most = ((need / item.weight).ceil() as u64 + spares * 8).max(least);
            most.min(60)
        };
        let mut best = f64::INFINITY;
        let mut counts = vec![0_u64; items.len()];
        loop {
            let sum = |of: &dyn Fn(&CoverItem) -> f64| -> f64 {
                counts.iter().zip(items).map(|(count, item)| *count as f64 * of(item)).sum()
            };
            let used = counts.iter().zip(items).filter(|(count, _)| **count > 0);
            let heaviest = used.map(|(_, item)| item.weight).fold(0.0, f64::max);
            let needed = (need + spares as f64 * heaviest) * (1.0 - ROUNDING);
            if sum(&|item| item.weight) >= needed && counts.iter().sum::<u64>() >= least {
                best = best.min(sum(&|item| item.cost));
            }
            let Some(at) = (0..items.len()).find(|at| counts[*at] < limit(&items[*at])) else {
                return best;
            };
            counts[..at].fill(0);
            counts[at] += 1;
        }
    }

    #[test]
    fn agrees_with_exhaustive_enumeration() {
        let mut random = Draws::from(7);
        let mut draw = |from: u64, to: u64| from + below(random.next(), to - from);
        let mut mixed = 0;
        for _ in 0..400 {
            let kinds = draw(1, 4) as usize;
            let items: Vec<CoverItem> = (0..kinds)
                .map(|_| {
                    let weight = draw(15, 100) as f64 / 100.0;
                    CoverItem { weight, cost: weight * draw(80, 120) as f64 }
                })
                .collect();
            let (need, spares, least) = (draw(10, 200) as f64 / 100.0, draw(0, 3), draw(1, 5));
            let cover = cheapest_cover(&items, need, spares, least).unwrap();
            let exact = by_enumeration(&items, need, spares, least);
            assert!((cover.cost - exact).abs() < 1e-9, "{items:?} {need} {spares} {least} {exact}");
            assert_eq!(cover.gap, 0.0);
            mixed += u32::from(cover.counts.iter().filter(|count| **count > 0).count() > 1);
        }
        assert!(mixed > 40, "else mixing was not tried: {mixed}");
        assert_eq!(cheapest_cover(&[], 1.0, 0, 1), None);
    }

    #[test]
    fn many_machines_end_with_their_gap() {
        let item = |weight, cost| CoverItem { weight, cost };
        let items: Vec<CoverItem> = (0..12)
            .map(|nth| item(1e-4 * (1.0 + 0.01 * f64::from(nth)), 1.0 + 0.0101 * f64::from(nth)))
            .collect();
        let cover = cheapest_cover(&items, 1.0, 1, 1).unwrap();
        let covered: f64 =
            cover.counts.iter().zip(&items).map(|(n, item)| *n as f64 * item.weight).sum();
        assert!(covered >= 1.0 && cover.gap < 1e-3, "{cover:?}");
    }
}
