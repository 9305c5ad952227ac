//! Renews a pod's own lease as long as this process lives.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::shell::PodShell;
use crate::error::FleetError;

/// Reads a line at each renewal. Its end, which is that of a pipe of this process, ends the pod.
const SCRIPT: &str = "cd /mnt/kvmeter && n=0 && while read -r _; do n=$((n + 1)); \
                      echo $n >renewed; done; echo end >renewed";
const RENEWALS: u32 = 4;
const POLL: Duration = Duration::from_millis(100);
/// How long the script may take to end.
const END: Duration = Duration::from_secs(5);

/// Dropped, it lets the pod end.
#[derive(Debug)]
pub(super) struct Keeper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub fn start(shell: &PodShell, pod: &str, lease: Duration) -> Result<Keeper, FleetError> {
        let mut command = shell.command(pod, SCRIPT);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A terminal's Ctrl-C reaches kvmeter alone, which ends the studies before the pod.
        let mut child = command
            .process_group(0)
            .spawn()
            .map_err(|error| FleetError::Here(format!("kubernetes: `pod-shell`: {error}")))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            renew(&mut child, lease / RENEWALS, &stopped);
            end(&mut child);
        });
        Ok(Keeper { stop, thread: Some(thread) })
    }

    /// Begins its end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn renew(child: &mut Child, every: Duration, stop: &AtomicBool) {
    let Some(mut stdin) = child.stdin.take() else { return };
    while !stop.load(Ordering::Relaxed) {
        // A pod that is lost is seen by the commands in it.
        if stdin.write_all(b"\n").and_then(|()| stdin.flush()).is_err() {
            return;
        }
        let begin = Instant::now();
        while begin.elapsed() < every && !stop.load(Ordering::Relaxed) {
            thread::sleep(POLL);
        }
    }
}

fn end(child: &mut Child) {
    let begin = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && begin.elapsed() < END {
        thread::sleep(POLL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
