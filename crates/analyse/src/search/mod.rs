//! The highest rate that meets a latency objective: which rate to try next, and what to conclude. A
//! pure procedure over the trials so far; the caller measures.
//!
//! Rates double until one does not hold, then the bracket between the highest that held and the
//! lowest that did not is halved (on a logarithmic scale) down to the resolution. A trial whose
//! interval covers the limit is repeated, longer. Both ends of the final bracket need a second
//! trial that agrees, so that one disturbance does not decide; contradictory trials of a rate go by
//! majority. A trial in which the client was the limit is inconclusive about the server and ends
//! the search as the client's. A late client is the limit only where the objective was missed: its
//! lateness is part of the latency, so what holds with it holds without. The same applies to other
//! load on the machine; a search in which trial after trial is disturbed ends with that reason.

mod client;
mod disturbance;
mod held;
mod sentence;
mod standing;

use model::signal::{CLIENT_ANSWERED_IN_TIME, CLIENT_DUE};
use model::{LatencyClock, Run};
use thiserror::Error;

use crate::slo::{Judgement, Objective, ObjectiveVerdict};
pub use client::{ClientHealth, LimitedBy, limit};
pub use held::{HighestHeld, highest_held};
use standing::{RateStanding, RateStatus, standings};

/// A trial that achieved less than this share of its rate did not hold it.
pub const MIN_ACHIEVED: f64 = 0.99;
/// Above this busy share the client is the limit.
pub const MAX_CLIENT_BUSY: f64 = 0.95;
/// The most trials of one rate.
pub const MAX_TRIALS_PER_RATE: usize = 3;

const START_OPS_S: f64 = 1_000.0;
const MIN_OPS_S: f64 = 10.0;
const RAISE_FACTOR: f64 = 2.0;
/// While nothing held: the knee may be far below.
const LOWER_FACTOR: f64 = 4.0;
/// The longest trial as a multiple of a first one.
const MAX_LENGTH_FACTOR: f64 = 16.0;

/// The parameters of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchRequest {
    /// Operations per second of a quick closed loop: the search begins at half of it.
    pub hint: Option<f64>,
    /// No rate below it is tried; 10 ops/s if there is none.
    pub lowest: Option<f64>,
    /// No rate above it is tried.
    pub highest: Option<f64>,
    /// The search ends when the lowest rate that broke is this share above the highest that
    /// held.
    pub resolution: f64,
    /// The search ends after so many trials, repeats included.
    pub trials: usize,
}

impl Default for SearchRequest {
    fn default() -> SearchRequest {
        SearchRequest { hint: None, lowest: None, highest: None, resolution: 0.02, trials: 40 }
    }
}

#[derive(Debug, Clone, PartialEq, Error)]
pub enum SearchError {
    #[error("a search cannot have the resolution {0}; write one from 0.001 to 0.5")]
    Resolution(f64),
    #[error("the {what} of the search, {found}, is not a rate above 0 per second")]
    Rate { what: &'static str, found: f64 },
    #[error("the lowest rate of the search, {lowest}, is above its highest, {highest}; swap them")]
    Bounds { lowest: f64, highest: f64 },
    #[error("{0} trials cannot find anything; allow at least {MIN_TRIALS}")]
    Trials(usize),
}

const MIN_TRIALS: usize = 4;

/// The result of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct RateTrial {
    /// The rate of [`SearchStep::Try`].
    pub rate_ops_s: f64,
    /// The achieved rate. With random arrivals it is the rate times the share of due operations
    /// that were answered in time, as the number due varies.
    pub achieved_ops_s: f64,
    /// The objective on response times.
    pub judgement: Judgement,
    pub client: ClientHealth,
    /// The first failed answer, or an unexpected hit ratio.
    pub failed: Option<String>,
    /// The hit ratio, where reads may miss.
    pub hit_ratio: Option<f64>,
    /// What disturbed the trial, if anything did.
    pub disturbed: Option<String>,
}

