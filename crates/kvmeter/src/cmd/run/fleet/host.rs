//! The study on one host: prepared, run under a lease, its results collected.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fleet::{FleetHost, HostDevices, HostFolder, Hosted, HostedEnd, HostedLine, LinesEnded};
use model::Span;
use model::text::shell_word;
use record::ResultsFile;

use super::Fleet;
use super::board::HostMessage;
use crate::cmd::run::args::RunArgs;
use crate::exit::request;
use crate::hosts::program::{self, GivenPrograms};
use crate::output::Output;

const STUDY: &str = "study.toml";
const PLATFORM: &str = "platform.toml";
/// Where a study's published figures are looked for: beside it.
const PUBLISHED: &str = "published.toml";
const RESULTS: &str = "results.sqlite";
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long a host may take to end after it was told to, or after its last line.
const LAST_WAIT: Duration = Duration::from_secs(90);
/// How long before a scheduler takes a host away its study is ended, so that finished runs are
/// collected: at most so long, and at most so large a part of the time.
const BEFORE_END: Duration = Duration::from_secs(90);
const BEFORE_END_PART: u32 = 10;
/// Exit code of a request that was wrong.
const REFUSED: i32 = 2;
/// A clock difference above this is reported.
const CLOCK_S: f64 = 1.0;

/// How a host ended.
pub struct HostEnd {
    /// The study is finished, and its results are here.
    pub whole: bool,
    pub valid: bool,
    /// The host refused the study; nothing of it is left there.
    pub refused: bool,
    /// The last words of a host that has not finished.
    pub why: String,
}

/// A host that is ready.
pub struct HostRun<'a> {
    fleet: &'a Fleet<'a>,
    host: &'a FleetHost,
    folder: HostFolder,
    script: String,
}

