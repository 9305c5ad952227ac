use report::micro::CallCost;
use serde_json::to_value;

use super::TimedArgs;
use super::session::{MicroRun, name_flag, one, spread};
use crate::exit::ExitOutcome;
use crate::output::Output;

pub fn run(args: &TimedArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let session = MicroRun::begin("syscall", &args.at, show)?;
    micro::pin::pin(session.first_cpu()).map_err(name_flag)?;
    let bar = show.parts(7);
    bar.set_prefix("syscall");
    let mut on_call = |call: &micro::syscall::Call| {
        bar.inc(1);
        bar.set_message(call.name);
    };
    let calls =
        micro::syscall::run(args.time.0, &session.stop(), &mut on_call).map_err(name_flag)?;
    bar.finish_and_clear();
    let rows = calls.iter().map(|call| CallCost {
        name: call.name,
        what: call.what,
        cost: spread(&call.cost),
    });
    let table = report::micro::calls(&rows.collect::<Vec<_>>());
    session.end(one("syscall", to_value(&calls))?, &[table], Vec::new())
}
