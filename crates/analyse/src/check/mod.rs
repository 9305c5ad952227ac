//! Relations that must hold in every run of a study, as text: `latency_us.server.p99 <=
//! latency_us.service.p99`. `docs/studies.md` has the language.

mod evaluate;
mod judge;
mod parse;
mod words;

pub use judge::{Judged, Ruling, judge};
pub use parse::CheckError;

/// A relation between figures and settings of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    text: String,
    root: Node,
}

/// A part of a relation.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(f64),
    Text(String),
    /// A factor or setting of the run if it has one of this name, else a figure.
    Name(String),
    Negative(Box<Node>),
    Arithmetic(Box<Node>, Arithmetic, Box<Node>),
    Call(Function, Vec<Node>),
    Compare(Box<Node>, Comparison, Box<Node>),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
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

/// What a part of a relation is, as far as it can be told without a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    /// A name: its value may be either.
    Value,
    Truth,
}

impl Relation {
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

impl Node {
    fn collect_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Node::Number(_) | Node::Text(_) => {}
            Node::Name(name) if names.contains(&name.as_str()) => {}
            Node::Name(name) => names.push(name),
            Node::Negative(inner) | Node::Not(inner) => inner.collect_names(names),
            Node::Call(_, arguments) => {
                arguments.iter().for_each(|argument| argument.collect_names(names));
            }
            Node::Arithmetic(left, _, right)
            | Node::Compare(left, _, right)
            | Node::And(left, right)
            | Node::Or(left, right) => {
                left.collect_names(names);
                right.collect_names(names);
            }
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Node::Number(_) | Node::Negative(_) | Node::Arithmetic(..) | Node::Call(..) => {
                Kind::Number
            }
            Node::Text(_) => Kind::Text,
            Node::Name(_) => Kind::Value,
            Node::Compare(..) | Node::Not(_) | Node::And(..) | Node::Or(..) => Kind::Truth,
        }
    }
}
