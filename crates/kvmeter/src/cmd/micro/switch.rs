use report::format::significant;
use report::table::{ALWAYS, Align, Cell, Table, Tone};
use serde_json::to_value;

use super::flags::TimedArgs;
use super::session::{MicroRun, name_flag, one};
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
    let mut table = Table::new("Handing over to another thread, ns")
        .column("over", Align::Left, ALWAYS)
        .column("CPUs", Align::Left, ALWAYS)
        .column("hand-over", Align::Decimal, ALWAYS)
        .column("min", Align::Decimal, 20)
        .column("max", Align::Decimal, 19)
        .column("its calls", Align::Decimal, 25)
        .column("without them", Align::Decimal, ALWAYS)
        .column("switches", Align::Decimal, 24);
    let ns = |ns: f64| significant(ns, 3);
    for switch in &results {
        let [a, b] = switch.cpus;
        table.row(vec![
            switch.means.to_string().into(),
            if a == b { a.to_string() } else { format!("{a} to {b}") }.into(),
            ns(switch.hand_over.median_ns).into(),
            ns(switch.hand_over.min_ns).into(),
            ns(switch.hand_over.max_ns).into(),
            ns(switch.calls.median_ns).into(),
            Cell::new(ns(switch.switch.median_ns), Tone::Strong),
            significant(switch.switches, 2).into(),
        ]);
    }
    table.note(
        "A hand-over is half of there and back: one context switch on one CPU, one wake-up of the \
         other between two. Switches are the first thread's for each turn there and back.",
    );
    session.end(one("switch", to_value(&results))?, &[table], Vec::new())
}