impl RateTrial {
    /// The trial that a run is; None in a closed loop.
    pub fn of(run: &Run, objective: &Objective, client: ClientHealth) -> Option<RateTrial> {
        let rate = run.target_rate()?;
        Some(RateTrial {
            rate_ops_s: rate,
            achieved_ops_s: achieved(run, rate),
            judgement: objective.judge(&run.latencies, LatencyClock::Response),
            client,
            failed: run
                .failures
                .first()
                .map(|failure| failure.first.clone())
                .or_else(|| run.unexpected_hit_ratio()),
            hit_ratio: run.hit_ratio().filter(|_| run.may_miss()),
            disturbed: disturbance::disturbance(run),
        })
    }

    /// The outcome of this trial alone.
    pub fn outcome(&self) -> TrialOutcome {
        let behind = self.achieved_ops_s < MIN_ACHIEVED * self.rate_ops_s;
        let verdict = self.judgement.verdict();
        let disturbed = self.disturbed.is_some();
        if self.client.busy > MAX_CLIENT_BUSY {
            TrialOutcome::Client
        } else if self.client.late.is_some() && (behind || verdict != ObjectiveVerdict::Holds) {
            // An objective that is met despite lateness is met without it, too.
            if disturbed { TrialOutcome::Disturbed } else { TrialOutcome::Client }
        } else if disturbed && (behind || verdict == ObjectiveVerdict::Breaks) {
            // The same applies to a disturbed machine.
            TrialOutcome::Disturbed
        } else if behind {
            // An overloaded server also fails answers by timeout, so this comes first.
            TrialOutcome::Behind
        } else if self.failed.is_some() {
            TrialOutcome::Failed
        } else {
            match verdict {
                ObjectiveVerdict::Holds => TrialOutcome::Held,
                ObjectiveVerdict::Breaks => TrialOutcome::Broke,
                ObjectiveVerdict::Unclear => TrialOutcome::Unclear,
            }
        }
    }
}

fn achieved(run: &Run, rate: f64) -> f64 {
    /// The most operations that count as under way at the end of the window, as a share of those
    /// due.
    const MOST_UNDER_WAY: f64 = 0.005;
    match (run.value(CLIENT_ANSWERED_IN_TIME.name), run.value(CLIENT_DUE.name)) {
        (Some(answered), Some(due)) if due > 0.0 => {
            // Operations under way at the end of the window, by Little's law.
            let service_s =
                run.latency_of_all(LatencyClock::Service).map_or(0.0, |h| h.mean() / 1e9);
            let under_way = (rate * service_s).min(MOST_UNDER_WAY * due) + 1.0;
            rate * ((answered + under_way) / due).min(1.0)
        }
        _ => run.achieved_rate().unwrap_or_else(|| run.throughput()),
    }
}

/// The outcome of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialOutcome {
    /// The rate went through, and the objective held.
    Held,
    /// The rate went through, and the objective did not hold.
    Broke,
    /// The interval of the latency covers the limit, or there were too few samples.
    Unclear,
    /// Less than the rate was achieved, and the client had headroom.
    Behind,
    /// The rate went through, and some of the answers were wrong or failures.
    Failed,
    /// The client was the limit, so the trial is inconclusive.
    Client,
    /// Other load disturbed the machine, so the trial is inconclusive.
    Disturbed,
}

