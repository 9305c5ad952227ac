//! A further pass after the one that samples: the same load again, while the pipeline's slots are
//! counted. It is a pass of its own because samples interrupt the threads whose slots are counted, and
//! take counters.

use drive::{Observer, PhaseProgress};
use host::Root;
use host::perf::{CountedProcess, TopDownPlan, TopDownSession};
use model::{TopDownPass, Unavailable};
use profile::Target;

use crate::co_runner::RunningHog;

/// What can be counted on this machine.
///
/// # Errors
/// Why nothing can, and what helps.
pub(crate) fn plan() -> Result<TopDownPlan, Unavailable> {
    TopDownPlan::here(&Root::live())
}

/// A pass that did not take place.
pub(crate) fn missing(why: impl Into<String>) -> TopDownPass {
    TopDownPass { missing: Some(why.into()), ..TopDownPass::default() }
}

/// Counts while the window is open.
pub(crate) struct CountingObserver {
    plan: TopDownPlan,
    targets: Vec<Target>,
    co_runner: Option<RunningHog>,
    session: Option<Result<TopDownSession, Unavailable>>,
    pub pass: TopDownPass,
}

impl CountingObserver {
    pub fn new(
        plan: TopDownPlan,
        targets: Vec<Target>,
        co_runner: Option<RunningHog>,
    ) -> CountingObserver {
        let pass = missing("its window did not open");
        CountingObserver { plan, targets, co_runner, session: None, pass }
    }
}

/// Programs of the same side and name are one.
fn processes(targets: &[Target]) -> Vec<CountedProcess> {
    let mut all: Vec<CountedProcess> = Vec::new();
    for target in targets {
        let same =
            |known: &&mut CountedProcess| (known.side, &known.name) == (target.side, &target.name);
        match all.iter_mut().find(same) {
            Some(known) => known.pids.push(target.pid),
            None => all.push(CountedProcess {
                side: target.side,
                name: target.name.clone(),
                pids: vec![target.pid],
            }),
        }
    }
    all
}

impl Observer for CountingObserver {
    fn window_opens(&mut self) {
        if let Some(co_runner) = &mut self.co_runner {
            co_runner.window_opens();
        }
        let mut session = self.plan.open(&Root::live(), processes(&self.targets));
        if let Ok(session) = &mut session {
            session.start();
        }
        self.session = Some(session);
    }

    fn window_closes(&mut self) {
        match self.session.take() {
            Some(Ok(session)) => {
                self.pass = TopDownPass::default();
                let mut reasons = Vec::new();
                for (process, found) in session.stop() {
                    match found {
                        Ok(top_down) => self.pass.processes.push(top_down),
                        Err(why) => reasons.push(format!("{process}: {why}")),
                    }
                }
                self.pass.missing = (!reasons.is_empty()).then(|| reasons.join("; "));
            }
            Some(Err(why)) => self.pass = missing(why.to_string()),
            None => {}
        }
        if let Some(co_runner) = &mut self.co_runner {
            co_runner.window_closes();
        }
    }

    fn progress(&mut self, _: &PhaseProgress) {}
}

#[cfg(test)]
mod tests {
    use model::ProfiledSide;

    use super::*;

    #[test]
    fn programs_of_one_name_are_counted_together() {
        let target = |pid, side, name: &str| Target { pid, side, name: name.to_owned() };
        let all = processes(&[
            target(1, ProfiledSide::Client, "kvmeter"),
            target(2, ProfiledSide::Server, "redis-server"),
            target(3, ProfiledSide::Server, "redis-server"),
        ]);
        let pids: Vec<_> = all.iter().map(|process| process.pids.as_slice()).collect();
        assert_eq!(pids, [&[1][..], &[2, 3]]);
    }

    /// Where this machine has counters, the slots of a busy process have shares or reasons; where it
    /// has none, the plan says why and what helps.
    #[test]
    fn a_busy_process_is_counted_or_it_is_known_why_not() {
        let plan = match plan() {
            Ok(plan) => plan,
            Err(why) => {
                eprintln!("SKIPPED: {why}");
                assert!(!why.reason.is_empty() && !why.remedy.is_empty());
                return;
            }
        };
        let pid = std::process::id();
        let target = Target { pid, side: ProfiledSide::Client, name: "tests".to_owned() };
        let mut observer = CountingObserver::new(plan, vec![target], None);
        observer.window_opens();
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_millis(50) {
            std::hint::black_box(0);
        }
        observer.window_closes();
        let pass = observer.pass;
        assert!(pass.missing.is_some() || !pass.processes[0].shares.is_empty(), "{pass:?}");
    }
}
