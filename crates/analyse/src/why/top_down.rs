//! Sentences on what became of the pipeline's slots.

use model::{ProfiledSide, RunProfile, SlotCategory, TopDown, TopDownPass};

use super::percent;

/// On a process, the largest shares first.
pub(super) fn of_process(profile: &RunProfile, side: ProfiledSide, process: &str) -> Vec<String> {
    let is_it = |top_down: &&TopDown| (top_down.side, top_down.process.as_str()) == (side, process);
    let all = profile.top_down.iter().flat_map(|pass| &pass.processes);
    all.filter(is_it).flat_map(|top_down| [slots(top_down), stalls(top_down)]).flatten().collect()
}

/// What was not counted, and what the shares are of.
pub(super) fn reservations(profile: &RunProfile, measured_ops_s: f64) -> Vec<String> {
    let Some(pass) = &profile.top_down else { return Vec::new() };
    let mut words = Vec::new();
    if measured_ops_s > 0.0 && pass.seconds > 0.0 {
        let ratio = pass.operations as f64 / pass.seconds / measured_ops_s;
        words.push(format!(
            "Slots were counted in a further pass, {:.1} s long, without samples; it reached {} of \
             the measured throughput.",
            pass.seconds,
            percent(ratio)
        ));
    }
    if pass.processes.iter().any(|top_down| top_down.user_only) {
        words.push("Slots are those of user space alone.".to_owned());
    }
    words.extend(pass.processes.iter().filter_map(unavailable));
    words.extend(pass.missing.as_ref().map(|why| format!("No top-down analysis: {why}.")));
    words
}

/// The shares of a process that are unavailable, with the reason of the first.
fn unavailable(top_down: &TopDown) -> Option<String> {
    let mut names = Vec::new();
    let mut first = None;
    for share in &top_down.shares {
        if let Some(why) = share.share.why() {
            names.push(share.category.key().replace('_', " "));
            first.get_or_insert(why);
        }
    }
    let (first, process) = (first?, &top_down.process);
    Some(match names.len() == top_down.shares.len() {
        true => format!("Where the slots of {process} go is not known: {first}."),
        false => {
            format!("Of the slots of {process} it is not known: {} ({first}).", names.join(", "))
        }
    })
}

fn slots(top_down: &TopDown) -> Option<String> {
    let share = |category| top_down.share(category);
    let first = SlotCategory::FIRST_LEVEL.into_iter();
    let mut first: Vec<(SlotCategory, f64)> =
        first.filter_map(|category| Some((category, share(category)?))).collect();
    first.sort_by(|a, b| b.1.total_cmp(&a.1));
    // What retires comes first: it is what the others are compared with.
    first.sort_by_key(|(category, _)| *category != SlotCategory::Retiring);
    let words = first.iter().filter(|(_, share)| *share >= 0.005).map(|(category, share)| {
        let parts = parts(top_down, *category);
        format!("{} {}{parts}", percent(*share), verb(*category))
    });
    let words: Vec<String> = words.collect();
    let (last, others) = words.split_last()?;
    Some(match others.is_empty() {
        true => format!("Of its pipeline slots {last}."),
        false => format!("Of its pipeline slots {} and {last}.", others.join(", ")),
    })
}

/// ` (36 % for memory, 8.0 % for the core)`, the larger part first; empty where neither is known.
fn parts(top_down: &TopDown, above: SlotCategory) -> String {
    let all = SlotCategory::ALL.into_iter().filter(|category| category.part_of() == Some(above));
    let mut known: Vec<(SlotCategory, f64)> =
        all.filter_map(|category| Some((category, top_down.share(category)?))).collect();
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words = known.iter().filter(|(_, share)| *share >= 0.005);
    let words: Vec<String> =
        words.map(|(category, share)| format!("{} {}", percent(*share), verb(*category))).collect();
    match words.is_empty() {
        true => String::new(),
        false => format!(" ({})", words.join(", ")),
    }
}

fn verb(category: SlotCategory) -> &'static str {
    match category {
        SlotCategory::Retiring => "retire operations",
        SlotCategory::BadSpeculation => "are lost to bad speculation",
        SlotCategory::FrontendBound => "wait for the front end",
        SlotCategory::BackendBound => "wait for the back end",
        SlotCategory::SmtContention => "go to the other thread of the core",
        SlotCategory::LightOperations => "light ones",
        SlotCategory::HeavyOperations => "heavy ones",
        SlotCategory::BranchMispredicts => "mispredicted branches",
        SlotCategory::MachineClears => "other flushes of the pipeline",
        SlotCategory::FetchLatency => "latency of fetches",
        SlotCategory::FetchBandwidth => "bandwidth of fetches",
        SlotCategory::MemoryBound => "for memory",
        SlotCategory::CoreBound => "for the core",
        SlotCategory::FrontendStalls => "with a front end that stalls",
        SlotCategory::BackendStalls => "with a back end that stalls",
    }
}

