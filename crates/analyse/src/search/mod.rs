//! The highest rate that holds a latency objective: which rate to try next, and what to
//! conclude. A pure procedure over the trials so far; whoever calls it does the measuring.
//!
//! Rates double until one does not hold, then the gap between the highest that held and the
//! lowest that did not is halved (on a logarithmic scale) down to the resolution. A trial whose
//! interval covers the limit is repeated, longer. Both ends of the final gap need a second
//! trial that agrees, so that one disturbance decides nothing; a rate with contradictory trials
//! goes by their majority. A trial in which the client was the limit says nothing about the
//! server: it ends the search as the client's, never as the server's. A client that was only late
//! is the limit where the objective did not hold: its lateness is part of the latency, so what
//! holds with it holds without. The same goes for what else runs on the machine: a rate that did
//! not hold while the CPUs were full with it is not held against the server, and a search in which
//! trial after trial is like that ends and says so.

mod client;
mod disturbed;
mod standing;
mod words;

use record::{LatencyClock, Run};
use thiserror::Error;

use crate::slo::{Judgement, Objective, Verdict};
pub use client::{ClientHealth, LimitedBy, limit};
use standing::{Known, Standing, standings};

/// A trial that answered less than this share of what it was asked did not hold its rate.
pub const LEAST_ACHIEVED: f64 = 0.99;
/// Above this share the client is busy with itself, and its latencies are its own.
pub const MOST_BUSY: f64 = 0.95;
/// As many trials of one rate at most.
pub const TRIALS_A_RATE: usize = 3;

const START: f64 = 1_000.0;
const LOWEST: f64 = 10.0;
const UP: f64 = 2.0;
/// Nothing held so far: the knee may be far below.
const DOWN: f64 = 4.0;
/// A trial is never asked to be longer than this many first ones.
const LONGEST: f64 = 16.0;

/// What is searched for, and how hard.
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
    #[error("a search cannot be done to {0} of a rate; write a resolution from 0.001 to 0.5")]
    Resolution(f64),
    #[error("the {what} of the search, {found}, is not a rate above 0 per second")]
    Rate { what: &'static str, found: f64 },
    #[error(
        "the lowest rate of the search, {lowest}, is above its highest, {highest}; exchange them"
    )]
    Bounds { lowest: f64, highest: f64 },
    #[error("{0} trials cannot find anything; allow at least {LEAST_TRIALS}")]
    Trials(usize),
}

const LEAST_TRIALS: usize = 4;

/// What came of one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What was asked, exactly as [`Step::Try`] said it.
    pub rate_ops_s: f64,
    /// How much of it was answered: at a rate whose arrivals are random, the share of what was
    /// due that was answered in time, for what was due is itself above or below the rate.
    pub achieved_ops_s: f64,
    /// Of the latencies from the instants at which requests were due.
    pub judgement: Judgement,
    pub client: ClientHealth,
    /// What the server did not answer as it should have: the first failure in words, or that
    /// the hit ratio is not the one that was expected.
    pub failed: Option<String>,
    /// Share of the reads that found their record, where they may miss.
    pub hit_ratio: Option<f64>,
    /// What else kept the machine so busy that a rate that did not hold says nothing of the server.
    pub disturbed: Option<String>,
}

impl Trial {
    /// The trial that a run was; none if it had no rate.
    pub fn of(run: &Run, objective: &Objective, client: ClientHealth) -> Option<Trial> {
        let rate = run.target_rate()?;
        Some(Trial {
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
            disturbed: disturbed::disturbance(run),
        })
    }

    /// What the trial says by itself.
    pub fn outcome(&self) -> Outcome {
        let behind = self.achieved_ops_s < LEAST_ACHIEVED * self.rate_ops_s;
        let verdict = self.judgement.verdict();
        let disturbed = self.disturbed.is_some();
        if self.client.busy > MOST_BUSY {
            Outcome::Client
        } else if self.client.late.is_some() && (behind || verdict != Verdict::Holds) {
            // What holds although the client was late would hold all the more without.
            if disturbed { Outcome::Disturbed } else { Outcome::Client }
        } else if disturbed && (behind || verdict == Verdict::Breaks) {
            // And so would what holds on a machine that is busy with something else.
            Outcome::Disturbed
        } else if behind {
            // Beyond what a server can do, some answers come too late to be waited for.
            Outcome::Behind
        } else if self.failed.is_some() {
            Outcome::Failed
        } else {
            match verdict {
                Verdict::Holds => Outcome::Held,
                Verdict::Breaks => Outcome::Broke,
                Verdict::Unclear => Outcome::Unclear,
            }
        }
    }
}

