//! Headless Chromium, which opens a page and writes down what became of it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[path = "../../../model/tests/shared/chromium_path.rs"]
mod chromium_path;

use chromium_path::chromium;

/// A browser that hangs is ended after this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits, but not for ever.
fn finish(mut child: Child) -> bool {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("Chromium did not end within {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// What the browser made of `page`: its DOM, and what it wrote to stderr.
pub fn dump(page: &Path, dark: bool, folder: &Path) -> (String, String) {
    let (out, err) = (folder.join("dom"), folder.join("log"));
    let child = Command::new(chromium())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0"])
        .args(["--window-size=1400,900", "--dump-dom"])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let ended_well = finish(child);
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let (dom, log) = (read(&out), read(&err));
    assert!(ended_well, "Chromium failed:\n{log}");
    (dom, log)
}
