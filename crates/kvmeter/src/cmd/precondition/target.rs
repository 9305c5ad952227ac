//! What the preconditioning of a device takes, by this verb or within a study.

use std::path::PathBuf;

use analyse::STEADY_ROUNDS;
use micro::precondition::{PreconditionError, SteadyRule, Target, TargetKind};

use crate::exit::request;

/// The steady state of the SNIA specification.
pub const RULE: SteadyRule = SteadyRule {
    window: STEADY_ROUNDS,
    holds: |rounds| {
        <&[f64; STEADY_ROUNDS]>::try_from(rounds).is_ok_and(|last| analyse::steady(last).steady)
    },
};

/// The content of a target, and the flags that confirm overwriting it.
pub fn how_to_confirm(target: &Target) -> String {
    let names: Vec<String> = target.names.iter().map(|name| format!("{name:?}")).collect();
    let how = format!("confirm with --confirm {}", names.join(" or "));
    if target.content.is_empty() {
        return how;
    }
    let contents: Vec<&str> =
        target.content.iter().map(|found| found.description.as_str()).collect();
    let words: Vec<&str> = target.content.iter().map(|found| found.token.as_str()).collect();
    let (contents, words) = (contents.join("; "), words.join(","));
    format!("it holds {contents}\n{how}, and, if that may be lost, with --overwrite {words}")
}

/// The file of a target's progress: next to a file, else in the folder of the knobs' journal.
pub fn state_file(target: &Target) -> anyhow::Result<PathBuf> {
    if target.kind == TargetKind::File {
        let mut name = target.path.as_os_str().to_owned();
        name.push(".precondition.json");
        return Ok(PathBuf::from(name));
    }
    let folder = host::knob::state_folder().map_err(|_| {
        request(
            "neither HOME nor XDG_STATE_HOME names a folder for the progress; give --state, or \
             name a folder of your own in KVMETER_STATE_DIR",
        )
    })?;
    Ok(folder.join(format!("precondition-{}.json", plain_name(&target.all_names()))))
}

/// The end of each name, so that three of them fit into a file's name of 255 bytes.
const NAME_END: usize = 75;

/// A file's name for a disk. It must not depend on the other disks of the machine, or a job that was
/// begun beside one would not be found without it; whether it is this disk's, the record says.
fn plain_name(names: &[&str]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let ends = names.iter().map(|name| {
        let name: Vec<char> = name.chars().map(plain).collect();
        name[name.len().saturating_sub(NAME_END)..].iter().collect::<String>()
    });
    ends.take(3).collect::<Vec<String>>().join("-")
}

/// A mistake in the request ends with code 2, a failure of the device with 1.
pub fn failed(error: PreconditionError) -> anyhow::Error {
    match error.is_request() {
        true => request(error.to_string()),
        false => anyhow::Error::new(error),
    }
}
