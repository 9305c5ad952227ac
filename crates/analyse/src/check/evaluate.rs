//! Evaluating a relation in one run.

use model::design::value_of;
use model::{Bytes, Count, Rate, Run, Span};

use super::{Arithmetic, CheckExpression, Comparison, ExpressionNode, Function};
use crate::metric::{MetricError, metric_value};

/// The value of a name in a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CheckValue {
    Number(f64),
    Text(String),
}

impl CheckExpression {
    /// Whether it holds in a run.
    ///
    /// # Errors
    /// Why that cannot be told: a figure that the run does not have, a text where a number is
    /// needed, a division by zero.
    pub fn holds(&self, run: &Run) -> Result<bool, String> {
        truth(&self.root, run)
    }

    /// The value of each name in this run, as text.
    pub(super) fn values(&self, run: &Run) -> Vec<String> {
        let text_of = |name: &str| match resolve(name, run) {
            Ok(CheckValue::Number(number)) => format!("{name} is {}", format_number(number)),
            Ok(CheckValue::Text(text)) => format!("{name} is {text}"),
            Err(reason) => format!("{name} is not known: {reason}"),
        };
        self.names().into_iter().map(text_of).collect()
    }
}

/// Six digits: enough to see why a relation breaks.
fn format_number(number: f64) -> String {
    const DIGITS: f64 = 6.0;
    let magnitude = number.abs().log10().floor();
    if !magnitude.is_finite() || !(-4.0..15.0).contains(&magnitude) {
        return number.to_string();
    }
    let decimals = (DIGITS - 1.0 - magnitude).max(0.0) as usize;
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn truth(node: &ExpressionNode, run: &Run) -> Result<bool, String> {
    Ok(match node {
        ExpressionNode::Not(inner) => !truth(inner, run)?,
        // One side may decide although the other has no value.
        ExpressionNode::And(left, right) => match (truth(left, run), truth(right, run)) {
            (Ok(false), _) | (_, Ok(false)) => false,
            (left, right) => left? && right?,
        },
        ExpressionNode::Or(left, right) => match (truth(left, run), truth(right, run)) {
            (Ok(true), _) | (_, Ok(true)) => true,
            (left, right) => left? || right?,
        },
        ExpressionNode::Compare(left, how, right) => {
            compare(value(left, run)?, *how, value(right, run)?)?
        }
        _ => return Err("a value is not a relation".to_owned()),
    })
}

fn compare(left: CheckValue, how: Comparison, right: CheckValue) -> Result<bool, String> {
    if let (CheckValue::Text(a), CheckValue::Text(b)) = (&left, &right)
        && matches!(how, Comparison::Equal | Comparison::Unequal)
    {
        return Ok((a == b) == (how == Comparison::Equal));
    }
    let (a, b) = (as_number(left)?, as_number(right)?);
    Ok(match how {
        Comparison::Less => a < b,
        Comparison::AtMost => a <= b,
        Comparison::More => a > b,
        Comparison::AtLeast => a >= b,
        Comparison::Equal => a == b,
        Comparison::Unequal => a != b,
    })
}

fn value(node: &ExpressionNode, run: &Run) -> Result<CheckValue, String> {
    Ok(match node {
        ExpressionNode::Text(text) => CheckValue::Text(text.clone()),
        ExpressionNode::Name(name) => resolve(name, run)?,
        ExpressionNode::Number(number) => CheckValue::Number(*number),
        ExpressionNode::Negative(inner) => CheckValue::Number(-number(inner, run)?),
        ExpressionNode::Arithmetic(left, how, right) => {
            let (a, b) = (number(left, run)?, number(right, run)?);
            CheckValue::Number(match how {
                Arithmetic::Plus => a + b,
                Arithmetic::Minus => a - b,
                Arithmetic::Times => a * b,
                Arithmetic::Over if b == 0.0 => return Err("it divides by zero".to_owned()),
                Arithmetic::Over => a / b,
            })
        }
        ExpressionNode::Call(function, arguments) => {
            let numbers: Result<Vec<f64>, String> =
                arguments.iter().map(|argument| number(argument, run)).collect();
            let numbers = numbers?.into_iter();
            let found = match function {
                Function::Abs => numbers.map(f64::abs).next(),
                Function::Min => numbers.reduce(f64::min),
                Function::Max => numbers.reduce(f64::max),
            };
            CheckValue::Number(found.ok_or("a function without a value")?)
        }
        ExpressionNode::Compare(..)
        | ExpressionNode::Not(_)
        | ExpressionNode::And(..)
        | ExpressionNode::Or(..) => {
            return Err("a relation is not a value".to_owned());
        }
    })
}

fn number(node: &ExpressionNode, run: &Run) -> Result<f64, String> {
    as_number(value(node, run)?)
}

/// Factors and settings are texts; those that people write as numbers (`10k`, `64MiB`, `5s`) count
/// as such, in units of SI.
fn as_number(value: CheckValue) -> Result<f64, String> {
    let text = match value {
        CheckValue::Number(number) => return Ok(number),
        CheckValue::Text(text) => text,
    };
    let plain = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    let count = || text.parse::<Count>().ok().map(|count| count.0 as f64);
    let bytes = || text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64);
    let rate = || text.parse::<Rate>().ok().map(|rate| rate.0);
    let span = || text.parse::<Span>().ok().map(|span| span.0.as_secs_f64());
    plain()
        .or_else(count)
        .or_else(bytes)
        .or_else(rate)
        .or_else(span)
        .ok_or_else(|| format!("`{text}` is not a number"))
}

/// A factor's level or a setting of this name, else the figure of this name.
fn resolve(name: &str, run: &Run) -> Result<CheckValue, String> {
    if let Some(text) = value_of(&run.settings, name) {
        return Ok(CheckValue::Text(text.to_owned()));
    }
    match metric_value(run, name) {
        Ok(number) => Ok(CheckValue::Number(number)),
        Err(MetricError::Unavailable(reason)) => Err(reason),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_shown() {
        for (number, text) in [
            (5_141_723.153_511, "5141723"),
            (0.0, "0"),
            (0.25, "0.25"),
            (83.123_456_7, "83.1235"),
            (-1.0, "-1"),
            (100.0, "100"),
        ] {
            assert_eq!(format_number(number), text);
        }
    }
}
