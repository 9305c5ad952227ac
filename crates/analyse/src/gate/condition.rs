//! A condition of a gate, `latency_us.read.p99 > 5%`, and why one cannot be parsed.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::metric::{Metric, MetricError};

const EXAMPLES: &str = "`latency_us.read.p99 > 5%` or `throughput_ops_s < -3%`";
/// Percent. A change beyond it is a mistake of writing.
const MOST: f64 = 1e6;

/// A change of B relative to A that is a regression.
#[derive(Debug, Clone, PartialEq)]
pub struct GateCondition {
    /// As in `--json`: `latency_us.read.p99`.
    pub name: String,
    pub metric: Metric,
    pub relation: GateRelation,
    /// Of A: 0.05 is 5 % more.
    pub change: f64,
    /// Where the name begins in the text, in characters from 1.
    pub at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateRelation {
    /// A larger change is a regression.
    Above,
    /// A smaller one is.
    Below,
}

/// A condition that cannot be parsed; `at` is the position of the error in characters, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the condition `{text}`, at character {at}: {what}")]
pub struct GateConditionError {
    pub text: String,
    pub at: usize,
    pub what: String,
}

impl GateCondition {
    /// `> 5%`.
    pub fn threshold(&self) -> String {
        let sign = match self.relation {
            GateRelation::Above => '>',
            GateRelation::Below => '<',
        };
        // Rounding takes away what the division by 100 added.
        format!("{sign} {}%", (self.change * 1e12).round() / 1e10)
    }
}

/// The form that is parsed.
impl fmt::Display for GateCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.threshold())
    }
}

impl FromStr for GateCondition {
    type Err = GateConditionError;

    /// A metric's name, `>` or `<`, and a change in percent with its sign.
    fn from_str(text: &str) -> Result<GateCondition, GateConditionError> {
        // Positions are of bytes here.
        let wrong = |at: usize, what: String| GateConditionError {
            text: text.to_owned(),
            at: text[..at].chars().count() + 1,
            what,
        };
        let first_of = |from: usize| from + text[from..].len() - text[from..].trim_start().len();
        let Some(sign) = text.find(['<', '>', '=', '!', '≤', '≥']) else {
            let what = format!("`>` or `<` and a change are missing; write it as {EXAMPLES}");
            return Err(wrong(text.trim_end().len(), what));
        };
        let relation = match text[sign..].chars().next() {
            Some('>') => GateRelation::Above,
            Some('<') => GateRelation::Below,
            _ => return Err(wrong(sign, "write `>` or `<`".to_owned())),
        };
        if text[sign + 1..].starts_with('=') {
            let what = "write `>` or `<`: an interval that ends at the threshold proves nothing";
            return Err(wrong(sign, what.to_owned()));
        }
        let (name, at) = (text[..sign].trim(), first_of(0).min(sign));
        if name.is_empty() {
            return Err(wrong(at, format!("a metric is missing; write it as {EXAMPLES}")));
        }
        let metric = Metric::parse(&full_name(name)).map_err(|error| match error {
            MetricError::Name { why, .. } => wrong(at, why),
            MetricError::Unavailable(why) => wrong(at, why),
        })?;
        let change =
            change(&text[sign + 1..], relation).map_err(|what| wrong(first_of(sign + 1), what))?;
        let at = text[..at].chars().count() + 1;
        Ok(GateCondition { name: full_name(name), metric, relation, change, at })
    }
}

/// The name in `--json` of one in the table of `compare`: `latency.read.p99` is
/// `latency_us.read.p99`.
fn full_name(name: &str) -> String {
    match name.strip_prefix("latency.") {
        _ if name == "throughput" => "throughput_ops_s".to_owned(),
        Some(rest) => format!("latency_us.{rest}"),
        None => name.to_owned(),
    }
}

