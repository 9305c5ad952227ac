//! Candidates with the sources of their numbers: given ones, runs, a platform.

use super::candidate::ServerCandidate;
use super::error::CandidateError;
use super::load_power::{LoadPower, absence_note, curve_of};
use super::platform::{GivenValue, Platform, PlatformValue};
use super::power::PowerCurve;
use crate::compare::{RunWork, WorkDifference, work_differences};

/// The workload of a row that is the mean of a machine's others.
pub const AVERAGE: &str = "average";

#[derive(Debug, Clone, PartialEq)]
pub struct SourcedCandidate {
    pub candidate: ServerCandidate,
    pub platform: Option<Platform>,
    pub throughput_from: String,
    pub power: LoadPower,
    /// The work of its runs; empty if its numbers are given.
    pub work: Vec<RunWork>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Numbers that are given, and come before those of the platform.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GivenNumbers {
    pub idle_w: Option<f64>,
    pub price_usd: Option<f64>,
    pub rack_units: Option<f64>,
    pub footprint_m2: Option<f64>,
}

/// Numbers that each candidate must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequiredNumbers {
    /// Else a price is left out.
    pub price: bool,
    pub idle_power: bool,
    pub rack_units: bool,
}

impl SourcedCandidate {
    /// A candidate by its name and workload, throughput and power.
    ///
    /// # Errors
    /// A required number is not known, or the idle power is above that under load.
    pub fn new(
        (name, workload): (String, String),
        (throughput_ops_s, throughput_from): (f64, String),
        mut power: LoadPower,
        platform: Option<Platform>,
        given: &GivenNumbers,
        required: RequiredNumbers,
    ) -> Result<SourcedCandidate, CandidateError> {
        let why = |want| absence_note(platform.as_ref(), want);
        let from_platform = |of: fn(&Platform) -> &Option<GivenValue>| {
            platform.as_ref().and_then(|platform| of(platform).as_ref()).map(|given| given.value)
        };
        let price_usd = given.price_usd.or_else(|| from_platform(|p| &p.price_usd));
        if required.price && price_usd.is_none() {
            return Err(CandidateError::NoPrice { name, why: why(PlatformValue::PriceUsd) });
        }
        // A measured curve is not mixed with the platform's idle power.
        let usual = || from_platform(|p| &p.idle_w).filter(|_| power.curve.is_none());
        power.idle_w = given.idle_w.or_else(usual).or(power.idle_w);
        let graduated = platform.as_ref().is_some_and(|platform| !platform.power_curve.is_empty());
        let own = power.curve.take().filter(|_| given.idle_w.is_none());
        let curve = match power.idle_w {
            _ if own.is_some() => own,
            Some(idle_w) if idle_w > power.watts => {
                let watts = power.watts;
                return Err(CandidateError::IdleAboveLoad { name, idle_w, watts });
            }
            Some(idle) => Some(curve_of(platform.as_ref(), idle, power.watts)?),
            None if graduated => Some(curve_of(platform.as_ref(), 0.0, power.watts)?),
            None => None,
        };
        if required.idle_power && curve.is_none() {
            return Err(CandidateError::NoIdlePower { name, why: why(PlatformValue::IdleW) });
        }
        let rack_units = given.rack_units.or_else(|| from_platform(|p| &p.rack_units));
        if required.rack_units && rack_units.is_none() {
            return Err(CandidateError::NoHeight { name, why: why(PlatformValue::RackUnits) });
        }
        let candidate = ServerCandidate {
            name,
            workload,
            price_usd: price_usd.filter(|_| required.price),
            throughput_ops_s,
            active_w: power.watts,
            utilisation: None,
            curve,
            rack_units,
            footprint_m2: given.footprint_m2.or_else(|| from_platform(|p| &p.footprint_m2)),
        };
        let (work, notes) = (Vec::new(), Vec::new());
        Ok(SourcedCandidate { candidate, platform, throughput_from, power, work, notes })
    }

    /// The mean of a machine's rows, which serves all of their loads in equal parts. As in the
    /// thesis throughput, U and P_a are averaged each on its own. None without a row.
    ///
    /// # Errors
    /// A required number is not known.
    pub fn average(
        name: String,
        rows: &[&SourcedCandidate],
        required: RequiredNumbers,
    ) -> Result<Option<SourcedCandidate>, CandidateError> {
        let Some(first) = rows.first() else { return Ok(None) };
        let mean = |of: &dyn Fn(&SourcedCandidate) -> Option<f64>| {
            let values: Option<Vec<f64>> = rows.iter().map(|row| of(row)).collect();
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
        };
        let watts = mean(&|row| Some(row.candidate.active_w)).unwrap_or_default();
        let throughput = mean(&|row| Some(row.candidate.throughput_ops_s)).unwrap_or_default();
        let from = "mean of the machine's other rows".to_owned();
        let same = rows.iter().all(|row| row.power.boundary == first.power.boundary);
        let power = LoadPower {
            watts,
            repeats_w: Vec::new(),
            idle_w: None,
            from: from.clone(),
            origin: first.power.origin,
            boundary: first.power.boundary.filter(|_| same),
            curve: None,
        };
        let given = GivenNumbers {
            idle_w: mean(&|row| row.candidate.curve.as_ref().map(PowerCurve::idle_w)),
            price_usd: first.candidate.price_usd,
            rack_units: first.candidate.rack_units,
            footprint_m2: first.candidate.footprint_m2,
        };
        let (name, platform) = ((name, AVERAGE.to_owned()), first.platform.clone());
        let mut all =
            SourcedCandidate::new(name, (throughput, from), power, platform, &given, required)?;
        all.candidate.utilisation = mean(&|row| row.candidate.utilisation);
        Ok(Some(all))
    }
}

/// Notes candidates of the same workload that did different work.
pub fn note_other_work(candidates: &mut [SourcedCandidate]) {
    for at in 1..candidates.len() {
        let (before, from) = candidates.split_at_mut(at);
        let one = &mut from[0];
        let rivals =
            before.iter().filter(|other| other.candidate.workload == one.candidate.workload);
        for other in rivals {
            let differ = work_differences(&one.work, &other.work);
            if !differ.is_empty() {
                let words: Vec<String> = differ.iter().map(WorkDifference::to_string).collect();
                one.notes.push(format!(
                    "{} did other work than {}: {}.",
                    one.candidate.name,
                    other.candidate.name,
                    words.join(", ")
                ));
            }
        }
    }
}