/// Of cycles, where slots are not counted.
fn stalls(top_down: &TopDown) -> Option<String> {
    if SlotCategory::FIRST_LEVEL.into_iter().any(|category| top_down.share(category).is_some()) {
        return None;
    }
    let front = top_down.share(SlotCategory::FrontendStalls)?;
    let back = top_down.share(SlotCategory::BackendStalls)?;
    Some(format!(
        "In {} of its cycles the back end stalls, in {} the front end.",
        percent(back),
        percent(front)
    ))
}

/// The processes that a pass counted.
pub(super) fn processes(pass: &TopDownPass) -> impl Iterator<Item = (ProfiledSide, &str)> {
    pass.processes.iter().map(|top_down| (top_down.side, top_down.process.as_str()))
}

#[cfg(test)]
mod tests {
    use model::{ReadingValue, SampleClock, SlotShare};

    use super::*;

    fn profile(shares: &[(SlotCategory, f64)]) -> RunProfile {
        let share = |(category, share): &(SlotCategory, f64)| SlotShare {
            category: *category,
            share: match share.is_nan() {
                true => ReadingValue::Unavailable {
                    reason: "why".to_owned(),
                    remedy: Some("how".to_owned()),
                },
                false => ReadingValue::Value(*share),
            },
        };
        RunProfile {
            clock: SampleClock::Cycles,
            frequency: 99,
            kernel: true,
            seconds: 2.0,
            operations: 200,
            lost: 0,
            stacks: Vec::new(),
            counts: None,
            top_down: Some(TopDownPass {
                seconds: 2.0,
                operations: 190,
                processes: vec![TopDown {
                    side: ProfiledSide::Server,
                    process: "memcached".to_owned(),
                    cpu: "a core".to_owned(),
                    source: "a file".to_owned(),
                    user_only: true,
                    shares: shares.iter().map(share).collect(),
                    events: Vec::new(),
                }],
                missing: Some("kvmeter: why; how".to_owned()),
            }),
        }
    }

    #[test]
    fn the_sentence_has_both_levels() {
        let all = [
            (SlotCategory::Retiring, 0.31),
            (SlotCategory::BadSpeculation, 0.08),
            (SlotCategory::FrontendBound, 0.17),
            (SlotCategory::BackendBound, 0.44),
            (SlotCategory::SmtContention, 0.004),
            (SlotCategory::LightOperations, 0.29),
            (SlotCategory::HeavyOperations, 0.02),
            (SlotCategory::BranchMispredicts, 0.08),
            (SlotCategory::MachineClears, 0.0),
            (SlotCategory::FetchLatency, 0.05),
            (SlotCategory::FetchBandwidth, 0.12),
            (SlotCategory::MemoryBound, 0.36),
            (SlotCategory::CoreBound, 0.08),
        ];
        let profile = profile(&all);
        assert_eq!(
            of_process(&profile, ProfiledSide::Server, "memcached"),
            [
                "Of its pipeline slots 31 % retire operations (29 % light ones, 2.0 % heavy ones), 44 % \
                 wait for the back end (36 % for memory, 8.0 % for the core), 17 % wait for the front \
                 end (12 % bandwidth of fetches, 5.0 % latency of fetches) and 8.0 % are lost to bad \
                 speculation (8.0 % mispredicted branches)."
            ]
        );
        assert!(of_process(&profile, ProfiledSide::Client, "memcached").is_empty());
        assert_eq!(
            reservations(&profile, 100.0),
            [
                "Slots were counted in a further pass, 2.0 s long, without samples; it reached 95 % of \
                 the measured throughput.",
                "Slots are those of user space alone.",
                "No top-down analysis: kvmeter: why; how."
            ]
        );
    }

    #[test]
    fn what_is_not_known_is_named() {
        let some = profile(&[
            (SlotCategory::Retiring, 0.5),
            (SlotCategory::BackendBound, f64::NAN),
            (SlotCategory::MemoryBound, f64::NAN),
        ]);
        let sentences = of_process(&some, ProfiledSide::Server, "memcached");
        assert_eq!(sentences, ["Of its pipeline slots 50 % retire operations."]);
        let words = reservations(&some, 0.0);
        let expected =
            "Of the slots of memcached it is not known: backend bound, memory bound (why; how).";
        assert_eq!(words[1], expected);
        let cycles =
            profile(&[(SlotCategory::FrontendStalls, 0.1), (SlotCategory::BackendStalls, 0.55)]);
        assert_eq!(
            of_process(&cycles, ProfiledSide::Server, "memcached"),
            ["In 55 % of its cycles the back end stalls, in 10 % the front end."]
        );
        let all =
            profile(&[(SlotCategory::Retiring, f64::NAN), (SlotCategory::CoreBound, f64::NAN)]);
        let words = reservations(&all, 0.0);
        assert_eq!(words[1], "Where the slots of memcached go is not known: why; how.");
        let none = RunProfile { top_down: None, ..some };
        assert!(reservations(&none, 100.0).is_empty());
    }
}