impl TrialOutcome {
    /// The name in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            TrialOutcome::Held => "held",
            TrialOutcome::Broke => "broke",
            TrialOutcome::Unclear => "unclear",
            TrialOutcome::Behind => "behind",
            TrialOutcome::Failed => "failed",
            TrialOutcome::Client => "client",
            TrialOutcome::Disturbed => "disturbed",
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum SearchStep {
    Try {
        rate_ops_s: f64,
        /// The rate was tried before.
        again: bool,
        /// How many times as long as a first trial.
        longer: f64,
    },
    Done(SearchConclusion),
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEnd {
    /// The latency broke the objective.
    Objective,
    /// The server achieved less than the rate.
    AchievedRate,
    /// Answers were wrong or failed.
    Failures,
    /// The client has no headroom; the server may have.
    Client,
    /// Trial after trial was disturbed by other load, or had a late client at any rate.
    Disturbed,
    /// The highest rate of the search held.
    UpperBound,
    /// No more trials were allowed.
    Trials,
    /// No more time was allowed.
    Time,
    /// It was stopped by the user.
    Stopped,
}

/// Why a search is cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchCut {
    Time,
    Stopped,
}

impl SearchEnd {
    /// The name in files and in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            SearchEnd::Objective => "objective",
            SearchEnd::AchievedRate => "achieved_rate",
            SearchEnd::Failures => "failures",
            SearchEnd::Client => "client",
            SearchEnd::Disturbed => "disturbed",
            SearchEnd::UpperBound => "upper_bound",
            SearchEnd::Trials => "trials",
            SearchEnd::Time => "time",
            SearchEnd::Stopped => "stopped",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SearchConclusion {
    /// The highest rate that held the objective, in operations per second; none if none did.
    pub rate_ops_s: Option<f64>,
    /// The lowest rate above it that did not hold, for the server's or the client's reason.
    pub not_held_ops_s: Option<f64>,
    pub end: SearchEnd,
    /// Trials contradicted each other: another search may end elsewhere.
    pub noisy: bool,
    pub trials: usize,
    /// The conclusion in a sentence or two.
    pub summary: String,
}

/// A search with valid parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    request: SearchRequest,
    lowest: f64,
    highest: f64,
}

impl Search {
    pub fn new(request: SearchRequest) -> Result<Search, SearchError> {
        let SearchRequest { hint, lowest, highest, resolution, trials } = request;
        if !(0.001..=0.5).contains(&resolution) {
            return Err(SearchError::Resolution(resolution));
        }
        let rates = [("hint", hint), ("lowest rate", lowest), ("highest rate", highest)];
        for (what, rate) in rates {
            if let Some(found) = rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
                return Err(SearchError::Rate { what, found });
            }
        }
        if trials < MIN_TRIALS {
            return Err(SearchError::Trials(trials));
        }
        let top = highest.unwrap_or(f64::INFINITY);
        let bottom = lowest.unwrap_or(MIN_OPS_S.min(top));
        if bottom > top {
            return Err(SearchError::Bounds { lowest: bottom, highest: top });
        }
        Ok(Search { request, lowest: bottom, highest: top })
    }

    /// The next rate to try, or the conclusion. Deterministic in the trials.
    pub fn next(&self, trials: &[RateTrial]) -> SearchStep {
        let standings = standings(trials);
        if standings.is_empty() {
            return self.first();
        }
        let gap = RateBracket::of(&standings);
        let done =
            |ended| SearchStep::Done(sentence::conclude(self, trials, &standings, &gap, ended));
        if is_hopeless(trials) {
            return done(Some(SearchEnd::Disturbed));
        }
        if trials.len() >= self.request.trials {
            return done(Some(SearchEnd::Trials));
        }
        if let Some(open) =
            standings.iter().find(|standing| standing.status() == RateStatus::Undecided)
        {
            return repeat_trial(open);
        }
        if let Some(doubtful) = contradicted(&standings) {
            return repeat_trial(doubtful);
        }
        match (gap.lower, gap.upper) {
            (Some(held), None) if held.rate < self.highest => {
                first_trial(rounded(held.rate * RAISE_FACTOR).min(self.highest))
            }
            (None, Some(above)) if above.rate > self.lowest => {
                first_trial(rounded(above.rate / LOWER_FACTOR).max(self.lowest))
            }
            (Some(held), Some(above)) if above.rate / held.rate > 1.0 + self.request.resolution => {
                first_trial(between(held.rate, above.rate))
            }
            // The bracket is final: both ends must be confirmed. The upper one first, for if it
            // holds the lower one is not the answer.
            (held, above) => match above.into_iter().chain(held).find(|end| !end.is_confirmed()) {
                Some(end) => repeat_trial(end),
                None if above.is_none() => done(Some(SearchEnd::UpperBound)),
                None => done(None),
            },
        }
    }

