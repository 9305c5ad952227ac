//! A run as one JSON object, units in its keys: what `bench --json` prints and `export` writes.

use model::figures::{FIGURES, figures_us};
use model::{
    Distribution, Execution, KernelCounts, KernelHistogram, LatencyClock, LatencyScope, LoopKind,
    Phase, Reading, Run, RunProfile, SlotEvent, SlotShare, StackSet, TcpFigures, TopDown,
    TopDownPass,
};
use serde_json::{Map, Value, json};

use crate::write::finite_or_unavailable;

/// One object. `latency_us` has, for each operation, the figures of the run's own clock in
/// microseconds; where the loop is open, `service_us` has those of the service time.
/// `arrival_latency_us` is there where the kernel stamped the answers, and `server_latency_us`,
/// of all operations together, where the server was watched. Values that are unknown or not a
/// number are null.
pub fn summary(run: &Run, execution: &Execution) -> Value {
    let (kind, target, arrivals, think) = match &run.pacing {
        LoopKind::Closed { think_s } => ("closed", None, None, Some(*think_s)),
        LoopKind::Open { rate_ops_s, arrivals } => {
            ("open", Some(*rate_ops_s), Some(arrivals.as_str()), None)
        }
    };
    let readings: Vec<Reading> = run.readings.iter().map(finite_or_unavailable).collect();
    let mut object = json!({
        "run": run.id,
        "execution": execution.id,
        "study": execution.study,
        "label": run.label,
        "phase": run.phase,
        "machine": execution.machine.id,
        "store": run.settings.get("store"),
        "store_version": run.store_version,
        "workload": run.settings.get("workload"),
        "settings": run.settings,
        "threads": run.threads,
        "loop": kind,
        "target_rate_ops_s": target,
        "arrivals": arrivals,
        "think_s": think,
        "started_at": run.started_at,
        "seconds": run.seconds,
        "operations": run.operations,
        "throughput_ops_s": run.throughput(),
        "achieved_rate_ops_s": run.achieved_rate(),
        "hit_ratio": run.hit_ratio(),
        "latency_us": percentiles(run, run.clock()),
        "cpu_s_per_mop": run.value("cpu_s_per_mop"),
        "ops_per_joule": run.value("ops_per_joule"),
        "joules_per_op": run.value("joules_per_op"),
        "joules_per_op_net": run.value("joules_per_op_net"),
        "energy_boundary": run.joules_per_op().map(|energy| energy.scope),
        "energy_origin": run.joules_per_op().map(|energy| energy.origin),
        "ipc": run.value("ipc"),
        "verified": run.verified,
        "misses": run.misses,
        "errors": run.errors(),
        "failures": run.failures,
        "valid": run.valid(),
        "invalid_because": run.invalid_because,
        "warnings": run.warnings,
        "harness": run.tax,
        "stream": stream_facts(run),
        "readings": readings,
        "samples": run.samples,
        "profile": run.profile.as_deref().map(profile),
    });
    if run.phase == Phase::Simulate {
        // A simulation has no loop and no counts, not even 0.
        let load = ["threads", "loop", "think_s"];
        let counted = ["seconds", "operations", "throughput_ops_s", "verified", "misses"];
        for key in load.into_iter().chain(counted) {
            object[key] = Value::Null;
        }
    }
    // In a closed loop `latency_us` is the service time.
    if run.clock() == LatencyClock::Response {
        object["service_us"] = percentiles(run, LatencyClock::Service);
    }
    if run.latencies.iter().any(|latency| latency.clock == LatencyClock::Arrival) {
        object["arrival_latency_us"] = percentiles(run, LatencyClock::Arrival);
    }
    if let Some(histogram) = run.latency(LatencyScope::Any, LatencyClock::Server) {
        object["server_latency_us"] = figures(histogram);
    }
    object
}

/// The facts of the stream, nested by the dots in their names; numbers as numbers.
fn stream_facts(run: &Run) -> Value {
    let mut facts = Map::new();
    for (name, text) in &run.stream {
        // A fingerprint is text even if its hexadecimal digits are all decimal.
        let number = if name == "fingerprint" { None } else { number(text) };
        let value = number.unwrap_or_else(|| text.as_str().into());
        match name.split_once('.') {
            Some((group, name)) => {
                let group = facts.entry(group).or_insert_with(|| Value::Object(Map::new()));
                group[name] = value;
            }
            None => {
                facts.insert(name.clone(), value);
            }
        }
    }
    Value::Object(facts)
}