/// `5%`, `-3 %`, `+0.5%`, as a share.
fn change(text: &str, relation: GateRelation) -> Result<f64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("a change is missing; write it as {EXAMPLES}"));
    }
    let Some(digits) = text.strip_suffix('%') else {
        return Err(match text.parse::<f64>() {
            Ok(_) => format!(
                "`{text}` has no `%`; write `{text}%`, a change of B relative to A. A limit on B \
                 alone is an objective: `kvmeter bench --slo`"
            ),
            Err(_) => format!("`{text}` is not a change in percent; write it as {EXAMPLES}"),
        });
    };
    let plain = |digits: &str| digits.chars().all(|c| c.is_ascii_digit() || "+-.".contains(c));
    let number = digits.trim_end();
    let percent = number.parse::<f64>().ok().filter(|_| plain(number));
    match (percent, relation) {
        (None, _) => Err(format!("`{text}` is not a change in percent; write it as {EXAMPLES}")),
        (Some(percent), _) if percent <= -100.0 => {
            Err("no metric becomes smaller by 100 % or more; write a smaller change".to_owned())
        }
        (Some(percent), _) if percent > MOST => {
            Err(format!("`{text}` is more than {MOST} %; write a smaller change"))
        }
        (Some(percent), GateRelation::Below) if percent > 0.0 => Err(format!(
            "`< {text}` holds without any change; write `< -{text}` for a metric that is to fall \
             by no more than {text}"
        )),
        (Some(percent), GateRelation::Above) if percent < 0.0 => Err(format!(
            "`> {text}` holds without any change; write `> {}` for a metric that is to grow by no \
             more than that",
            text.trim_start_matches('-')
        )),
        // Not -0.
        (Some(percent), _) => Ok(percent / 100.0 + 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed_and_shown_in_the_same_form() {
        for (text, name, relation, change) in [
            ("latency_us.read.p99 > 5%", "latency_us.read.p99", GateRelation::Above, 0.05),
            ("throughput_ops_s<-3%", "throughput_ops_s", GateRelation::Below, -0.03),
            ("  ops_per_joule <  -0.5 % ", "ops_per_joule", GateRelation::Below, -0.005),
            ("cpu_s_per_mop > +0%", "cpu_s_per_mop", GateRelation::Above, 0.0),
            ("throughput < 0%", "throughput_ops_s", GateRelation::Below, 0.0),
            ("latency.read.p99_9 > 7%", "latency_us.read.p99_9", GateRelation::Above, 0.07),
        ] {
            let read: GateCondition = text.parse().unwrap();
            assert_eq!((read.name.as_str(), read.relation), (name, relation), "{text}");
            assert!((read.change - change).abs() < 1e-12, "{text}");
            let again: GateCondition = read.to_string().parse().unwrap();
            assert_eq!((again.name, again.change), (read.name, read.change), "{text}");
        }
        let shown = |text: &str| text.parse::<GateCondition>().unwrap().to_string();
        assert_eq!(shown("throughput_ops_s<-3%"), "throughput_ops_s < -3%");
        assert_eq!(shown("latency.read.p99>7%"), "latency_us.read.p99 > 7%");
        assert_eq!(shown("ipc<-0.1%"), "ipc < -0.1%");
    }

    #[test]
    fn errors_name_the_position() {
        for (text, at, what) in [
            ("", 1, "`>` or `<` and a change are missing"),
            ("throughput_ops_s", 17, "`>` or `<` and a change are missing"),
            ("throughput_ops_s = 3%", 18, "write `>` or `<`"),
            ("throughput_ops_s <= -3%", 18, "proves nothing"),
            ("latency_us.read.p99 ≥ 3%", 21, "write `>` or `<`"),
            ("> 3%", 1, "a metric is missing"),
            ("  < -3%", 3, "a metric is missing"),
            (" latency_us.reed.p99 > 3%", 2, "did you mean `read`?"),
            ("latency_us.read.q99 > 3%", 1, "`q99` is not a point"),
            ("latency_us > 3%", 1, "name a point of the distribution"),
            ("µ > 3%", 1, "a name is made of letters"),
            ("throughput_ops_s <", 19, "a change is missing"),
            ("throughput_ops_s < -3", 20, "`-3` has no `%`; write `-3%`"),
            ("latency_us.read.p99 > 500us", 23, "`500us` is not a change in percent"),
            ("ipc < -x%", 7, "`-x%` is not a change"),
            ("ipc < nan%", 7, "`nan%` is not a change"),
            ("ipc < -inf%", 7, "`-inf%` is not a change"),
            ("ipc < -1e1%", 7, "`-1e1%` is not a change"),
            ("throughput_ops_s < 3%", 20, "write `< -3%`"),
            ("latency_us.p99 > -3%", 18, "write `> 3%`"),
            ("throughput_ops_s < -100%", 20, "write a smaller change"),
            ("ipc > 99999999%", 7, "write a smaller change"),
        ] {
            let error = text.parse::<GateCondition>().unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.what.contains(what), "{text}: {error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
