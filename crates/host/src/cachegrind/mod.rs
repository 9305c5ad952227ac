//! Simulated event counts: the same workload under valgrind's cachegrind,
//! which counts instructions and branches exactly and simulates two levels of
//! cache and a branch predictor (Cachegrind manual). The model has a simple
//! cache and predictor, one thread at a time, no prefetching, no TLB and no
//! kernel code.

mod geometry;
mod totals;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::signal::{
    SIMULATED_BRANCHES, SIMULATED_D1_MISSES, SIMULATED_INSTRUCTIONS, SIMULATED_LL_MISSES,
    SIMULATED_MISPREDICTS, Signal,
};
use model::{Reading, Scope, Unavailable};
use thiserror::Error;

use crate::root::Root;

pub use geometry::{CacheGeometry, SimulatedCache};
pub use totals::EventTotals;

/// Why a simulation gave no figures.
#[derive(Debug, Error)]
pub enum CachegrindError {
    #[error("{program} could not be started: {why}; give the full path of the program")]
    Start { program: String, why: io::Error },
    #[error(
        "`{command}` did not end within {limit:?} under cachegrind, which slows it 20 to 100 \
         times; run fewer operations or allow more time"
    )]
    TooLong { command: String, limit: Duration },
    #[error("`{command}` was stopped under cachegrind")]
    Stopped { command: String },
    #[error(
        "`{command}` failed under cachegrind ({status}): {said}; run it without cachegrind first"
    )]
    Failed { command: String, status: String, said: String },
    #[error(
        "cachegrind's file {path} could not be read: {why}; end the program by itself or with SIGTERM"
    )]
    Read { path: String, why: io::Error },
    #[error("cachegrind's file {path} {what}; use valgrind 3.15 or later")]
    Malformed { path: String, what: &'static str },
    #[error(
        "{many} operations took fewer {what} than {few}: start-up does not cancel out; run the \
         same command with more operations, and with a fixed seed"
    )]
    NotMore { few: u64, many: u64, what: &'static str },
    #[error(
        "two runs of {few} operations differ by {share:.0} % of what {many} operations add: \
         start-up varies; run more operations, with a fixed seed"
    )]
    Unsteady { few: u64, many: u64, share: f64 },
}

/// Events an operation, from two runs of different length.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedEvents {
    pub instructions_per_op: f64,
    pub branches_per_op: f64,
    /// These three can be so few that the variation of start-up hides them.
    pub mispredicts_per_op: Result<f64, Unavailable>,
    /// Reads and writes that missed the first level's data cache.
    pub d1_misses_per_op: Result<f64, Unavailable>,
    /// Reads, writes and instruction fetches that missed the last level.
    pub ll_misses_per_op: Result<f64, Unavailable>,
    /// Difference in instructions of two runs of the same length, as a share of
    /// the difference that the figures are computed from; 0 where unknown.
    pub unsteadiness: f64,
    pub geometry: CacheGeometry,
}

