//! Runs the command in a folder of its own.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub struct Place {
    folder: tempfile::TempDir,
}

/// What a process said.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.file(name), text).unwrap();
        self.file(name)
    }

    /// The same for its owner alone.
    pub fn secret(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmeter"));
        command
            .args(args)
            .current_dir(self.path())
            // Nothing of the tester's own is touched.
            .env("HOME", self.path())
            .env("XDG_STATE_HOME", self.file("state"))
            // One study at a time on a machine, but each test is one.
            .env("KVMETER_STATE_DIR", self.file("state/kvmeter"))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        command_output(self.command(args).output().unwrap())
    }

    /// Runs it, expects success, and answers its standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        let result = self.run(args);
        let head: String = result.out.chars().take(1000).collect();
        assert_eq!(result.code, 0, "kvmeter {args:?}: {}\n{head}", result.err);
        result.out
    }

    /// Runs a study to its end, killed (`kill -9`) again and again, each time a little later, and
    /// resumed; `began` says when the first attempt has something to lose, `killed` gets the number
    /// of kills after each. At least so many kills, or nothing was tried.
    pub fn through_kills(
        &self,
        args: &[&str],
        least: u32,
        began: impl Fn() -> bool,
        killed: impl Fn(u32),
    ) {
        for kills in 0.. {
            let resumed: &[&str] = if kills == 0 { &[] } else { &["--resume"] };
            let words = std::fs::File::create(self.file("words")).unwrap();
            let mut child = self.command(&[args, resumed].concat());
            let mut child = child.stdout(Stdio::null()).stderr(words).spawn().unwrap();
            if kills == 0 {
                until("the first run", &began);
            }
            std::thread::sleep(Duration::from_millis(700 + 400 * u64::from(kills)));
            if let Some(status) = child.try_wait().unwrap() {
                let words = std::fs::read_to_string(self.file("words")).unwrap();
                assert!(status.success(), "{status}: {words}");
                assert!(kills >= least, "only {kills} kills: too short a study for this test");
                return;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(kills < 40, "it never gets through");
            killed(kills + 1);
        }
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let out = self.ok(args);
        CommandOutput { code: 0, out, err: String::new() }.json()
    }

    /// Runs it and expects a refusal whose message holds all of `words`.
    pub fn refused(&self, args: &[&str], words: &[&str]) {
        let result = self.run(args);
        assert_eq!(result.code, 2, "kvmeter {args:?}: {result:#?}");
        for word in words {
            assert!(
                result.err.contains(word),
                "kvmeter {args:?} does not say `{word}`:\n{}",
                result.err
            );
        }
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

impl CommandOutput {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.err))
    }
}

pub fn command_output(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Waits until something holds; fails after a minute.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "{what} did not come to be");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The value of a signal in a run's JSON.
pub fn value(run: &Value, signal: &str) -> f64 {
    let readings = run["readings"].as_array().unwrap();
    let json = readings.iter().find(|reading| reading["signal"] == signal);
    let json = json.unwrap_or_else(|| panic!("{signal} was not read"));
    json["answer"]["value"].as_f64().unwrap_or_else(|| panic!("{signal}: {json}"))
}
