use std::path::PathBuf;

use cachesim::SimulatedMachine;
use clap::{Args, ValueHint};

use crate::output_files;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter simulate dca                                       forwarding at 100 Gbit/s\n  \
    kvmeter simulate dca --sweep descriptors=128,1024,4096 --sweep ways=2,4,6\n  \
    kvmeter simulate dca --traffic co-run --policy on,off,iat,yield-search\n  \
    kvmeter simulate dca --machine my.toml --traffic my-traffic.toml --json\n  \
    kvmeter simulate dca --trace accesses.txt\n  \
    kvmeter simulate dca --validate\n  \
    kvmeter simulate dca --published-figures --figures thesis.html\n\n\
    Machines: xeon-gold-6140, xeon-e5-2697-v2. Traffic: forward, ping-pong, flow, store, co-run,\n\
    data-caching, data-caching-bursts, phases.\n\
    Policies: on, off, ways:N, phase-and-rate, iat, yield-search.\n\
    Every number is simulated, energy is modelled; docs/cache-simulation.md says what is modelled and what is not.")]
pub struct DcaArgs {
    /// A built-in machine or a TOML file [default: xeon-gold-6140]
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub machine: Option<String>,
    /// Built-in traffic or a TOML file
    #[arg(long, default_value = "forward", value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub traffic: String,
    /// Policies that assign the ways
    #[arg(long, default_value = "on", value_delimiter = ',', value_name = "POLICY")]
    pub policy: Vec<String>,
    /// One or more values for packet, descriptors, cores, ways, rate, burst, cycles, program,
    /// stride, working-set or seed; every combination is simulated
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub sweep: Vec<String>,
    /// Packets as they arrived in this run of a results file: `FILE` or `FILE?key=value`
    #[arg(long, value_name = "RESULTS", conflicts_with = "trace", value_hint = ValueHint::FilePath)]
    pub from_run: Option<String>,
    /// Simulate a memory trace instead of traffic: an access a line, `core0 read 0x1000 8` or
    /// `card write 0x1000 1500`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["validate", "sweep"], value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Simulate every published point, or those of the named series, and show the error; exit code
    /// 1 if a limit is exceeded
    #[arg(long, value_name = "SERIES", num_args = 0.., require_equals = true, value_delimiter = ',', conflicts_with_all = ["sweep", "from_run"])]
    pub validate: Option<Vec<String>>,
    /// Simulate figures 4.1 to 4.9 of Basavaraj 2017, on its machine unless --machine names another
    #[arg(long, requires = "figures", conflicts_with_all = ["sweep", "validate", "trace", "from_run"])]
    pub published_figures: bool,
    /// Draw the sweep into this HTML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub figures: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl DcaArgs {
    /// The machine, or `usual` where none is named.
    pub fn machine(&self, usual: &str) -> anyhow::Result<SimulatedMachine> {
        Ok(SimulatedMachine::open(self.machine.as_deref().unwrap_or(usual))?)
    }

    /// Refuses a page that would overwrite something else.
    pub fn check_page(&self) -> anyhow::Result<()> {
        let page = self.figures.as_ref();
        page.map_or(Ok(()), |path| output_files::check_output("--figures", path, &[]))
    }

    /// Writes the page, if one is asked for.
    pub fn write_page(&self, page: impl FnOnce() -> String) -> anyhow::Result<()> {
        let path = self.figures.as_ref();
        path.map_or(Ok(()), |path| output_files::write_named("--figures", path, page().as_bytes()))
    }
}
