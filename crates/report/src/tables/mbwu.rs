//! Work units: every round with its bottleneck, and the growth with devices.

use analyse::mbwu::{
    Bottleneck, EvaluationRound, GrowthStep, Resource, ResourceUse, UnitEvaluation, keys,
};
use model::{Execution, Run};

use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// The tables of each execution that has rounds.
pub fn mbwu(runs: &[(&Execution, &Run)]) -> Vec<Table> {
    let mut executions: Vec<&str> = Vec::new();
    for (_, run) in runs.iter().filter(|(_, run)| EvaluationRound::of(run).is_some()) {
        if !executions.contains(&run.execution.as_str()) {
            executions.push(&run.execution);
        }
    }
    let of = |id: &str| -> Option<Vec<Table>> {
        let own: Vec<&Run> =
            runs.iter().map(|(_, run)| *run).filter(|run| run.execution == id).collect();
        let evaluation = UnitEvaluation::of_runs(&own).ok()?;
        let (execution, _) = runs.iter().find(|(execution, _)| execution.id == id)?;
        let mut tables = vec![rounds(&evaluation), growth(&evaluation)];
        tables.extend(published(&evaluation, execution));
        Some(tables)
    };
    executions.into_iter().filter_map(of).flatten().collect()
}

/// One row a round.
pub fn rounds(evaluation: &UnitEvaluation) -> Table {
    let mut table = Table::new("Rounds")
        .column("stage", Align::Left, ALWAYS)
        .column("devices", Align::Right, ALWAYS)
        .column("load", Align::Right, ALWAYS)
        .column("round", Align::Right, 60)
        .column("kops/s", Align::Decimal, ALWAYS)
        .column("device", Align::Right, ALWAYS)
        .column("queue", Align::Decimal, 90)
        .column("CPU", Align::Right, ALWAYS)
        .column("memory", Align::Right, 70)
        .column("bandwidth", Align::Right, 50)
        .column("network", Align::Right, 50)
        .column("bottleneck", Align::Left, ALWAYS);
    for round in &evaluation.rounds {
        let used = |resource| share(round.uses.iter().find(|one| one.resource == resource));
        let queue = round.queue.as_ref().ok().map(|all| all.iter().sum::<f64>() / all.len() as f64);
        let valid = round.invalid_reason().is_none();
        table.row_of(
            vec![
                round.stage.name().into(),
                round.devices.to_string().into(),
                round.load.to_string().into(),
                round.number.to_string().into(),
                Cell::new(format::kops(round.throughput_ops_s), Tone::Strong),
                used(Resource::Device),
                queue.map_or_else(unknown, |queue| format::readable(queue, 3).into()),
                used(Resource::Cpu),
                used(Resource::Memory),
                used(Resource::MemoryBandwidth),
                used(Resource::Network),
                bottleneck(round.bottleneck()),
            ],
            valid,
        );
    }
    table.note(
        "load: threads for each device, x databases on it, @ operations per second; device: share of the time in which it had requests under way (of \
         several the least busy one), queue: how many on average; a resource is at its limit from \
         90 % on (memory 95 %, its bandwidth 80 %); ?: not known, see the notes",
    );
    table
}

/// One row for each number of devices, and the conclusion.
pub fn growth(evaluation: &UnitEvaluation) -> Table {
    let mut table = Table::new("Work units (MBWU)")
        .column("devices", Align::Right, ALWAYS)
        .column("rounds", Align::Right, 60)
        .column("kops/s", Align::Decimal, ALWAYS)
        .column("MBWU", Align::Decimal, ALWAYS)
        .column("95 %", Align::Left, 80)
        .column("steady", Align::Left, 70)
        .column("bottleneck", Align::Left, ALWAYS);
    for step in &evaluation.growth {
        let GrowthStep { devices, units, units_interval, rounds, steady, .. } = step;
        table.row(vec![
            devices.to_string().into(),
            rounds.to_string().into(),
            format::kops(step.throughput_ops_s).into(),
            match units.is_finite() {
                true => Cell::new(format!("{units:.2}"), Tone::Strong),
                false => unknown(),
            },
            units_interval
                .map_or_else(String::new, |interval| {
                    format!("{:.2} to {:.2}", interval.low, interval.high)
                })
                .into(),
            match steady {
                true => "yes".into(),
                false => Cell::new("not steady", Tone::Warning),
            },
            bottleneck(step.bottleneck),
        ]);
    }
    table.note(evaluation.conclusion.clone());
    for note in &evaluation.notes {
        table.note(note.clone());
    }
    table
}

/// The measured units compared with published ones; None without published units.
pub fn published(evaluation: &UnitEvaluation, execution: &Execution) -> Option<Table> {
    let published = execution.design.published.as_ref()?;
    let mut table = Table::new("Work units and published ones")
        .column("platform", Align::Wrap, ALWAYS)
        .column("MBWU", Align::Decimal, ALWAYS)
        .column("95 %", Align::Left, 60)
        .column("", Align::Left, ALWAYS);
    let count = &evaluation.count;
    let devices = match count.devices {
        Some(1) => "this machine, 1 device".to_owned(),
        Some(many) => format!("this machine, {many} devices"),
        None => "this machine".to_owned(),
    };
    table.row(vec![
        devices.into(),
        count.units.map_or_else(unknown, |units| Cell::new(format!("{units:.2}"), Tone::Strong)),
        count
            .interval
            .map_or_else(String::new, |i| format!("{:.2} to {:.2}", i.low, i.high))
            .into(),
        "measured".into(),
    ]);
    let measured = table.rows.len();
    for series in published.series.iter().filter(|series| series.metric == keys::UNITS) {
        for point in &series.points {
            table.row(vec![
                point.x.0.clone().into(),
                Cell::new(format!("{:.2}", point.y), Tone::Warning),
                String::new().into(),
                Cell::new(format!("published, {}", series.read), Tone::Warning),
            ]);
        }
    }
    table.note(format!(
        "published, not measured here: {}. Its units are of another device: compare their number, \
         not their throughput. Their cost: kvmeter cost --published mbwu",
        published.source
    ));
    (table.rows.len() > measured).then_some(table)
}

/// One line as a round ends.
pub fn mbwu_line(round: &EvaluationRound) -> String {
    let share = |resource| match round.used(resource) {
        Some(share) => format::percent(share),
        None => "?".to_owned(),
    };
    let devices = if round.devices == 1 { "device" } else { "devices" };
    format!(
        "{:<6} {} {devices}, load {:>3} each, round {:>2}  {:>9}  device {}, CPU {}  {}",
        round.stage.name(),
        round.devices,
        round.load.to_string(),
        round.number,
        format::rate(round.throughput_ops_s),
        share(Resource::Device),
        share(Resource::Cpu),
        round.bottleneck(),
    )
}

fn share(one: Option<&ResourceUse>) -> Cell {
    match one {
        Some(one @ ResourceUse { share: Ok(share), .. }) => {
            let tone = if one.is_at_its_limit() { Tone::Warning } else { Tone::Plain };
            Cell::new(format::percent(*share), tone)
        }
        _ => unknown(),
    }
}

fn unknown() -> Cell {
    Cell::new("?", Tone::Muted)
}

fn bottleneck(limit: Bottleneck) -> Cell {
    let tone = match limit {
        Bottleneck::Device => Tone::Good,
        Bottleneck::Platform(_) => Tone::Warning,
        Bottleneck::Unknown => Tone::Muted,
    };
    Cell::new(limit.to_string(), tone)
}
