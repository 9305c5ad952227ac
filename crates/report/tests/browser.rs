//! The page in a real browser: headless Chromium opens it in frames of several widths,
//! a script beside it uses it as a person would, and writes down what it found.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

mod chromium;
#[allow(dead_code)]
mod sample;

use std::fs;

use chromium::dump;

const CHECKS: &str = include_str!("browser/checks.js");

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
