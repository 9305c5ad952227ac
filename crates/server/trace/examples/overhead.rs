//! The cost of tracing for a server: memcached with one thread under a closed loop, not traced and
//! traced in turn.
//!
//! `cargo run --release -p syscall-trace --example overhead [ROUNDS [SECONDS]]`
//!
//! memcached is pinned to CPU 0, the client to CPU 1. Printed a round: requests/s
//! and the server's CPU time a request, without and with; at the end the medians.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use syscall_trace::Tracer;

const CONNECTIONS: usize = 16;
const KEYS: usize = 10_000;
const VALUE_BYTES: usize = 200;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Result<Server> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new("taskset")
            .args(["-c", "0", "memcached", "-l", "127.0.0.1", "-t", "1", "-U", "0", "-u", "root"])
            .args(["-p", &port.to_string()])
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Server { child, port })
    }

    fn connect(&self) -> Result<TcpStream> {
        let limit = Instant::now() + Duration::from_secs(5);
        loop {
            match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                    return Ok(stream);
                }
                Err(error) if Instant::now() > limit => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// User and system time so far, from the scheduler's nanosecond account.
    fn cpu_seconds(&self) -> Result<f64> {
        let mut nanoseconds = 0.0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let schedstat = std::fs::read_to_string(task?.path().join("schedstat"))?;
            let first = schedstat.split_whitespace().next().ok_or("empty schedstat")?;
            nanoseconds += first.parse::<f64>()?;
        }
        Ok(nanoseconds / 1e9)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn key(number: usize) -> String {
    format!("key-{number:026}")
}

fn load(stream: &TcpStream) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let value = "v".repeat(VALUE_BYTES);
    for number in 0..KEYS {
        write!(writer, "set {} 0 0 {VALUE_BYTES}\r\n{value}\r\n", key(number))?;
        let mut answer = String::new();
        lines.read_line(&mut answer)?;
        if answer != "STORED\r\n" {
            return Err(format!("set was answered with {answer:?}").into());
        }
    }
    Ok(())
}

/// One request on each connection, then the answer of each: as many requests as
/// connections are always under way. Returns requests/s and CPU µs a request.
fn measure(server: &Server, connections: &[TcpStream], time: Duration) -> Result<(f64, f64)> {
    let answer_bytes =
        format!("VALUE {} 0 {VALUE_BYTES}\r\n\r\nEND\r\n", key(0)).len() + VALUE_BYTES;
    let mut buffer = [0; 4096];
    let mut random = 88_172_645_463_325_252u64;
    let mut request = Vec::new();
    let mut send = |mut stream: &TcpStream| -> Result<()> {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        request.clear();
        write!(request, "get {}\r\n", key(random as usize % KEYS))?;
        Ok(stream.write_all(&request)?)
    };
    for stream in connections {
        send(stream)?;
    }
    let (start, cpu) = (Instant::now(), server.cpu_seconds()?);
    let mut requests = 0u64;
    while start.elapsed() < time {
        for mut stream in connections {
            let mut got = 0;
            while got < answer_bytes {
                match stream.read(&mut buffer)? {
                    0 => return Err("the server closed a connection".into()),
                    bytes => got += bytes,
                }
            }
            send(stream)?;
            requests += 1;
        }
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), server.cpu_seconds()? - cpu);
    for mut stream in connections {
        stream.read_exact(&mut buffer[..answer_bytes])?;
    }
    Ok((requests as f64 / seconds, cpu * 1e6 / requests as f64))
}

/// The time of a trivial system call in a process that is not traced: (without, with) a tracer of
/// the server, in ns, alternated.
fn bystander(server: u32) -> Result<(f64, f64)> {
    const CALLS: u32 = 500_000;
    let each = || {
        let begin = Instant::now();
        for _ in 0..CALLS {
            let _ = std::os::unix::process::parent_id();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        without.push(each());
        let _tracer = Tracer::attach(server)?;
        with.push(each());
    }
    Ok((median(&mut without), median(&mut with)))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let time = Duration::from_secs_f64(seconds);
    let server = Server::start()?;
    load(&server.connect()?)?;
    let connections =
        (0..CONNECTIONS).map(|_| server.connect()).collect::<Result<Vec<TcpStream>>>()?;
    let own = std::process::id().to_string();
    Command::new("taskset").args(["-cp", "1", &own]).stdout(Stdio::null()).status()?;
    let mut columns: [Vec<f64>; 4] = Default::default();
    for round in 1..=rounds {
        let (plain_rate, plain_cpu) = measure(&server, &connections, time)?;
        let tracer = Tracer::attach(server.child.id())?;
        let (rate, cpu) = measure(&server, &connections, time)?;
        let counted = tracer.snapshot();
        println!(
            "{round}: without {plain_rate:.0}/s {plain_cpu:.2} us, with {rate:.0}/s {cpu:.2} us \
             (p50 {:?} ns, p99 {:?} ns, {:.2} calls a request)",
            counted.latency.quantile_ns(0.5).unwrap_or(0),
            counted.latency.quantile_ns(0.99).unwrap_or(0),
            counted.total_calls() as f64 / counted.requests().max(1) as f64,
        );
        for (column, value) in columns.iter_mut().zip([plain_rate, plain_cpu, rate, cpu]) {
            column.push(value);
        }
    }
    let [plain_rate, plain_cpu, rate, cpu] = columns.each_mut().map(|column| median(column));
    println!("medians: without {plain_rate:.0}/s {plain_cpu:.2} us, with {rate:.0}/s {cpu:.2} us");
    println!("ratios: rate {:.3}, CPU {:.3}", rate / plain_rate, cpu / plain_cpu);
    let (without, with) = bystander(server.child.id())?;
    println!("a bystander's getppid: without {without:.0} ns, with {with:.0} ns");
    let tracer = Tracer::attach(server.child.id())?;
    let watch = tracer.watch_cost()?;
    measure(&server, &connections, time)?;
    let cost = watch.cost(&tracer)?;
    println!("the programs: {} runs, {:?} ns each", cost.runs, cost.ns_per_run());
    Ok(())
}
