//! A gate in words: one sentence for all, and one for each judgement.

use super::{Gate, GateOutcome, GateSize, GateVerdict, Judgement};

impl Gate {
    /// What the gate says as a whole.
    pub fn summary(&self) -> String {
        let all = self.judgements.len();
        let count = |of: fn(&GateVerdict) -> bool| {
            self.judgements.iter().filter(|it| of(&it.verdict)).count()
        };
        let failed = count(|verdict| *verdict == GateVerdict::Regression);
        let held = count(|verdict| *verdict == GateVerdict::Holds);
        let open = all - failed - held;
        let besides = match open {
            0 => String::new(),
            open => format!(", {open} undecided"),
        };
        match self.outcome() {
            GateOutcome::Passed => format!("The gate passes: {held} of {all} judgements hold."),
            GateOutcome::Failed => format!(
                "The gate fails: {failed} of {all} judgements {} a proven regression{besides}.",
                if failed == 1 { "is" } else { "are" }
            ),
            GateOutcome::Undecided => format!(
                "The gate is undecided: no regression is proven, and the data do not suffice for \
                 {open} of {all} judgements."
            ),
        }
    }

    /// One sentence for each judgement: regressions first, then what is undecided.
    pub fn sentences(&self) -> Vec<String> {
        let rank = |verdict: &GateVerdict| match verdict {
            GateVerdict::Regression => 0,
            GateVerdict::TooFewRepeats { .. } | GateVerdict::NotJudged(_) => 1,
            GateVerdict::Holds => 2,
        };
        let mut ordered: Vec<&Judgement> = self.judgements.iter().collect();
        ordered.sort_by_key(|judgement| rank(&judgement.verdict));
        ordered.into_iter().map(|judgement| self.sentence(judgement)).collect()
    }

    /// Metric, size, interval and verdict of one judgement.
    pub fn sentence(&self, judgement: &Judgement) -> String {
        let Judgement { condition, cell, runs_a, runs_b, size, verdict } = judgement;
        let (name, threshold) = (&condition.name, condition.threshold());
        let Some(size) = size else {
            let why = match verdict {
                GateVerdict::NotJudged(why) => why.as_str(),
                _ => "",
            };
            return format!("undecided: {name} of {cell} ({threshold}): {why}.");
        };
        let found = format!(
            "{name} of {cell} is {} in B ({}; {runs_a} and {runs_b} runs)",
            percent(size.ratio - 1.0),
            self.interval(size)
        );
        match verdict {
            GateVerdict::Regression => {
                let corrected = match self.judgements.len() {
                    1 => format!("p {}", p_value(size.p_holm)),
                    all => {
                        format!("p {} after correction for {all} judgements", p_value(size.p_holm))
                    }
                };
                format!("failed: {found}, which is proven to be {threshold}: {corrected}.")
            }
            GateVerdict::Holds => format!("holds: {found}, which is proven not to be {threshold}."),
            GateVerdict::TooFewRepeats { more } => {
                let tail = (1.0 - self.confidence) / 2.0;
                let open = match size.p < tail {
                    // Its own interval is beyond the threshold, which the correction takes back.
                    true => format!(
                        "{threshold} by itself, but not as one of {} judgements (p {} after \
                         correction)",
                        self.judgements.len(),
                        p_value(size.p_holm)
                    ),
                    false => format!("and the data do not show whether it is {threshold}"),
                };
                let more = match more {
                    Some(more) => format!(
                        "About {more} more repeat{} of each side would decide it, if change and \
                         variation stay as they are.",
                        if *more == 1 { "" } else { "s" }
                    ),
                    None => "The change is so near the threshold that 1,000 more repeats would \
                             not decide it; choose another one."
                        .to_owned(),
                };
                format!("undecided: {found}, {open}. {more}")
            }
            GateVerdict::NotJudged(why) => format!("undecided: {found}: {why}."),
        }
    }

    /// 99 for 0.99, without what the multiplication adds.
    pub fn confidence_percent(&self) -> f64 {
        (self.confidence * 1e6).round() / 1e4
    }

    /// `99 % interval +5.9 % to +8.6 %`.
    pub fn interval(&self, size: &GateSize) -> String {
        let confidence = self.confidence_percent();
        let (low, high) = (percent(size.low - 1.0), percent(size.high - 1.0));
        format!("{confidence} % interval {low} to {high}")
    }
}

/// A change with its sign: `+7.2 %`, `-0.31 %`.
pub fn percent(change: f64) -> String {
    let percent = change * 100.0;
    let decimals = match percent.abs() {
        large if large >= 999.5 => 0,
        middle if middle >= 0.995 => 1,
        _ => 2,
    };
    // Not -0.00.
    let rounded: f64 = format!("{percent:.decimals$}").parse().unwrap_or(percent);
    format!("{:+.decimals$} %", rounded + 0.0)
}

/// `= 0.003`, `< 0.0001`.
fn p_value(p: f64) -> String {
    const LEAST: f64 = 1e-4;
    if p < LEAST { format!("< {LEAST}") } else { format!("= {p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_and_about_two_digits() {
        for (change, text) in [
            (0.0719, "+7.2 %"),
            (-0.0031, "-0.31 %"),
            (0.0, "+0.00 %"),
            (-0.000_000_1, "+0.00 %"),
            (0.1, "+10.0 %"),
            (-0.5, "-50.0 %"),
            (11.0, "+1100 %"),
            (f64::INFINITY, "+inf %"),
        ] {
            assert_eq!(percent(change), text);
        }
    }
}
