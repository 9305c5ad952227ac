//! A search as it goes, and what came of it.

use analyse::search::{Conclusion, Trial};
use analyse::slo::{Finding, Verdict};
use record::Execution;
use report::tables;
use serde_json::{Value, json};
use study::{Event, Listener, RateSearch, SearchResult, TrialRun};

use crate::show::Bar;

/// Progress of a search: a line for each trial as it ends.
pub struct Searching<'a> {
    bar: Bar,
    search: &'a RateSearch,
}

impl<'a> Searching<'a> {
    pub fn new(bar: Bar, search: &'a RateSearch) -> Searching<'a> {
        Searching { bar, search }
    }

    pub fn finish(&self) {
        self.bar.finish();
    }
}

impl Listener for Searching<'_> {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Saved { run, .. } => match self.search.trial(run) {
                Some(trial) => self.bar.say(&tables::trial_line(&trial)),
                None => {
                    let reached = report::format::rate(run.throughput());
                    self.bar.say(&format!("a closed loop reaches {reached}"));
                }
            },
            other => self.bar.on_event(other),
        }
    }
}

/// Trials in which others used more of the machine's CPU time than this are disturbed.
const NOTABLE: f64 = 0.05;

/// Who else used the machine, where that was more than a little.
pub fn disturbance(found: &SearchResult) -> Option<String> {
    let others = |tried: &TrialRun| analyse::others_share(&tried.run).unwrap_or_default();
    let shares: Vec<f64> =
        found.tried.iter().map(others).filter(|share| *share > NOTABLE).collect();
    let most = shares.iter().copied().reduce(f64::max)?;
    Some(format!(
        "in {} of {} trials other programs used more than {:.0} % of the machine's CPU time, up to \
         {:.0} %: the rate is of this machine as busy as it was",
        shares.len(),
        found.tried.len(),
        NOTABLE * 100.0,
        most * 100.0
    ))
}

/// What was found, as one object.
pub fn object(search: &RateSearch, execution: &Execution, found: &SearchResult) -> Value {
    let Conclusion { rate_ops_s, not_held_ops_s, ended, noisy, words, .. } = &found.conclusion;
    json!({
        "rate_ops_s": rate_ops_s,
        "held": rate_ops_s.is_some(),
        "not_held_ops_s": not_held_ops_s,
        "ended_by": ended.name(),
        "conclusion": words,
        "slo": search.objective.to_string(),
        "noisy": noisy,
        "resolution": search.request.resolution,
        "calibration_ops_s": found.calibration,
        "execution": execution.id,
        "store": search.store.scheme,
        "store_version": found.tried.first().map(|tried| &tried.run.store_version),
        "workload": search.name,
        "trials": found.tried.iter().map(tried).collect::<Vec<_>>(),
    })
}

fn tried(TrialRun { trial, run }: &TrialRun) -> Value {
    let Trial { rate_ops_s, achieved_ops_s, judgement, client, failed, hit_ratio, disturbed } =
        trial;
    json!({
        "run": run.id,
        "rate_ops_s": rate_ops_s,
        "achieved_ops_s": achieved_ops_s,
        "hit_ratio": hit_ratio,
        "seconds": run.seconds,
        "outcome": trial.outcome().name(),
        "conditions": judgement.findings.iter().map(condition).collect::<Vec<_>>(),
        "client_busy": client.busy,
        "client_late": client.late,
        "disturbed": disturbed,
        "failed": failed,
        "valid": run.valid(),
    })
}

fn condition(found: &Finding) -> Value {
    let us = |nanoseconds: f64| nanoseconds / 1e3;
    let interval = found.interval.as_ref().ok();
    json!({
        "condition": found.condition.to_string(),
        "limit_us": us(found.condition.limit_ns()),
        "measured_us": found.measured_ns.map(us),
        "low_us": interval.map(|interval| us(interval.low)),
        "high_us": interval.map(|interval| us(interval.high)),
        "samples": found.samples,
        "verdict": match found.verdict {
            Verdict::Holds => "holds",
            Verdict::Breaks => "breaks",
            Verdict::Unclear => "unclear",
        },
    })
}
