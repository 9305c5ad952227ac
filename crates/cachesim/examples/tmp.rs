use cachesim::*;
use model::{Bytes,Count};
use toml::Spanned;
fn main(){
  let machine = Machine::open("xeon-gold-6140").unwrap();
  let first=std::env::args().nth(1).unwrap_or_default();
  if first=="validate" { let v=validate::validate().unwrap(); for p in &v.points { println!("{} {} {} pub {:.2} sim {:.2} err {:.2}",p.packet_bytes,p.receive_descriptors,p.ways,p.published_percent,p.simulated_percent,p.error_points);} println!("mean {:.2} max {:.2}",v.mean_error_points,v.max_error_points); return; }
  if first=="corun" { corun(); return; }
  let mut t = Traffic::open("forward",&machine).unwrap();
  let mut ways=2;
  for a in std::env::args().skip(1) { let (k,v)=a.split_once('=').unwrap(); let n:u64=v.parse().unwrap();
    match k { "d"=>t.queues.receive=Spanned::new(0..0,Count(n)), "p"=>t.port.packet=Spanned::new(0..0,Bytes(n)),"c"=>t.workers.cores=Spanned::new(0..0,n as u32),"w"=>ways=n as u32,"cy"=>t.workers.cycles.0=n as f64,
     "r"=>t.port.rate=Some(Spanned::new(0..0,model::Rate(n as f64))), "s"=>t.seed=n, "mc"=>t.pool.cache=Count(n), _=>panic!()}}
  let y=simulate(&machine,&t,Policy::Ways(ways)).unwrap();
  let l=y.latency_us.unwrap();
  println!("{:?} w {:.2} r {:.2} gbps {:.1} off {:.2}M fin {:.2}M drop {:.3} lat {:.1} {:.1} dram GB/s {:.2} busy {:.2} miss {:.3} lost {} foot {}",
   std::env::args().skip(1).collect::<Vec<_>>().join(" "), y.pcie_write_hit_percent.unwrap(), y.pcie_read_hit_percent.unwrap_or(0.), y.sent_bits_s/1e9, y.offered_packets_s/1e6,y.throughput_packets_s/1e6,y.drops.share,l.p50,l.p99,(y.memory.read_bytes_s+y.memory.write_bytes_s)/1e9, y.worker_busy, y.worker.llc_miss_percent.unwrap_or(0.), y.lost_buffers, y.footprint_bytes);
}
fn corun(){
  let machine = Machine::open("xeon-gold-6140").unwrap();
  let seeds: Vec<u64> = std::env::args().skip(2).map(|x|x.parse().unwrap()).collect();
  for seed in seeds {
  let mut base = Traffic::open("co-run",&machine).unwrap(); base.seed=seed;
  let mut alone=base.clone(); alone.neighbours.clear();
  let mut quiet=base.clone(); quiet.port.rate=Some(Spanned::new(0..0,model::Rate(1000.)));
  let mut jobs=vec![sweep::Job{machine:machine.clone(),traffic:alone,policy:Policy::On},sweep::Job{machine:machine.clone(),traffic:quiet,policy:Policy::On}];
  let ps=["on","off","ways:1","ways:4","phase-and-rate","iat","yield-search"];
  for p in ps { jobs.push(sweep::Job{machine:machine.clone(),traffic:base.clone(),policy:Policy::parse(p).unwrap()}); }
  let s=std::time::Instant::now();
  let o=sweep::run_all(&jobs).unwrap();
  let a=o[0].service_us.unwrap(); let n=o[1].neighbours[0].group.accesses_s;
  println!("seed {seed} alone service {a:.3} p99 {:.1} neighbour {:.1}M wall {:.1}",o[0].latency_us.as_ref().unwrap().p99,n/1e6,s.elapsed().as_secs_f64());
  for (p,y) in ps.iter().zip(&o[2..]) { let sv=a/y.service_us.unwrap(); let nv=y.neighbours[0].group.accesses_s/n;
    let f=y.settings.last().unwrap();
    println!("  {p:16} store {sv:.3} nb {nv:.3} score {:.4} p99 {:.1} drop {:.4} wr {:.1} nbmiss {:.1} changes {} last {} {} {}",(sv*nv).sqrt(),y.latency_us.as_ref().unwrap().p99,y.drops.share,y.pcie_write_hit_percent.unwrap(),y.neighbours[0].group.llc_miss_percent.unwrap_or(0.),y.settings.len(),f.card_ways,f.worker_ways,f.neighbour_ways);}
  }
}
