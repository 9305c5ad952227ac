//! Power under load, and where it is known from.

use model::signal::{JOULES_PER_OP, JOULES_PER_OP_NET};
use model::{Origin, ReadingValue, Run, Scope};

use super::error::{CandidateError, CostError};
use super::platform::{Platform, PlatformValue};
use super::power::PowerCurve;
use crate::answer::{GraduatedLoad, MetricInfo};
use crate::describe::median;

/// Power under load in watts, and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPower {
    pub watts: f64,
    /// That of each repeat, of which `watts` is the median; empty where it is one number.
    pub repeats_w: Vec<f64>,
    pub idle_w: Option<f64>,
    pub from: String,
    pub origin: Origin,
    /// None if unknown.
    pub boundary: Option<Scope>,
    /// Watts at shares of the full load, where a graduated load was measured.
    pub curve: Option<PowerCurve>,
}

impl LoadPower {
    /// A number that is given.
    pub fn given(watts: f64, from: &str) -> LoadPower {
        LoadPower {
            watts,
            repeats_w: Vec::new(),
            idle_w: None,
            from: from.to_owned(),
            origin: Origin::Published,
            boundary: None,
            curve: None,
        }
    }

    /// Of repeats of a cell: their own, else that of the platform's curve at their load. `what`
    /// names the cell.
    ///
    /// # Errors
    /// None of it is known, or the platform's curve is none.
    pub fn of_runs(
        runs: &[&Run],
        platform: Option<&Platform>,
        what: &str,
    ) -> Result<LoadPower, CandidateError> {
        let values = |of: &dyn Fn(&Run) -> Option<f64>| -> Vec<f64> {
            runs.iter().filter(|run| run.valid()).filter_map(|run| of(run)).collect()
        };
        let middle = |values: &[f64]| (!values.is_empty()).then(|| median(values));
        // Joules of an operation are of the store's machine, even if kvmeter ran on another.
        let watts = |run: &Run, signal: &str| {
            let energy = run.reading(signal)?;
            let joules = energy.value()? * run.operations as f64;
            (energy.window_s > 0.0).then(|| joules / energy.window_s)
        };
        let repeats_w = values(&|run| watts(run, JOULES_PER_OP.name));
        let first = runs.iter().filter(|run| run.valid()).find_map(|run| run.joules_per_op());
        if let (Some(gross), Some(energy)) = (middle(&repeats_w), first) {
            let net = middle(&values(&|run| watts(run, JOULES_PER_OP_NET.name)));
            return Ok(LoadPower {
                watts: gross,
                repeats_w,
                idle_w: net.map(|net| gross - net).filter(|idle| *idle >= 0.0 && *idle <= gross),
                from: energy.source.clone(),
                origin: energy.origin,
                boundary: Some(energy.scope),
                curve: None,
            });
        }
        let known =
            platform.and_then(|p| Some((p.idle_w.as_ref()?.value, p.full_load_w.as_ref()?)));
        let busy = values(&|run| run.value("machine.busy"));
        if let (Some((idle, full)), Some(middle)) = (known, middle(&busy)) {
            let from = source_text(platform, "full_load_w", full.from.as_deref());
            let curve = curve_of(platform, idle, full.value)?;
            let at = |busy: &f64| curve.at(busy.clamp(0.0, 1.0));
            return Ok(LoadPower {
                watts: at(&middle)?,
                repeats_w: busy.iter().map(at).collect::<Result<_, _>>()?,
                idle_w: Some(idle),
                from: format!("{from} and machine.busy"),
                origin: Origin::Modelled,
                boundary: Some(Scope::Node),
                curve: None,
            });
        }
        let why = runs.iter().find_map(|run| match &run.reading(JOULES_PER_OP.name)?.answer {
            ReadingValue::Unavailable { reason, .. } => Some(format!(" ({reason})")),
            ReadingValue::Value(_) => None,
        });
        Err(CandidateError::NoPower { what: what.to_owned(), why: why.unwrap_or_default() })
    }

    /// Of the highest level of a graduated load, with the power at every other.
    ///
    /// # Errors
    /// The levels are no curve.
    pub fn of_graduated(load: &GraduatedLoad, power: &MetricInfo) -> Result<LoadPower, CostError> {
        let levels = &load.figures.levels;
        let points: Vec<(f64, f64)> =
            levels.iter().rev().map(|level| (level.share, level.power_w)).collect();
        let curve = match load.figures.with_idle {
            true => Some(PowerCurve::through(&points)?),
            false => None,
        };
        Ok(LoadPower {
            watts: levels.first().map_or(0.0, |level| level.power_w),
            repeats_w: Vec::new(),
            idle_w: curve.as_ref().map(PowerCurve::idle_w),
            from: format!("graduated load of {} levels", points.len()),
            origin: power.provenance.map_or(Origin::Measured, |(_, origin)| origin),
            boundary: power.provenance.map(|(scope, _)| scope),
            curve,
        })
    }

    /// At a given full load, the curve scaled to it.
    ///
    /// # Errors
    /// The curve cannot be scaled so.
    pub fn scaled_to(self, watts: f64, from: &str) -> Result<LoadPower, CostError> {
        let curve = self.curve.map(|curve| curve.scaled(watts / self.watts)).transpose()?;
        Ok(LoadPower {
            watts,
            repeats_w: Vec::new(),
            idle_w: curve.as_ref().map(PowerCurve::idle_w),
            from: from.to_owned(),
            origin: self.origin,
            boundary: None,
            curve,
        })
    }

    /// A remark where it is not that of the whole machine.
    pub fn boundary_note(&self, label: &str) -> Option<String> {
        let part = self.boundary.filter(|s| matches!(s, Scope::Package | Scope::PackageAndMemory));
        part.map(|scope| {
            format!(
                "{label}: power is that of {scope}, not of the whole machine: its energy cost is \
                 higher."
            )
        })
    }
}

/// Why a platform lacks a value.
pub fn absence_note(platform: Option<&Platform>, want: PlatformValue) -> String {
    platform.map_or(String::new(), |platform| {
        format!(" (platform {}: {})", platform.name, platform.why_absent(want))
    })
}

/// Where a value of a platform is from.
pub fn source_text(platform: Option<&Platform>, key: &str, from: Option<&str>) -> String {
    let name = platform.map_or("", |platform| &platform.name);
    match from {
        Some(from) => format!("platform {name}, {key}: {from}"),
        None => format!("platform {name}, {key}"),
    }
}

/// The platform's graduated load where it has one, else a line.
pub(super) fn curve_of(
    platform: Option<&Platform>,
    idle_w: f64,
    full_w: f64,
) -> Result<PowerCurve, CandidateError> {
    let points: Vec<(f64, f64)> = platform
        .map(|platform| platform.power_curve.iter().map(|p| (p.load, p.watts)).collect())
        .unwrap_or_default();
    let curve = match points.is_empty() {
        true => PowerCurve::line(idle_w, full_w),
        // The platform's curve, scaled to the power under load.
        false => PowerCurve::through(&points).and_then(|c| c.scaled(full_w / c.full_w())),
    };
    curve.map_err(|error| CandidateError::Curve {
        platform: platform.map_or(String::new(), |platform| platform.name.clone()),
        error,
    })
}
