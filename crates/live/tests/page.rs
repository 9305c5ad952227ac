//! The page in a real browser, fed as a measurement feeds it.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

#[path = "browser/chromium.rs"]
mod chromium;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use live::{
    LatencyNow, LiveConfig, LiveServer, PresentReading, RunEnd, RunEvent, RunProgress, Title,
};

use chromium::Browser;

fn start() -> LiveServer {
    let title = Title {
        command: "run".into(),
        name: "rocksdb <b>against</b> lmdb".into(),
        version: "1".into(),
    };
    let listen = "127.0.0.1:0".parse().unwrap();
    // The style that the command gives it.
    let style = include_str!("../../report/src/html/style.css");
    LiveServer::start(LiveConfig { listen, token: None, title, style }).unwrap()
}

fn begins(run: usize) -> RunEvent {
    let settings = [("knob.turbo", "off"), ("store", "rocksdb"), ("workload", "ycsb-a")];
    RunEvent::Begins {
        run,
        runs: 12,
        label: "rocksdb ycsb-a".into(),
        phase: "measure".into(),
        settings: settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    }
}

fn reading(signal: &str, value: Option<f64>, unit: &str) -> PresentReading {
    PresentReading {
        signal: signal.into(),
        value,
        unit: unit.into(),
        source: "a test".into(),
        unavailable: value.is_none().then(|| "no RAPL in a virtual machine".to_owned()),
        modelled: false,
    }
}

fn progress(second: u32, warming_up: bool) -> RunEvent {
    let at_s = f64::from(second);
    RunEvent::Progress(Box::new(RunProgress {
        warming_up,
        stage: if warming_up { "warm-up" } else { "measures" }.into(),
        left_s: Some(754),
        run_left_s: Some(34),
        done: Some(0.25),
        answered_ops_s: Some(20_000.0 + 1000.0 * at_s.sin()),
        offered_ops_s: Some(20_000.0),
        latency: (!warming_up).then_some(LatencyNow {
            at_s,
            p50_us: 112.0,
            p90_us: 300.0,
            p99_us: 1240.0,
            p99_9_us: 4000.0,
            max_us: 9000.0,
        }),
        errors: 3,
        hits: 990,
        misses: 10,
        readings: vec![
            reading("cpu.kvmeter", Some(1.25), "CPUs"),
            reading("energy.total", None, "J"),
            reading("machine.busy", Some(0.5), "share"),
        ],
        ..RunProgress::default()
    }))
}

fn ended(run: usize, valid: bool) -> RunEvent {
    RunEvent::Ended(Box::new(RunEnd {
        run,
        runs: 12,
        label: "rocksdb ycsb-a".into(),
        rate_ops_s: 251_700.0,
        seconds: 10.0,
        valid,
        p99_us: Some(812.0),
        hit_ratio: Some(1.0),
        invalid_because: if valid { vec![] } else { vec!["the client was busy".into()] },
        ..RunEnd::default()
    }))
}

/// Keeps what the browser shows, for people to look at, in the folder of `KVMETER_PICTURES`.
fn picture(browser: &mut Browser, name: &str) {
    let Some(folder) = std::env::var_os("KVMETER_PICTURES") else { return };
    let png = BASE64_STANDARD.decode(browser.picture()).unwrap();
    std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), png).unwrap();
}

const TILES: &str = "Object.fromEntries([...document.querySelectorAll('#tiles div')].map((div) => \
                     [div.children[0].textContent, div.children[1].textContent]))";
const FITS: &str = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
const LIGHT: &str = "(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor\
                     .match(/[\\d.]+/g).map(Number); return (r + g + b) / 765; })()";

