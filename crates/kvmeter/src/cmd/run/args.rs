use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use live::Feed;
use model::Span;
use store::StoreUrl;
use study::{Step, StudyText};

use crate::exit::request;
use crate::flags::agents::StartFlags;
use crate::flags::live::{LiveFlags, LivePage, UrlFormat};
use crate::flags::machine::MachineRoot;
use crate::flags::server_hosts::ServerHostFlags;
use crate::output::Output;
use crate::progress::Bar;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter run quickstart\n  \
    kvmeter run quickstart --dry-run\n  \
    kvmeter run study.toml --out results.sqlite --set data.records=1M --set measure.time=30s\n  \
    kvmeter run study.toml --out results.sqlite --resume    resumes after a kill\n  \
    kvmeter run study.toml --scale small --max-time 30m     a smaller one, within half an hour\n  \
    kvmeter run study.toml --platform server.toml           and what serving it costs\n  \
    kvmeter run mbwu --device /mnt/ssd1 --device /mnt/ssd2  work units of devices\n  \
    kvmeter run study.toml --on ssh:arm1,x86-1 --out both.sqlite  on two machines\n\n\
    Without --out the results go to results/NAME-TIME.sqlite.")]
pub struct RunArgs {
    /// A study file, or the name of a built-in study
    #[arg(value_hint = ValueHint::FilePath)]
    pub study: String,
    /// The results file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Print the cells, every run in its order, and an estimate of time, disk and energy; run
    /// nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run the smaller or larger version of the study with this name
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Time limit from now on; repeats are dropped before cells
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub max_time: Option<Span>,
    /// Resume a stopped or killed run of this study
    #[arg(long)]
    pub resume: bool,
    /// For a study with `[mbwu]`: a folder on the file system of a device to measure, or a block
    /// device, which loses its content; once for each device
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub device: Vec<PathBuf>,
    /// The serial number or model of each block device, to confirm that it may be overwritten
    #[arg(long, value_name = "NAME", requires = "device")]
    pub confirm: Vec<String>,
    /// Content of a block device that may be lost, as --dry-run names it: ext4:3f2a91c0
    #[arg(long, value_name = "WORD", requires = "device", value_delimiter = ',')]
    pub overwrite: Vec<String>,
    /// Change a value of the study
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Price and power of this machine, a built-in platform or a file: shows the cost of the load
    /// when the study ends
    #[arg(long, value_name = "NAME|FILE")]
    pub platform: Option<String>,
    /// Write the HTML report here [default: next to the results file]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print a line with one JSON object for each run as it ends; with --dry-run one array
    #[arg(long)]
    pub json: bool,
    /// How progress is written to standard error: for people, or one JSON object a line
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub progress: ProgressFormat,
    #[command(flatten)]
    pub fleet: FleetFlags,
    #[command(flatten)]
    pub agents: StartFlags,
    #[command(flatten)]
    pub server_hosts: ServerHostFlags,
    #[command(flatten)]
    pub live: LiveFlags,
    #[command(flatten)]
    pub host: MachineRoot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressFormat {
    Text,
    Json,
}

/// Other machines that run the study.
#[derive(Debug, Args)]
pub struct FleetFlags {
    /// Run the study on other machines, all at the same time, and merge their results: local,
    /// ssh:HOST,..., slurm:partition=NAME,nodes=COUNT, kubernetes:namespace=NAME,nodes=COUNT,...,
    /// a fleet file (fleet.toml), or an Ansible inventory (FILE or FILE:GROUP)
    #[arg(long, value_name = "HOSTS", help_heading = FLEET,
        conflicts_with_all = ["agents_on", "server_on"])]
    pub on: Option<String>,
    /// kvmeter for hosts of another architecture than this machine's; may be repeated
    #[arg(long, value_name = "FILE", requires = "on", value_hint = ValueHint::FilePath,
        help_heading = FLEET)]
    pub binary: Vec<PathBuf>,
    /// Keep the folders on the hosts, with program, results and data
    #[arg(long, requires = "on", help_heading = FLEET)]
    pub keep: bool,
}

const FLEET: &str = "Other machines";

impl RunArgs {
    /// The study with its scale and what the command line sets.
    pub fn source(&self) -> anyhow::Result<StudyText> {
        let mut source = StudyText::open(&self.study)?;
        if let Some(name) = &self.scale {
            source.scale(name)?;
        }
        if let Some(name) = &self.platform {
            study::open_platform(name)
                .map_err(|why| request(format!("--platform {name}: {why}")))?;
            source.set(&[format!("platform={name:?}")])?;
        }
        source.set(&self.set)?;
        Ok(source)
    }

    /// The page of this study, if one is requested; a dry run has none.
    pub fn page(&self, source: &StudyText) -> anyhow::Result<LivePage> {
        if self.dry_run {
            return Ok(LivePage::none());
        }
        let format = match self.progress {
            ProgressFormat::Text => UrlFormat::Text,
            ProgressFormat::Json => UrlFormat::Json,
        };
        self.live.start("run", source.spec()?.name.get_ref(), format)
    }

    /// The progress of these steps, as requested.
    pub fn bar<'a>(
        &self,
        steps: impl Iterator<Item = &'a Step>,
        feed: Option<Feed>,
        show: &Output,
    ) -> Bar {
        let bar = show.bar(steps).with_page(feed);
        match self.progress {
            ProgressFormat::Text => bar,
            ProgressFormat::Json => bar.into_event_lines(),
        }
    }

    /// The plug-in among the study's stores.
    pub fn plugin(&self) -> anyhow::Result<Option<StoreUrl>> {
        Ok(self.source()?.plugin()?)
    }
}
