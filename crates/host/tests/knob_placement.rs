//! Placement of this process on this machine: really turned, seen, and put back.
//!
//! A file of its own: after a CPU was away the kernel gives it back to every thread by deferred
//! work, which undoes whatever affinity a thread has asked for meanwhile.

use host::Root;
use host::knob::{Journal, Knobs, ProofOutcome, RestoreOutcome};

#[test]
fn this_process_runs_on_the_cpus_and_the_memory_it_is_given() {
    let live = Root::live();
    let state = tempfile::tempdir().unwrap();
    for (knob, level) in [("cpus", "0"), ("memory", "node0")] {
        let knob_here = Knobs::find(knob).unwrap();
        let (Ok(before), Ok(plan)) = (knob_here.read(&live), Knobs::plan(&live, &[(knob, level)]))
        else {
            continue;
        };
        assert!(plan.check_keepable().is_err() || plan.writes().count() == 0);
        let mut turned = plan.apply(Journal::open(&live, state.path()).unwrap()).unwrap();
        assert!(
            matches!(turned.proofs()[0].outcome, ProofOutcome::Proven(_)),
            "{:?}",
            turned.proofs()
        );
        assert!(matches!(turned.restore(), Ok(RestoreOutcome::Done { .. })));
        assert_eq!(knob_here.read(&live).unwrap(), before);
    }
}
