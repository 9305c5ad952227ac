//! The cost of several servers under each workload, lifetime and price of electricity; where two of
//! them cost the same; and the sensitivity of that to each assumption.

use super::break_even::{
    CostLine, break_even_electricity, break_even_price, break_even_years, cost_line, equal_price,
};
use super::candidate::{CostTerms, ServerCandidate};
use super::error::CostError;
use super::fleet::ServerFleet;
use super::sensitivity::{Assumption, SensitivityRange};
use super::verdict::swings;

#[derive(Debug, Clone, PartialEq)]
pub struct CostAnswer {
    /// One a workload, in the order in which they first occur.
    pub groups: Vec<WorkloadCosts>,
}

/// One workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadCosts {
    pub workload: String,
    pub rows: Vec<CandidateCosts>,
    /// Every pair of two candidates, the earlier first.
    pub pairs: Vec<CandidatePair>,
}

/// The costs of one candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateCosts {
    pub candidate: ServerCandidate,
    pub servers: u64,
    /// Average power of one server, in watts, without PUE.
    pub average_w: f64,
    /// Of all servers, in watts, with PUE.
    pub power_w: f64,
    /// Energy cost over that of the group's first candidate. The same at every price.
    pub normalised: f64,
    pub racks: Option<u64>,
    pub floor_m2: Option<f64>,
    pub carbon_kg_per_h: Option<f64>,
    /// For each lifetime, each price of electricity.
    pub costs: Vec<CostAt>,
}

/// Dollars an hour; without a price of the server, of energy and rent alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostAt {
    pub years: f64,
    pub usd_per_kwh: f64,
    pub fleet: ServerFleet,
    pub usd_per_gop: f64,
    /// Over the price of one server; a point of it is `fleet`.
    pub line: CostLine,
}

/// Two candidates, by their positions in [`WorkloadCosts::rows`].
#[derive(Debug, Clone, PartialEq)]
pub struct CandidatePair {
    pub own: usize,
    pub other: usize,
    /// In the order of [`CandidateCosts::costs`].
    pub break_evens: Vec<BreakEven>,
    /// The sensitivity of the ratio of their costs, at the first lifetime and price; empty where
    /// either has no price.
    pub swings: Vec<(Assumption, SensitivityRange)>,
}

/// Where both cost the same: `own price = slope x other price + offset`.
#[derive(Debug, Clone, PartialEq)]
pub struct BreakEven {
    pub years: f64,
    pub usd_per_kwh: f64,
    pub slope: f64,
    pub offset_usd: f64,
    /// Of the other server.
    pub other_price_usd: f64,
    /// Of the own server, then.
    pub price_usd: Result<f64, CostError>,
    /// Of both.
    pub equal_price_usd: Result<f64, CostError>,
    /// With both given prices; only where both have one.
    pub priced: Option<PricedPair>,
}

/// A comparison of two servers with prices.
#[derive(Debug, Clone, PartialEq)]
pub struct PricedPair {
    /// Total cost of own over that of other.
    pub ratio: f64,
    pub even_usd_per_kwh: Result<f64, CostError>,
    pub even_years: Result<f64, CostError>,
}

/// Computes the costs; candidates are compared within each workload.
///
/// Formulas and sources are those of [`ServerFleet::of`], [`break_even_price`] and
/// [`tornado`](super::tornado). Errors: theirs; no lifetime or price; a utilisation outside 0 to 1,
/// or below 1 of a candidate without a curve.
pub fn answer(candidates: &[ServerCandidate], terms: &CostTerms) -> Result<CostAnswer, CostError> {
    let mut groups: Vec<WorkloadCosts> = Vec::new();
    for candidate in candidates {
        let at = groups.iter().position(|group| group.workload == candidate.workload);
        let at = at.unwrap_or_else(|| {
            let workload = candidate.workload.clone();
            groups.push(WorkloadCosts { workload, rows: Vec::new(), pairs: Vec::new() });
            groups.len() - 1
        });
        let row = cost_candidate(candidate, terms, groups[at].rows.first())?;
        groups[at].rows.push(row);
    }
    for group in &mut groups {
        for other in 1..group.rows.len() {
            for own in 0..other {
                group.pairs.push(compare_pair(&group.rows, own, other, terms)?);
            }
        }
        group.pairs.sort_by_key(|pair| (pair.own, pair.other));
    }
    Ok(CostAnswer { groups })
}

