//! Parses a [`CheckExpression`]; errors carry their position.

use std::str::FromStr;

use super::error::CheckError;
use super::lexer::{PlacedToken, Token, tokens};
use super::{Arithmetic, CheckExpression, Comparison, ExpressionNode, ExpressionType, Function};
use crate::metric::Metric;

/// Deeper than any sensible relation.
const MAX_DEPTH: u32 = 50;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("<", Comparison::Less),
    ("<=", Comparison::AtMost),
    (">", Comparison::More),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
];

impl FromStr for CheckExpression {
    type Err = CheckError;

    /// Comparisons (`<`, `<=`, `>`, `>=`, `==`, `!=`) of numbers, texts in quotes and names, which
    /// `+ - * /`, `abs`, `min`, `max` and brackets join, and `and`, `or`, `not` between them.
    fn from_str(text: &str) -> Result<CheckExpression, CheckError> {
        let mut reader = ExpressionParser { text, tokens: tokens(text)?, next: 0, depth: 0 };
        let root = reader.or_expression()?;
        if reader.peek() != &Token::End {
            return Err(reader.wrong("the relation should end here"));
        }
        if root.kind() != ExpressionType::Truth {
            let what = "this is a value, not a relation; compare it, as in `ipc > 0.5`";
            return Err(CheckError::new(text, 0, what));
        }
        Ok(CheckExpression { text: text.to_owned(), root })
    }
}

/// Recursive descent, one function a level of precedence.
struct ExpressionParser<'a> {
    text: &'a str,
    tokens: Vec<PlacedToken>,
    next: usize,
    depth: u32,
}

