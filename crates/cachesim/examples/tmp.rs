use cachesim::*;
use model::{Bytes, Count};
use toml::Spanned;
fn main() {
    let machine = Machine::open("xeon-gold-6140").unwrap();
    let first = std::env::args().nth(1).unwrap_or_default();
    if first == "validate" {
        let v = validate::validate().unwrap();
        for p in &v.points {
            println!(
                "{} {} {} pub {:.2} sim {:.2} err {:.2}",
                p.packet_bytes,
                p.receive_descriptors,
                p.ways,
                p.published_percent,
                p.simulated_percent,
                p.error_points
            );
        }
        println!("mean {:.2} max {:.2}", v.mean_error_points, v.max_error_points);
        return;
    }
    if first == "corun" {
        corun();
        return;
    }
    if first == "holdout" {
        holdout();
        return;
    }
    if first == "land" {
        land();
        return;
    }
    let mut t = Traffic::open("forward", &machine).unwrap();
    let mut ways = 2;
    for a in std::env::args().skip(1) {
        let (k, v) = a.split_once('=').unwrap();
        let n: u64 = v.parse().unwrap();
        match k {
            "d" => t.queues.receive = Spanned::new(0..0, Count(n)),
            "p" => t.port.packet = Spanned::new(0..0, Bytes(n)),
            "c" => t.workers.cores = Spanned::new(0..0, n as u32),
            "w" => ways = n as u32,
            "cy" => t.workers.cycles.0 = n as f64,
            "r" => t.port.rate = Some(Spanned::new(0..0, model::Rate(n as f64))),
            "s" => t.seed = n,
            "mc" => t.pool.cache = Count(n),
            _ => panic!(),
        }
    }
    let y = simulate(&machine, &t, Policy::Ways(ways)).unwrap();
    let l = y.latency_us.unwrap();
    println!(
        "{:?} w {:.2} r {:.2} gbps {:.1} off {:.2}M fin {:.2}M drop {:.3} lat {:.1} {:.1} dram GB/s {:.2} busy {:.2} miss {:.3} lost {} foot {}",
        std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        y.pcie_write_hit_percent.unwrap(),
        y.pcie_read_hit_percent.unwrap_or(0.),
        y.sent_bits_s / 1e9,
        y.offered_packets_s / 1e6,
        y.throughput_packets_s / 1e6,
        y.drops.share,
        l.p50,
        l.p99,
        (y.memory.read_bytes_s + y.memory.write_bytes_s) / 1e9,
        y.worker_busy,
        y.worker.llc_miss_percent.unwrap_or(0.),
        y.lost_buffers,
        y.footprint_bytes
    );
}
fn corun() {
    let machine = Machine::open("xeon-gold-6140").unwrap();
    let seeds: Vec<u64> = std::env::args().skip(2).map(|x| x.parse().unwrap()).collect();
    for seed in seeds {
        let mut base = Traffic::open("co-run", &machine).unwrap();
        base.seed = seed;
        let mut alone = base.clone();
        alone.neighbours.clear();
        let mut quiet = base.clone();
        quiet.port.rate = Some(Spanned::new(0..0, model::Rate(1000.)));
        let mut jobs = vec![
            sweep::Job { machine: machine.clone(), traffic: alone, policy: Policy::On },
            sweep::Job { machine: machine.clone(), traffic: quiet, policy: Policy::On },
        ];
        let ps = ["on", "off", "ways:1", "ways:4", "phase-and-rate", "iat", "yield-search"];
        for p in ps {
            jobs.push(sweep::Job {
                machine: machine.clone(),
                traffic: base.clone(),
                policy: Policy::parse(p).unwrap(),
            });
        }
        let s = std::time::Instant::now();
        let o = sweep::run_all(&jobs).unwrap();
        let a = o[0].service_us.unwrap();
        let n = o[1].neighbours[0].group.accesses_s;
        println!(
            "seed {seed} alone service {a:.3} p99 {:.1} neighbour {:.1}M wall {:.1}",
            o[0].latency_us.as_ref().unwrap().p99,
            n / 1e6,
            s.elapsed().as_secs_f64()
        );
        for (p, y) in ps.iter().zip(&o[2..]) {
            let sv = a / y.service_us.unwrap();
            let nv = y.neighbours[0].group.accesses_s / n;
            let f = y.settings.last().unwrap();
            println!(
                "  {p:16} store {sv:.3} nb {nv:.3} score {:.4} p99 {:.1} drop {:.4} wr {:.1} nbmiss {:.1} changes {} last {} {} {}",
                (sv * nv).sqrt(),
                y.latency_us.as_ref().unwrap().p99,
                y.drops.share,
                y.pcie_write_hit_percent.unwrap(),
                y.neighbours[0].group.llc_miss_percent.unwrap_or(0.),
                y.settings.len(),
                f.card_ways,
                f.worker_ways,
                f.neighbour_ways
            );
        }
    }
}

