//! Progress and result of a search.

use analyse::search::{RateTrial, SearchConclusion};
use analyse::slo::{ConditionResult, ObjectiveVerdict};
use execute::{Event, Listener, RateSearch, SearchResult, TrialRun};
use model::Execution;
use report::tables;
use serde_json::{Value, json};

use crate::progress::Bar;

/// Progress of a search: a line for each trial as it ends.
pub struct SearchProgress<'a> {
    bar: Bar,
    search: &'a RateSearch,
}

impl<'a> SearchProgress<'a> {
    pub fn new(bar: Bar, search: &'a RateSearch) -> SearchProgress<'a> {
        SearchProgress { bar, search }
    }

    pub fn finish(&self) {
        self.bar.finish();
    }
}

impl Listener for SearchProgress<'_> {
    fn on_event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Saved { .. }) {
            self.bar.show_event(&event);
        }
        match event {
            Event::Saved { run, .. } => match self.search.trial(run) {
                Some(trial) => self.bar.print_line(&tables::trial_line(&trial)),
                None => {
                    let reached = report::format::rate(run.throughput());
                    self.bar.print_line(&format!("a closed loop reaches {reached}"));
                }
            },
            other => self.bar.on_event(other),
        }
    }

    fn watches(&self) -> bool {
        self.bar.is_watching()
    }
}

/// Other programs' share of CPU time that is worth a note.
const NOTABLE_SHARE: f64 = 0.05;

/// A note on other programs, if they used a notable share.
pub fn disturbance(result: &SearchResult) -> Option<String> {
    let others = |tried: &TrialRun| analyse::foreign_load_share(&tried.run).unwrap_or_default();
    let shares: Vec<f64> =
        result.tried.iter().map(others).filter(|share| *share > NOTABLE_SHARE).collect();
    let most = shares.iter().copied().reduce(f64::max)?;
    Some(format!(
        "in {} of {} trials other programs used more than {:.0} % of the machine's CPU time, up to \
         {:.0} %: the rate is that of a busy machine",
        shares.len(),
        result.tried.len(),
        NOTABLE_SHARE * 100.0,
        most * 100.0
    ))
}

/// The result as one JSON object.
pub fn object(search: &RateSearch, execution: &Execution, result: &SearchResult) -> Value {
    let SearchConclusion { rate_ops_s, not_held_ops_s, end: ended, noisy, summary: words, .. } =
        &result.conclusion;
    json!({
        "rate_ops_s": rate_ops_s,
        "held": rate_ops_s.is_some(),
        "not_held_ops_s": not_held_ops_s,
        "ended_by": ended.name(),
        "conclusion": words,
        "slo": search.objective.to_string(),
        "noisy": noisy,
        "resolution": search.request.resolution,
        "calibration_ops_s": result.calibration,
        "execution": execution.id,
        "store": search.store.scheme,
        "store_version": result.tried.first().map(|tried| &tried.run.store_version),
        "workload": search.name,
        "trials": result.tried.iter().map(trial_object).collect::<Vec<_>>(),
    })
}

fn trial_object(TrialRun { trial, run }: &TrialRun) -> Value {
    let RateTrial { rate_ops_s, achieved_ops_s, judgement, client, failed, hit_ratio, disturbed } =
        trial;
    json!({
        "run": run.id,
        "rate_ops_s": rate_ops_s,
        "achieved_ops_s": achieved_ops_s,
        "hit_ratio": hit_ratio,
        "seconds": run.seconds,
        "outcome": trial.outcome().name(),
        "conditions": judgement.results.iter().map(condition).collect::<Vec<_>>(),
        "client_busy": client.busy,
        "client_late": client.late,
        "disturbed": disturbed,
        "failed": failed,
        "valid": run.valid(),
    })
}

fn condition(result: &ConditionResult) -> Value {
    let us = |nanoseconds: f64| nanoseconds / 1e3;
    let interval = result.interval.as_ref().ok();
    json!({
        "condition": result.condition.to_string(),
        "limit_us": us(result.condition.limit_ns()),
        "measured_us": result.measured_ns.map(us),
        "low_us": interval.map(|interval| us(interval.low)),
        "high_us": interval.map(|interval| us(interval.high)),
        "samples": result.samples,
        "verdict": match result.verdict {
            ObjectiveVerdict::Holds => "holds",
            ObjectiveVerdict::Breaks => "breaks",
            ObjectiveVerdict::Unclear => "unclear",
        },
    })
}
