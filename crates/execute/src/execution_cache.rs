//! Results that are obtained once per execution and setting: the harness tax, which takes some
//! hundreds of milliseconds of CPU time, and whether the probes can read what is required.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use analyse::cost::Platform;
use drive::{MeasuredTax, PhaseKind};
use host::Context;
use model::{Design, Unavailable};
use study::{CoRunner, KnobLevels, TraceSource};
use workload::WorkloadSpec;

use crate::error::ExecuteError;

/// The cached results.
#[derive(Debug, Default)]
pub(crate) struct ExecutionCache {
    pub(crate) taxes: TaxCache,
    pub(crate) checked: ProbeCheck,
    platform: OnceLock<Result<Platform, Unavailable>>,
}

impl ExecutionCache {
    /// The platform that a study names. Its file may have changed since the plan was made.
    pub(crate) fn platform(&self, design: &Design) -> Result<&Platform, &Unavailable> {
        let opened = self.platform.get_or_init(|| match &design.platform {
            None => Err(Unavailable::new(
                "no platform states the cost of this machine",
                "name one: `run --platform NAME|FILE`, or `platform = \"NAME\"` in the study",
            )),
            Some(name) => study::open_platform(name).map_err(|error| {
                Unavailable::new(error.to_string(), "give a platform that can be read")
            }),
        });
        opened.as_ref()
    }
}

/// Contexts and knob levels for which required signals were read successfully.
#[derive(Debug, Default)]
pub(crate) struct ProbeCheck(Mutex<Vec<(Watched, KnobLevels)>>);

/// Folders of stores, CPUs of the load, processes of servers.
type Watched = (Vec<PathBuf>, Vec<u32>, Vec<u32>);

impl ProbeCheck {
    /// Runs the check unless it has succeeded in this context.
    pub(crate) fn check_once(
        &self,
        context: &Context,
        knobs: &KnobLevels,
        check: impl FnOnce() -> Result<(), ExecuteError>,
    ) -> Result<(), ExecuteError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let folders =
            context.store_path.iter().chain(&context.further_store_paths).cloned().collect();
        let watched = (folders, context.cpus.clone(), context.server_pids.clone());
        if !known
            .iter()
            .any(|(watched_before, levels)| *watched_before == watched && levels == knobs)
        {
            check()?;
            known.push((watched, knobs.clone()));
        }
        Ok(())
    }
}

/// Everything that the cost of an operation depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaxSetting {
    /// Kinds and shares of operations, keys, sizes of values, popularity; of no meaning for a
    /// trace.
    pub(crate) workload: WorkloadSpec,
    pub(crate) loads: bool,
    /// The trace, and how many of its requests are replayed at most.
    pub(crate) trace: Option<(TraceSource, Option<u64>)>,
    /// The CPUs on which the load threads run; empty where they run anywhere.
    pub(crate) cpus: Vec<u32>,
    /// Of the machine's knobs: frequency, idle states, SMT.
    pub(crate) knobs: KnobLevels,
    /// The co-runner.
    pub(crate) co_runner: Option<CoRunner>,
}

impl TaxSetting {
    pub(crate) fn of(what: PhaseKind, workload: &WorkloadSpec) -> TaxSetting {
        TaxSetting {
            // Another seed draws other keys of the same kinds.
            workload: WorkloadSpec { seed: 0, ..workload.clone() },
            loads: what == PhaseKind::Load,
            trace: None,
            cpus: Vec::new(),
            knobs: KnobLevels::default(),
            co_runner: None,
        }
    }
}

/// A tax and the ordinal of the run before which it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CachedTax {
    pub(crate) tax: MeasuredTax,
    pub(crate) run: u32,
}

/// The taxes that were measured, each with its setting.
#[derive(Debug, Default)]
pub(crate) struct TaxCache(Mutex<Vec<(TaxSetting, Option<CachedTax>)>>);

impl TaxCache {
    /// The tax of a setting, which `measure` measures before run `run` if no earlier run has; none
    /// where it cannot be measured.
    pub(crate) fn of(
        &self,
        setting: TaxSetting,
        run: u32,
        measure: impl FnOnce() -> Result<Option<MeasuredTax>, ExecuteError>,
    ) -> Result<Option<CachedTax>, ExecuteError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, measured)) = known.iter().find(|(known, _)| *known == setting) {
            return Ok(*measured);
        }
        let measured = measure()?.map(|tax| CachedTax { tax, run });
        known.push((setting, measured));
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tax_is_measured_once_for_each_setting_that_can_change_it() {
        let spec = workload::WorkloadSpec { seed: 5, ..study::placeholder_workload(5) };
        let base = TaxSetting::of(PhaseKind::Mix, &spec);
        let taxes = TaxCache::default();
        let mut measured = 0;
        let mut of = |setting: &TaxSetting, run| {
            let measure = || {
                measured += 1;
                Ok(Some(MeasuredTax { ns_per_op: f64::from(run), clock_ns: 1.0, verify_ns: 1.0 }))
            };
            let tax = taxes.of(setting.clone(), run, measure).unwrap().unwrap();
            (tax.run, measured)
        };
        assert_eq!(of(&base, 1), (1, 1));
        assert_eq!(of(&base, 2), (1, 1));
        let reseeded = TaxSetting::of(PhaseKind::Mix, &WorkloadSpec { seed: 77, ..spec.clone() });
        assert_eq!(of(&reseeded, 3), (1, 1));
        let mut larger = spec.clone();
        larger.records.0 += 1;
        let knobs = KnobLevels(vec![("turbo".to_owned(), "off".to_owned())]);
        for (run, changed) in [
            (4, TaxSetting::of(PhaseKind::Mix, &larger)),
            (5, TaxSetting::of(PhaseKind::Load, &spec)),
            (6, TaxSetting { cpus: vec![1], ..base.clone() }),
            (7, TaxSetting { knobs, ..base.clone() }),
        ] {
            assert_eq!(of(&changed, run), (run, run as usize - 2));
            assert_eq!(of(&changed, 99), (run, run as usize - 2));
        }
        assert_eq!(of(&base, 8), (1, 5));
    }

    #[test]
    fn failed_checks_are_repeated_and_successful_ones_are_not() {
        let checked = ProbeCheck::default();
        let failed = || Err(ExecuteError::Failed("no such signal".to_owned()));
        let (here, as_found) = (Context::default(), KnobLevels::default());
        assert!(checked.check_once(&here, &as_found, failed).is_err());
        assert!(checked.check_once(&here, &as_found, || Ok(())).is_ok());
        assert!(checked.check_once(&here, &as_found, || panic!("it is known")).is_ok());
        let turned = KnobLevels(vec![("smt".to_owned(), "off".to_owned())]);
        assert!(checked.check_once(&here, &turned, failed).is_err());
        for other in [
            Context { server_pids: vec![7], ..Context::default() },
            Context { store_path: Some("/on/tmpfs".into()), ..Context::default() },
            Context { cpus: vec![1], ..Context::default() },
        ] {
            assert!(checked.check_once(&other, &as_found, failed).is_err());
        }
    }
}
