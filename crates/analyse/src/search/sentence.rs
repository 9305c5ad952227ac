//! The conclusion and its sentence.

use super::standing::{RateStanding, RateStatus};
use super::{RateBracket, RateTrial, Search, SearchConclusion, SearchEnd, TrialOutcome};
use crate::slo::{ConditionResult, ObjectiveVerdict};

/// `ended`: the reason, if it does not follow from the trials.
pub(super) fn conclude(
    search: &Search,
    trials: &[RateTrial],
    standings: &[RateStanding<'_>],
    gap: &RateBracket<'_>,
    ended: Option<SearchEnd>,
) -> SearchConclusion {
    let ended = ended.or_else(|| gap.upper.map(ended_by)).unwrap_or(SearchEnd::Trials);
    let highest_held = standings
        .iter()
        .rev()
        .find(|standing| standing.status() == RateStatus::Held)
        .map(|s| s.rate);
    let inverted = highest_held.is_some_and(|highest| gap.lower.is_none_or(|h| h.rate < highest));
    let noisy = inverted || standings.iter().any(RateStanding::is_contradictory);

    let all = trials;
    let trials = all.len();
    let mut sentences = Vec::new();
    sentences.push(match gap.lower {
        Some(held) => format!("{} is the highest rate that held", rate(held.rate)),
        None if ended == SearchEnd::Disturbed => "no rate could be judged".to_owned(),
        None => "no rate held".to_owned(),
    });
    if ended == SearchEnd::Disturbed && gap.lower.is_none() {
        sentences.extend(disturbed(all));
    } else if let Some(above) = gap.upper {
        sentences.push(format!("at {} {}", rate(above.rate), failure_reason(above)));
    }
    match ended {
        SearchEnd::UpperBound => sentences.push(format!(
            "the search ended at its upper bound of {}: raise that",
            rate(search.highest)
        )),
        SearchEnd::Trials => {
            sentences.push(format!("the search reached its limit of {trials} trials: allow more"))
        }
        SearchEnd::Time => sentences.push(format!(
            "the search reached its time limit after {trials} trials: allow more time, or make \
             trials shorter"
        )),
        SearchEnd::Stopped => {
            sentences.push(format!("the search was stopped after {trials} trials"))
        }
        SearchEnd::Client => sentences
            .push("the server may hold more: add load threads, connections or agents".to_owned()),
        SearchEnd::Disturbed => sentences.push(
            "quieten the machine: stop other programs, or give the client CPUs of its own"
                .to_owned(),
        ),
        SearchEnd::Objective | SearchEnd::AchievedRate | SearchEnd::Failures => {}
    }
    if noisy {
        sentences.push(
            "trials contradicted each other: quieten the machine or make the trials longer"
                .to_owned(),
        );
    }
    SearchConclusion {
        rate_ops_s: gap.lower.map(|held| held.rate),
        not_held_ops_s: gap.upper.map(|above| above.rate),
        end: ended,
        noisy,
        trials,
        summary: sentences.join("; "),
    }
}

/// Why a rate did not hold.
fn ended_by(above: &RateStanding<'_>) -> SearchEnd {
    let count = |of| above.trials.iter().filter(|trial| trial.outcome() == of).count();
    match above.status() {
        RateStatus::Inconclusive
            if count(TrialOutcome::Disturbed) > count(TrialOutcome::Client) =>
        {
            SearchEnd::Disturbed
        }
        RateStatus::Inconclusive => SearchEnd::Client,
        _ => {
            let (behind, failed) = (count(TrialOutcome::Behind), count(TrialOutcome::Failed));
            let broke = count(TrialOutcome::Broke);
            if failed > behind.max(broke) {
                SearchEnd::Failures
            } else if behind > broke {
                SearchEnd::AchievedRate
            } else {
                SearchEnd::Objective
            }
        }
    }
}

/// Why a rate did not hold, in words.
fn failure_reason(above: &RateStanding<'_>) -> String {
    let last_trial = |of: TrialOutcome| above.last_with(|outcome| outcome == of);
    match ended_by(above) {
        SearchEnd::Client => last_trial(TrialOutcome::Client).map(client_reason),
        SearchEnd::Disturbed => last_trial(TrialOutcome::Disturbed)
            .and_then(|trial| trial.disturbed.as_ref())
            .map(|why| format!("{why}, and that says nothing about the server")),
        SearchEnd::AchievedRate => last_trial(TrialOutcome::Behind).map(|trial| {
            format!(
                "only {} were answered, with the client {} busy",
                rate(trial.achieved_ops_s),
                percent(trial.client.busy)
            )
        }),
        SearchEnd::Failures => last_trial(TrialOutcome::Failed)
            .and_then(|trial| trial.failed.as_ref())
            .map(|first| format!("answers failed; the first: {first}")),
        _ => last_trial(TrialOutcome::Broke)
            .and_then(|trial| condition_reason(trial, ObjectiveVerdict::Breaks))
            .or_else(|| {
                last_trial(TrialOutcome::Unclear)
                    .and_then(|trial| condition_reason(trial, ObjectiveVerdict::Unclear))
            }),
    }
    .unwrap_or_else(|| "it remained unclear".to_owned())
}

/// What disturbed a search in which nothing held, and the result of its quiet trials.
fn disturbed(trials: &[RateTrial]) -> Vec<String> {
    let quiet = |trial: &&RateTrial| {
        !matches!(trial.outcome(), TrialOutcome::Disturbed | TrialOutcome::Client)
    };
    let (quiet, loud): (Vec<&RateTrial>, Vec<&RateTrial>) = trials.iter().partition(quiet);
    let why = loud.iter().rev().find_map(|trial| match &trial.disturbed {
        Some(why) => Some(why.clone()),
        None => trial.client.late.as_ref().map(|late| format!("the client was late: {late}")),
    });
    let lowest = loud.iter().map(|trial| trial.rate_ops_s).fold(f64::INFINITY, f64::min);
    let mut sentences = vec![format!(
        "in {} of {} trials, down to {}, something other than the rate decided: {}",
        loud.len(),
        trials.len(),
        rate(lowest),
        why.unwrap_or_else(|| "the client had no headroom".to_owned())
    )];
    sentences.push(match quiet.iter().min_by(|a, b| a.rate_ops_s.total_cmp(&b.rate_ops_s)) {
        None => "every trial was disturbed".to_owned(),
        Some(trial) => {
            let standing = RateStanding { rate: trial.rate_ops_s, trials: vec![trial] };
            format!(
                "of the undisturbed trials, at {} {}",
                rate(standing.rate),
                failure_reason(&standing)
            )
        }
    });
    sentences
}

fn client_reason(trial: &RateTrial) -> String {
    match &trial.client.late {
        Some(late) => format!("the client was late, not the server: {late}"),
        None => format!("the client was {} busy, not the server", percent(trial.client.busy)),
    }
}

/// The first condition with that verdict, and its measured value.
fn condition_reason(trial: &RateTrial, verdict: ObjectiveVerdict) -> Option<String> {
    let finding = trial.judgement.results.iter().find(|finding| finding.verdict == verdict)?;
    let ConditionResult { condition, measured_ns, interval, .. } = finding;
    let measured = measured_ns.map_or("unknown".to_owned(), time);
    let around = match interval {
        Ok(interval) => format!("{} to {}", time(interval.low), time(interval.high)),
        Err(why) => why.to_string(),
    };
    let word = if verdict == ObjectiveVerdict::Breaks { "broke" } else { "is too close to call:" };
    Some(format!("`{condition}` {word} with {measured} ({around})"))
}

/// `98,760 ops/s`, in whole operations.
fn rate(ops_s: f64) -> String {
    let digits = format!("{:.0}", ops_s);
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + " ops/s"
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Nanoseconds with three digits: `1.23 ms`.
fn time(nanoseconds: f64) -> String {
    let scales = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let found = scales.into_iter().find(|(scale, _)| nanoseconds >= *scale);
    let (scale, unit) = found.unwrap_or((1.0, "ns"));
    let value = nanoseconds / scale;
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}
