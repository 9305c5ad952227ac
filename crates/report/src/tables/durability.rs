//! Whether runs promise the same about the writes that they acknowledge.

use std::collections::{BTreeMap, BTreeSet};

use model::{Execution, Op, Run};

use crate::run_names;

/// A sentence where stores that were written to promise different durability.
pub(super) fn note(runs: &[(&Execution, &Run)]) -> Option<String> {
    let mut promises: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, run) in runs {
        let writes = run.latencies.iter().filter_map(|own| own.op.op()).any(Op::writes);
        if let Some(survives) = run.settings.get(Run::SURVIVES).filter(|_| writes) {
            promises.entry(survives).or_default().insert(run_names::store(run));
        }
    }
    let promise = |(survives, stores): (&&str, &BTreeSet<&str>)| {
        let stores = stores.iter().copied().collect::<Vec<_>>().join(" and ");
        let article = if *survives == "nothing" { "" } else { "a " };
        format!("{article}{survives} ({stores})")
    };
    (promises.len() > 1).then(|| {
        let all = promises.iter().map(promise).collect::<Vec<_>>().join(", ");
        format!(
            "acknowledged writes survive {all}: the stores promise different durability, and are \
             not comparable in that respect"
        )
    })
}
