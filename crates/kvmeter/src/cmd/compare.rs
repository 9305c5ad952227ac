use analyse::compare;
use record::{Run, Selection};

use crate::args::Compare;
use crate::exit::Outcome;
use crate::show::Show;

pub fn run(args: &Compare, show: &Show) -> anyhow::Result<Outcome> {
    let (a, b) = (Selection::open(&args.a)?, Selection::open(&args.b)?);
    let side = |selection: &Selection| -> Vec<Run> { selection.runs.clone() };
    let _ = (side(&a), side(&b), compare, show);
    Ok(Outcome::Done)
}
