//! The sensitivity of the ratio of two servers' costs.

use super::candidate::{CostTerms, ServerCandidate};
use super::error::CostError;
use super::fleet::{Assumptions, ServerFleet};
use super::sensitivity::{Assumption, SensitivityRange, tornado};

/// The lowest utilisation of the range: servers that idle most of the time.
const MIN_UTILISATION: f64 = 0.1;

/// Two candidates and their assumptions.
#[derive(Clone)]
struct CostCase {
    sides: [CostSide; 2],
    assumed: Assumptions,
    utilisation: f64,
}

#[derive(Clone)]
struct CostSide {
    candidate: ServerCandidate,
    /// Factor of its power at every load.
    power: f64,
}

/// An assumption, and how its value is set in a case.
type VerdictChange = (Assumption, fn(&mut CostCase, f64));

/// Cost of `a` over that of `b`, each assumption on its own, the widest swing first.
///
/// Lifetimes and prices of electricity range over those of the terms where there are several;
/// utilisation, where both have a curve and none of their own, from 10 % (or less) to 100 %; all else by the terms'
/// spread. Errors: those of [`tornado`].
pub(super) fn swings(
    a: &ServerCandidate,
    b: &ServerCandidate,
    terms: &CostTerms,
) -> Result<Vec<(Assumption, SensitivityRange)>, CostError> {
    let first = |all: &[f64]| all.first().copied().ok_or(CostError::NoTerms);
    let case = CostCase {
        sides: [a, b].map(|side| CostSide { candidate: side.clone(), power: 1.0 }),
        assumed: terms.at(first(&terms.years)?, first(&terms.usd_per_kwh)?),
        utilisation: terms.utilisation,
    };
    let changes = changes(&case, terms);
    let assumptions: Vec<Assumption> = changes.iter().map(|change| change.0.clone()).collect();
    let result = tornado(&assumptions, |values| {
        let mut case = case.clone();
        for ((_, change), value) in changes.iter().zip(values) {
            change(&mut case, *value);
        }
        case.ratio()
    })?;
    Ok(result.into_iter().map(|swing| (assumptions[swing.index].clone(), swing)).collect())
}

impl CostCase {
    fn ratio(&self) -> Result<f64, CostError> {
        let total = |side: &CostSide| {
            let mut server = side.candidate.server(self.utilisation)?;
            server.power_w *= side.power;
            Ok::<f64, CostError>(ServerFleet::of(&server, &self.assumed)?.total_usd_per_h())
        };
        Ok(total(&self.sides[0])? / total(&self.sides[1])?)
    }
}

fn changes(case: &CostCase, terms: &CostTerms) -> Vec<VerdictChange> {
    let spread = |name: String, base: f64| Assumption {
        name,
        low: base * (1.0 - terms.spread),
        base,
        high: base * (1.0 + terms.spread),
    };
    // Several levels are the range; a single one gets the terms' spread.
    let levels = |name: &str, base: f64, all: &[f64]| {
        let low = all.iter().copied().fold(base, f64::min);
        let high = all.iter().copied().fold(base, f64::max);
        match low < high {
            true => Assumption { name: name.to_owned(), low, base, high },
            false => spread(name.to_owned(), base),
        }
    };
    let [a, b] = &case.sides;
    let price = |side: &CostSide| {
        let name = format!("price of {}, $", side.candidate.name);
        spread(name, side.candidate.price_usd.unwrap_or(0.0))
    };
    let rate = |side: &CostSide| {
        let name = format!("throughput of {}, ops/s", side.candidate.name);
        spread(name, side.candidate.throughput_ops_s)
    };
    let power =
        |side: &CostSide| spread(format!("power of {}, times", side.candidate.name), side.power);
    let assumed = &case.assumed;
    let pue = spread("PUE".to_owned(), assumed.pue);
    let mut changes: Vec<VerdictChange> = vec![
        (price(a), |case, value| case.sides[0].candidate.price_usd = Some(value)),
        (price(b), |case, value| case.sides[1].candidate.price_usd = Some(value)),
        (rate(a), |case, value| case.sides[0].candidate.throughput_ops_s = value),
        (rate(b), |case, value| case.sides[1].candidate.throughput_ops_s = value),
        (power(a), |case, value| case.sides[0].power = value),
        (power(b), |case, value| case.sides[1].power = value),
        (levels("lifetime, years", assumed.years, &terms.years), |case, value| {
            case.assumed.years = value;
        }),
        (levels("electricity, $/kWh", assumed.usd_per_kwh, &terms.usd_per_kwh), |case, value| {
            case.assumed.usd_per_kwh = value;
        }),
        (Assumption { low: pue.low.max(1.0), ..pue }, |case, value| case.assumed.pue = value),
        (spread("target, ops/s".to_owned(), assumed.target_ops_s), |case, value| {
            case.assumed.target_ops_s = value;
        }),
    ];
    let rent = assumed.usd_per_rack_unit_month;
    if rent > 0.0 {
        let rent = spread("rent of a rack unit, $ a month".to_owned(), rent);
        changes.push((rent, |case, value| case.assumed.usd_per_rack_unit_month = value));
    }
    let varies = |server: &ServerCandidate| server.curve.is_some() && server.utilisation.is_none();
    if case.sides.iter().all(|side| varies(&side.candidate)) {
        let base = case.utilisation;
        let low = base.min(MIN_UTILISATION);
        let utilisation = Assumption { name: "utilisation".to_owned(), low, base, high: 1.0 };
        changes.push((utilisation, |case, value| case.utilisation = value));
    }
    changes
}
