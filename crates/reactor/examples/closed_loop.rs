//! The cost of the reactor: a closed loop of GETs (30 B keys, 200 B values, 16 connections) against
//! a real `memcached -t 1`, at pipelining depths 1 and 8, with each engine in turn, A B A B.
//!
//! Run it pinned away from the server, which it pins to CPU 0:
//! `taskset -c 1 cargo run --release -p reactor --example closed_loop -- [SECONDS [ROUNDS]]`
//! (build it first, or the compiler is pinned too).
//!
//! CPU time is user and system of this process, from `/proc/self/schedstat`.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::{Address, Engine};
use reactor::{EngineOptions, Reactor, Stream};

const CONNECTIONS: usize = 16;
const KEYS: usize = 10_000;
const KEY: usize = 30;
const VALUE: usize = 200;

#[derive(Clone, Copy, PartialEq)]
enum Dialect {
    Text,
    Meta,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().as_deref().unwrap_or("0.5").parse()?;
    let rounds: usize = arguments.next().as_deref().unwrap_or("15").parse()?;
    let server = Server::start()?;
    server.load()?;
    let time = Duration::from_secs_f64(seconds);
    println!("medians of {rounds} rounds (and the lowest CPU of all)");
    println!("dialect depth engine   stamps     kQPS  CPU-s/M   lowest  syscalls/request  busy");
    for (dialect, depth) in
        [(Dialect::Text, 1), (Dialect::Text, 8), (Dialect::Meta, 1), (Dialect::Meta, 8)]
    {
        let ways = Engine::ALL.map(|engine| [(engine, false), (engine, true)]);
        let mut figures: Vec<_> = ways.iter().flatten().map(|way| (*way, Vec::new())).collect();
        // In turn, so that other load disturbs all equally.
        for _ in 0..rounds {
            for ((engine, timestamps), figures) in &mut figures {
                figures.push(measure(&server, dialect, depth, *engine, *timestamps, time)?);
            }
        }
        for ((engine, timestamps), figures) in figures {
            let name = match dialect {
                Dialect::Text => "text",
                Dialect::Meta => "meta",
            };
            print!("{name:7} {depth:5} {engine:8} {timestamps:6}");
            println!(
                " {:8.1} {:8.2} {:8.2} {:17.2} {:5.2}",
                median(figures.iter().map(|it| it.requests as f64 / it.wall / 1e3)),
                median(figures.iter().map(Figures::cpu_per_million)),
                figures.iter().map(Figures::cpu_per_million).fold(f64::MAX, f64::min),
                median(figures.iter().map(|it| it.syscalls as f64 / it.requests as f64)),
                median(figures.iter().map(|it| it.cpu / it.wall)),
            );
        }
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Figures {
    requests: u64,
    wall: f64,
    cpu: f64,
    syscalls: u64,
}

impl Figures {
    fn cpu_per_million(&self) -> f64 {
        self.cpu / self.requests as f64 * 1e6
    }
}

fn measure(
    server: &Server,
    dialect: Dialect,
    depth: usize,
    engine: Engine,
    timestamps: bool,
    time: Duration,
) -> Result<Figures, Box<dyn Error>> {
    let options = EngineOptions { engine, timestamps, ..EngineOptions::default() };
    let mut reactor = Reactor::new(options)?;
    for _ in 0..CONNECTIONS {
        reactor.add(server.connect()?)?;
    }
    let mut key = 0;
    let mut unanswered = [0usize; CONNECTIONS];
    let mut append = |out: &mut Vec<u8>, count: usize| {
        for _ in 0..count {
            key = (key * 1_103_515_245 + 12_345) % KEYS;
            write_key(out, dialect, key);
        }
    };
    for (number, unanswered) in unanswered.iter_mut().enumerate() {
        append(reactor.outgoing(number), depth);
        *unanswered = depth;
        reactor.send(number);
    }
    let warm = Instant::now() + time / 10;
    let mut from = None;
    let mut requests = 0;
    loop {
        let now = Instant::now();
        if from.is_none() && now >= warm {
            requests = 0;
            from = Some((now, cpu_seconds()?, reactor.counters().syscalls()));
        }
        if let Some((start, cpu, syscalls)) = from
            && now - start >= time
        {
            return Ok(Figures {
                requests,
                wall: (now - start).as_secs_f64(),
                cpu: cpu_seconds()? - cpu,
                syscalls: reactor.counters().syscalls() - syscalls,
            });
        }
        reactor.poll(None)?;
        while let Some(number) = reactor.ready() {
            let answers = count_answers(reactor.incoming(number), dialect);
            if answers == 0 {
                return Err(format!("{:?}", reactor.state(number)).into());
            }
            reactor.consume(number, answers * answer_len(dialect));
            requests += answers as u64;
            unanswered[number] -= answers;
            // The next batch when the last is answered completely, as comparable tools do.
            if unanswered[number] == 0 {
                append(reactor.outgoing(number), depth);
                unanswered[number] = depth;
                reactor.send(number);
            }
        }
    }
}

/// All answers have one length here, so that finding them costs nothing.
fn answer_len(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Text => "VALUE  0 200\r\n\r\nEND\r\n".len() + KEY + VALUE,
        Dialect::Meta => "VA 200\r\n\r\n".len() + VALUE,
    }
}

fn count_answers(bytes: &[u8], dialect: Dialect) -> usize {
    let len = answer_len(dialect);
    assert!(bytes.chunks_exact(len).all(|answer| answer.ends_with(b"\r\n") && answer[0] == b'V'));
    bytes.len() / len
}

fn write_key(out: &mut Vec<u8>, dialect: Dialect, key: usize) {
    let mut digits = [b'0'; KEY];
    let mut rest = key;
    for digit in digits.iter_mut().rev().take(8) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(match dialect {
        Dialect::Text => b"get ",
        Dialect::Meta => b"mg ",
    });
    out.extend_from_slice(&digits);
    out.extend_from_slice(match dialect {
        Dialect::Text => b"\r\n",
        Dialect::Meta => b" v\r\n",
    });
}

/// User and system time of this process.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let ns: u64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(ns as f64 / 1e9)
}

struct Server {
    process: Child,
    address: Address,
}

impl Server {
    fn start() -> Result<Server, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new("taskset")
            .args(["-c", "0", "memcached", "-t", "1", "-m", "256", "-u", "root"])
            .args(["-l", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .spawn()?;
        let server = Server { process, address: Address::Tcp { host: "127.0.0.1".into(), port } };
        let deadline = Instant::now() + Duration::from_secs(5);
        while let Err(error) = server.connect() {
            if Instant::now() > deadline {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn connect(&self) -> Result<Stream, Box<dyn Error>> {
        Ok(Stream::connect(&self.address, None, Duration::from_secs(2))?)
    }

    fn load(&self) -> Result<(), Box<dyn Error>> {
        let mut stream = self.connect()?;
        let mut answer = [0; 8];
        for key in 0..KEYS {
            let mut request = b"set ".to_vec();
            let mut name = Vec::new();
            write_key(&mut name, Dialect::Text, key);
            request.extend_from_slice(&name[4..4 + KEY]);
            request.extend_from_slice(b" 0 0 200\r\n");
            request.extend_from_slice(&[b'v'; VALUE]);
            request.extend_from_slice(b"\r\n");
            stream.write_all(&request)?;
            stream.read_exact(&mut answer)?;
            assert_eq!(&answer, b"STORED\r\n");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
