use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use record::RunSelection;
use report::study::{StudyReport, object, studies};

use crate::exit::{ExitOutcome, request};
use crate::output::Output;
use crate::output_files;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter report results.sqlite\n  \
    kvmeter report results.sqlite --html report.html\n  \
    kvmeter report 'results.sqlite?store=rocksdb&workload=ycsb-a' --markdown")]
pub struct ReportArgs {
    /// A results file, or a part of it: FILE?key=value&key=value
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    /// Write one self-contained HTML page
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print Markdown instead of tables for the terminal
    #[arg(long)]
    pub markdown: bool,
    /// Print JSON instead: an array with one object a run
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print only the answers of studies; with --json an array with one object a study
    #[arg(long)]
    pub answers: bool,
    /// Write the study's own figures as SVG, and the data behind each as CSV, into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub figures: Option<PathBuf>,
}

pub fn run(args: &ReportArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    // JSON needs every run whole; tables and pages of many runs need less of each.
    let runs_alone = args.json && !args.answers && args.html.is_none() && args.figures.is_none();
    if runs_alone {
        runs(&args.file, show)?;
        return Ok(ExitOutcome::Done);
    }
    let selection = RunSelection::overview(&args.file, report::LISTED, report::overview)?;
    if let Some(html) = &args.html {
        output_files::check_output("--html", html, &[&selection.path])?;
    }
    let pairs = selection.pairs();
    let studies = studies(&selection.executions, &pairs);
    if args.answers && studies.is_empty() {
        return Err(request(format!(
            "--answers: no study of {} has questions; leave it out for the tables of its runs",
            args.file
        )));
    }
    if let Some(folder) = &args.figures {
        figures(folder, &studies, &args.file, show)?;
    }
    if args.json && args.answers {
        let objects: Vec<_> = studies.iter().map(object).collect();
        show.json(&objects)?;
    } else if args.json {
        runs(&args.file, show)?;
    } else if args.markdown {
        let folder = args.figures.as_ref().map(|folder| folder.display().to_string());
        for study in &studies {
            show.print(&report::markdown::study(study, folder.as_deref()))?;
        }
        if !args.answers {
            show.print(&report::markdown::runs(&pairs))?;
        }
    } else {
        let of_study = match args.answers {
            true => report::terminal::answers,
            false => report::terminal::study,
        };
        for study in &studies {
            show.print_styled(&of_study(study, show.style()))?;
        }
        if !args.answers {
            show.print_styled(&report::terminal::runs(&pairs, show.style()))?;
        }
    }
    if let Some(html) = &args.html {
        drop((pairs, studies));
        let page = report::html::page(&selection.by_execution());
        output_files::write(html, page.as_bytes())?;
        show.note(&format!("report   {}", html.display()));
    }
    Ok(ExitOutcome::Done)
}

/// Every run as JSON.
fn runs(file: &str, show: &Output) -> anyhow::Result<()> {
    let mut objects = show.json_array();
    RunSelection::for_each(file, |execution, run| objects.push(&record::summary(run, execution)))?;
    objects.end()
}

/// The studies' own figures as files.
fn figures(
    folder: &Path,
    studies: &[StudyReport],
    file: &str,
    show: &Output,
) -> anyhow::Result<()> {
    let all: Vec<_> = studies.iter().flat_map(StudyReport::files).collect();
    if all.is_empty() {
        return Err(request(format!(
            "--figures: no study of {file} has figures that its runs have data for; `kvmeter \
             export` has the data of all runs"
        )));
    }
    for figure in &all {
        output_files::write(&folder.join(format!("{}.svg", figure.id)), figure.svg.as_bytes())?;
        output_files::write(&folder.join(format!("{}.csv", figure.id)), figure.csv.as_bytes())?;
    }
    show.note(&format!("figures  {}: {} as SVG and CSV", folder.display(), all.len()));
    Ok(())
}
