use super::{CellObservations, EffectScale, EffectSize};
use crate::interval::{Interval, IntervalMethod, NoInterval, TAIL};
use crate::quantile::{student, student_tails};
use crate::trimmed::{Spread, location, trimmed_at_each_end};

/// The variance of repeats over all cells of a metric: for cells with a single repeat, and for
/// effect sizes in standard deviations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RepeatVariance {
    scale: EffectScale,
    /// Relative rounding of the values; 0 for differences.
    resolution: f64,
    /// Of single repeats around their cell's mean, pooled over the cells that were repeated.
    pooled: Option<Spread>,
}

impl RepeatVariance {
    /// `resolution` is the relative rounding of the values, as by a histogram's buckets.
    pub(super) fn of(cells: &[CellObservations], resolution: f64) -> RepeatVariance {
        let scale = EffectScale::of(cells);
        let (mut squares, mut df) = (0.0, 0.0);
        for cell in cells.iter().filter(|cell| cell.values.len() > 1) {
            let values = additive_values(cell, scale);
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            squares += values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
            df += n - 1.0;
        }
        let pooled = (df > 0.0).then(|| Spread { variance: squares / df, df });
        let resolution = if scale == EffectScale::Ratio { resolution } else { 0.0 };
        RepeatVariance { scale, resolution, pooled }
    }

    /// The contrast `sum of c_i m_i` of cells, `m_i` the 20 % trimmed mean of a cell's values (of
    /// their logarithms on [`EffectScale::Ratio`]).
    ///
    /// `se^2 = sum c_i^2 v_i` with Yuen's variances `v_i` of the single cells, `df = se^4 / sum
    /// (c_i^4 v_i^2 / df_i)` after Welch and Satterthwaite; the interval is `+- t(0.975, df) se`
    /// and the resolution, p that of `(|sum| - resolution) / se`. A cell with one repeat takes
    /// the pooled variance of those with several. Sources: Yuen, Biometrika 61 (1974); Welch,
    /// Biometrika 38 (1951); for contrasts in factorials Keselman, Wilcox and Lix,
    /// Psychophysiology 40 (2003).
    pub(super) fn contrast(&self, terms: &[(f64, &CellObservations)]) -> EffectSize {
        let mut sum = 0.0;
        let (mut variance, mut weights) = (0.0, 0.0);
        let (mut known, mut trimmed, mut borrowed) = (true, false, false);
        for (coefficient, cell) in terms {
            let estimate = location(&additive_values(cell, self.scale));
            sum += coefficient * estimate.at;
            trimmed |= trimmed_at_each_end(cell.values.len()) > 0;
            borrowed |= estimate.spread.is_none();
            let Some(spread) = estimate.spread.or(self.pooled) else {
                known = false;
                continue;
            };
            let term = coefficient * coefficient * spread.variance;
            variance += term;
            weights += term * term / spread.df;
        }
        let size = |interval, p| EffectSize {
            scale: self.scale,
            value: self.scale.inverse(sum),
            interval,
            p,
            standardised: self
                .pooled
                .filter(|spread| spread.variance > 0.0)
                .map(|spread| sum / spread.variance.sqrt()),
        };
        if !known {
            return size(Err(NoInterval::OneValue), None);
        }
        let least = terms.iter().map(|(_, cell)| cell.values.len()).min().unwrap_or(1);
        let df = if weights > 0.0 { variance * variance / weights } else { least as f64 - 1.0 };
        let se = variance.sqrt();
        // Both sides of the contrast were rounded.
        let sides: f64 = terms.iter().map(|(coefficient, _)| coefficient.abs()).sum::<f64>() / 2.0;
        let resolution = self.resolution * sides;
        let half = if se > 0.0 { student(1.0 - TAIL, df) * se } else { 0.0 } + resolution;
        let beyond = (sum.abs() - resolution).max(0.0);
        let p = match (se > 0.0, beyond > 0.0) {
            (_, false) => 1.0,
            (true, true) => student_tails(beyond / se, df),
            (false, true) => 0.0,
        };
        let method = IntervalMethod::Contrast {
            df,
            logarithms: self.scale == EffectScale::Ratio,
            trimmed,
            pooled: borrowed,
        };
        let end = |end: f64| self.scale.inverse(end);
        let interval = Interval { low: end(sum - half), high: end(sum + half), method };
        size(Ok(interval), Some(p))
    }
}

fn additive_values(cell: &CellObservations, scale: EffectScale) -> Vec<f64> {
    cell.values.iter().map(|value| scale.to_additive(*value)).collect()
}
