//! Recorded machines: written for others, and read in place of this one.

use std::io::Read;
use std::path::Path;

use host::Root;
use host::recorded::RecordingNotes;
use model::Machine;

use crate::exit::request;
use crate::output_files;

/// The largest recording in bytes; a machine of a thousand CPUs needs less.
const MAX_RECORDING_BYTES: u64 = 128 << 20;

/// Unpacks a recorded machine into a folder.
pub fn unpack(file: &Path) -> anyhow::Result<tempfile::TempDir> {
    let origin = file.display().to_string();
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_RECORDING_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| request(format!("--root {origin}: {error}")))?;
    if text.len() as u64 > MAX_RECORDING_BYTES {
        let most = MAX_RECORDING_BYTES >> 20;
        return Err(request(format!("--root {origin}: a recorded machine has at most {most} MiB")));
    }
    let dir = tempfile::tempdir()?;
    host::recorded::unpack(&text, &origin, dir.path())
        .map_err(|error| request(error.to_string()))?;
    Ok(dir)
}

/// Writes the recorded machine, without identifying data.
pub fn write(
    record: &Path,
    root: &Root,
    notes: &RecordingNotes,
    machine: &Machine,
) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let mut title = format!(
        "A machine as kvmeter {version} read it, written by `kvmeter doctor --record`.\n`kvmeter \
         doctor --root FILE` reads it. Identifying data is left out."
    );
    for fact in &machine.facts {
        if let Ok(value) = &fact.value {
            title += &format!("\n{}: {}", fact.name, value.replace('\n', " "));
        }
    }
    let text = notes.to_text(&title, &host::recorded::machine_names(root));
    output_files::write_named("--record", record, text.as_bytes())
}
