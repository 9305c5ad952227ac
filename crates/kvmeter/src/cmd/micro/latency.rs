use micro::job::{LatencyArgs, MicroResults};
use micro::latency::levels::{MemoryLevel, StatedCache, find, match_caches};
use micro::latency::{LatencyCurve, LatencySpec, sizes};
use micro::window::WindowEdge;
use report::format::significant;
use report::micro::size;
use report::table::Table;
use serde_json::{json, to_value};

use super::session::{MicroRun, name_flag, one, spread};
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

/// The smallest ring: less than any first-level cache.
const LEAST: u64 = 4 << 10;
/// The largest ring is so many times the last-level cache: an eighth of it is still in there.
const BEYOND_CACHES: u64 = 8;

pub fn run(args: &LatencyArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let session = MicroRun::begin("latency", &args.at, show)?;
    let cpu = session.first_cpu();
    let stated = stated(&session, cpu);
    let last = stated.iter().map(|cache| cache.bytes).max().unwrap_or(32 << 20);
    let usual = || sizes(LEAST, last * BEYOND_CACHES);
    let requested = args.size.as_ref().map_or_else(usual, |requested| requested.all(sizes));
    let Some(most) = requested.last().copied() else {
        return Err(request("--size: none of the four sizes per octave lies in that range"));
    };
    session.check_memory(most)?;
    let bar = show.parts(requested.len() as u64);
    bar.set_prefix("latency");
    let spec = LatencySpec {
        cpu,
        sizes: requested,
        stride: usize::try_from(args.stride.0).unwrap_or(usize::MAX),
        time: args.time.0,
        pages: args.memory.pages,
        placement: args.memory.place,
        seed: args.seed,
    };
    let mut on_point = |point: &micro::latency::CurvePoint| {
        bar.inc(1);
        bar.set_message(format!("{}  {} ns", size(point.bytes), significant(point.load.min_ns, 3)));
    };
    session.report_edge(WindowEdge::Opens);
    let curve = micro::latency::run(&spec, &session.stop(), &mut on_point).map_err(name_flag)?;
    session.report_edge(WindowEdge::Closes);
    bar.finish_and_clear();
    if session.answers() {
        return session.answer(MicroResults::Latency(curve), Vec::new());
    }
    let levels = find(&curve.points);
    let caches = match_caches(&levels, &stated);
    let object = |(level, cache): (&MemoryLevel, &Option<&StatedCache>)| {
        json!({
            "load_ns": level.ns,
            "bytes": level.bytes,
            "stated": cache.map(|cache| json!({ "name": cache.name, "bytes": cache.bytes })),
        })
    };
    let mut results = one("latency", to_value(&curve))?;
    let found_levels: Vec<_> = levels.iter().zip(&caches).map(object).collect();
    results.insert("levels".to_owned(), found_levels.into());
    let tables = [curve_table(&curve), levels_table(&levels, &caches)];
    session.end(results, &tables, Vec::new())
}

/// The data caches of a CPU as the kernel or the hypervisor states them, the smallest first.
fn stated(session: &MicroRun<'_>, cpu: u32) -> Vec<StatedCache> {
    let caches = host::caches(&session.root).unwrap_or_default();
    let mut stated: Vec<StatedCache> = caches
        .into_iter()
        .filter(|(name, _)| !name.ends_with('i'))
        .filter_map(|(name, caches)| {
            let cache = caches.into_iter().find(|cache| cache.shared.contains(&cpu))?;
            Some(StatedCache { name, bytes: cache.size? })
        })
        .collect();
    stated.sort_by_key(|cache| cache.bytes);
    stated
}

fn curve_table(curve: &LatencyCurve) -> Table {
    report::micro::latency(&report::micro::LatencyCurve {
        cpu: curve.cpu,
        stride_bytes: curve.stride_bytes,
        pages: curve.pages.to_string(),
        huge_bytes: &curve.huge_bytes,
        points: curve.points.iter().map(|point| (point.bytes, spread(&point.load))).collect(),
    })
}

fn levels_table(levels: &[MemoryLevel], caches: &[Option<&StatedCache>]) -> Table {
    let rows = levels.iter().zip(caches).map(|(level, cache)| report::micro::MemoryLevel {
        load_ns: level.ns,
        bytes: level.bytes,
        stated: cache.map(|cache| (cache.name.as_str(), cache.bytes)),
    });
    report::micro::levels(&rows.collect::<Vec<_>>())
}