fn cost_candidate(
    candidate: &ServerCandidate,
    terms: &CostTerms,
    first: Option<&CandidateCosts>,
) -> Result<CandidateCosts, CostError> {
    let server = candidate.server(terms.utilisation)?;
    let mut costs = Vec::new();
    for assumed in terms.all() {
        let fleet = ServerFleet::of(&server, &assumed)?;
        costs.push(CostAt {
            years: assumed.years,
            usd_per_kwh: assumed.usd_per_kwh,
            fleet,
            usd_per_gop: fleet.usd_per_gop(terms.target_ops_s),
            line: cost_line(&server, &assumed)?,
        });
    }
    let Some(fleet) = costs.first().map(|cost| cost.fleet) else {
        return Err(CostError::NoTerms);
    };
    Ok(CandidateCosts {
        candidate: candidate.clone(),
        servers: fleet.servers,
        average_w: server.power_w,
        power_w: fleet.power_w,
        normalised: first.map_or(1.0, |first| fleet.power_w / first.power_w),
        racks: candidate.rack_units.map(|units| fleet.racks(units)).transpose()?,
        floor_m2: candidate.footprint_m2.map(|area| fleet.floor_m2(area)).transpose()?,
        carbon_kg_per_h: terms
            .carbon_g_per_kwh
            .map(|intensity| fleet.carbon_kg_per_h(intensity))
            .transpose()?,
        costs,
    })
}

fn compare_pair(
    rows: &[CandidateCosts],
    own: usize,
    other: usize,
    terms: &CostTerms,
) -> Result<CandidatePair, CostError> {
    let (a, b) = (&rows[own], &rows[other]);
    let servers = (a.candidate.server(terms.utilisation)?, b.candidate.server(terms.utilisation)?);
    let priced = a.candidate.price_usd.is_some() && b.candidate.price_usd.is_some();
    let other_price_usd = b.candidate.price_usd.unwrap_or(terms.at_price_usd);
    let mut at = Vec::new();
    for ((cost_a, cost_b), assumed) in a.costs.iter().zip(&b.costs).zip(terms.all()) {
        let (line, line_b) = (cost_a.line, cost_b.line);
        at.push(BreakEven {
            years: assumed.years,
            usd_per_kwh: assumed.usd_per_kwh,
            slope: line_b.per_h / line.per_h,
            offset_usd: (line_b.fixed_usd_per_h - line.fixed_usd_per_h) / line.per_h,
            other_price_usd,
            price_usd: break_even_price(&line, &line_b, other_price_usd),
            equal_price_usd: equal_price(&line, &line_b),
            priced: priced.then(|| PricedPair {
                ratio: cost_a.fleet.total_usd_per_h() / cost_b.fleet.total_usd_per_h(),
                even_usd_per_kwh: break_even_electricity(&servers.0, &servers.1, &assumed),
                even_years: break_even_years(&servers.0, &servers.1, &assumed),
            }),
        });
    }
    let swings = match priced {
        true => swings(&a.candidate, &b.candidate, terms)?,
        false => Vec::new(),
    };
    Ok(CandidatePair { own, other, break_evens: at, swings })
}

#[cfg(test)]
mod tests {
    use super::super::power::PowerCurve;
    use super::*;

    fn candidate(
        name: &str,
        workload: &str,
        price_usd: Option<f64>,
        watts: f64,
    ) -> ServerCandidate {
        ServerCandidate {
            name: name.to_owned(),
            workload: workload.to_owned(),
            price_usd,
            throughput_ops_s: watts * 1e4,
            utilisation: None,
            active_w: watts,
            curve: PowerCurve::line(watts / 2.0, watts).ok(),
            rack_units: Some(1.0),
            footprint_m2: None,
        }
    }

