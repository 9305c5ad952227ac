//! Throttling by CPU quotas of this process and of the servers on this machine. It delays
//! everything that a process does, without any other load.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal};
use crate::facts::cgroup::{self, Throttling};
use crate::format;
use crate::root::Root;

pub(super) const SPEC: ProbeSpec = ProbeSpec::new(
    "quota",
    SIGNALS,
    "/proc/*/cgroup, cpu.stat and the quota of each control group up to the top",
    init,
)
.with_parts(&[SERVER]);

const SIGNALS: &[Signal] = &[THROTTLED, THROTTLED_TIME];
pub(crate) const THROTTLED: Signal = Signal::new(
    "quota.throttled",
    Unit::Ratio,
    Scope::Process,
    "cpu.stat of the control groups: nr_throttled / nr_periods of the most throttled one",
);
const THROTTLED_TIME: Signal = Signal::new(
    "quota.throttled_time",
    Unit::Seconds,
    Scope::Process,
    "cpu.stat of that group: throttled_usec or throttled_time, the sum over the CPUs",
);
/// Of the servers on this machine.
pub(crate) const SERVER: Signal = Signal::new(
    "quota.server.throttled",
    Unit::Ratio,
    Scope::Server,
    "cpu.stat of the servers' control groups: nr_throttled / nr_periods of the most throttled one",
);

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    cgroup::cpu_throttling(root, None).map_err(unseen)?;
    let servers =
        context.server_pids.iter().map(|pid| WatchedCgroups::of(root, Some(*pid))).collect();
    Ok(Box::new(Quota { own: WatchedCgroups::of(root, None), servers }))
}

fn unseen(why: String) -> Unavailable {
    Unavailable::new(why, "mount the cgroup file systems, or look at the container from outside")
}

struct Quota {
    own: WatchedCgroups,
    servers: Vec<WatchedCgroups>,
}

/// The control groups of one process.
struct WatchedCgroups {
    root: Root,
    process: Option<u32>,
    before: Result<BTreeMap<String, Throttling>, Unavailable>,
}

/// Throttling of one group in a window.
struct QuotaUse {
    share: f64,
    time_s: f64,
    words: String,
}

impl WatchedCgroups {
    fn of(root: &Root, process: Option<u32>) -> WatchedCgroups {
        let not_started = Unavailable::new("the probe was not started", "start it first");
        WatchedCgroups { root: root.clone(), process, before: Err(not_started) }
    }

    fn look(&self) -> Result<BTreeMap<String, Throttling>, Unavailable> {
        let all = cgroup::cpu_throttling(&self.root, self.process).map_err(unseen)?;
        Ok(all.into_iter().map(|group| (group.file.clone(), group)).collect())
    }

    fn start(&mut self) {
        self.before = self.look();
    }

    /// The group with the largest share of throttled periods.
    fn most_throttled(&self) -> Result<QuotaUse, Unavailable> {
        let (before, after) = (self.before.as_ref().map_err(Clone::clone)?, self.look()?);
        let mut most = QuotaUse { share: 0.0, time_s: 0.0, words: "no quota ran out".to_owned() };
        for (file, now) in &after {
            let Some(then) = before.get(file) else { continue };
            let periods = now.periods.saturating_sub(then.periods);
            let throttled = now.throttled.saturating_sub(then.throttled);
            if throttled == 0 {
                continue;
            }
            // A period that began before the window may end in it and count, too.
            let share = throttled as f64 / periods.max(throttled) as f64;
            if share > most.share {
                let quota = match &now.quota {
                    Some((cpus, file)) => format!("{} CPUs by {file}", format::short(*cpus)),
                    None => "a quota that is gone now".to_owned(),
                };
                let words = format!("{quota}, used up in {throttled} of {periods} periods");
                most = QuotaUse { share, time_s: (now.time_s - then.time_s).max(0.0), words };
            }
        }
        Ok(most)
    }
}

impl Probe for Quota {
    fn start(&mut self) {
        self.servers.iter_mut().for_each(WatchedCgroups::start);
        self.own.start();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let own = self.own.most_throttled();
        let quota_reading =
            |signal: Signal, usage: &Result<QuotaUse, Unavailable>, of: fn(&QuotaUse) -> f64| {
                let answer = usage.as_ref().map(of).map_err(Clone::clone);
                let mut reading = signal.reading(answer, window);
                if let Ok(usage) = usage {
                    reading.source.push_str(&format!(": {}", usage.words));
                }
                reading
            };
        let mut readings = vec![
            quota_reading(THROTTLED, &own, |usage| usage.share),
            quota_reading(THROTTLED_TIME, &own, |usage| usage.time_s),
        ];
        let servers = self.servers.iter().map(WatchedCgroups::most_throttled);
        let most = servers.reduce(|one, other| match (one, other) {
            (Ok(one), Ok(other)) => Ok(if other.share > one.share { other } else { one }),
            (Err(why), _) | (_, Err(why)) => Err(why),
        });
        readings.extend(most.map(|usage| quota_reading(SERVER, &usage, |usage| usage.share)));
        readings
    }
}