impl ExpressionParser<'_> {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |placed| &placed.token)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |placed| placed.at)
    }

    /// Consumes the sign if it is next.
    fn accept(&mut self, sign: &'static str) -> bool {
        let there = self.peek() == &Token::Sign(sign);
        self.next += usize::from(there);
        there
    }

    fn wrong(&self, what: impl Into<String>) -> CheckError {
        CheckError::new(self.text, self.at(), what)
    }

    fn or_expression(&mut self) -> Result<ExpressionNode, CheckError> {
        let from = self.at();
        let mut left = self.and_expression()?;
        while self.accept("or") {
            let at = self.at();
            let right = self.and_expression()?;
            self.truth(&left, from)?;
            self.truth(&right, at)?;
            left = ExpressionNode::Or(left.into(), right.into());
        }
        Ok(left)
    }

    fn and_expression(&mut self) -> Result<ExpressionNode, CheckError> {
        let from = self.at();
        let mut left = self.not_expression()?;
        while self.accept("and") {
            let at = self.at();
            let right = self.not_expression()?;
            self.truth(&left, from)?;
            self.truth(&right, at)?;
            left = ExpressionNode::And(left.into(), right.into());
        }
        Ok(left)
    }

    fn not_expression(&mut self) -> Result<ExpressionNode, CheckError> {
        if !self.accept("not") {
            return self.comparison();
        }
        self.enter()?;
        let at = self.at();
        let inner = self.not_expression()?;
        self.depth -= 1;
        self.truth(&inner, at)?;
        Ok(ExpressionNode::Not(inner.into()))
    }

    fn comparison(&mut self) -> Result<ExpressionNode, CheckError> {
        let from = self.at();
        let left = self.sum()?;
        let Some(how) = self.comparison_sign() else { return Ok(left) };
        let at = self.at();
        let right = self.sum()?;
        if self.comparison_sign().is_some() {
            self.next -= 1;
            return Err(self.wrong("one comparison at a time; join two with `and`"));
        }
        for (node, place) in [(&left, from), (&right, at)] {
            if node.kind() == ExpressionType::Truth {
                let what = "a relation is not a value; join relations with `and` or `or`";
                return Err(CheckError::new(self.text, place, what));
            }
        }
        let ordered = !matches!(how, Comparison::Equal | Comparison::Unequal);
        match (left.kind(), right.kind()) {
            (ExpressionType::Text, ExpressionType::Number)
            | (ExpressionType::Number, ExpressionType::Text) => {
                Err(CheckError::new(self.text, from, "a text is never equal to a number"))
            }
            (ExpressionType::Text, _) | (_, ExpressionType::Text) if ordered => {
                let what = "texts have no order; write `==` or `!=`";
                Err(CheckError::new(self.text, from, what))
            }
            (
                ExpressionType::Text | ExpressionType::Number,
                ExpressionType::Text | ExpressionType::Number,
            ) => {
                let what = "this compares two constants; name a figure, as in `ipc > 0.5`";
                match (constant(&left), constant(&right)) {
                    (true, true) => Err(CheckError::new(self.text, from, what)),
                    _ => Ok(ExpressionNode::Compare(left.into(), how, right.into())),
                }
            }
            _ => Ok(ExpressionNode::Compare(left.into(), how, right.into())),
        }
    }

    fn comparison_sign(&mut self) -> Option<Comparison> {
        let Token::Sign(sign) = *self.peek() else { return None };
        let result = COMPARISONS.iter().find(|(known, _)| *known == sign)?;
        self.next += 1;
        Some(result.1)
    }

    fn sum(&mut self) -> Result<ExpressionNode, CheckError> {
        self.chain(&[("+", Arithmetic::Plus), ("-", Arithmetic::Minus)], Self::product)
    }

    fn product(&mut self) -> Result<ExpressionNode, CheckError> {
        self.chain(&[("*", Arithmetic::Times), ("/", Arithmetic::Over)], Self::sign)
    }

    fn chain(
        &mut self,
        signs: &[(&'static str, Arithmetic)],
        part: fn(&mut Self) -> Result<ExpressionNode, CheckError>,
    ) -> Result<ExpressionNode, CheckError> {
        let from = self.at();
        let mut left = part(self)?;
        while let Some((_, how)) = signs.iter().find(|(sign, _)| self.accept(sign)) {
            let at = self.at();
            let right = part(self)?;
            self.number(&left, from)?;
            self.number(&right, at)?;
            left = ExpressionNode::Arithmetic(left.into(), *how, right.into());
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<ExpressionNode, CheckError> {
        if !self.accept("-") {
            return self.atom();
        }
        self.enter()?;
        let at = self.at();
        let inner = self.sign()?;
        self.depth -= 1;
        self.number(&inner, at)?;
        Ok(ExpressionNode::Negative(inner.into()))
    }

    fn atom(&mut self) -> Result<ExpressionNode, CheckError> {
        let at = self.at();
        let wrong = |what: String| CheckError::new(self.text, at, what);
        match self.peek().clone() {
            Token::Number(number) => {
                self.next += 1;
                Ok(ExpressionNode::Number(number))
            }
            Token::Text(text) => {
                self.next += 1;
                Ok(ExpressionNode::Text(text))
            }
            Token::Sign("(") => {
                self.next += 1;
                self.enter()?;
                let inner = self.or_expression()?;
                self.depth -= 1;
                self.closing_bracket()?;
                Ok(inner)
            }
            Token::Name(name) => {
                self.next += 1;
                if self.accept("(") {
                    return self.call(&name, at);
                }
                // A factor or setting may have any name, but a figure may not.
                if name.starts_with("latency_us") || name.ends_with('.') || name.is_empty() {
                    Metric::parse(&name).map_err(|error| wrong(error.to_string()))?;
                }
                Ok(ExpressionNode::Name(name))
            }
            Token::End => Err(wrong("something is missing at the end".to_owned())),
            Token::Sign(sign) => {
                Err(wrong(format!("a figure, a number or a text is expected here, not `{sign}`")))
            }
        }
    }

    fn call(&mut self, name: &str, at: usize) -> Result<ExpressionNode, CheckError> {
        let (function, arity) = match name {
            "abs" => (Function::Abs, 1..=1),
            "min" => (Function::Min, 2..=usize::MAX),
            "max" => (Function::Max, 2..=usize::MAX),
            _ => {
                let what = format!("there is no function `{name}`; known: abs, min, max");
                return Err(CheckError::new(self.text, at, what));
            }
        };
        self.enter()?;
        let mut arguments = Vec::new();
        loop {
            let at = self.at();
            let argument = self.sum()?;
            self.number(&argument, at)?;
            arguments.push(argument);
            if !self.accept(",") {
                break;
            }
        }
        self.depth -= 1;
        self.closing_bracket()?;
        if arity.contains(&arguments.len()) {
            return Ok(ExpressionNode::Call(function, arguments));
        }
        let what = format!(
            "`{name}` takes {}, not {}",
            if function == Function::Abs { "one value" } else { "two values or more" },
            arguments.len()
        );
        Err(CheckError::new(self.text, at, what))
    }

    fn closing_bracket(&mut self) -> Result<(), CheckError> {
        if self.accept(")") { Ok(()) } else { Err(self.wrong("`)` is missing")) }
    }

    fn enter(&mut self) -> Result<(), CheckError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(self.wrong("this is nested too deeply")) } else { Ok(()) }
    }

    fn truth(&self, node: &ExpressionNode, at: usize) -> Result<(), CheckError> {
        match node.kind() {
            ExpressionType::Truth => Ok(()),
            _ => {
                let what = "`and`, `or` and `not` join relations, and this is a value";
                Err(CheckError::new(self.text, at, what))
            }
        }
    }

    fn number(&self, node: &ExpressionNode, at: usize) -> Result<(), CheckError> {
        let what = match node.kind() {
            ExpressionType::Number | ExpressionType::Value => return Ok(()),
            ExpressionType::Text => "a text is not a number",
            ExpressionType::Truth => "a relation is not a number",
        };
        Err(CheckError::new(self.text, at, what))
    }
}

/// Without a name in it.
fn constant(node: &ExpressionNode) -> bool {
    let mut names = Vec::new();
    node.collect_names(&mut names);
    names.is_empty()
}