fn land() {
    let machine = Machine::open("xeon-gold-6140").unwrap();
    let mut jobs = vec![];
    let mut names = vec![];
    for (card, w, n) in [
        (2u32, 0x7ffu32, 0x7ffu32),
        (2, 0x600, 0x7ff),
        (1, 0x600, 0x7ff),
        (2, 0x600, 0x1ff),
        (1, 0x700, 0x7ff),
        (2, 0x700, 0xff),
        (2, 0x780, 0x7f),
        (4, 0x780, 0x7ff),
        (0, 0x7ff, 0x7ff),
        (2, 0x400, 0x7ff),
        (1, 0x400, 0x3ff),
        (4, 0x400, 0x7ff),
    ] {
        let mut t = Traffic::open("co-run", &machine).unwrap();
        t.workers.ways = Some(Spanned::new(0..0, w));
        t.neighbours[0].ways = Some(Spanned::new(0..0, n));
        names.push((card, w, n));
        jobs.push(sweep::Job { machine: machine.clone(), traffic: t, policy: Policy::Ways(card) });
    }
    let o = sweep::run_all(&jobs).unwrap();
    for ((c, w, n), y) in names.iter().zip(&o) {
        println!(
            "{c} {w:#x} {n:#x} service {:.3} nb {:.1}M p99 {:.1} drop {:.3} score {:.3}",
            y.service_us.unwrap(),
            y.neighbours[0].group.accesses_s / 1e6,
            y.latency_us.as_ref().unwrap().p99,
            y.drops.share,
            (0.770 / y.service_us.unwrap() * y.neighbours[0].group.accesses_s / 155.4e6).sqrt()
        );
    }
}
fn holdout() {
    let machine = Machine::open("xeon-gold-6140").unwrap();
    // p d c w rate hit
    let mut rows: Vec<(&str, u64, u64, u32, u32, f64, f64)> = vec![];
    for (d, h) in
        [(128, 99.99), (256, 98.85), (512, 98.26), (1024, 95.87), (2048, 89.03), (4096, 63.06)]
    {
        rows.push(("size 1024", 1024, d, 1, 2, 0., h));
    }
    for (d, h) in
        [(128, 100.), (256, 99.82), (512, 99.81), (1024, 99.58), (2048, 98.5), (4096, 91.94)]
    {
        rows.push(("size 512", 512, d, 1, 2, 0., h));
    }
    for (d, h) in [(128, 100.), (1024, 100.), (4096, 99.87)] {
        rows.push(("size 256", 256, d, 1, 2, 0., h));
    }
    for (c, h) in [
        (1, 97.5),
        (2, 72.07),
        (4, 99.45),
        (6, 98.33),
        (8, 91.47),
        (10, 84.72),
        (12, 75.02),
        (14, 63.12),
        (16, 53.24),
        (18, 44.47),
    ] {
        rows.push(("cores", 1500, 256, c, 2, 0., h));
    }
    for (c, w, h) in [
        (1, 4, 87.26),
        (1, 6, 99.70),
        (1, 8, 100.),
        (2, 2, 25.67),
        (2, 4, 70.5),
        (2, 6, 96.29),
        (2, 8, 99.72),
        (4, 2, 72.9),
        (4, 4, 97.73),
        (4, 6, 99.97),
        (4, 8, 99.99),
    ] {
        rows.push(("cores-ways", 1500, 4096 / c as u64, c, w, 0., h));
    }
    for (r, h) in
        [(0.8, 29.56), (3.2, 29.15), (4.8, 27.76), (6.4, 23.73), (7.2, 20.), (7.99, 12.59)]
    {
        rows.push(("rate", 1500, 4096, 2, 2, r, h));
    }
    for (w, h) in [(7, 99.99), (9, 99.99), (11, 99.99)] {
        rows.push(("ways", 1024, 4096, 1, w, 0., h));
    }
    let jobs: Vec<_> = rows
        .iter()
        .map(|r| {
            let mut t = Traffic::open("forward", &machine).unwrap();
            t.port.packet = Spanned::new(0..0, Bytes(r.1));
            t.queues.receive = Spanned::new(0..0, Count(r.2));
            t.workers.cores = Spanned::new(0..0, r.3);
            if r.5 > 0. {
                t.port.rate = Some(Spanned::new(0..0, model::Rate(r.5 * 1e6)));
            }
            sweep::Job { machine: machine.clone(), traffic: t, policy: Policy::Ways(r.4) }
        })
        .collect();
    let o = sweep::run_all(&jobs).unwrap();
    let mut e = vec![];
    for (r, y) in rows.iter().zip(&o) {
        let s = y.pcie_write_hit_percent.unwrap();
        e.push((s - r.6).abs());
        println!(
            "{:10} {}B d{} c{} w{} r{} pub {:.2} sim {:.2} err {:+.2} | read {:.1} gbps {:.1} Mpps {:.2}",
            r.0,
            r.1,
            r.2,
            r.3,
            r.4,
            r.5,
            r.6,
            s,
            s - r.6,
            y.pcie_read_hit_percent.unwrap(),
            y.sent_bits_s / 1e9,
            y.throughput_packets_s / 1e6
        );
    }
    println!(
        "n {} mean {:.2} max {:.2}",
        e.len(),
        e.iter().sum::<f64>() / e.len() as f64,
        e.iter().fold(0f64, |a, b| a.max(*b))
    );
}
