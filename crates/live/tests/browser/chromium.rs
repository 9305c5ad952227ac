//! Headless Chromium, driven through pipes (the DevTools protocol, one JSON object and a zero byte
//! a message).

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "../../../model/tests/shared/chromium_path.rs"]
mod chromium_path;

use chromium_path::chromium;

const LIMIT: Duration = Duration::from_secs(60);

/// A browser with one page; it ends when this is dropped.
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    next: u64,
    session: String,
    /// Errors and warnings of the console, and what was refused to be loaded.
    pub complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub fn start() -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = profile.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        // The browser reads descriptor 3 and writes descriptor 4.
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\""])
            .arg(chromium())
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--disable-dev-shm-usage"])
            .args(["--remote-debugging-pipe", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .env("TO", &to)
            .env("FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = File::options().write(true).open(to).unwrap();
        let from = messages(File::open(from).unwrap());
        let (session, complaints) = (String::new(), Vec::new());
        let mut browser =
            Browser { child, to, from, next: 0, session, complaints, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a page in a window of this width, light or dark.
    pub fn open(&mut self, url: &str, width: u32, dark: bool) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme =
            json!({ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [scheme] }));
        self.call("Page.navigate", json!({ "url": url }));
        self.until("document.readyState === 'complete'");
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.value(expression) != Value::Bool(true) {
            let text = self.value("document.body.innerText");
            assert!(begun.elapsed() < LIMIT, "never: {expression}\n{text}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A picture of the page as PNG, in base64.
    pub fn picture(&mut self) -> String {
        let whole = json!({ "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", whole)["data"].as_str().unwrap().to_owned()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        let end = Instant::now() + LIMIT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let answer = self.from.recv_timeout(left).expect("the browser does not answer");
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params.to_string()),
            Some("Runtime.consoleAPICalled") => self.complaints.push(params["args"].to_string()),
            Some("Log.entryAdded") => self.complaints.push(params["entry"].to_string()),
            _ => {}
        }
    }
}

fn messages(mut from: File) -> Receiver<Value> {
    let (sender, messages) = channel();
    thread::spawn(move || {
        let (mut read, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            read.extend_from_slice(&buffer[..count]);
            while let Some(end) = read.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = read.drain(..=end).collect();
                let Ok(message) = serde_json::from_slice(&message[..end]) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        }
    });
    messages
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
