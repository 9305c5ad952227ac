use cachesim::describe::{machine::Machine, traffic::Traffic};
use cachesim::engine::Simulation;
use cachesim::policy::Setting;
use model::{Bytes,Count};
use toml::Spanned;
fn main(){
  let machine = Machine::open("xeon-gold-6140").unwrap();
  let mut t = Traffic::open("forward",&machine).unwrap();
  let mut ways=2;
  for a in std::env::args().skip(1) { let (k,v)=a.split_once('=').unwrap(); let n:u64=v.parse().unwrap();
    match k { "d"=>t.queues.receive=Spanned::new(0..0,Count(n)), "p"=>t.port.packet=Spanned::new(0..0,Bytes(n)),"c"=>t.workers.cores=Spanned::new(0..0,n as u32),"w"=>ways=n as u32,"cy"=>t.workers.cycles.0=n as f64,
     "r"=>t.port.rate=Some(Spanned::new(0..0,model::Rate(n as f64))), "s"=>t.seed=n, "mc"=>t.pool.cache=Count(n), _=>panic!()}}
  let set=Setting{card:machine.highest_ways(ways),workers:0x7ff,neighbours:0x7ff};
  let s=std::time::Instant::now();
  let c=Simulation::new(&machine,&t,set).unwrap().run();
  let y=&c.tally; let us=|q| y.latency.value_at_quantile(q) as f64/1e3;
  println!("{:?} w {:.2} r {:.2} gbps {:.1} off {:.2}M fin {:.2}M nodesc {} full {} lat {:.1} {:.1} dram GB/s {:.2} busy {:.2} miss {:.3} lost {} wall {:.2}",
   std::env::args().skip(1).collect::<Vec<_>>().join(" "), 100.*y.write.rate().unwrap(), 100.*y.read.rate().unwrap_or(0.), y.sent_bytes as f64*8./c.window/1e9, y.offered as f64/c.window/1e6,y.finished as f64/c.window/1e6,y.no_descriptor,y.card_full,us(0.5),us(0.99),y.memory.bytes() as f64/c.window/1e9, y.busy as f64/1e12/c.window, y.workers.miss_rate().unwrap_or(0.), c.lost_buffers, s.elapsed().as_secs_f64());
}
