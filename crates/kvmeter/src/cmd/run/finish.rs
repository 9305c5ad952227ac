//! What is shown when a study ends: its results, or how to resume it.

use std::path::Path;

use model::text::shell_word;
use model::{Execution, Run};
use report::study::studies;
use report::terminal::Style;

use super::args::RunArgs;
use crate::cmd::cost;
use crate::output::Output;
use crate::output_files;

/// Prints the results of a finished study and writes its page: the answers of one with questions,
/// and what is wrong with its runs; else its runs as `shown`.
pub fn print_results(
    args: &RunArgs,
    execution: Execution,
    runs: Vec<Run>,
    (out, html): (&Path, &Path),
    shown: impl Fn(&[(&Execution, &Run)], &Style) -> String,
    show: &Output,
) -> anyhow::Result<()> {
    if !args.json {
        let pairs: Vec<_> = runs.iter().map(|run| (&execution, run)).collect();
        let studies = studies([&execution], &pairs);
        let (out, html) = (out.display(), html.display());
        if execution.design.questions.is_empty() {
            show.print_styled(&shown(&pairs, show.style()))?;
            for study in &studies {
                show.print("")?;
                show.print_styled(&report::terminal::study(study, show.style()))?;
            }
            show.print("")?;
        } else {
            for study in &studies {
                show.print_styled(&report::terminal::answers(study, show.style()))?;
                show.print("")?;
            }
            show.print_styled(&report::terminal::problems(&pairs, show.style()))?;
            show.print(&format!("tables   kvmeter report {}", shell_word(&out.to_string())))?;
        }
        show.print(&format!("results  {out}\nreport   {html}"))?;
    }
    output_files::write(html, report::html::page(&[(execution, runs)]).as_bytes())
}

/// What serving the loads costs on the platform of the command line. Where a number is missing, that
/// is said, and the study is no worse for it.
pub fn print_costs(args: &RunArgs, out: &Path, show: &Output) -> anyhow::Result<()> {
    if let (Some(platform), false) = (&args.platform, args.json) {
        show.print("")?;
        if let Err(why) = cost::of_results(out, platform, show) {
            show.warn(&format!("not priced: {why}"));
        }
    }
    Ok(())
}

/// The command that resumes, quoted for a shell.
pub fn resume_hint(args: &RunArgs, out: &Path) -> String {
    let mut words = vec!["kvmeter".to_owned(), "run".to_owned(), args.study.clone()];
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    flag("--out", out.display().to_string());
    if let Some(scale) = &args.scale {
        flag("--scale", scale.clone());
    }
    if let Some(platform) = &args.platform {
        flag("--platform", platform.clone());
    }
    for set in &args.set {
        flag("--set", set.clone());
    }
    for device in &args.device {
        flag("--device", device.display().to_string());
    }
    if let Some(hosts) = &args.fleet.on {
        flag("--on", hosts.clone());
    }
    for binary in &args.fleet.binary {
        flag("--binary", binary.display().to_string());
    }
    if let Some(hosts) = &args.agents.agents_on {
        flag("--agents-on", hosts.clone());
    }
    for binary in &args.agents.agents_binary {
        flag("--agents-binary", binary.display().to_string());
    }
    if let Some(hosts) = &args.server_hosts.server_on {
        flag("--server-on", hosts.clone());
    }
    for binary in &args.server_hosts.server_binary {
        flag("--server-binary", binary.display().to_string());
    }
    if let Some(model) = &args.host.trust.trust_register {
        flag("--trust-register", model.clone());
    }
    if let Some(html) = &args.html {
        flag("--html", html.display().to_string());
    }
    words.push("--resume".to_owned());
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}
