//! The cost of the preloaded library: CPU time of `memcached -t 1` for each request, without the
//! library, with it loaded but no file, and counting, in turn. The server runs on CPU 0, the client
//! on CPU 1.
//!
//! `cargo run --release -p tap --example measure_cost [ROUNDS]`

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use support::{Client, Folder, Server, binary, memcached_command, preload};
use tap::reader::Reader;

const TIME: Duration = Duration::from_millis(700);

/// How the server is started.
#[derive(Clone, Copy)]
enum With {
    Nothing,
    Idle,
    Counting,
}

/// A load: the bytes sent at once, their requests, the answer's length.
struct Load {
    name: &'static str,
    batch: Vec<u8>,
    requests: u64,
    answer_bytes: usize,
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(9usize);
    let key = "k".repeat(30);
    let get = format!("get {key}\r\n").into_bytes();
    let meta = format!("mg {key} v\r\n").into_bytes();
    let bin = binary(0, &[], key.as_bytes(), b"");
    let load = |name, one: &[u8], depth: usize, answer: usize| Load {
        name,
        batch: one.repeat(depth),
        requests: depth as u64,
        answer_bytes: answer * depth,
    };
    let text_answer = format!("VALUE {key} 0 200\r\n").len() + 202 + 5;
    let loads = [
        load("text get, depth 1", &get, 1, text_answer),
        load("text get, depth 8", &get, 8, text_answer),
        load("meta mg, depth 8", &meta, 8, "VA 200\r\n".len() + 202),
        load("binary get, depth 8", &bin, 8, 24 + 4 + 200),
    ];
    pin(std::process::id(), 1);
    for load in &loads {
        let mut rows: [Vec<f64>; 3] = Default::default();
        let mut own = Vec::new();
        for round in 0..rounds {
            // Each variant comes first, second and last equally often.
            for turn in 0..3 {
                let which = (round + turn) % 3;
                let with = [With::Nothing, With::Idle, With::Counting][which];
                let (cpu_ns, own_ns) = measure(load, with);
                rows[which].push(cpu_ns);
                own.extend(own_ns);
            }
        }
        let [nothing, idle, counting] = rows;
        // Compared within each round: other load changes slowly.
        let against = |with: &[f64]| {
            median(with.iter().zip(&nothing).map(|(with, without)| with / without).collect())
        };
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        println!(
            "{:20} server CPU ns/request without {:.0}; loaded {:+.1} %, counting {:+.1} %; by its own count {:.0} ns",
            load.name,
            median(nothing.clone()),
            percent(against(&idle)),
            percent(against(&counting)),
            median(own),
        );
    }
}

fn measure(load: &Load, with: With) -> (f64, Option<f64>) {
    let folder = Folder::new();
    let (mut command, socket) = memcached_command(&folder, &["-t", "1", "-m", "64"]);
    let reader = Reader::create(&std::path::PathBuf::from(format!(
        "/dev/shm/kvmeter-tap-cost-{}",
        std::process::id()
    )))
    .expect("the file can be made");
    match with {
        With::Nothing => {}
        With::Idle => preload(&mut command, None),
        With::Counting => preload(&mut command, Some(reader.path())),
    }
    let server = Server::start(command, folder, socket);
    pin(server.pid(), 0);
    let mut clients: Vec<Client> = (0..16).map(|_| server.connect()).collect();
    let key = "k".repeat(30);
    let set = format!("set {key} 0 0 200\r\n{}\r\n", "x".repeat(200));
    server.connect().request(set.as_bytes(), b"STORED\r\n");
    run(&mut clients, load, TIME / 5);
    let before = (server.cpu_ns(), reader.snapshot());
    let requests = run(&mut clients, load, TIME);
    let cpu = server.cpu_ns() - before.0;
    let own = reader.snapshot().since(&before.1).totals().own_ns();
    (cpu as f64 / requests as f64, own.map(|own| own / requests as f64))
}

/// Closed loop over all connections: requests to all, then answers of all.
fn run(clients: &mut [Client], load: &Load, time: Duration) -> u64 {
    let end = Instant::now() + time;
    let mut requests = 0;
    while Instant::now() < end {
        for client in &mut *clients {
            client.send(&load.batch);
        }
        for client in &mut *clients {
            client.skip(load.answer_bytes);
            requests += load.requests;
        }
    }
    requests
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn pin(pid: u32, cpu: usize) {
    let output = Command::new("taskset")
        .args(["-a", "-c", "-p", &cpu.to_string(), &pid.to_string()])
        .output()
        .expect("taskset is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
