use report::micro::ClockCost;
use serde_json::to_value;

use super::TimedArgs;
use super::session::{MicroRun, name_flag, one, spread};
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
    let rows = clocks.iter().map(|clock| ClockCost {
        name: clock.name,
        read: spread(&clock.read),
        step_ns: clock.step_ns,
        stated_ns: clock.stated_ns,
    });
    let table = report::micro::clocks(&rows.collect::<Vec<_>>());
    let mut warnings = Vec::new();
    for clock in clocks.iter().filter(|clock| !clock.monotonic) {
        warnings.push(format!("the clock {} went back while it was read", clock.name));
    }
    session.end(one("clock", to_value(&clocks))?, &[table], warnings)
}
