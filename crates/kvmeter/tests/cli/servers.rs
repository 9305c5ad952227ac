//! Servers that a test starts and that end with it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use server::launch::{LaunchRequest, Launched, Launcher, LocalLauncher, ServerSettings, program};

/// A real memcached on a free port of the loopback.
pub struct Memcached(Launched);

impl Memcached {
    pub fn start() -> Memcached {
        let settings = ServerSettings::default().with("threads", 1);
        let order = LaunchRequest::new(program("memcached").unwrap(), settings);
        Memcached(LocalLauncher.start(&order).unwrap())
    }

    pub fn url(&self) -> String {
        format!("memcached://{}", self.0.addresses[0])
    }
}

/// A server of memcached's text protocol that answers one `get` of data after the other, each
/// `service` after the one before: its highest rate is `1 / service`, whatever the machine does,
/// because it keeps to a schedule: a request's service begins when it came or when the one before
/// was due to end, however late a thread wakes up. All else is answered at once. It ends with the
/// process.
pub fn slow(service: Duration) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (queue, asked) = channel();
    let data = Arc::new(Data::default());
    std::thread::spawn(move || one_by_one(service, &asked));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (queue, data) = (queue.clone(), Arc::clone(&data));
            std::thread::spawn(move || talk(stream, &queue, &data));
        }
    });
    address
}

type Data = Mutex<HashMap<String, Vec<u8>>>;
/// An answer, where it goes and when it was asked for.
type Answer = (TcpStream, Vec<u8>, Instant);

fn one_by_one(service: Duration, asked: &Receiver<Answer>) {
    let mut free = Instant::now();
    for (mut stream, answer, came) in asked {
        free = free.max(came) + service;
        std::thread::sleep(free.saturating_duration_since(Instant::now()));
        // The client may be gone.
        let _ = stream.write_all(&answer);
    }
}

fn talk(mut stream: TcpStream, queue: &Sender<Answer>, data: &Data) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer: &[u8] = match words[..] {
            ["get", key] => {
                let mut answer = Vec::new();
                if let Some(value) = data.lock().unwrap().get(key) {
                    answer = format!("VALUE {key} 0 {}\r\n", value.len()).into_bytes();
                    answer.extend(value);
                    answer.extend(b"\r\n");
                }
                answer.extend(b"END\r\n");
                if key.starts_with("kvmeter:") {
                    stream.write_all(&answer).unwrap();
                } else {
                    let came = Instant::now();
                    queue.send((stream.try_clone().unwrap(), answer, came)).unwrap();
                }
                b""
            }
            ["set", key, _, _, length] => {
                let mut value = vec![0; length.parse::<usize>().unwrap() + 2];
                lines.read_exact(&mut value).unwrap();
                value.truncate(value.len() - 2);
                data.lock().unwrap().insert(key.to_owned(), value);
                b"STORED\r\n"
            }
            ["version"] => b"VERSION 1.0-slow\r\n",
            ["delete", key] => match data.lock().unwrap().remove(key) {
                Some(_) => b"DELETED\r\n",
                None => b"NOT_FOUND\r\n",
            },
            ["stats", ..] => b"END\r\n",
            _ => b"ERROR\r\n",
        };
        if stream.write_all(answer).is_err() {
            return;
        }
        line.clear();
    }
}
