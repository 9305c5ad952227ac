//! Relations that must hold in every run of a study, as text: `latency_us.server.p99 <=
//! latency_us.service.p99`. `docs/studies.md` has the language.

mod error;
mod evaluate;
mod judge;
mod lexer;
mod parse;

pub use error::CheckError;
pub use judge::{CheckResult, CheckedRun, judge};

/// A relation between figures and settings of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckExpression {
    text: String,
    root: ExpressionNode,
}

/// A part of a relation.
#[derive(Debug, Clone, PartialEq)]
enum ExpressionNode {
    Number(f64),
    Text(String),
    /// A factor or setting of the run if it has one of this name, else a figure.
    Name(String),
    Negative(Box<ExpressionNode>),
    Arithmetic(Box<ExpressionNode>, Arithmetic, Box<ExpressionNode>),
    Call(Function, Vec<ExpressionNode>),
    Compare(Box<ExpressionNode>, Comparison, Box<ExpressionNode>),
    Not(Box<ExpressionNode>),
    And(Box<ExpressionNode>, Box<ExpressionNode>),
    Or(Box<ExpressionNode>, Box<ExpressionNode>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arithmetic {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Unequal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Abs,
    Min,
    Max,
}

/// The type of a part of a relation, as far as it is known without a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpressionType {
    Number,
    Text,
    /// A name: its value may be either.
    Value,
    Truth,
}

impl CheckExpression {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every name in it, in the order of the text.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.collect_names(&mut names);
        names
    }
}

impl ExpressionNode {
    fn collect_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            ExpressionNode::Number(_) | ExpressionNode::Text(_) => {}
            ExpressionNode::Name(name) if names.contains(&name.as_str()) => {}
            ExpressionNode::Name(name) => names.push(name),
            ExpressionNode::Negative(inner) | ExpressionNode::Not(inner) => {
                inner.collect_names(names)
            }
            ExpressionNode::Call(_, arguments) => {
                arguments.iter().for_each(|argument| argument.collect_names(names));
            }
            ExpressionNode::Arithmetic(left, _, right)
            | ExpressionNode::Compare(left, _, right)
            | ExpressionNode::And(left, right)
            | ExpressionNode::Or(left, right) => {
                left.collect_names(names);
                right.collect_names(names);
            }
        }
    }

    fn kind(&self) -> ExpressionType {
        match self {
            ExpressionNode::Number(_)
            | ExpressionNode::Negative(_)
            | ExpressionNode::Arithmetic(..)
            | ExpressionNode::Call(..) => ExpressionType::Number,
            ExpressionNode::Text(_) => ExpressionType::Text,
            ExpressionNode::Name(_) => ExpressionType::Value,
            ExpressionNode::Compare(..)
            | ExpressionNode::Not(_)
            | ExpressionNode::And(..)
            | ExpressionNode::Or(..) => ExpressionType::Truth,
        }
    }
}
