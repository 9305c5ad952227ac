use report::format::{NONE, significant};
use report::table::{ALWAYS, Align, Cell, Table, Tone};
use serde_json::to_value;

use super::flags::TimedArgs;
use super::session::{MicroRun, name_flag, one};
use crate::exit::ExitOutcome;
use crate::output::Output;

pub fn run(args: &TimedArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let session = MicroRun::begin("clock", &args.at, show)?;
    micro::pin::pin(session.first_cpu()).map_err(name_flag)?;
    let bar = show.parts(8);
    bar.set_prefix("clock");
    let mut on_clock = |clock: &micro::clock::Clock| {
        bar.inc(1);
        bar.set_message(clock.name);
    };
    let clocks =
        micro::clock::run(args.time.0, &session.stop(), &mut on_clock).map_err(name_flag)?;
    bar.finish_and_clear();
    let mut table = Table::new("Reading a clock, ns")
        .column("clock", Align::Left, ALWAYS)
        .column("min", Align::Decimal, 20)
        .column("median", Align::Decimal, ALWAYS)
        .column("mean", Align::Decimal, 19)
        .column("max", Align::Decimal, 18)
        .column("smallest step", Align::Decimal, ALWAYS)
        .column("stated step", Align::Decimal, 17);
    let ns = |ns: f64| significant(ns, 3);
    for clock in &clocks {
        table.row(vec![
            clock.name.into(),
            ns(clock.read.min_ns).into(),
            Cell::new(ns(clock.read.median_ns), Tone::Strong),
            ns(clock.read.mean_ns).into(),
            ns(clock.read.max_ns).into(),
            clock.step_ns.map_or(NONE.to_owned(), ns).into(),
            clock.stated_ns.map_or(NONE.to_owned(), ns).into(),
        ]);
    }
    table.note(
        "The smallest step between two answers that differ is no finer than two reads lie apart.",
    );
    let mut warnings = Vec::new();
    for clock in clocks.iter().filter(|clock| !clock.monotonic) {
        warnings.push(format!("the clock {} went back while it was read", clock.name));
    }
    session.end(one("clock", to_value(&clocks))?, &[table], warnings)
}
