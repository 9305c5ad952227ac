use report::format::significant;
use report::table::{ALWAYS, Align, Cell, Table, Tone};
use serde_json::to_value;

use super::flags::TimedArgs;
use super::session::{MicroRun, name_flag, one};
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
    let mut table = Table::new("What the kernel's services cost, ns")
        .column("call", Align::Left, ALWAYS)
        .column("min", Align::Decimal, 20)
        .column("median", Align::Decimal, ALWAYS)
        .column("mean", Align::Decimal, 19)
        .column("max", Align::Decimal, 18)
        .column("what", Align::Wrap, 30);
    let ns = |ns: f64| significant(ns, 3);
    for call in &calls {
        table.row(vec![
            call.name.into(),
            ns(call.cost.min_ns).into(),
            Cell::new(ns(call.cost.median_ns), Tone::Strong),
            ns(call.cost.mean_ns).into(),
            ns(call.cost.max_ns).into(),
            Cell::new(call.what, Tone::Muted),
        ]);
    }
    session.end(one("syscall", to_value(&calls))?, &[table], Vec::new())
}
