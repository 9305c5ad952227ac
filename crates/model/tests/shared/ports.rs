//! Ports for servers that a test starts as processes.

use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// So many ports of 127.0.0.1 that nothing listens on. A process that another thread starts at this
/// moment holds a copy of the listeners until its `exec`: connections to them are accepted until then,
/// and reset.
pub fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
    drop(listeners);
    for port in &ports {
        while TcpStream::connect(("127.0.0.1", *port)).is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
    }
    ports
}
