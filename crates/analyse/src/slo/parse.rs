//! Parses an [`Objective`]; errors carry their position.

use std::str::FromStr;

use model::{Op, Span, suggest};
use thiserror::Error;

use super::{Condition, LatencyFigure, LimitRelation, Objective};

/// An objective that cannot be parsed; `at` is the position of the error in characters, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the objective `{text}`, at character {at}: {what}")]
pub struct SloError {
    pub text: String,
    pub at: usize,
    pub what: String,
}

const EXAMPLES: &str = "`p99<1ms`, `read.p99.9<=500us` or `p99<1ms,mean<200us`";

impl FromStr for Objective {
    type Err = SloError;

    /// Conditions between `,` or `&`. Each is an optional kind of operation and a point, `mean`
    /// or a percentile (`p50`, `p99.9`), `<` or `<=`, and a span of time with its unit.
    fn from_str(text: &str) -> Result<Objective, SloError> {
        let mut conditions: Vec<Condition> = Vec::new();
        let mut begin = 0;
        for part in text.split([',', '&']) {
            let condition = condition(part).map_err(|ParseFault { at, what }| SloError {
                text: text.to_owned(),
                at: text[..begin + at].chars().count() + 1,
                what,
            })?;
            conditions.push(condition);
            begin += part.len() + 1;
        }
        Ok(Objective { conditions })
    }
}

/// An error and its position in bytes from the start of the part.
struct ParseFault {
    at: usize,
    what: String,
}

fn wrong(at: usize, what: impl Into<String>) -> ParseFault {
    ParseFault { at, what: what.into() }
}

fn condition(part: &str) -> Result<Condition, ParseFault> {
    let first = part.len() - part.trim_start().len();
    if part.trim().is_empty() {
        return Err(wrong(first, format!("a condition is missing; write it as {EXAMPLES}")));
    }
    let Some(sign) = part.find(['<', '>', '=', '≤']) else {
        let end = part.trim_end().len();
        return Err(wrong(end, format!("`<` and a limit are missing; write it as {EXAMPLES}")));
    };
    let rest = &part[sign..];
    let (relation, length) = if rest.starts_with("<=") || rest.starts_with("=<") {
        (LimitRelation::AtMost, 2)
    } else if rest.starts_with('≤') {
        (LimitRelation::AtMost, '≤'.len_utf8())
    } else if rest.starts_with('<') {
        (LimitRelation::Below, 1)
    } else {
        let what = "an objective is an upper limit on latency; write `<` or `<=`";
        return Err(wrong(sign, what));
    };
    let (op, figure) = subject(&part[..sign], first)?;
    let from = sign + length;
    let limit = limit(&part[from..]).map_err(|what| {
        let blanks = part[from..].len() - part[from..].trim_start().len();
        wrong(from + blanks, what)
    })?;
    Ok(Condition { op, figure, relation, limit })
}

/// `read.p99` as the operation and the figure; `first` is where its text begins.
fn subject(text: &str, first: usize) -> Result<(Option<Op>, LatencyFigure), ParseFault> {
    let name = text.trim();
    if name.is_empty() {
        return Err(wrong(first, format!("a figure is missing; write it as {EXAMPLES}")));
    }
    // `p99.9` has a point too, so the figure itself is tried first.
    if let Some(figure) = figure(name) {
        return figure.map(|figure| (None, figure)).map_err(|what| wrong(first, what));
    }
    let (op, rest) = name.split_once('.').unwrap_or(("", name));
    let at = if op.is_empty() { first } else { first + op.len() + 1 };
    if !op.is_empty() && Op::from_name(op).is_none() {
        let hint = suggest::hint(op, Op::ALL.map(Op::name));
        return Err(wrong(first, format!("there is no operation `{op}`; {hint}")));
    }
    match figure(rest) {
        Some(Ok(figure)) => Ok((Op::from_name(op), figure)),
        Some(Err(what)) => Err(wrong(at, what)),
        None => Err(wrong(
            at,
            format!(
                "`{rest}` is not a figure of a latency; write `mean` or a percentile (`p99.9`)"
            ),
        )),
    }
}