fn achieved(run: &Run, rate: f64) -> f64 {
    /// At most this share of what was due is taken for under way when the window ends.
    const MOST_UNDER_WAY: f64 = 0.005;
    match (run.value("client.answered_in_time"), run.value("client.due")) {
        (Some(answered), Some(due)) if due > 0.0 => {
            // By Little's law so many are under way at any instant, the last one too.
            let service_s =
                run.latency_of_all(LatencyClock::Service).map_or(0.0, |h| h.mean() / 1e9);
            let under_way = (rate * service_s).min(MOST_UNDER_WAY * due) + 1.0;
            rate * ((answered + under_way) / due).min(1.0)
        }
        _ => run.achieved_rate().unwrap_or_else(|| run.throughput()),
    }
}

/// What one trial says about its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The rate went through, and the objective held.
    Held,
    /// The rate went through, and the objective did not hold.
    Broke,
    /// The interval of the latency covers the limit, or there were too few samples.
    Unclear,
    /// Less than the rate was answered, and the client had room.
    Behind,
    /// The rate went through, and some of the answers were wrong or failures.
    Failed,
    /// The client was the limit: nothing about the server.
    Client,
    /// The machine was busy with something else: nothing about the server either.
    Disturbed,
}

impl Outcome {
    /// The name in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Held => "held",
            Outcome::Broke => "broke",
            Outcome::Unclear => "unclear",
            Outcome::Behind => "behind",
            Outcome::Failed => "failed",
            Outcome::Client => "client",
            Outcome::Disturbed => "disturbed",
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Try {
        rate_ops_s: f64,
        /// This rate was tried before.
        again: bool,
        /// How many times as long as a first trial.
        longer: f64,
    },
    Done(Conclusion),
}

/// What ended a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The latency broke the objective.
    Objective,
    /// The server answered less than it was asked.
    AchievedRate,
    /// The server answered wrongly, or said that it failed.
    Failures,
    /// The client has no room for more: the server may have.
    Client,
    /// Trial after trial was disturbed by what else runs on the machine, or had a client that was
    /// late at whatever rate.
    Disturbed,
    /// The highest rate of the search held.
    UpperBound,
    /// No more trials were allowed.
    Trials,
    /// No more time was allowed.
    Time,
    /// It was told to end.
    Stopped,
}

/// Why no more trials can be made, for a reason that the trials do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Time,
    Stopped,
}

impl Ended {
    /// The name in files and in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Ended::Objective => "objective",
            Ended::AchievedRate => "achieved_rate",
            Ended::Failures => "failures",
            Ended::Client => "client",
            Ended::Disturbed => "disturbed",
            Ended::UpperBound => "upper_bound",
            Ended::Trials => "trials",
            Ended::Time => "time",
            Ended::Stopped => "stopped",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// The highest rate that held the objective, in operations per second; none if none did.
    pub rate_ops_s: Option<f64>,
    /// The lowest rate above it that did not hold, for the server's or the client's reason.
    pub not_held_ops_s: Option<f64>,
    pub ended: Ended,
    /// Trials contradicted each other: another search may end elsewhere.
    pub noisy: bool,
    pub trials: usize,
    /// The same in a sentence or two.
    pub words: String,
}

