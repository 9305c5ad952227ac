//! A study on other machines: each runs it whole and keeps its own results, which are merged here.

mod board;
mod host;
mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::Context;
use fleet::{EarlierAttempt, FleetError, FleetTarget};
use live::Feed;
use record::RunSelection;
use study::StudyText;

use self::board::{Board, HostMessage};
use self::host::{HostEnd, HostRun, refuse_own_names};
use self::state::FleetState;
use super::args::RunArgs;
use super::finish::resume_hint;
use super::paths::output_paths;
use crate::cmd::report::{self, ReportArgs};
use crate::exit::{ExitOutcome, request};
use crate::flags::live::LivePage;
use crate::interrupt::stop_flag;
use crate::output::Output;
use crate::output_files;

/// Messages of all hosts that wait to be shown; hosts that print faster wait.
const MAX_WAITING: usize = 256;

/// How each host ended.
type Ends = BTreeMap<String, anyhow::Result<HostEnd>>;

/// What all hosts have in common.
struct Fleet<'a> {
    args: &'a RunArgs,
    source: &'a StudyText,
    /// Files of this machine that the study names.
    files: Vec<String>,
    target: FleetTarget,
    /// Results of the hosts, beside the merged file.
    folder: PathBuf,
    id: String,
}

pub fn run(
    args: &RunArgs,
    hosts: &str,
    source: &StudyText,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let page = args.page(source)?;
    let ended = run_with(args, hosts, source, &page, show);
    page.end(&ended);
    ended
}

fn run_with(
    args: &RunArgs,
    hosts: &str,
    source: &StudyText,
    page: &LivePage,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    if let Some(device) = args.device.iter().find(|path| path.is_relative()) {
        return Err(request(format!(
            "--device {}: is a path of each host; give an absolute path, or `device` of each host \
             in a fleet file",
            device.display()
        )));
    }
    if args.host.root.is_some() {
        return Err(request("--root: is of this machine; leave it out, or leave out --on"));
    }
    let spec = source.spec()?;
    let has_questions = !spec.questions.is_empty();
    let mut target = FleetTarget::parse(hosts).map_err(on)?;
    if args.dry_run
        && let Some(manifest) = target.manifest()
    {
        println!("{}", serde_json::to_string_pretty(&manifest)?);
        return Ok(ExitOutcome::Done);
    }
    let files = source.relative_files()?;
    refuse_own_names(&files)?;
    let (out, html) = output_paths(args, &spec.name.into_inner())?;
    let folder = output_files::sibling(&out, "hosts");
    if out.exists() && !args.resume && !args.dry_run {
        return Err(request(format!(
            "{} exists already; continue with --resume, or name another --out",
            out.display()
        )));
    }
    let mut state = match args.dry_run {
        true => FleetState::temporary(&folder)?,
        false => {
            output_files::create_parent(&out)
                .map_err(|error| request(format!("{}: {error}", out.display())))?;
            FleetState::open(&folder, args.resume)?
        }
    };
    let stop = stop_flag()?;
    let is_new = !args.resume && !args.dry_run;
    acquire(&mut target, &mut state, &stop, show).or_else(|error| forget(&state, is_new, error))?;
    let fleet = Fleet { args, source, files, target, folder, id: state.id.clone() };
    let prepared = fleet.prepare(&state, show).or_else(|error| {
        fleet.release(show);
        forget(&state, is_new, error)
    })?;
    if !args.dry_run {
        state.write()?;
    }
    let ends = fleet.run_hosts(prepared, page.feed(), &stop, show);
    fleet.release(show);
    if let Some(words) = refused_by_all(&ends) {
        return forget(&state, is_new, request(words));
    }
    let mut failed = fleet.account(ends, &mut state, show)?;
    if args.dry_run {
        return Ok(if failed { ExitOutcome::Invalid } else { ExitOutcome::Done });
    }
    let merged = fleet.merge(&out, show)?;
    if merged {
        let file = out.display().to_string();
        let report = ReportArgs {
            file: file.clone(),
            html: Some(html),
            markdown: false,
            json: false,
            answers: has_questions,
            figures: None,
        };
        match args.json {
            true => RunSelection::for_each(&file, |execution, run| {
                show.json_line(&record::summary(run, execution))
            })?,
            false => report::run(&report, show).map(drop)?,
        }
        show.note(&format!("results  {}", out.display()));
    }
    failed |= !merged;
    let all_done = fleet.target.hosts.iter().all(|host| state.done.contains(&host.name));
    if !all_done {
        show.note(&format!("Resume what is missing with: {}", resume_hint(args, &out)));
    }
    Ok(if failed || !all_done { ExitOutcome::Invalid } else { ExitOutcome::Done })
}

fn on(error: FleetError) -> anyhow::Error {
    match error.is_request() {
        true => request(format!("--on: {error}")),
        false => error.into(),
    }
}

/// Gets hosts from a scheduler, and notes which job each is of.
fn acquire(
    target: &mut FleetTarget,
    state: &mut FleetState,
    stop: &AtomicBool,
    show: &Output,
) -> anyhow::Result<()> {
    let earlier = EarlierAttempt { jobs: &state.jobs, done: &state.done };
    target.acquire(earlier, stop, &mut |words| show.note(words)).map_err(on)?;
    for host in &target.hosts {
        if let Some(job) = &host.job {
            state.jobs.insert(host.name.clone(), job.clone());
        }
    }
    Ok(())
}