fn percentiles(run: &Run, clock: LatencyClock) -> Value {
    let mut per_op = Map::new();
    for latency in run.latencies.iter().filter(|latency| latency.clock == clock) {
        per_op.insert(latency.op.name().to_owned(), figures(&latency.histogram));
    }
    Value::Object(per_op)
}

/// Where the time went, without the stacks, which `--format folded` has.
fn profile(profile: &RunProfile) -> Value {
    let set = |set: &StackSet<'_>| {
        json!({
            "side": set.side,
            "process": set.process,
            "state": set.state,
            "samples": set.samples(),
            "seconds": set.seconds(),
        })
    };
    json!({
        "clock": profile.clock,
        "frequency_hz": profile.frequency,
        "kernel": profile.kernel,
        "seconds": profile.seconds,
        "operations": profile.operations,
        "lost": profile.lost,
        "processes": profile.sets().iter().map(set).collect::<Vec<_>>(),
        "kernel_counts": profile.counts.as_ref().map(kernel_counts),
        "top_down": profile.top_down.as_ref().map(top_down),
    })
}

/// What became of the pipeline's slots: shares by category, null where there is none, and counts.
fn top_down(pass: &TopDownPass) -> Value {
    let event = |event: &SlotEvent| {
        json!({
            "event": event.event,
            "count": event.count.number(),
            "unavailable": event.count.why(),
            "running_ratio": event.running,
        })
    };
    let process = |process: &TopDown| {
        let key = |share: &SlotShare| share.category.key().to_owned();
        let shares: Map<String, Value> =
            process.shares.iter().map(|share| (key(share), share.share.number().into())).collect();
        let unavailable: Map<String, Value> = process
            .shares
            .iter()
            .filter_map(|share| Some((key(share), share.share.why()?.into())))
            .collect();
        json!({
            "side": process.side,
            "process": process.process,
            "cpu": process.cpu,
            "source": process.source,
            "user_only": process.user_only,
            "shares": shares,
            "unavailable": unavailable,
            "events": process.events.iter().map(event).collect::<Vec<_>>(),
        })
    };
    json!({
        "seconds": pass.seconds,
        "operations": pass.operations,
        "processes": pass.processes.iter().map(process).collect::<Vec<_>>(),
        "unavailable": pass.missing,
    })
}

/// What was counted inside the kernel, with the buckets that are not empty.
fn kernel_counts(counts: &KernelCounts) -> Value {
    let histogram = |histogram: &KernelHistogram| {
        json!({
            "quantity": histogram.quantity,
            "unit": histogram.quantity.unit(),
            "subject": histogram.subject,
            "side": histogram.side,
            "operation": histogram.operation,
            "count": histogram.count(),
            "sum": histogram.sum(),
            "p50": histogram.quantile(0.5),
            "p99": histogram.quantile(0.99),
            "buckets": histogram.buckets,
        })
    };
    let tcp = |figures: &TcpFigures| {
        json!({
            "side": figures.side,
            "process": figures.process,
            "connections": figures.connections,
            "retransmitted_segments": figures.retransmitted,
            "median_rtt_us": figures.median_rtt_us,
            "max_rtt_us": figures.max_rtt_us,
            "mean_send_queue_bytes": figures.mean_send_queue,
            "max_send_queue_bytes": figures.max_send_queue,
            "mean_receive_queue_bytes": figures.mean_receive_queue,
            "max_receive_queue_bytes": figures.max_receive_queue,
        })
    };
    json!({
        "histograms": counts.histograms.iter().map(histogram).collect::<Vec<_>>(),
        "tcp": counts.connections.iter().map(tcp).collect::<Vec<_>>(),
        "unavailable": counts.missing,
        "lost": counts.lost,
    })
}

/// The figures of one distribution in microseconds, and how many samples it has.
fn figures(histogram: &Distribution) -> Value {
    let figures = FIGURES.into_iter().zip(figures_us(histogram));
    let mut object: Map<String, Value> =
        figures.map(|(name, us)| (name.to_owned(), us.into())).collect();
    object.insert("count".to_owned(), histogram.len().into());
    object.into()
}

fn number(text: &str) -> Option<Value> {
    let whole = text.parse::<u64>().ok().map(Value::from);
    whole.or_else(|| text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::from))
}
