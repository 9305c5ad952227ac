//! The conclusion, and the sentence that says it.

use super::standing::{Known, Standing};
use super::{Conclusion, Ended, Gap, Outcome, Search, Trial};
use crate::slo::{Finding, Verdict};

/// `ended`: where the trials themselves do not say it.
pub(super) fn conclude(
    search: &Search,
    trials: &[Trial],
    standings: &[Standing<'_>],
    gap: &Gap<'_>,
    ended: Option<Ended>,
) -> Conclusion {
    let ended = ended.or_else(|| gap.not_held.map(limit)).unwrap_or(Ended::Trials);
    let highest_held =
        standings.iter().rev().find(|standing| standing.known() == Known::Held).map(|s| s.rate);
    let inverted = highest_held.is_some_and(|highest| gap.held.is_none_or(|h| h.rate < highest));
    let noisy = inverted || standings.iter().any(Standing::contradictory);

    let all = trials;
    let trials = all.len();
    let mut sentences = Vec::new();
    sentences.push(match gap.held {
        Some(held) => format!("{} is the highest rate that held", rate(held.rate)),
        None if ended == Ended::Disturbed => "no rate could be judged".to_owned(),
        None => "no rate held".to_owned(),
    });
    if ended == Ended::Disturbed && gap.held.is_none() {
        sentences.extend(disturbed(all));
    } else if let Some(above) = gap.not_held {
        sentences.push(format!("at {} {}", rate(above.rate), trouble(above)));
    }
    match ended {
        Ended::UpperBound => sentences.push(format!(
            "the search was to go no higher than {}: raise its upper bound",
            rate(search.highest)
        )),
        Ended::Trials => sentences
            .push(format!("after {trials} trials the search was to end: allow more of them")),
        Ended::Time => sentences.push(format!(
            "after {trials} trials the time was up: allow more of it, or make trials shorter"
        )),
        Ended::Stopped => sentences.push(format!("the search was stopped after {trials} trials")),
        Ended::Client => sentences
            .push("the server may hold more: add load threads, connections or agents".to_owned()),
        Ended::Disturbed => sentences.push(
            "quieten the machine: end what else runs on it, or let the client have CPUs of its own"
                .to_owned(),
        ),
        Ended::Objective | Ended::AchievedRate | Ended::Failures => {}
    }
    if noisy {
        sentences.push(
            "trials contradicted each other: quieten the machine or make the trials longer"
                .to_owned(),
        );
    }
    Conclusion {
        rate_ops_s: gap.held.map(|held| held.rate),
        not_held_ops_s: gap.not_held.map(|above| above.rate),
        ended,
        noisy,
        trials,
        words: sentences.join("; "),
    }
}

/// What stopped a rate from holding.
fn limit(above: &Standing<'_>) -> Ended {
    let count = |of| above.trials.iter().filter(|trial| trial.outcome() == of).count();
    match above.known() {
        Known::Mute if count(Outcome::Disturbed) > count(Outcome::Client) => Ended::Disturbed,
        Known::Mute => Ended::Client,
        _ => {
            let (behind, failed) = (count(Outcome::Behind), count(Outcome::Failed));
            let broke = count(Outcome::Broke);
            if failed > behind.max(broke) {
                Ended::Failures
            } else if behind > broke {
                Ended::AchievedRate
            } else {
                Ended::Objective
            }
        }
    }
}

/// The same in words.
fn trouble(above: &Standing<'_>) -> String {
    let told = |of: Outcome| above.telling(|outcome| outcome == of);
    match limit(above) {
        Ended::Client => told(Outcome::Client).map(client),
        Ended::Disturbed => told(Outcome::Disturbed)
            .and_then(|trial| trial.disturbed.as_ref())
            .map(|why| format!("{why}, and that says nothing of the server")),
        Ended::AchievedRate => told(Outcome::Behind).map(|trial| {
            format!(
                "only {} were answered, with the client {} busy",
                rate(trial.achieved_ops_s),
                percent(trial.client.busy)
            )
        }),
        Ended::Failures => told(Outcome::Failed)
            .and_then(|trial| trial.failed.as_ref())
            .map(|first| format!("answers failed; the first: {first}")),
        _ => told(Outcome::Broke)
            .and_then(|trial| worst(trial, Verdict::Breaks))
            .or_else(|| told(Outcome::Unclear).and_then(|trial| worst(trial, Verdict::Unclear))),
    }
    .unwrap_or_else(|| "it could not be told".to_owned())
}

/// What disturbed a search in which nothing held, and what its quiet trials say.
fn disturbed(trials: &[Trial]) -> Vec<String> {
    let quiet = |trial: &&Trial| !matches!(trial.outcome(), Outcome::Disturbed | Outcome::Client);
    let (quiet, loud): (Vec<&Trial>, Vec<&Trial>) = trials.iter().partition(quiet);
    let why = loud.iter().rev().find_map(|trial| match &trial.disturbed {
        Some(why) => Some(why.clone()),
        None => trial.client.late.as_ref().map(|late| format!("the client was late: {late}")),
    });
    let lowest = loud.iter().map(|trial| trial.rate_ops_s).fold(f64::INFINITY, f64::min);
    let mut sentences = vec![format!(
        "in {} of {} trials, down to {}, something else than the rate decided: {}",
        loud.len(),
        trials.len(),
        rate(lowest),
        why.unwrap_or_else(|| "the client had no room".to_owned())
    )];
    sentences.push(match quiet.iter().min_by(|a, b| a.rate_ops_s.total_cmp(&b.rate_ops_s)) {
        None => "no trial was quiet".to_owned(),
        Some(trial) => {
            let standing = Standing { rate: trial.rate_ops_s, trials: vec![trial] };
            format!("of the quiet ones, at {} {}", rate(standing.rate), trouble(&standing))
        }
    });
    sentences
}

fn client(trial: &Trial) -> String {
    match &trial.client.late {
        Some(late) => format!("the client was late, not the server: {late}"),
        None => format!("the client was {} busy, not the server", percent(trial.client.busy)),
    }
}

/// The first condition of that verdict with what was measured.
fn worst(trial: &Trial, verdict: Verdict) -> Option<String> {
    let finding = trial.judgement.findings.iter().find(|finding| finding.verdict == verdict)?;
    let Finding { condition, measured_ns, interval, .. } = finding;
    let measured = measured_ns.map_or("unknown".to_owned(), time);
    let around = match interval {
        Ok(interval) => format!("{} to {}", time(interval.low), time(interval.high)),
        Err(why) => why.to_string(),
    };
    let word = if verdict == Verdict::Breaks { "broke" } else { "is too near to tell:" };
    Some(format!("`{condition}` {word} with {measured} ({around})"))
}

/// `98,760 ops/s`, without more digits than a search finds.
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
