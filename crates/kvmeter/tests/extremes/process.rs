//! The command as a process with limits of time and memory.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::slice::slice;

/// It measures what was asked for so long, and is then asked to stop.
const PATIENCE: Duration = Duration::from_millis(800);
/// A process that was asked to stop ends within this.
const ENDING: Duration = Duration::from_secs(20);
/// The verbs whose runs are kept: they end in their own way when they are asked to.
const KEEPING: [&str; 3] = ["bench", "run", "search"];
/// Private memory of a process, in KiB.
const MEMORY: u64 = 1 << 20;

/// To it and to what it started, as from a terminal.
fn signal(child: &Child, which: &str) {
    Command::new("kill").args([which, "--", &format!("-{}", child.id())]).status().unwrap();
}

/// What is wrong with how it ended; none where it ended as a command may.
pub fn fault(folder: &Path, args: &[String]) -> Option<String> {
    let words = folder.join("words");
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -d {MEMORY} && exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_kvmeter"))
        .args(args)
        .current_dir(folder)
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("KVMETER_STATE_DIR", folder.join("state/kvmeter"))
        .env("KVMETER_AGENT_TOKEN", "0123456789abcdef0123456789abcdef")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&words).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mut asked = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if !asked && begun.elapsed() > PATIENCE {
            asked = true;
            signal(&child, "-INT");
        }
        if begun.elapsed() > PATIENCE + ENDING {
            signal(&child, "-KILL");
            child.wait().unwrap();
            return Some("it does not end".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let result = String::from_utf8_lossy(&std::fs::read(&words).unwrap()).into_owned();
    let result: String = result.chars().take(600).collect();
    if result.contains("panicked") {
        return Some(result);
    }
    // A verb that keeps nothing is ended by the signal itself; one that keeps runs ends by itself.
    let keeps = args.first().is_some_and(|verb| KEEPING.contains(&verb.as_str()));
    let by_signal = status.code().is_none() && asked && !keeps;
    let sound = matches!(status.code(), Some(0..=2)) || by_signal;
    (!sound).then(|| format!("{status}: {result}"))
}

/// Of so many processes a run of the gate takes one.
const PARTS: usize = 3;

/// What is wrong with each that ended as it should not.
pub fn run_all(lines: &[Vec<String>]) -> Vec<String> {
    let lines = slice(lines, PARTS);
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(args) = lines.get(at) else { return };
                    let folder = tempfile::tempdir().unwrap();
                    let file = |name: &str, text: &str| {
                        std::fs::write(folder.path().join(name), text).unwrap();
                    };
                    file("study.toml", crate::keys::SMALL);
                    file("trace.csv", "0,key,3,10,1,get,0\n1,key,3,10,1,set,0\n");
                    std::fs::create_dir(folder.path().join("machine")).unwrap();
                    let fault = fault(folder.path(), args);
                    if let Some(fault) = fault {
                        let args: Vec<String> =
                            args.iter().map(|arg| arg.chars().take(60).collect()).collect();
                        faults.lock().unwrap().push(format!("kvmeter {args:?}: {fault}"));
                    }
                }
            });
        }
    });
    faults.into_inner().unwrap()
}
