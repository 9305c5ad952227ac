use std::fmt;

use thiserror::Error;

/// One of the two selections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonSide {
    A,
    B,
}

impl fmt::Display for ComparisonSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComparisonSide::A => "A",
            ComparisonSide::B => "B",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Error)]
pub enum CompareError {
    #[error("selection {0} has no runs")]
    Empty(ComparisonSide),
    #[error(
        "all {count} runs of selection {side} are invalid; the first because {because}. \
         See the report for all of them"
    )]
    AllInvalid { side: ComparisonSide, count: usize, because: String },
    #[error(
        "`{setting}` is {a} in A and {b} in B: these do different things and are not \
         comparable; select one with `{setting}=...`"
    )]
    Meaningless { setting: String, a: String, b: String },
    #[error(
        "selection {side} holds runs of `{cell}` whose `{setting}` is {values}: these are not \
         repeats of one thing; select one with `{setting}=...`"
    )]
    Mixed { side: ComparisonSide, cell: String, setting: String, values: String },
    #[error(
        "the selections have no cell in common: values of {settings} occur on both sides, but \
         never in the same combination; select fewer of them"
    )]
    NothingInCommon { settings: String },
}
