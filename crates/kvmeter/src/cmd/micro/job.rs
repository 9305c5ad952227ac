//! The hidden `micro job`: a microbenchmark or a hog for the study that started this process.

use clap::Args;
use micro::job::{InnerFlags, MicroBench, MicroJob, NetFlags};

use super::{hog, latency, net, stream};
use crate::exit::ExitOutcome;
use crate::output::Output;

#[derive(Debug, Args)]
pub struct JobArgs {
    /// A `MicroJob` as JSON
    #[arg(value_parser = read)]
    pub job: MicroJob,
    #[command(flatten)]
    pub inner: InnerFlags,
}

fn read(text: &str) -> Result<MicroJob, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub fn run(args: &JobArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let MicroJob { bench, window } = args.job.clone();
    if window.is_some() {
        // The study may be killed. A hog ends with its standard input.
        micro::net::end_with_parent();
    }
    let net = |flags: &mut NetFlags| {
        flags.at.window.clone_from(&window);
        flags.inner = args.inner.clone();
    };
    match bench {
        MicroBench::Pingpong(mut bench) => {
            net(&mut bench.net);
            net::pingpong(&bench, show)
        }
        MicroBench::Flow(mut bench) => {
            net(&mut bench.net);
            net::flow(&bench, show)
        }
        MicroBench::Stream(mut bench) => {
            bench.at.window = window;
            stream::run(&bench, show)
        }
        MicroBench::Latency(mut bench) => {
            bench.at.window = window;
            latency::run(&bench, show)
        }
        MicroBench::Hog(bench) => hog::serve(&bench, show),
    }
}
