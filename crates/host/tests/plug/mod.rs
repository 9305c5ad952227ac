//! A smart plug that answers over HTTP.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use host::EnergySettings;
use host::probe::energy::PlugSettings;

/// A plug that gives one answer to every question, until it is dropped.
pub struct Plug {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Plug {
    pub fn answering(status: &'static str, body: &'static str) -> Plug {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let mut request = [0; 1024];
                let read = stream.read(&mut request).unwrap_or(0);
                if read > 0 && !status.is_empty() {
                    assert!(request.starts_with(b"GET /status "));
                    let length = body.len();
                    let _ = write!(
                        stream,
                        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                    );
                }
            }
        });
        Plug { address: address.to_string(), stop, thread: Some(thread) }
    }

    pub fn settings(&self) -> EnergySettings {
        let url = format!("http://{}/status", self.address);
        let plug = PlugSettings { url, watts: "/apower".into(), factor: 1.0 };
        EnergySettings { plug: Some(plug), ..Default::default() }
    }
}

impl Drop for Plug {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
