//! A preconditioning: purge, sequential writes, random writes.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::consent::Consent;
use super::content::FoundContent;
use super::error::{PreconditionError, WriteError};
use super::journal::JournalNote;
use super::nvme::Erasure;
use super::random::{RandomWrites, SteadyOutcome, SteadyRule};
use super::request::{PreconditionRequest, Purge};
use super::sequential::SequentialWrites;
use super::target::{Target, TargetKind};
use super::{purge, random, sequential};

/// Block sizes of the published tool and the specification.
const SEQUENTIAL_BLOCK: usize = 128 << 10;
const RANDOM_BLOCK: usize = 4 << 10;

/// The phase of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JobPhase {
    Purging,
    /// A sanitize or format, which the device does by itself.
    Erasing,
    Sequential,
    Random {
        round: u32,
        most: u32,
    },
}

/// The progress of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobProgress {
    pub phase: JobPhase,
    /// Share of this phase, 0 to 1; none where the end is not known.
    pub done: Option<f64>,
    /// Bytes that this phase wrote, and bytes a second since it began or resumed.
    pub bytes: u64,
    pub bytes_s: f64,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    Done,
    /// Not steady after the most rounds.
    NotSteady,
    TimeLimit,
    Stopped,
}

/// The random writes.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomReport {
    /// Writes per second of each round.
    pub rounds: Vec<f64>,
    pub steady: bool,
}

/// The result, earlier invocations included.
#[derive(Debug, Clone, PartialEq)]
pub struct JobReport {
    pub ended: JobEnd,
    /// The purge that was done, in words.
    pub purged: String,
    pub range_bytes: u64,
    pub written_bytes: u64,
    pub total_bytes: u64,
    pub random: Option<RandomReport>,
    pub seconds: f64,
}

/// A confirmed target and the settings.
#[derive(Debug)]
pub struct PreconditionJob<'a> {
    target: &'a Target,
    order: PreconditionRequest,
    note: JournalNote,
    state: PathBuf,
}