impl<'a> HostRun<'a> {
    /// Reaches the host and puts there what it needs.
    pub fn prepare(
        fleet: &'a Fleet<'a>,
        host: &'a FleetHost,
        show: &Output,
    ) -> anyhow::Result<HostRun<'a>> {
        let id = format!("{}-{}", fleet.id, host.name);
        let target = &fleet.target;
        let folder =
            HostFolder::create(&target.launcher, &host.name, target.folder.as_deref(), &id)?;
        let script = fill(fleet, host, &folder).inspect_err(|_| discard(&folder))?;
        let (offset, bound) = folder.clock_offset()?;
        if offset.abs() > CLOCK_S + bound {
            show.warn(&format!(
                "{}: its clock differs by {offset:+.1} s (within {bound:.1} s); times of its runs \
                 are its own",
                host.name
            ));
        }
        show.note(&format!("{}: ready, {}", host.name, folder.architecture));
        Ok(HostRun { fleet, host, folder, script })
    }

    pub fn name(&self) -> &str {
        &self.host.name
    }

    /// Removes what was put there now.
    pub fn discard(&self) {
        discard(&self.folder);
    }

    /// Runs the study until it ends, the host is lost or `stop` is set, and collects what there is.
    pub fn run(
        self,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(HostMessage),
    ) -> anyhow::Result<HostEnd> {
        let mut hosted = Hosted::start(&self.folder, &self.script, self.fleet.target.lease)?;
        let mut last_words = String::new();
        let launcher = &self.fleet.target.launcher;
        let last_moment = launcher.ends_at(&self.host.name).map(before);
        let mut why_stopped = "it was stopped";
        loop {
            match hosted.line(POLL_INTERVAL) {
                Ok(Some(HostedLine::Stdout(line))) => {
                    if self.fleet.args.dry_run {
                        tell(HostMessage::Printed(line));
                    }
                }
                Ok(Some(HostedLine::Stderr(line))) => match serde_json::from_str(&line) {
                    Ok(event) => tell(HostMessage::Run(event)),
                    Err(_) => {
                        last_words.clone_from(&line);
                        tell(HostMessage::Note(line));
                    }
                },
                Ok(None) => {}
                Err(LinesEnded) => break,
            }
            match hosted.stopped_for() {
                None if stop.load(Ordering::Relaxed) => hosted.stop(),
                None if last_moment.is_some_and(|moment| moment <= Instant::now()) => {
                    why_stopped = "the time limit of its job is near";
                    tell(HostMessage::Note(format!("{why_stopped}: the study is ended")));
                    hosted.stop();
                }
                Some(time) if time > LAST_WAIT => {
                    anyhow::bail!("{}: it does not end; its folder is kept there", self.host.name);
                }
                _ => {}
            }
        }
        let was_stopped = hosted.stopped_for().is_some();
        let end = hosted.wait(LAST_WAIT)?;
        if self.fleet.args.dry_run {
            self.discard();
            let whole = end == HostedEnd::Code(0);
            return Ok(HostEnd { whole, valid: whole, refused: !whole, why: last_words });
        }
        if end == HostedEnd::Lost {
            let why = launcher.why_lost(&self.host.name);
            return Err(self.lost(why.as_deref(), &last_words));
        }
        tell(HostMessage::Note("collecting its results".to_owned()));
        let here = self.fleet.results_of(&self.host.name);
        let found = self.folder.get(RESULTS, &here).map_err(|error| {
            // A command may end in order while its host is taken away.
            match launcher.why_lost(&self.host.name) {
                Some(why) => self.lost(Some(&why), &last_words),
                None => error.into(),
            }
        })?;
        let whole = found && is_finished(&here)?;
        let refused = end == HostedEnd::Code(REFUSED) && !found;
        if was_stopped {
            why_stopped.clone_into(&mut last_words);
        } else if !whole
            && !refused
            && let Some(why) = launcher.why_lost(&self.host.name)
        {
            // It had time to end, as a pod that is deleted has.
            last_words = why;
        }
        if (whole || refused)
            && !self.fleet.args.fleet.keep
            && let Err(error) = self.folder.remove()
        {
            tell(HostMessage::Note(format!("its folder stays there: {error}")));
        }
        let _ = launcher.release(&self.host.name);
        Ok(HostEnd { whole, valid: end == HostedEnd::Code(0), refused, why: last_words })
    }

    fn lost(&self, why: Option<&str>, last_words: &str) -> anyhow::Error {
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        anyhow::anyhow!("{}: the host was lost{why}; last heard: {last_words}", self.host.name)
    }
}

/// When a study is ended whose host is taken away at `end`.
fn before(end: Instant) -> Instant {
    let now = Instant::now();
    let left = end.saturating_duration_since(now);
    now + left.saturating_sub(BEFORE_END.min(left / BEFORE_END_PART))
}

/// Refuses a study's files that on a host would be taken for kvmeter's own.
pub fn refuse_own_names(files: &[String]) -> anyhow::Result<()> {
    let own = |file: &&String| {
        // `./results.sqlite` is the same file.
        let path = Path::new(file);
        let path = path.strip_prefix(".").unwrap_or(path);
        [STUDY, PLATFORM, PUBLISHED, RESULTS].iter().any(|own| path == Path::new(own))
    };
    files.iter().find(own).map_or(Ok(()), |file| {
        Err(request(format!(
            "the study's file `{file}` has the name of a file of kvmeter's own on each host; give \
             it another name, or put it into a folder"
        )))
    })
}

/// Removes a folder that was made now; one of a study that is resumed has finished runs.
fn discard(folder: &HostFolder) {
    if folder.is_new {
        let _ = folder.remove();
    }
    let _ = folder.launcher().release(folder.host());
}

