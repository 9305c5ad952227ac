//! The page in a real browser: headless Chromium opens it in frames of several widths, a script
//! beside it uses it as a person would or looks at its layout, and writes down what it found.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

mod chromium;
#[allow(dead_code)]
mod pages;
#[allow(dead_code)]
mod sample;

use std::fs;

use chromium::dump;

const FRAMES: &str = include_str!("browser/frames.js");
const CHECKS: &str = include_str!("browser/checks.js");
const FLAMES: &str = include_str!("browser/flames.js");
const LAYOUT: &str = include_str!("browser/layout.js");

/// Where a person uses the page.
const USED: &[u32] = &[1280, 390, 360];
/// A phone, a small and a usual window, a wide one.
const WIDTHS: &[u32] = &[400, 1000, 1300, 1900];

/// Opens `page` in frames of these widths, with a script that looks into them; returns every check
/// that failed.
fn faults(page: &str, widths: &[u32], script: &str, dark: bool) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    // The same origin as its frames: a page given as text belongs to who gave it.
    let text = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = |width| format!("<iframe width={width} height=800 srcdoc=\"{text}\"></iframe>");
    let frames: String = widths.iter().map(frame).collect();
    let harness = format!(
        "<!DOCTYPE html><html style=\"color-scheme:light dark\"><meta charset=utf-8>{frames}\
         <script>{FRAMES}</script><script>const DARK = {dark};{script}</script></html>"
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
    assert!(result.ends_with("ok all checks ended"), "only these checks ran:\n{result}");
    let failed = result.lines().filter(|line| !line.starts_with("ok "));
    failed.map(str::to_owned).collect()
}

#[test]
fn the_page_works_in_light_and_dark() {
    let mut study = sample::study();
    study.extend(sample::sweep());
    study.extend(sample::factorial());
    let page = report::html::page(&study);
    for dark in [false, true] {
        let failed = faults(&page, USED, CHECKS, dark);
        assert!(failed.is_empty(), "{failed:#?}");
    }
}

#[test]
#[should_panic(expected = "console says")]
fn a_console_error_is_noticed() {
    let page = report::html::page(&sample::study());
    faults(&page.replace("<script>", "<script>nonsense();</script><script>"), USED, CHECKS, false);
}

#[test]
fn a_flame_graph_can_be_searched_and_enlarged() {
    let page = report::html::page(&sample::profiled());
    let failed = faults(&page, USED, FLAMES, false);
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_kind_of_page_is_laid_out_well_at_every_width() {
    for (name, page) in pages::all() {
        let failed = faults(&page, WIDTHS, LAYOUT, false);
        assert!(failed.is_empty(), "{name}: {failed:#?}");
    }
}

#[test]
fn each_fault_of_a_layout_is_noticed() {
    let sound = pages::costs();
    for (style, fault) in [
        // A grid for a navigation that the page does not have.
        ("body { display: grid; grid-template-columns: 13rem 1fr; }", "narrower than half"),
        ("h1 { margin-bottom: -4rem; }", "lies on another"),
        ("svg .tick { font-size: 70px; }", "lies on another"),
        (".drawing svg { width: 20%; }", "can be read"),
        (".num span { min-width: 0 !important; }", "points stand under each other"),
        ("h2 { width: 1ch; overflow-wrap: anywhere; }", "letter by letter"),
        ("h2 { white-space: nowrap; width: 200vw; text-align: right; }", "leaves the window"),
        ("h2 { width: 200vw; }", "scrolling to the side"),
    ] {
        let broken = sound.replace("</style>", &format!("{style}</style>"));
        let failed = faults(&broken, &[1300], LAYOUT, false);
        assert!(failed.iter().any(|told| told.contains(fault)), "{style}: {failed:#?}");
    }
}