impl<'a> PreconditionJob<'a> {
    /// Writes nothing yet. `state` is the file that records the progress; with `resume` the job
    /// continues from there.
    ///
    /// # Errors
    /// The target is not confirmed or too small, the settings are invalid, or there is nothing to
    /// resume.
    pub fn new(
        target: &'a Target,
        order: PreconditionRequest,
        consent: &Consent,
        state: PathBuf,
        resume: bool,
    ) -> Result<PreconditionJob<'a>, PreconditionError> {
        check(target, &order)?;
        let mut note = match resume {
            true => JournalNote::read(&state, target, &order)?,
            false => {
                JournalNote::check(&state)?;
                JournalNote::new(target, &order)
            }
        };
        // Content whose loss was allowed before, and its remainders. If the target was blank then,
        // unknown data is newer and needs consent.
        let begun = note.purged || note.written > 0;
        target.confirm_except(consent, |found: &FoundContent| {
            begun && found.may_be_remainder_of(&note.overwritten)
        })?;
        note.also_overwrites(target);
        Ok(PreconditionJob { target, order, note, state })
    }

    /// The steps that the job would take, one line each.
    ///
    /// # Errors
    /// The settings are invalid for this target.
    pub fn describe(
        target: &Target,
        order: &PreconditionRequest,
    ) -> Result<Vec<String>, PreconditionError> {
        check(target, order)?;
        let path = target.path.display();
        let bytes = |bytes: u64| model::Bytes(bytes).to_string();
        let kind = match target.kind {
            TargetKind::Device => "device",
            TargetKind::File => "file",
        };
        let mut lines = vec![format!("{path}: {kind} of {} B", target.bytes)];
        lines.push(match effective_purge(target, order) {
            Purge::Sanitize | Purge::Format => match erasure(target, order)? {
                Some(erasure) => erasure.describe(),
                None => "no purge".to_owned(),
            },
            Purge::Discard if target.kind == TargetKind::File => "make it one hole".to_owned(),
            Purge::Discard => "discard every block".to_owned(),
            Purge::None if order.purge == Purge::None => "no purge".to_owned(),
            Purge::None => "no purge: the device cannot discard".to_owned(),
        });
        let (range, total) = (range(target, order), total(target, order));
        lines.push(format!(
            "write {} sequentially in blocks of 128 KiB, {} in flight, within the first {} ({:.0} \
             %)",
            bytes(total),
            order.depth,
            bytes(range),
            order.share * 100.0
        ));
        if let Some((round, most)) = order.random {
            lines.push(format!(
                "write blocks of 4 KiB at random there, in rounds of {} s until they are steady, at \
                 most {most}",
                round.as_secs_f64()
            ));
        }
        Ok(lines)
    }

    /// Runs the job. Everything on the target is lost. It ends early when `stop` is set or after
    /// `limit`, and can be resumed then. `rule` decides when random writes are steady.
    ///
    /// # Errors
    /// The device is in use by now, failed (with the sector), or the progress cannot be recorded.
    pub fn run(
        mut self,
        limit: Option<Duration>,
        rule: SteadyRule,
        stop: &AtomicBool,
        report: &mut dyn FnMut(&JobProgress),
    ) -> Result<JobReport, PreconditionError> {
        let begun = Instant::now();
        let limit = limit.and_then(|limit| begun.checked_add(limit));
        // Without a limit: a century.
        let limit = limit.unwrap_or(begun + Duration::from_secs(3_200_000_000));
        let path = self.target.path.clone();
        let failed = |error| PreconditionError::Failed { path: path.clone(), error };
        self.target.check_unchanged()?;
        let file = self.target.writable().map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => PreconditionError::Refused {
                path: path.clone(),
                why: "another program created it since it was checked; nothing was written"
                    .to_owned(),
            },
            _ => failed(WriteError::Call { what: "opening it past the page cache", error }),
        })?;
        let erasure = if self.note.purged { None } else { erasure(self.target, &self.order)? };
        let target = self.target;
        let failed = |error| failed(of_target(error, target, &file));
        let purged = self.purge(&file, erasure, limit, stop, report).map_err(failed)?;
        let total = total(self.target, &self.order);
        let mut ended = self.sequential(&file, limit, stop, report).map_err(failed)?;
        let mut random = None;
        if let (JobEnd::Done, Some((round, most))) = (ended, self.order.random) {
            let scatter = RandomWrites {
                range: range(self.target, &self.order),
                block: RANDOM_BLOCK,
                depth: self.order.depth as usize,
                round,
                most_rounds: most as usize,
                rule,
                rate: self.order.rate,
            };
            ended = self.random(&file, &scatter, limit, stop, report).map_err(failed)?;
            let rounds = self.note.rounds.clone();
            random = Some(RandomReport { steady: rule.is_steady(&rounds), rounds });
        }
        file.sync_all()
            .map_err(|error| failed(WriteError::Call { what: "flushing its cache", error }))?;
        if matches!(ended, JobEnd::Done | JobEnd::NotSteady) {
            // There is nothing to resume.
            let _ = std::fs::remove_file(&self.state);
        }
        Ok(JobReport {
            ended,
            purged,
            range_bytes: range(self.target, &self.order),
            written_bytes: self.note.written,
            total_bytes: total,
            random,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    fn purge(
        &mut self,
        file: &File,
        erasure: Option<Erasure>,
        limit: Instant,
        stop: &AtomicBool,
        report: &mut dyn FnMut(&JobProgress),
    ) -> Result<String, WriteError> {
        if self.note.purged {
            return Ok("purged before".to_owned());
        }
        let progress = |phase, done| JobProgress { phase, done, bytes: 0, bytes_s: 0.0 };
        // From here on the content counts as lost.
        self.note.write(&self.state)?;
        let words = match effective_purge(self.target, &self.order) {
            Purge::Discard => {
                report(&progress(JobPhase::Purging, None));
                purge::discard(file, self.target)?;
                "discarded"
            }
            Purge::Sanitize | Purge::Format => {
                report(&progress(JobPhase::Erasing, None));
                let mut share = |done| report(&progress(JobPhase::Erasing, Some(done)));
                if let Some(erasure) = erasure {
                    erasure.run(file, limit, stop, &mut share)?;
                }
                if self.order.purge == Purge::Format { "formatted" } else { "sanitized" }
            }
            Purge::None if self.order.purge == Purge::None => "not purged, as requested",
            Purge::None => "not purged: the device cannot discard",
        };
        self.note.purged = true;
        self.note.write(&self.state)?;
        Ok(words.to_owned())
    }

    fn sequential(
        &mut self,
        file: &File,
        limit: Instant,
        stop: &AtomicBool,
        report: &mut dyn FnMut(&JobProgress),
    ) -> Result<JobEnd, WriteError> {
        let sequence = SequentialWrites {
            range: range(self.target, &self.order),
            total: total(self.target, &self.order),
            from: self.note.written,
            block: SEQUENTIAL_BLOCK,
            depth: self.order.depth as usize,
            rate: self.order.rate,
        };
        let begun = Instant::now();
        let PreconditionJob { note, state, .. } = self;
        let mut look = |written: u64| {
            note.written = written;
            let gained = (written - sequence.from) as f64;
            report(&JobProgress {
                phase: JobPhase::Sequential,
                done: Some(written as f64 / sequence.total.max(1) as f64),
                bytes: written,
                bytes_s: gained / begun.elapsed().as_secs_f64().max(1e-9),
            });
            note.write(state)
        };
        let written = sequential::write(file, &sequence, limit, stop, &mut look)?;
        look(written)?;
        Ok(match written == sequence.total {
            true => JobEnd::Done,
            false => early_end(stop),
        })
    }

    fn random(
        &mut self,
        file: &File,
        scatter: &RandomWrites,
        limit: Instant,
        stop: &AtomicBool,
        report: &mut dyn FnMut(&JobProgress),
    ) -> Result<JobEnd, WriteError> {
        let mut rounds = std::mem::take(&mut self.note.rounds);
        let PreconditionJob { note, state, .. } = self;
        let begun = Instant::now();
        let before = rounds.len();
        let mut look = |rounds: &[f64], written: u64| {
            let in_round = scatter.round.as_secs_f64() * (rounds.len() - before) as f64;
            let since = (begun.elapsed().as_secs_f64() - in_round).max(1e-9);
            let bytes = written * scatter.block as u64;
            report(&JobProgress {
                phase: JobPhase::Random {
                    round: rounds.len() as u32 + 1,
                    most: scatter.most_rounds as u32,
                },
                done: None,
                bytes,
                bytes_s: bytes as f64 / since,
            });
            if note.rounds != rounds {
                note.rounds = rounds.to_vec();
                note.write(state)?;
            }
            Ok(())
        };
        let settled = random::write(file, scatter, &mut rounds, limit, stop, &mut look)?;
        self.note.rounds = rounds;
        Ok(match settled {
            SteadyOutcome::Steady => JobEnd::Done,
            SteadyOutcome::NotSteady => JobEnd::NotSteady,
            SteadyOutcome::Interrupted => early_end(stop),
        })
    }
}

/// The erasure that the device does by itself, if there is one.
fn erasure(
    target: &Target,
    order: &PreconditionRequest,
) -> Result<Option<Erasure>, PreconditionError> {
    let refused = |why| PreconditionError::Refused { path: target.path.clone(), why };
    let Some(device) = target.device() else { return Ok(None) };
    let erasure_found = match order.purge {
        Purge::Sanitize => Erasure::sanitize(device).map_err(refused)?,
        Purge::Format => Erasure::format(device).map_err(refused)?,
        Purge::Discard | Purge::None => return Ok(None),
    };
    match &target.others_in_use {
        Some(why) if erasure_found.reaches_others() => {
            Err(refused(format!("{}, and {why}", erasure_found.describe())))
        }
        _ => Ok(Some(erasure_found)),
    }
}

/// The error, with what has become of the device.
fn of_target(error: WriteError, target: &Target, mut file: &File) -> WriteError {
    match target.kind {
        TargetKind::Device => error.of_device(target.bytes, file.seek(SeekFrom::End(0))),
        TargetKind::File => error,
    }
}

fn early_end(stop: &AtomicBool) -> JobEnd {
    match stop.load(std::sync::atomic::Ordering::Relaxed) {
        true => JobEnd::Stopped,
        false => JobEnd::TimeLimit,
    }
}

/// The purge that the target supports.
fn effective_purge(target: &Target, order: &PreconditionRequest) -> Purge {
    match order.purge {
        Purge::Discard if !target.can_discard => Purge::None,
        other => other,
    }
}

/// Bytes of addresses that are written.
fn range(target: &Target, order: &PreconditionRequest) -> u64 {
    let block = target.logical_block.max(RANDOM_BLOCK as u64);
    (target.bytes as f64 * order.share) as u64 / block * block
}

fn total(target: &Target, order: &PreconditionRequest) -> u64 {
    let block = target.logical_block.max(RANDOM_BLOCK as u64);
    (target.bytes as f64 * order.times) as u64 / block * block
}

fn check(target: &Target, order: &PreconditionRequest) -> Result<(), PreconditionError> {
    let no = |why: String| Err(PreconditionError::Refused { path: target.path.clone(), why });
    if !(order.share > 0.0 && order.share <= 1.0) {
        return no(format!("a share of {} is not more than 0 and at most 100 %", order.share));
    }
    if !(0.0..=100.0).contains(&order.times) {
        return no(format!("{} times the capacity is not from 0 to 100", order.times));
    }
    if !(1..=4096).contains(&order.depth) {
        return no(format!("{} writes in flight are not from 1 to 4096", order.depth));
    }
    if order.rate.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
        return no("a rate of 0 or below never ends".to_owned());
    }
    if let Some((round, most)) = order.random
        && (round.is_zero() || most == 0)
    {
        return no("the steady state needs one round or more, each longer than 0 s".to_owned());
    }
    if matches!(order.purge, Purge::Sanitize | Purge::Format) && target.kind == TargetKind::File {
        let words = "a file cannot be sanitized or formatted; leave out --sanitize or --format";
        return no(words.to_owned());
    }
    if target.logical_block > RANDOM_BLOCK as u64 {
        return no(format!("has blocks of {} B; at most 4096 are supported", target.logical_block));
    }
    if range(target, order) < SEQUENTIAL_BLOCK as u64 {
        return no(format!(
            "{} B are too small: the part that is written holds no block of 128 KiB",
            target.bytes
        ));
    }
    erasure(target, order).map(drop)
}