/// Puts program, study and platform into the folder; returns the command of the study.
fn fill(fleet: &Fleet<'_>, host: &FleetHost, folder: &HostFolder) -> anyhow::Result<String> {
    let args = fleet.args;
    copy_named(fleet, folder)?;
    let program =
        program::install(folder, GivenPrograms { files: &args.fleet.binary, flag: "--binary" })?;
    let mut words = vec![program, "leased".to_owned(), "--lease".to_owned()];
    words.push(Span(fleet.target.lease).to_string());
    words.extend(["--".to_owned(), "run".to_owned()]);
    words.push(copied(&args.study, STUDY, folder)?);
    match args.dry_run {
        true => words.push("--dry-run".to_owned()),
        false => words.extend(["--out".to_owned(), RESULTS.to_owned()]),
    }
    words.push("--progress=json".to_owned());
    if let Some(scale) = &args.scale {
        words.push(format!("--scale={scale}"));
    }
    if let Some(time) = &args.max_time {
        words.push(format!("--max-time={time}"));
    }
    if let Some(platform) = host.platform.as_ref().or(args.platform.as_ref()) {
        study::open_platform(platform)
            .map_err(|why| request(format!("{}: platform {platform}: {why}", host.name)))?;
        words.push(format!("--platform={}", copied(platform, PLATFORM, folder)?));
    }
    for set in args.set.iter().chain(&host.set) {
        words.push(format!("--set={set}"));
    }
    if let Some(model) = &args.host.trust.trust_register {
        words.push(format!("--trust-register={model}"));
    }
    devices(args, host, &mut words);
    put_back(fleet, host, folder)?;
    let begun = folder.first_line(&format!("test -f {RESULTS} && echo begun"))?.is_some();
    if begun && !args.dry_run {
        words.push("--resume".to_owned());
    }
    let words: Vec<String> = words.iter().map(|word| shell_word(word).into_owned()).collect();
    Ok(format!("exec {}", words.join(" ")))
}

/// Puts what the study names of this machine's files where the host finds it.
fn copy_named(fleet: &Fleet<'_>, folder: &HostFolder) -> anyhow::Result<()> {
    for file in &fleet.files {
        folder.put_file(Path::new(file), file)?;
    }
    if let Some(text) = fleet.source.published() {
        folder.put(PUBLISHED, text.as_bytes(), false)?;
    }
    Ok(())
}

/// The devices of the command, where the host has none of its own.
fn devices(args: &RunArgs, host: &FleetHost, words: &mut Vec<String>) {
    let path = |path: &PathBuf| path.display().to_string();
    let HostDevices { device, confirm, overwrite } = match host.devices == HostDevices::default() {
        true => HostDevices {
            device: args.device.iter().map(path).collect(),
            confirm: args.confirm.clone(),
            overwrite: args.overwrite.clone(),
        },
        false => host.devices.clone(),
    };
    words.extend(device.iter().map(|path| format!("--device={path}")));
    words.extend(confirm.iter().map(|name| format!("--confirm={name}")));
    words.extend(overwrite.iter().map(|word| format!("--overwrite={word}")));
}

/// What was collected of a host whose folder is gone, as it is with a pod, is continued there.
fn put_back(fleet: &Fleet<'_>, host: &FleetHost, folder: &HostFolder) -> anyhow::Result<()> {
    let collected = fleet.results_of(&host.name);
    if !(fleet.args.resume && folder.is_new && collected.exists()) {
        return Ok(());
    }
    Ok(folder.put_file(&collected, RESULTS)?)
}

/// The name under which a host knows a file of this machine, which is copied; built-in names stay.
fn copied(name: &str, there: &str, folder: &HostFolder) -> anyhow::Result<String> {
    let path = Path::new(name);
    if !path.is_file() {
        return Ok(name.to_owned());
    }
    folder.put_file(path, there)?;
    Ok(there.to_owned())
}

/// Whether the last execution of a results file has ended.
fn is_finished(file: &Path) -> anyhow::Result<bool> {
    let executions = ResultsFile::read(file)?.executions()?;
    Ok(executions.last().is_some_and(|execution| execution.finished_at.is_some()))
}
