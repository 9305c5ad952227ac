//! A hog in a process of its own beside a workload; the bandwidth that it achieved is a reading of
//! the run.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use micro::hog::{HogCounters, READY};
use micro::job::{MicroBench, MicroJob};
use model::signal::{BESIDE_BANDWIDTH, BESIDE_CPU, BESIDE_HELD, Signal};
use model::{ByteRate, Reading, ReadingValue};
use study::CoRunner;

use crate::error::ExecuteError;

/// Maximum output of a hog, in bytes; one line a request.
const MAX_OUTPUT: u64 = 64 << 20;
/// How long touching the hog's memory may take.
const LONGEST_START: Duration = Duration::from_secs(120);
/// How long the hog may take to report on an overloaded machine.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// Starts the hog; its traffic flows when this returns. `program` is kvmeter itself.
pub(crate) fn start(
    co_runner: &CoRunner,
    program: Option<&OsString>,
) -> Result<RunningHog, ExecuteError> {
    let failed = |why: String| ExecuteError::Failed(format!("[beside.hog]: {why}"));
    let program = program.ok_or_else(|| failed("kvmeter cannot find its own executable".into()))?;
    let job = MicroJob { bench: MicroBench::Hog(co_runner.0.clone()), window: None };
    let job = serde_json::to_string(&job).map_err(|error| failed(error.to_string()))?;
    let mut child = Command::new(program)
        .args(["micro", "job", &job])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (sender, answers) = mpsc::channel();
    // From here on the process ends with this value.
    let mut running =
        RunningHog { co_runner: co_runner.clone(), child, input, answers, opened: None };
    if let Some(output) = output {
        std::thread::spawn(move || {
            for line in BufReader::new(output.take(MAX_OUTPUT)).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    match running.answers.recv_timeout(LONGEST_START) {
        Ok(line) if line == READY => Ok(running),
        Ok(line) => Err(failed(format!("it said `{line}`"))),
        Err(_) => {
            running.end();
            Err(failed("it did not start; its message is above".into()))
        }
    }
}

/// A hog at work; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RunningHog {
    co_runner: CoRunner,
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    /// The report when the window opened.
    opened: Option<Result<HogCounters, String>>,
}

impl RunningHog {
    pub(crate) fn window_opens(&mut self) {
        self.opened = Some(self.look());
    }

    /// Readings since the window opened.
    pub(crate) fn window_closes(&mut self) -> Vec<Reading> {
        let closed = self.look();
        let opened = self.opened.take().unwrap_or_else(|| Err("the window never opened".into()));
        readings(&self.co_runner, opened, closed)
    }

    fn look(&mut self) -> Result<HogCounters, String> {
        let ended = || "the hog has ended".to_owned();
        let input = self.input.as_mut().ok_or_else(ended)?;
        input.write_all(b"look\n").map_err(|_| ended())?;
        let line = self
            .answers
            .recv_timeout(LONGEST_LOOK)
            .map_err(|_| format!("the hog did not answer within {} s", LONGEST_LOOK.as_secs()))?;
        line.parse()
    }

    fn end(&mut self) {
        // The hog ends at the end of its input; the kill bounds the wait.
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for RunningHog {
    fn drop(&mut self) {
        self.end();
    }
}

fn readings(
    co_runner: &CoRunner,
    opened: Result<HogCounters, String>,
    closed: Result<HogCounters, String>,
) -> Vec<Reading> {
    let between = opened.and_then(|opened| Ok((opened, closed?)));
    let window_s = match &between {
        Ok((a, b)) => b.nanoseconds.saturating_sub(a.nanoseconds) as f64 / 1e9,
        Err(_) => 0.0,
    };
    let reading = |signal: Signal, value: Result<f64, String>| {
        let answer = match value {
            Ok(value) => ReadingValue::Value(value),
            Err(reason) => ReadingValue::Unavailable { reason, remedy: None },
        };
        let source = format!("the hog on CPUs {}: {}", co_runner.cpus(), signal.source);
        Reading { source, ..signal.answered(answer, window_s) }
    };
    let of = |value: fn(&HogCounters) -> u64| match &between {
        Ok((a, b)) => Ok(value(b).saturating_sub(value(a)) as f64),
        Err(why) => Err(why.clone()),
    };
    let bandwidth = of(|look| look.bytes).and_then(|bytes| match window_s {
        0.0 => Err("the window was too short".to_owned()),
        seconds => Ok(bytes / seconds),
    });
    let cpu_s = of(|look| look.cpu_ns).map(|nanoseconds| nanoseconds / 1e9);
    let mut all = vec![reading(BESIDE_BANDWIDTH, bandwidth.clone()), reading(BESIDE_CPU, cpu_s)];
    if let Some(ByteRate(asked)) = co_runner.0.rate {
        let share = bandwidth.map(|bandwidth| bandwidth / asked);
        all.push(reading(BESIDE_HELD, share));
    }
    all
}

/// A warning where the hog did not achieve its rate.
pub(crate) fn doubt(value: &impl Fn(&str) -> Option<f64>) -> Option<String> {
    let achieved =
        value(BESIDE_HELD.name).filter(|achieved| *achieved < micro::hog::MIN_RATE_SHARE)?;
    Some(format!(
        "the hog took only {:.1} % of its target bandwidth; give it more CPUs in [beside.hog], or \
         lower its rate",
        achieved * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    use micro::job::HogArgs;

    #[test]
    fn readings_are_differences_of_two_reports() {
        let rate = Some(ByteRate(2e9));
        let co_runner = CoRunner(HogArgs { rate, ..HogArgs::default() });
        let look = |bytes, nanoseconds, cpu_ns| Ok(HogCounters { bytes, nanoseconds, cpu_ns });
        let between = readings(
            &co_runner,
            look(1_000, 500, 10),
            look(1_000_001_000, 1_000_000_500, 500_000_010),
        );
        let value =
            |signal: &str| between.iter().find(|r| r.signal == signal).and_then(Reading::value);
        assert_eq!(value(BESIDE_BANDWIDTH.name), Some(1e9));
        assert_eq!((value(BESIDE_CPU.name), value(BESIDE_HELD.name)), (Some(0.5), Some(0.5)));
        assert!(doubt(&value).unwrap().contains("50.0 %"));
        let lost = readings(&co_runner, look(0, 0, 0), Err("the hog has ended".to_owned()));
        assert!(lost.iter().all(|reading| reading.value().is_none()));
    }
}