impl SimulatedEvents {
    /// Events per operation, from the difference between `many` and `few`
    /// operations: a constant part (start-up, loading records) cancels.
    ///
    /// # Errors
    /// `many` is not more than `few`, or took fewer instructions or branches.
    pub fn between(
        few: (&EventTotals, u64),
        many: (&EventTotals, u64),
        geometry: CacheGeometry,
    ) -> Result<SimulatedEvents, CachegrindError> {
        let more = |what: &'static str, of: fn(&EventTotals) -> u64| {
            let not_more = || CachegrindError::NotMore { few: few.1, many: many.1, what };
            let operations = many.1.checked_sub(few.1).filter(|n| *n > 0).ok_or_else(not_more)?;
            let events = of(many.0).checked_sub(of(few.0)).ok_or_else(not_more)?;
            Ok::<f64, CachegrindError>(events as f64 / operations as f64)
        };
        let countable = |what, of| {
            more(what, of).map_err(|_| {
                Unavailable::new(
                    format!("{} operations took fewer {what} than {}", many.1, few.1),
                    "they are too few to separate from start-up: run more operations, or use more \
                     records than the simulated cache holds",
                )
            })
        };
        Ok(SimulatedEvents {
            instructions_per_op: more("instructions", |totals| totals.instructions)?,
            branches_per_op: more("branches", |totals| totals.branches)?,
            mispredicts_per_op: countable("mispredicted branches", |totals| totals.mispredicts),
            d1_misses_per_op: countable("D1 misses", |totals| totals.d1_misses),
            ll_misses_per_op: countable("LL misses", |totals| totals.ll_misses),
            unsteadiness: 0.0,
            geometry,
        })
    }

    /// [`SimulatedEvents::between`] of the first of two short runs and a long one.
    ///
    /// # Errors
    /// As there; and where the two short runs differ by more than [`MAX_UNSTEADINESS`] of the
    /// difference.
    pub fn steady(
        (first, again, few): (&EventTotals, &EventTotals, u64),
        (more, many): (&EventTotals, u64),
        geometry: CacheGeometry,
    ) -> Result<SimulatedEvents, CachegrindError> {
        let events = SimulatedEvents::between((first, few), (more, many), geometry)?;
        let off = first.instructions.abs_diff(again.instructions) as f64;
        let difference = (more.instructions - first.instructions) as f64;
        // Without a difference there are no figures.
        let unsteadiness = if difference > 0.0 { off / difference } else { f64::INFINITY };
        if unsteadiness > MAX_UNSTEADINESS {
            return Err(CachegrindError::Unsteady { few, many, share: unsteadiness * 100.0 });
        }
        Ok(SimulatedEvents { unsteadiness, ..events })
    }

    /// The figures as readings of a million operations, marked simulated.
    pub fn readings(&self, scope: Scope) -> Vec<Reading> {
        let (instructions, branches) = (Ok(self.instructions_per_op), Ok(self.branches_per_op));
        let figures = [
            (SIMULATED_INSTRUCTIONS, &instructions),
            (SIMULATED_BRANCHES, &branches),
            (SIMULATED_MISPREDICTS, &self.mispredicts_per_op),
            (SIMULATED_D1_MISSES, &self.d1_misses_per_op),
            (SIMULATED_LL_MISSES, &self.ll_misses_per_op),
        ];
        let reading = |(signal, figure): (Signal, &Result<f64, Unavailable>)| {
            let per_mop = figure.clone().map(|an_operation| an_operation * 1e6);
            let source = format!("{}; {}", signal.source, self.geometry);
            Reading { scope, source, ..signal.reading(per_mop, Duration::ZERO) }
        };
        figures.map(reading).to_vec()
    }
}

/// A valgrind that was found, and the caches that it shall simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cachegrind {
    program: PathBuf,
    geometry: CacheGeometry,
}

/// Where a recorded machine would have it; the running one is asked for its `PATH`.
const USUAL: [&str; 2] = ["/usr/local/bin/valgrind", "/usr/bin/valgrind"];

/// Largest difference of two short runs, as a share of that between a short and a long one.
pub const MAX_UNSTEADINESS: f64 = 0.05;

/// How often a run is polled for its end.
const POLL: Duration = Duration::from_millis(10);

impl Cachegrind {
    /// Finds valgrind on this machine.
    ///
    /// # Errors
    /// It is not installed.
    pub fn find(root: &Root, geometry: CacheGeometry) -> Result<Cachegrind, Unavailable> {
        Ok(Cachegrind { program: program(root)?, geometry })
    }

    /// The caches that are simulated.
    pub fn geometry(&self) -> &CacheGeometry {
        &self.geometry
    }

    /// The command prefix that runs a server under cachegrind; `folder` exists
    /// and receives its file. Read it with [`Cachegrind::totals`] after the
    /// server has ended, by itself or by SIGTERM.
    pub fn prefix(&self, folder: &Path) -> Vec<OsString> {
        let file = |option: &str, name: &str| {
            let mut text = OsString::from(option);
            text.push(folder.join(name));
            text
        };
        let mut words = vec![
            self.program.clone().into_os_string(),
            "--tool=cachegrind".into(),
            "--cache-sim=yes".into(),
            "--branch-sim=yes".into(),
            // A process that the program forks gets files of its own.
            file("--cachegrind-out-file=", "cachegrind.%p"),
            file("--log-file=", "valgrind.%p"),
        ];
        words.extend(self.geometry.options().map(OsString::from));
        words
    }

