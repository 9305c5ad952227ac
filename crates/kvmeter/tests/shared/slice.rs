//! Tests that are exhaustive take minutes: a run of the gate takes a slice of each, another one each
//! time. `KVMETER_TEST_SEED` says which slice, `KVMETER_TEST_ALL=1` takes everything.

pub fn is_whole() -> bool {
    std::env::var_os("KVMETER_TEST_ALL").is_some_and(|value| value != "0")
}

/// One of so many parts of these; all of them where everything is tried.
pub fn slice<T>(of: impl IntoIterator<Item = T>, parts: usize) -> Vec<T> {
    if is_whole() {
        return of.into_iter().collect();
    }
    let seed = std::env::var("KVMETER_TEST_SEED").map_or_else(
        |_| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as usize % parts,
        |text| text.parse().expect("KVMETER_TEST_SEED is a number"),
    );
    println!("KVMETER_TEST_SEED={seed}");
    of.into_iter().skip(seed % parts).step_by(parts).collect()
}