/// A search whose request makes sense.
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
        if trials < LEAST_TRIALS {
            return Err(SearchError::Trials(trials));
        }
        let top = highest.unwrap_or(f64::INFINITY);
        let bottom = lowest.unwrap_or(LOWEST.min(top));
        if bottom > top {
            return Err(SearchError::Bounds { lowest: bottom, highest: top });
        }
        Ok(Search { request, lowest: bottom, highest: top })
    }

    /// The next rate to try, or what the trials say. The same trials give the same answer.
    pub fn next(&self, trials: &[Trial]) -> Step {
        let standings = standings(trials);
        if standings.is_empty() {
            return self.first();
        }
        let gap = Gap::of(&standings);
        let done = |ended| Step::Done(words::conclude(self, trials, &standings, &gap, ended));
        if hopeless(trials) {
            return done(Some(Ended::Disturbed));
        }
        if trials.len() >= self.request.trials {
            return done(Some(Ended::Trials));
        }
        if let Some(open) = standings.iter().find(|standing| standing.known() == Known::Open) {
            return again(open);
        }
        if let Some(doubtful) = contradicted(&standings) {
            return again(doubtful);
        }
        match (gap.held, gap.not_held) {
            (Some(held), None) if held.rate < self.highest => {
                fresh(rounded(held.rate * UP).min(self.highest))
            }
            (None, Some(above)) if above.rate > self.lowest => {
                fresh(rounded(above.rate / DOWN).max(self.lowest))
            }
            (Some(held), Some(above)) if above.rate / held.rate > 1.0 + self.request.resolution => {
                fresh(between(held.rate, above.rate))
            }
            // The ends are where they will be: both have to be seen twice. The upper one first,
            // for if it gives way the lower one is not the answer.
            (held, above) => match above.into_iter().chain(held).find(|end| !end.confirmed()) {
                Some(end) => again(end),
                None if above.is_none() => done(Some(Ended::UpperBound)),
                None => done(None),
            },
        }
    }

    /// What the trials say so far, where no more can be made.
    pub fn cut_short(&self, trials: &[Trial], cut: Cut) -> Conclusion {
        let standings = standings(trials);
        let ended = match cut {
            Cut::Time => Ended::Time,
            Cut::Stopped => Ended::Stopped,
        };
        words::conclude(self, trials, &standings, &Gap::of(&standings), Some(ended))
    }

    fn first(&self) -> Step {
        let start = self.request.hint.map_or(START, |hint| rounded(hint / 2.0));
        fresh(start.clamp(self.lowest, self.highest))
    }
}

/// So many trials in a row that say nothing of the server, at more than one rate, end a search in
/// which none held: lower rates do not help where it is not the rate that disturbs.
const HOPELESS_AFTER: usize = 4;

/// Whether trial after trial was disturbed, or had a client that was late though it had room.
fn hopeless(trials: &[Trial]) -> bool {
    let says_nothing = |trial: &Trial| match trial.outcome() {
        Outcome::Disturbed => true,
        Outcome::Client => trial.client.busy <= MOST_BUSY,
        _ => false,
    };
    let Some(last) = trials.len().checked_sub(HOPELESS_AFTER).map(|from| &trials[from..]) else {
        return false;
    };
    let held = trials.iter().any(|trial| trial.outcome() == Outcome::Held);
    let one_rate = last.iter().all(|trial| trial.rate_ops_s == last[0].rate_ops_s);
    !held && !one_rate && last.iter().all(says_nothing)
}

/// Between which rates the answer lies.
struct Gap<'s> {
    held: Option<&'s Standing<'s>>,
    not_held: Option<&'s Standing<'s>>,
}

impl<'s> Gap<'s> {
    fn of(standings: &'s [Standing<'s>]) -> Gap<'s> {
        let broke = standings.iter().find(|standing| standing.known() == Known::NotHeld);
        let below = |standing: &&Standing| broke.is_none_or(|broke| standing.rate < broke.rate);
        let held =
            standings.iter().rev().filter(below).find(|standing| standing.known() == Known::Held);
        // Where a higher rate held, the client was not the limit.
        let mute = standings.iter().filter(below).find(|standing| {
            standing.known() == Known::Mute && held.is_none_or(|held| standing.rate > held.rate)
        });
        Gap { held, not_held: mute.or(broke) }
    }
}

/// The lowest rate that did not hold although a higher one did, as long as it may be tried.
fn contradicted<'s>(standings: &'s [Standing<'s>]) -> Option<&'s Standing<'s>> {
    let highest = standings.iter().rev().find(|standing| standing.known() == Known::Held)?;
    let broke = standings.iter().find(|standing| standing.known() == Known::NotHeld)?;
    (broke.rate < highest.rate && broke.trials.len() < TRIALS_A_RATE).then_some(broke)
}

fn fresh(rate_ops_s: f64) -> Step {
    Step::Try { rate_ops_s, again: false, longer: 1.0 }
}

fn again(standing: &Standing<'_>) -> Step {
    Step::Try { rate_ops_s: standing.rate, again: true, longer: standing.longer().min(LONGEST) }
}

/// The middle on a logarithmic scale, with few digits where they lie between.
fn between(low: f64, high: f64) -> f64 {
    let middle = (low * high).sqrt();
    let round = rounded(middle);
    if low < round && round < high { round } else { middle }
}

/// Four significant digits: rates that people can read.
fn rounded(rate: f64) -> f64 {
    let step = 10f64.powf(rate.log10().floor() - 3.0);
    (rate / step).round() * step
}