    /// The event totals of the process `pid`, from its file in `folder`.
    ///
    /// # Errors
    /// There is no file, or not one of cachegrind.
    pub fn totals(folder: &Path, pid: u32) -> Result<EventTotals, CachegrindError> {
        let path = folder.join(format!("cachegrind.{pid}"));
        let shown = path.display().to_string();
        let text = fs::read_to_string(&path)
            .map_err(|why| CachegrindError::Read { path: shown.clone(), why })?;
        EventTotals::parse(&text).map_err(|what| CachegrindError::Malformed { path: shown, what })
    }

    /// Runs a command to its end under cachegrind; `folder` exists and takes
    /// its files. It is killed after `limit`, and when `stop` is raised.
    ///
    /// # Errors
    /// It cannot be started, fails, takes too long, is stopped or leaves no figures.
    pub fn run(
        &self,
        command: &[OsString],
        folder: &Path,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<EventTotals, CachegrindError> {
        let shown = command.join(OsStr::new(" ")).to_string_lossy().into_owned();
        let start =
            |why| CachegrindError::Start { program: self.program.display().to_string(), why };
        let words = self.prefix(folder);
        // Into a file, not a pipe, so that a command with much output does not block.
        let said = folder.join("stderr");
        let child = Command::new(&words[0])
            .args(&words[1..])
            .args(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said).map_err(start)?)
            .spawn()
            .map_err(start)?;
        let pid = child.id();
        let status = match wait(child, limit, stop).map_err(start)? {
            ChildEnd::Ended(status) => status,
            ChildEnd::TooLong => return Err(CachegrindError::TooLong { command: shown, limit }),
            ChildEnd::Stopped => return Err(CachegrindError::Stopped { command: shown }),
        };
        if !status.success() {
            let words = fs::read_to_string(&said).unwrap_or_default();
            let log = fs::read_to_string(folder.join(format!("valgrind.{pid}")));
            let text = if words.trim().is_empty() { log.unwrap_or_default() } else { words };
            let last =
                text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            return Err(CachegrindError::Failed {
                command: shown,
                status: status.to_string(),
                said: last.trim().to_owned(),
            });
        }
        Cachegrind::totals(folder, pid)
    }

    /// Runs a command with `few` operations twice and with `many` once, and
    /// takes the difference. `limit` is that of each run. Start-up may vary (a
    /// program that calibrates its clock): that must be small compared with the
    /// difference.
    ///
    /// # Errors
    /// As [`Cachegrind::run`] and [`SimulatedEvents::between`]; and where the two
    /// short runs differ by more than [`MAX_UNSTEADINESS`] of the difference.
    pub fn per_operation(
        &self,
        command: impl Fn(u64) -> Vec<OsString>,
        (few, many): (u64, u64),
        folder: &Path,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<SimulatedEvents, CachegrindError> {
        let first = self.run(&command(few), folder, limit, stop)?;
        let again = self.run(&command(few), folder, limit, stop)?;
        let more = self.run(&command(many), folder, limit, stop)?;
        SimulatedEvents::steady((&first, &again, few), (&more, many), self.geometry.clone())
    }
}

/// The path of valgrind.
fn program(root: &Root) -> Result<PathBuf, Unavailable> {
    let located = match root.is_live() {
        true => std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join("valgrind"))
            .find(|path| path.is_file()),
        false => USUAL.into_iter().find(|path| root.exists(path)).map(PathBuf::from),
    };
    located.ok_or_else(|| {
        Unavailable::new(
            "valgrind is not in PATH",
            "install it (apt-get install valgrind): its cachegrind simulates the counters",
        )
    })
}

/// How a child ended: by itself, or killed.
enum ChildEnd {
    Ended(ExitStatus),
    TooLong,
    Stopped,
}

fn wait(mut child: Child, limit: Duration, stop: &AtomicBool) -> io::Result<ChildEnd> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(ChildEnd::Ended(status));
        }
        let stopped = stop.load(Ordering::Relaxed);
        if stopped || began.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(if stopped { ChildEnd::Stopped } else { ChildEnd::TooLong });
        }
        thread::sleep(POLL);
    }
}
