//! Compares the store with a `BTreeMap` per table, with all operations interleaved.
//! `PROPTEST_CASES=n` runs more cases.
#![allow(clippy::unwrap_used)]

mod case;
mod keys;
mod machine;

use std::cell::Cell;

use proptest::test_runner::{Config, TestError, TestRunner};

use machine::{Machine, RunStats};

const CASES: u32 = 400;

#[test]
fn store_behaves_like_a_map_of_ordered_maps() {
    let cases =
        if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { CASES };
    let config =
        Config { cases, failure_persistence: None, max_shrink_time: 20_000, ..Config::default() };
    let all = Cell::new(RunStats::default());
    let ran = TestRunner::new(config).run(&case::case(), |case| {
        let one = Machine::run(&case);
        let sum = all.get();
        all.set(RunStats {
            spills: sum.spills + one.spills,
            collected: sum.collected + one.collected,
            levels: sum.levels.max(one.levels),
            openings: sum.openings + one.openings,
            checkpoints: sum.checkpoints + one.checkpoints,
            drops: sum.drops + one.drops,
        });
        Ok(())
    });
    match ran {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nat least with {case:?}"),
        Err(other) => panic!("{other}"),
    }
    let all = all.get();
    println!("{all:?}");
    let per_case = u64::from(cases);
    assert!(all.spills > per_case * 3, "{all:?}");
    assert!(all.collected > per_case, "{all:?}");
    assert!(all.levels >= 3, "{all:?}");
    assert!(all.openings > per_case && all.checkpoints > 0 && all.drops > 0, "{all:?}");
}
