//! Simulated line accesses a second on one core.

use cachesim::cache::{Geometry, Replacement};
use cachesim::memory::{CacheShape, Caches, ConsumedPolicy};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

const PACKETS: u32 = 512;
const LINES: u32 = 24;

fn shape(replacement: Replacement) -> CacheShape {
    CacheShape {
        shared: Geometry { slices: 18, sets: 2048, ways: 11 },
        shared_replacement: replacement,
        private: Geometry { slices: 1, sets: 1024, ways: 16 },
        private_replacement: Replacement::Lru,
        directory_ways: 12,
        cores: 1,
        inclusive: false,
        consumed: ConsumedPolicy::Migrate { ways: 3 },
    }
}

/// Rings of buffers of 24 lines each: written by the card, first line changed by a core, sent by the
/// card. All of 1,024 buffers fit the two ways of the card; of 4,096 half do.
fn rings(c: &mut Criterion) {
    for buffers in [1024, 4096] {
        let mut group = c.benchmark_group(format!("line accesses, {buffers} buffers"));
        group.throughput(Throughput::Elements(u64::from(PACKETS * (2 * LINES + 1))));
        for replacement in
            [Replacement::Random, Replacement::Lru, Replacement::TreePlru, Replacement::Rrip]
        {
            let mut caches = Caches::new(shape(replacement), 1);
            let mut next = 0_u32;
            group.bench_function(format!("{replacement:?}"), |b| {
                b.iter(|| {
                    for _ in 0..PACKETS {
                        let first = next % buffers * 37;
                        next += 1;
                        black_box(caches.device_write(first, LINES, false, Some(0x600)));
                        black_box(caches.core_access(0, first, true, 0x7ff));
                        black_box(caches.device_read(first, LINES));
                    }
                });
            });
        }
    }
}

criterion_group!(benches, rings);
criterion_main!(benches);
