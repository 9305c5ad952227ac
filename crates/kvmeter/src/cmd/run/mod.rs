//! `kvmeter run`: a study.

mod args;
mod devices;
mod finish;
mod fleet;
mod mbwu;
mod measure;
mod paths;
mod results;

use execute::MachineLock;
use execute::knobs::{KnobEffects, KnobsHeld, KnobsPerBlock};
use study::Plan;

pub use self::args::RunArgs;
use self::measure::measure;
use self::paths::output_paths;
use self::results::finished_before;
use crate::exit::{ExitOutcome, request};
use crate::flags;
use crate::flags::agents::{AGENTS_ON, stores_of};
use crate::flags::machine::pass;
use crate::flags::server_hosts::SERVER_ON;
use crate::output::Output;
use crate::output_files;
use crate::plan_output;

pub fn run(args: &RunArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let mut source = args.source()?;
    if let Some(hosts) = args.server_hosts.hosts(show)? {
        if source.spec()?.server.is_empty() {
            return Err(request(format!(
                "{SERVER_ON}: the study starts no server; leave it out, or add a table such as \
                 [server.memcached]"
            )));
        }
        source = source.with_servers_on(hosts);
    }
    if args.agents.agents_on.is_some() && source.spec()?.agents.is_some() {
        return Err(request(format!(
            "{AGENTS_ON}: the study names its agents in [agents]; leave one of the two out"
        )));
    }
    if let Some(hosts) = &args.fleet.on {
        return fleet::run(args, hosts, &source, show);
    }
    if let Some(table) = study::mbwu::of_study(&source)? {
        if args.agents.agents_on.is_some() {
            return Err(request(format!(
                "{AGENTS_ON}: a study with [mbwu] loads no servers; leave it out"
            )));
        }
        return mbwu::measure(args, &table, &source, show);
    }
    if !args.device.is_empty() {
        return Err(request("--device is for a study with [mbwu]; leave it out"));
    }
    let spec = source.spec()?;
    let name = spec.name.get_ref();
    let (out, html) = output_paths(args, name)?;
    let mut plan = Plan::of(&source, &output_files::sibling(&out, "data"), &args.host.root()?)?;
    plan.probes.pass = pass()?;
    study::note_run_properties_of(&spec)?.iter().for_each(|words| show.note(words));
    if args.dry_run {
        execute::check_directories(&plan)?;
        let done = finished_before(args, &out)?;
        return plan_output::describe_study(&plan, &done, args.max_time, args.json, show);
    }
    // Only one study may measure at a time.
    let _alone = MachineLock::take()?;
    let page = args.page(&source)?;
    // They live as long as the study.
    let started = args.agents.start(stores_of(&plan), (&[], &[]), show)?;
    if let Some((agents, _)) = &started {
        plan = plan.with_agents(agents.clone()).map_err(flags::name_flag)?;
    }
    plan_output::announce(&plan, args.max_time, show);
    let feed = page.feed();
    let ended = match plan.common_knobs() {
        Some(levels) => args.host.with_knobs(&levels, show, |effects| {
            measure(args, &plan, &out, &html, (effects, &mut KnobsHeld(effects)), feed, show)
        }),
        None => {
            let tell = |words: &str| show.note(words);
            let (root, supervisor) = (args.host.root()?, args.host.supervisor()?);
            let mut turner = KnobsPerBlock { root, supervisor, log: &tell };
            let nothing = KnobEffects::default();
            measure(args, &plan, &out, &html, (&nothing, &mut turner), feed, show)
        }
    };
    page.end(&ended);
    ended
}
