//! A scripted RESP server in threads that counts its requests.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does with one request.
#[derive(Debug, Clone)]
pub enum Action {
    Answer,
    /// Answers after this time; requests behind it on the same connection wait too.
    Wait(Duration),
    /// Sends this instead.
    Send(Vec<u8>),
    /// Sends this instead, and closes the connection.
    SendAndClose(Vec<u8>),
    /// Sends this instead, and nothing more.
    SendAndHang(Vec<u8>),
    /// Answers, and then sends this too.
    AnswerAndSend(Vec<u8>),
}

/// A request for data, counted from 0 since the script was set.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    pub number: u64,
    /// The same on its connection.
    pub on_connection: u64,
    /// The correct answer.
    pub answer: &'a [u8],
}

type Script = Box<dyn Fn(Received<'_>) -> Action + Send + Sync>;

#[derive(Default)]
struct State {
    data: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    script: Mutex<Option<Arc<Script>>>,
    requests: AtomicU64,
    connections: AtomicU64,
    most: AtomicUsize,
    stopped: AtomicBool,
    /// Connections are accepted and never greeted.
    mute: AtomicBool,
    /// Connections are closed in the greeting.
    closes: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

pub struct Fake {
    port: u16,
    state: Arc<State>,
}

impl Fake {
    pub fn start() -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            while !shared.stopped.load(Ordering::Acquire) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        stream.set_nonblocking(false).unwrap();
                        stream.set_nodelay(true).unwrap();
                        shared.connections.fetch_add(1, Ordering::AcqRel);
                        shared.open.lock().unwrap().push(stream.try_clone().unwrap());
                        let shared = Arc::clone(&shared);
                        std::thread::spawn(move || serve(stream, &shared));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        Fake { port, state }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sets the script for requests from now on and resets the counters.
    pub fn script(&self, script: impl Fn(Received<'_>) -> Action + Send + Sync + 'static) {
        self.state.requests.store(0, Ordering::Release);
        self.state.connections.store(0, Ordering::Release);
        self.state.most.store(0, Ordering::Release);
        *self.state.script.lock().unwrap() = Some(Arc::new(Box::new(script)));
    }

    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Acquire)
    }

    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Acquire)
    }

    /// The most requests that one connection had brought before they were answered.
    pub fn most_in_flight(&self) -> usize {
        self.state.most.load(Ordering::Acquire)
    }

    /// Closes every connection and the listener.
    pub fn die(&self) {
        self.killer()();
    }

    /// The same, from another thread.
    pub fn killer(&self) -> impl Fn() + Send + Sync + 'static {
        let state = Arc::clone(&self.state);
        move || {
            state.stopped.store(true, Ordering::Release);
            // The listener is closed before the connections, or some would be accepted again.
            std::thread::sleep(Duration::from_millis(20));
            for stream in state.open.lock().unwrap().drain(..) {
                // It may be closed already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// New connections are accepted and never answered.
    pub fn stop_greeting(&self) {
        self.state.mute.store(true, Ordering::Release);
    }

    /// New connections are closed in the greeting.
    pub fn close_in_greeting(&self) {
        self.state.closes.store(true, Ordering::Release);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.die();
    }
}

fn serve(mut stream: TcpStream, state: &State) {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    let mut on_connection = 0;
    if state.mute.load(Ordering::Acquire) {
        while matches!(stream.read(&mut piece), Ok(1..)) {}
        return;
    }
    loop {
        let mut requests = Vec::new();
        while let Some((words, used)) = parse(&bytes) {
            bytes.drain(..used);
            requests.push(words);
        }
        state.most.fetch_max(requests.len(), Ordering::AcqRel);
        let mut out = Vec::new();
        for words in requests {
            let greeting: &[u8] = match &words[0][..] {
                b"CLIENT" => b"-ERR unknown command 'CLIENT'\r\n",
                b"HELLO" => b"%1\r\n$5\r\nproto\r\n:3\r\n",
                _ => b"",
            };
            if !greeting.is_empty() {
                out.extend(greeting);
                continue;
            }
            let answer = state.answer(&words);
            if words[0] == b"INFO" {
                if state.closes.load(Ordering::Acquire) {
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
                out.extend(answer);
                continue;
            }
            let number = state.requests.fetch_add(1, Ordering::AcqRel);
            let script = state.script.lock().unwrap().clone();
            let request = Received { number, on_connection, answer: &answer };
            on_connection += 1;
            match script.map_or(Action::Answer, |script| script(request)) {
                Action::Answer => out.extend(answer),
                Action::Wait(time) => {
                    if stream.write_all(&std::mem::take(&mut out)).is_err() {
                        return;
                    }
                    std::thread::sleep(time);
                    out.extend(answer);
                }
                Action::Send(words) => out.extend(words),
                Action::AnswerAndSend(words) => out.extend([answer, words].concat()),
                Action::SendAndClose(words) => {
                    out.extend(words);
                    let _ = stream.write_all(&out);
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
                Action::SendAndHang(words) => {
                    out.extend(words);
                    let _ = stream.write_all(&out);
                    while matches!(stream.read(&mut piece), Ok(1..)) {}
                    return;
                }
            }
        }
        if stream.write_all(&out).is_err() {
            return;
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

impl State {
    fn answer(&self, words: &[Vec<u8>]) -> Vec<u8> {
        let mut data = self.data.lock().unwrap();
        let bulk = |value: Option<&Vec<u8>>| match value {
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
            None => b"$-1\r\n".to_vec(),
        };
        match (words[0].as_slice(), &words[1..]) {
            (b"INFO", _) => bulk(Some(&b"redis_version:9.9.9\r\nmaxmemory:0\r\n".to_vec())),
            (b"GET", [key]) => bulk(data.get(key)),
            (b"MGET", keys) => {
                let values: Vec<u8> = keys.iter().flat_map(|key| bulk(data.get(key))).collect();
                [format!("*{}\r\n", keys.len()).as_bytes(), &values].concat()
            }
            (b"SET", [key, value]) => {
                data.insert(key.clone(), value.clone());
                b"+OK\r\n".to_vec()
            }
            (b"DEL", [key]) => {
                format!(":{}\r\n", u8::from(data.remove(key).is_some())).into_bytes()
            }
            _ => panic!("no command that is expected: {words:?}"),
        }
    }
}

/// The first whole request, and how long it is.
fn parse(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let line = |from: usize| {
        let length = bytes[from..].windows(2).position(|two| two == b"\r\n")?;
        let number = std::str::from_utf8(&bytes[from + 1..from + length]).unwrap();
        Some((number.parse::<usize>().unwrap(), from + length + 2))
    };
    let (count, mut at) = line(0)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (length, begin) = line(at)?;
        words.push(bytes.get(begin..begin + length)?.to_vec());
        at = begin + length + 2;
    }
    (at <= bytes.len()).then_some((words, at))
}
