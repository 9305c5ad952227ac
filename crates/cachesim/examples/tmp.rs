use cachesim::cache::{Geometry, Replacement};
use cachesim::memory::{Caches, Consumed, Shape};
fn main(){
 let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
 let mut caches = Caches::new(Shape {
        shared: Geometry { slices: 18, sets: 2048, ways: 11 },
        shared_replacement: Replacement::Random,
        private: Geometry { slices: 1, sets: 1024, ways: 16 },
        private_replacement: Replacement::Lru,
        directory_ways: 12, cores: 1, inclusive: false, consumed: Consumed::Migrate { ways: 3 },
    }, 1);
 let mut h=0; let mut t=0;
 for p in 0..2_000_000u32 { let first = p % n * 37;
   let x=caches.device_write(first,24,true,Some(0x600)); if p>200000 {h+=x.hits; t+=x.total();}
   caches.core_access(0, first, true, 0x7ff);
   caches.device_read(first,24); }
 println!("{n} {:.4}", h as f64/t as f64);
}