#[test]
fn the_page_follows_a_measurement_to_its_end() {
    let server = start();
    let (url, feed) = (server.url(), server.feed());
    let mut browser = Browser::start();
    browser.open(&url, 1300, false);
    browser.until("document.title === 'rocksdb <b>against</b> lmdb – kvmeter live'");
    feed.event(begins(3));
    for second in 0..20 {
        feed.event(progress(second, second < 5));
    }
    browser.until("document.querySelectorAll('#latency path.line').length === 3");
    let status = browser.value("document.getElementById('status').textContent");
    assert_eq!(status, "run 3 of 12: rocksdb ycsb-a – measures");
    let tiles = browser.value(TILES);
    for (title, words) in [
        ("Offered", "20.0 kops/s"),
        ("p50", "112 µs"),
        ("p99", "1.24 ms"),
        ("Errors", "3"),
        ("Hit ratio", "99.0 %"),
        ("CPU of kvmeter", "1.25 CPUs"),
        ("Power", "unavailableno RAPL in a virtual machine"),
    ] {
        assert!(tiles[title].as_str().unwrap().starts_with(words), "{title}: {tiles}");
    }
    let left = browser.value("document.getElementById('left').textContent");
    assert!(left.as_str().unwrap().contains("34 s left in this run, 12 min 34 s in all"), "{left}");
    let settings = browser.value("document.getElementById('settings').innerText");
    assert!(settings.as_str().unwrap().starts_with("knob.turbo"), "knobs come first: {settings}");
    // The warm-up is marked behind the curves.
    browser.until("document.querySelectorAll('#rate .before').length === 5");

    feed.event(ended(3, true));
    feed.event(ended(4, false));
    browser.until("document.querySelectorAll('#runs tr').length === 2");
    let rows = browser.value("document.getElementById('runs').innerText");
    for words in ["252 kops/s", "812 µs", "no: the client was busy"] {
        assert!(rows.as_str().unwrap().contains(words), "{words}: {rows}");
    }

    server.end("done");
    browser.until("document.getElementById('status').textContent.startsWith('done at ')");
    let tiles = browser.value(TILES);
    assert!(tiles["p99"].as_str().unwrap().starts_with("1.24 ms"), "the last state stays: {tiles}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn hosts_have_a_row_each_and_one_is_looked_at() {
    let server = start();
    let (url, feed) = (server.url(), server.feed());
    let (m1, m2) = (feed.of_host("m1"), feed.of_host("m2"));
    let mut browser = Browser::start();
    for (width, dark) in [(1300, false), (400, true)] {
        browser.open(&url, width, dark);
        for host in [&m1, &m2] {
            host.event(begins(3));
            host.event(ended(3, true));
            host.event(begins(4));
        }
        for second in 0..5 {
            m1.event(progress(second, false));
        }
        browser.until("document.querySelectorAll('#hosts tr').length === 2");
        browser.until("document.querySelectorAll('#latency path.line').length === 3");
        assert_eq!(browser.value(FITS), true, "{width}");
        let rows = browser.value("document.getElementById('hosts').innerText");
        for words in ["m1", "4 of 12 rocksdb ycsb-a", "1.24 ms", "12 min 34 s", "prepares"] {
            assert!(rows.as_str().unwrap().contains(words), "{words}: {rows}");
        }
        assert_eq!(browser.value("document.getElementById('chosen').textContent"), "m1");
        assert!(browser.value(TILES)["p99"].as_str().unwrap().starts_with("1.24 ms"));
        picture(&mut browser, &format!("live-hosts-{width}"));
        // The other one has no window.
        browser.value("document.querySelectorAll('#hosts button')[1].click()");
        assert_eq!(browser.value("document.getElementById('chosen').textContent"), "m2");
        let tiles = browser.value(TILES);
        assert!(tiles["p99"].as_str().unwrap().starts_with("unavailable"), "{tiles}");
        assert_eq!(browser.value("document.querySelectorAll('#latency path.line').length"), 0);
    }
    let finished = browser.value("document.getElementById('runs').innerText");
    assert!(finished.as_str().unwrap().contains("m2: 3 rocksdb ycsb-a"), "{finished}");
    m2.ended("not finished: it was stopped");
    browser.until("document.getElementById('status').textContent.includes('1 at work, 1 ended')");
    let rows = browser.value("document.getElementById('hosts').innerText");
    assert!(rows.as_str().unwrap().contains("not finished: it was stopped"), "{rows}");
    server.end("done");
    browser.until("document.getElementById('status').textContent.startsWith('done at ')");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_command_that_is_killed_leaves_its_last_state() {
    let server = start();
    let feed = server.feed();
    let mut browser = Browser::start();
    feed.event(begins(1));
    feed.event(progress(1, false));
    // Between the browser and the server, a relay that can be cut.
    let relay = Relay::to(&server.url());
    browser.open(&relay.url(), 1300, false);
    browser.until("document.querySelector('.dot.live') !== null");
    relay.cut();
    browser.until("document.getElementById('status').textContent.startsWith('no connection')");
    let tiles = browser.value(TILES);
    assert!(tiles["p99"].as_str().unwrap().starts_with("1.24 ms"), "{tiles}");
    server.end("done");
}

#[test]
fn it_is_laid_out_well_at_every_width_in_light_and_dark() {
    let server = start();
    let feed = server.feed();
    feed.event(begins(3));
    (0..300).for_each(|second| feed.event(progress(second, second < 5)));
    (0..40).for_each(|run| feed.event(ended(run, run % 7 != 0)));
    let mut browser = Browser::start();
    for (width, dark) in [(400, false), (400, true), (1300, false), (1300, true)] {
        browser.open(&server.url(), width, dark);
        browser.until("document.querySelectorAll('#latency path.line').length === 3");
        assert_eq!(browser.value(FITS), true, "{width}: no scrolling to the side");
        let light = browser.value(LIGHT).as_f64().unwrap();
        assert_eq!(light > 0.5, !dark, "{width}: {light}");
        let outside = browser.value(
            "[...document.querySelectorAll('#rate text, #latency text')].filter((text) => { \
             const own = text.getBoundingClientRect(); \
             const svg = text.closest('svg').getBoundingClientRect(); \
             return own.left < svg.left - 1 || own.right > svg.right + 1; }).length",
        );
        assert_eq!(outside, 0, "{width}: no text leaves its figure");
        picture(&mut browser, &format!("live-{width}-{}", if dark { "dark" } else { "light" }));
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
    server.end("done");
}

#[test]
fn an_error_of_the_page_is_noticed() {
    let server = start();
    let mut browser = Browser::start();
    browser.open(&server.url(), 1300, false);
    browser.value("setTimeout(() => nonsense(), 0)");
    browser.value("new Promise((done) => setTimeout(done, 200))");
    assert_eq!(browser.complaints.len(), 1, "{:?}", browser.complaints);
    server.end("done");
}

/// Passes connections on until it is cut.
struct Relay {
    address: std::net::SocketAddr,
    streams: std::sync::Arc<std::sync::Mutex<Vec<std::net::TcpStream>>>,
    open: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Relay {
    fn to(url: &str) -> Relay {
        use std::net::{TcpListener, TcpStream};
        let target = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let streams = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let open = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let (own, is_open) = (streams.clone(), open.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if !is_open.load(std::sync::atomic::Ordering::SeqCst) {
                    return;
                }
                let server = TcpStream::connect(&target).unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Write);
                    });
                }
                own.lock().unwrap().extend([client, server]);
            }
        });
        Relay { address, streams, open }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn cut(&self) {
        self.open.store(false, std::sync::atomic::Ordering::SeqCst);
        for stream in self.streams.lock().unwrap().iter() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
