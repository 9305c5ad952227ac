use report::micro::SwitchCost;
use serde_json::to_value;

use super::TimedArgs;
use super::session::{MicroRun, name_flag, one, spread};
use crate::exit::ExitOutcome;
use crate::output::Output;

pub fn run(args: &TimedArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let session = MicroRun::begin("switch", &args.at, show)?;
    let bar = show.parts(4);
    bar.set_prefix("switch");
    let mut on_switch = |switch: &micro::switch::Switch| {
        bar.inc(1);
        bar.set_message(switch.means.to_string());
    };
    let results = micro::switch::run(&session.cpus, args.time.0, &session.stop(), &mut on_switch)
        .map_err(name_flag)?;
    bar.finish_and_clear();
    let rows = results.iter().map(|switch| SwitchCost {
        method: switch.means.to_string(),
        cpus: switch.cpus,
        hand_over: spread(&switch.hand_over),
        calls_ns: switch.calls.median_ns,
        switch_ns: switch.switch.median_ns,
        switches: switch.switches,
    });
    let table = report::micro::switches(&rows.collect::<Vec<_>>());
    session.end(one("switch", to_value(&results))?, &[table], Vec::new())
}