/// Returns the error; a study that is new is forgotten, as nothing of it was run.
fn forget<T>(state: &FleetState, is_new: bool, error: anyhow::Error) -> anyhow::Result<T> {
    if is_new {
        state.remove()?;
    }
    Err(error)
}

/// How a host ended, in a few words.
fn how_ended(end: &anyhow::Result<HostEnd>) -> String {
    match end {
        Ok(HostEnd { whole: true, valid: true, .. }) => "done".to_owned(),
        Ok(HostEnd { whole: true, .. }) => "done, with invalid runs".to_owned(),
        Ok(HostEnd { why, .. }) => format!("not finished: {why}"),
        Err(error) => format!("{error:#}"),
    }
}

/// What every host said against the study; None if one of them accepted it.
fn refused_by_all(ends: &Ends) -> Option<String> {
    let words = ends.iter().map(|(host, end)| match end {
        Ok(HostEnd { refused: true, why, .. }) => {
            Some(format!("{host}: {}", why.trim_start_matches("error: ")))
        }
        _ => None,
    });
    words.collect::<Option<Vec<_>>>().filter(|words| !words.is_empty()).map(|all| all.join("\n"))
}

impl Fleet<'_> {
    /// Reaches every host and puts there what it needs. Nothing runs before all are ready.
    fn prepare(&self, state: &FleetState, show: &Output) -> anyhow::Result<Vec<HostRun<'_>>> {
        let hosts: Vec<_> =
            self.target.hosts.iter().filter(|host| !state.done.contains(&host.name)).collect();
        let prepared: Vec<_> = thread::scope(|scope| {
            let each: Vec<_> = hosts
                .iter()
                .map(|host| scope.spawn(move || HostRun::prepare(self, host, show)))
                .collect();
            each.into_iter().map(|one| one.join()).collect()
        });
        let mut ready = Vec::new();
        let mut wrong = Vec::new();
        for one in prepared {
            match one {
                Ok(Ok(one)) => ready.push(one),
                Ok(Err(error)) => wrong.push(format!("{error:#}")),
                Err(_) => wrong.push("a host could not be prepared".to_owned()),
            }
        }
        if wrong.is_empty() {
            return Ok(ready);
        }
        ready.iter().for_each(HostRun::discard);
        wrong.push("nothing was run; mend it, or leave the host out of --on".to_owned());
        Err(request(wrong.join("\n")))
    }

    /// Gives the hosts back.
    fn release(&self, show: &Output) {
        if let Err(error) = self.target.launcher.release_all() {
            show.warn(&error.to_string());
        }
    }

    /// Runs the study on all hosts at the same time, and shows their progress.
    fn run_hosts(
        &self,
        hosts: Vec<HostRun<'_>>,
        page: Option<Feed>,
        stop: &AtomicBool,
        show: &Output,
    ) -> Ends {
        let (sender, messages) = sync_channel::<(String, HostMessage)>(MAX_WAITING);
        thread::scope(|scope| {
            let names: Vec<String> = hosts.iter().map(|host| host.name().to_owned()).collect();
            let each: Vec<_> = hosts
                .into_iter()
                .map(|host| {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let name = host.name().to_owned();
                        let mut tell = |message| {
                            let _ = sender.send((name.clone(), message));
                        };
                        let end = host.run(stop, &mut tell);
                        tell(HostMessage::Ended(how_ended(&end)));
                        (name.clone(), end)
                    })
                })
                .collect();
            drop(sender);
            let mut board = Board::new(&names, page, show);
            for (host, message) in messages {
                board.take(&host, message);
            }
            board.finish();
            each.into_iter().filter_map(|one| one.join().ok()).collect()
        })
    }

    /// Names the hosts that failed, and keeps which are done. Returns whether any failed.
    fn account(&self, ends: Ends, state: &mut FleetState, show: &Output) -> anyhow::Result<bool> {
        let mut failed = false;
        for (host, end) in ends {
            match end {
                Ok(HostEnd { whole, valid, .. }) if whole => {
                    failed |= !valid;
                    state.done.insert(host);
                }
                Ok(HostEnd { why, .. }) => {
                    failed = true;
                    show.warn(&format!("{host}: not finished: {why}"));
                }
                Err(error) => {
                    failed = true;
                    show.warn(&format!("{error:#}"));
                }
            }
        }
        if !self.args.dry_run {
            state.write()?;
        }
        Ok(failed)
    }

    /// Merges what the hosts have; false if there is nothing yet.
    fn merge(&self, out: &Path, show: &Output) -> anyhow::Result<bool> {
        let mut parts = Vec::new();
        for host in &self.target.hosts {
            let file = self.results_of(&host.name);
            if file.exists() {
                parts.push(RunSelection::open(&file.display().to_string())?);
            }
        }
        parts.retain(|part| !part.runs.is_empty());
        if parts.is_empty() {
            return Ok(false);
        }
        // The merged file is whole at every moment.
        let whole = self.folder.join("merged.sqlite");
        if whole.exists() {
            std::fs::remove_file(&whole).with_context(|| whole.display().to_string())?;
        }
        record::merge(&parts, &whole)?;
        std::fs::rename(&whole, out).with_context(|| out.display().to_string())?;
        let runs: usize = parts.iter().map(|part| part.runs.len()).sum();
        let hosts = if parts.len() == 1 { "host" } else { "hosts" };
        let count = parts.len();
        show.note(&format!("merged   {}: {runs} runs of {count} {hosts}", out.display()));
        Ok(true)
    }

    fn results_of(&self, host: &str) -> PathBuf {
        self.folder.join(format!("{host}.sqlite"))
    }
}