    fn terms() -> CostTerms {
        CostTerms {
            target_ops_s: 1e8,
            years: vec![3.0, 5.0],
            usd_per_kwh: vec![0.07, 0.25],
            pue: 1.2,
            usd_per_rack_unit_month: 0.0,
            carbon_g_per_kwh: Some(300.0),
            utilisation: 1.0,
            at_price_usd: 3000.0,
            spread: 0.2,
        }
    }

    #[test]
    fn each_workload_is_answered_on_its_own() {
        let all = [
            candidate("a", "reads", Some(900.0), 50.0),
            candidate("b", "reads", Some(3000.0), 200.0),
            candidate("c", "reads", None, 100.0),
            candidate("a", "writes", Some(900.0), 60.0),
        ];
        let answer = answer(&all, &terms()).unwrap();
        assert_eq!(answer.groups.len(), 2);
        let reads = &answer.groups[0];
        assert_eq!((reads.rows.len(), reads.pairs.len()), (3, 3));
        assert_eq!(answer.groups[1].pairs.len(), 0);
        assert_eq!(reads.rows[0].servers, 200);
        assert_eq!(reads.rows[0].normalised, 1.0);
        assert_eq!(reads.rows[0].costs.len(), 4);
        assert!(reads.rows[0].carbon_kg_per_h.is_some() && reads.rows[0].floor_m2.is_none());
        let pair = &reads.pairs[0];
        assert_eq!((pair.own, pair.other), (0, 1));
        for even in &pair.break_evens {
            let line = even.slope * even.other_price_usd + even.offset_usd;
            assert!((even.price_usd.clone().unwrap() - line).abs() < 1e-9);
            assert_eq!(even.other_price_usd, 3000.0);
        }
        assert!(!pair.swings.is_empty());
        // Without a price the other one is assumed to cost the terms' price.
        assert!(reads.pairs[1].swings.is_empty() && reads.pairs[1].break_evens[0].priced.is_none());
    }

    #[test]
    fn sensitivity_covers_the_assumptions_that_matter() {
        let all = [candidate("a", "", Some(850.0), 50.0), candidate("b", "", Some(3000.0), 200.0)];
        let answer = answer(&all, &terms()).unwrap();
        let pair = &answer.groups[0].pairs[0];
        let base = pair.break_evens[0].priced.as_ref().unwrap().ratio;
        let names: Vec<&str> = pair.swings.iter().map(|(a, _)| a.name.as_str()).collect();
        assert!(names.contains(&"utilisation") && !names.iter().any(|name| name.contains("rent")));
        let swing = |name: &str| pair.swings.iter().find(|(a, _)| a.name == name).unwrap();
        let (assumption, price) = swing("price of a, $");
        assert!(price.ratio_at_low < base && base < price.ratio_at_high);
        // The flip is the break-even price.
        let even = pair.break_evens[0].price_usd.clone().unwrap();
        assert!((assumption.low..assumption.high).contains(&even), "{even}");
        assert!((price.flips_at.unwrap() - even).abs() < 1e-5);
        assert!(pair.swings.windows(2).all(|pair| pair[0].1.factor() >= pair[1].1.factor()));
    }

    #[test]
    fn a_utilisation_below_one_needs_the_idle_power() {
        let mut one = candidate("a", "", Some(1.0), 50.0);
        let half = CostTerms { utilisation: 0.5, ..terms() };
        assert_eq!(answer(&[one.clone()], &half).unwrap().groups[0].rows[0].average_w, 37.5);
        one.curve = None;
        let error = answer(&[one], &half).unwrap_err();
        assert_eq!(error, CostError::NoIdlePower { name: "a".to_owned() });
        let none = CostTerms { years: Vec::new(), ..terms() };
        let error = answer(&[candidate("a", "", None, 5.0)], &none).unwrap_err();
        assert_eq!(error, CostError::NoTerms);
    }
}