/// None: neither the mean nor anything that looks like a percentile.
fn figure(name: &str) -> Option<Result<LatencyFigure, String>> {
    if name == "mean" {
        return Some(Ok(LatencyFigure::Mean));
    }
    if name == "max" {
        let what = "the maximum of one sample predicts nothing about the next; limit a high \
                    percentile, such as p99.99";
        return Some(Err(what.to_owned()));
    }
    let digits = name.strip_prefix('p')?;
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    Some(match digits.parse::<f64>() {
        Ok(percentile) if percentile > 0.0 && percentile < 100.0 => {
            Ok(LatencyFigure::Percentile(percentile))
        }
        _ => Err(format!(
            "`{name}` is not a percentile: they lie between p0 and p100, both excluded"
        )),
    })
}

fn limit(text: &str) -> Result<std::time::Duration, String> {
    let text = text.trim();
    let bare = text.chars().last().is_none_or(|c| c.is_ascii_digit() || c == '.');
    match text.parse::<Span>() {
        _ if text.is_empty() => Err("a limit is missing; write it as `1ms` or `500us`".to_owned()),
        Ok(_) if bare => Err(format!("`{text}` has no unit; write `{text}ms` or `{text}us`")),
        Ok(span) if span.0.is_zero() => Err("no latency is below a limit of 0".to_owned()),
        Ok(span) => Ok(span.0),
        Err(_) => Err(format!(
            "`{text}` is not a span of time of at most 366d; write it as `1ms` or `500us`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parses_objectives() {
        let read = |text: &str| text.parse::<Objective>().unwrap();
        for (text, op, figure, relation, nanoseconds) in [
            ("p99<1ms", None, LatencyFigure::Percentile(99.0), LimitRelation::Below, 1_000_000),
            ("p99.9<500us", None, LatencyFigure::Percentile(99.9), LimitRelation::Below, 500_000),
            ("mean<200µs", None, LatencyFigure::Mean, LimitRelation::Below, 200_000),
            (
                " p50 <= 1.5 ms ",
                None,
                LatencyFigure::Percentile(50.0),
                LimitRelation::AtMost,
                1_500_000,
            ),
            ("p50≤2s", None, LatencyFigure::Percentile(50.0), LimitRelation::AtMost, 2_000_000_000),
            (
                "read.p99<1ms",
                Some(Op::Read),
                LatencyFigure::Percentile(99.0),
                LimitRelation::Below,
                1_000_000,
            ),
            (
                "rmw.mean<9us",
                Some(Op::ReadModifyWrite),
                LatencyFigure::Mean,
                LimitRelation::Below,
                9_000,
            ),
            (
                "scan.p99.99<1s",
                Some(Op::Scan),
                LatencyFigure::Percentile(99.99),
                LimitRelation::Below,
                1_000_000_000,
            ),
        ] {
            let limit = Duration::from_nanos(nanoseconds);
            assert_eq!(
                read(text).conditions,
                [Condition { op, figure, relation, limit }],
                "{text}"
            );
        }
        for text in ["p99<1ms,read.mean<=200us", "p99<1ms & read.mean <= 200us"] {
            assert_eq!(read(text).to_string(), "p99<1ms,read.mean<=200us");
        }
    }

    #[test]
    fn parse_errors_name_the_position() {
        for (text, at, what) in [
            ("", 1, "a condition is missing"),
            ("p99<1ms,", 9, "a condition is missing"),
            ("p99", 4, "`<` and a limit are missing"),
            ("p99>1ms", 4, "upper limit"),
            ("p99=1ms", 4, "upper limit"),
            ("p99<", 5, "a limit is missing"),
            ("p99<1", 5, "`1` has no unit; write `1ms`"),
            ("p99< fast", 6, "`fast` is not a span of time"),
            ("p99<0ms", 5, "limit of 0"),
            ("<1ms", 1, "a figure is missing"),
            ("p100<1ms", 1, "between p0 and p100"),
            ("max<1ms", 1, "p99.99"),
            ("reed.p99<1ms", 1, "did you mean `read`"),
            ("read.q99<1ms", 6, "`q99` is not a figure"),
            ("p99≤1ms, p5x<1ms", 10, "`p5x` is not a figure"),
            ("µ<1ms", 1, "`µ` is not a figure"),
        ] {
            let error = text.parse::<Objective>().unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.what.contains(what), "{text}: {error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