    /// The conclusion of a search that is cut short.
    pub fn cut_short(&self, trials: &[RateTrial], cut: SearchCut) -> SearchConclusion {
        let standings = standings(trials);
        let ended = match cut {
            SearchCut::Time => SearchEnd::Time,
            SearchCut::Stopped => SearchEnd::Stopped,
        };
        sentence::conclude(self, trials, &standings, &RateBracket::of(&standings), Some(ended))
    }

    fn first(&self) -> SearchStep {
        let start = self.request.hint.map_or(START_OPS_S, |hint| rounded(hint / 2.0));
        first_trial(start.clamp(self.lowest, self.highest))
    }
}

/// A search in which no rate held ends after this many inconclusive trials in a row at several
/// rates: lower rates do not help then.
const HOPELESS_AFTER: usize = 4;

/// Whether trial after trial was disturbed, or had a late client with headroom.
fn is_hopeless(trials: &[RateTrial]) -> bool {
    let says_nothing = |trial: &RateTrial| match trial.outcome() {
        TrialOutcome::Disturbed => true,
        TrialOutcome::Client => trial.client.busy <= MAX_CLIENT_BUSY,
        _ => false,
    };
    let Some(last) = trials.len().checked_sub(HOPELESS_AFTER).map(|from| &trials[from..]) else {
        return false;
    };
    let held = trials.iter().any(|trial| trial.outcome() == TrialOutcome::Held);
    let one_rate = last.iter().all(|trial| trial.rate_ops_s == last[0].rate_ops_s);
    !held && !one_rate && last.iter().all(says_nothing)
}

/// The rates between which the answer lies.
struct RateBracket<'s> {
    lower: Option<&'s RateStanding<'s>>,
    upper: Option<&'s RateStanding<'s>>,
}

impl<'s> RateBracket<'s> {
    fn of(standings: &'s [RateStanding<'s>]) -> RateBracket<'s> {
        let broke = standings.iter().find(|standing| standing.status() == RateStatus::NotHeld);
        let below = |standing: &&RateStanding| broke.is_none_or(|broke| standing.rate < broke.rate);
        let held = standings
            .iter()
            .rev()
            .filter(below)
            .find(|standing| standing.status() == RateStatus::Held);
        // The client was not the limit if a higher rate held.
        let mute = standings.iter().filter(below).find(|standing| {
            standing.status() == RateStatus::Inconclusive
                && held.is_none_or(|held| standing.rate > held.rate)
        });
        RateBracket { lower: held, upper: mute.or(broke) }
    }
}

/// The lowest rate that did not hold although a higher one did, if it may be tried again.
fn contradicted<'s>(standings: &'s [RateStanding<'s>]) -> Option<&'s RateStanding<'s>> {
    let highest = standings.iter().rev().find(|standing| standing.status() == RateStatus::Held)?;
    let broke = standings.iter().find(|standing| standing.status() == RateStatus::NotHeld)?;
    (broke.rate < highest.rate && broke.trials.len() < MAX_TRIALS_PER_RATE).then_some(broke)
}

fn first_trial(rate_ops_s: f64) -> SearchStep {
    SearchStep::Try { rate_ops_s, again: false, longer: 1.0 }
}

fn repeat_trial(standing: &RateStanding<'_>) -> SearchStep {
    SearchStep::Try {
        rate_ops_s: standing.rate,
        again: true,
        longer: standing.length_factor().min(MAX_LENGTH_FACTOR),
    }
}

/// The middle on a logarithmic scale, rounded if that stays between.
fn between(low: f64, high: f64) -> f64 {
    let middle = (low * high).sqrt();
    let round = rounded(middle);
    if low < round && round < high { round } else { middle }
}

/// Rounds to four significant digits.
fn rounded(rate: f64) -> f64 {
    let step = 10f64.powf(rate.log10().floor() - 3.0);
    (rate / step).round() * step
}
