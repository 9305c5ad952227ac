//! The page in a real browser: headless Chromium opens it in frames of several widths,
//! a script beside it uses it as a person would, and writes down what it found.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod sample;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

const CHECKS: &str = include_str!("browser/checks.js");
/// A browser that hangs is ended after this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// `CHROMIUM`, or the first of its usual names that is on the path.
fn chromium() -> PathBuf {
    if let Some(path) = env::var_os("CHROMIUM") {
        return path.into();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .flat_map(|name| env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
        .expect(
            "no Chromium here: `make test` installs it, or name one in the variable CHROMIUM \
             (looked for chromium, chromium-browser, google-chrome)",
        )
}

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
fn dump(page: &Path, dark: bool, folder: &Path) -> (String, String) {
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

/// Opens `page` in the test's frames; panics with every check that failed.
fn check(page: &str, dark: bool) {
    let folder = tempfile::tempdir().unwrap();
    // The same origin as its frames: a page given as text belongs to who gave it.
    let text = page.replace('&', "&amp;").replace('"', "&quot;");
    let frames: String = [1280, 390, 360]
        .map(|width| format!("<iframe width={width} height=800 srcdoc=\"{text}\"></iframe>"))
        .concat();
    let harness = format!(
        "<!DOCTYPE html><html style=\"color-scheme:light dark\"><meta charset=utf-8>{frames}\
         <script>const DARK = {dark};{CHECKS}</script></html>"
    );
    let file = folder.path().join("harness.html");
    fs::write(&file, harness).unwrap();
    let (dom, log) = dump(&file, dark, folder.path());
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "the console says: {console:#?}");
    let result = dom
        .split_once("<pre id=\"result\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .map(|(result, _)| result)
        .unwrap_or_else(|| panic!("the checks did not begin:\n{log}"));
    let failed: Vec<&str> = result.lines().filter(|line| !line.starts_with("ok ")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(result.ends_with("ok all checks ended"), "only these checks ran:\n{result}");
}

#[test]
fn the_page_works_in_light_and_dark() {
    let mut study = sample::study();
    study.extend(sample::sweep());
    study.extend(sample::factorial());
    let page = report::html::page(&study);
    for dark in [false, true] {
        check(&page, dark);
    }
}

#[test]
#[should_panic(expected = "console says")]
fn a_console_error_is_noticed() {
    let page = report::html::page(&sample::study());
    check(&page.replace("<script>", "<script>nonsense();</script><script>"), false);
}
