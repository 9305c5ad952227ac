//! Workload files.

use std::path::Path;

use workload::fit::WorkloadFile;

use crate::error::StudyError;
use crate::ycsb_file::{is_ycsb_file, open_ycsb};

/// The longest file of a workload.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
/// The longest line of a table.
const WIDTH: usize = 100;

/// Whether a name of a workload is that of a file.
pub fn is_workload_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "toml") || is_ycsb_file(name)
}

/// Reads a workload from a file, kvmeter's own or one of YCSB.
///
/// # Errors
/// It cannot be read, or holds no workload that can run; with the file and the place.
pub fn open_workload(path: impl AsRef<Path>) -> Result<WorkloadFile, StudyError> {
    let path = path.as_ref();
    if path.to_str().is_some_and(is_ycsb_file) {
        let workload = open_ycsb(path)?.workload;
        return Ok(WorkloadFile { workload, ..WorkloadFile::default() });
    }
    let text = safe_file::read_text(path, MAX_BYTES)
        .map_err(|error| StudyError::Request(error.to_string()))?;
    let wrong = |why: String| StudyError::Request(format!("{}: {why}", path.display()));
    let of_toml = |error: toml::de::Error| wrong(error.to_string().trim_end().to_owned());
    // A later version may have keys that are unknown here.
    let version = toml::from_str::<toml::Table>(&text).map_err(of_toml)?;
    if let Some(version) = version.get("version")
        && version.as_integer() != Some(i64::from(WorkloadFile::VERSION))
    {
        return Err(wrong(format!(
            "`version` is {version}, and this kvmeter reads {}; update kvmeter, or make the file \
             anew with `kvmeter workload describe`",
            WorkloadFile::VERSION
        )));
    }
    let file: WorkloadFile = toml::from_str(&text).map_err(of_toml)?;
    file.workload.check().map_err(|error| wrong(error.to_string()))?;
    Ok(file)
}

/// The text of a workload file, with comment lines in front.
///
/// # Errors
/// Numbers that TOML does not have.
pub fn workload_text(file: &WorkloadFile, comments: &[String]) -> Result<String, StudyError> {
    let body = toml::to_string(file).map_err(|error| StudyError::Failed(error.to_string()))?;
    let mut text: String = comments.iter().map(|line| format!("# {line}\n")).collect();
    text.push('\n');
    for line in body.lines() {
        break_table(line, &mut text);
    }
    Ok(text)
}

/// Breaks a long line between the rows of its table.
fn break_table(line: &str, text: &mut String) {
    let Some((key, rows)) = line.split_once(" = [[").filter(|_| line.len() > WIDTH) else {
        text.push_str(line);
        text.push('\n');
        return;
    };
    text.push_str(&format!("{key} = ["));
    let rows: Vec<&str> = rows.trim_end_matches(']').split("], [").collect();
    let mut length = usize::MAX;
    for row in rows {
        let row = format!("[{row}],");
        if length.saturating_add(row.len() + 1) > WIDTH {
            text.push_str("\n ");
            length = 1;
        }
        text.push(' ');
        text.push_str(&row);
        length += row.len() + 1;
    }
    text.push_str("\n]\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut file = WorkloadFile { arrivals: Some("poisson".to_owned()), ..Default::default() };
        let rows: Vec<String> = (1..60).map(|row| format!("{row}=0.01")).collect();
        file.workload.popularity = format!("ranks:{}", rows.join(",")).parse().unwrap();
        let text = workload_text(&file, &["made for a test".to_owned()]).unwrap();
        assert!(text.starts_with("# made for a test\n\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, text).unwrap();
        assert_eq!(open_workload(path.to_str().unwrap()).unwrap(), file);
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let name = path.to_str().unwrap();
        for (text, says) in [
            ("[workload]\nrecods = 3", "recods"),
            ("[workload\n", "line 1"),
            ("\u{0}\u{1}", "line 1"),
            ("version = 2\nnovelty = true", "`version` is 2, and this kvmeter reads 1"),
            ("[workload.ttl]\nseconds = [[0, 1.0]]", "`ttl`"),
            ("[workload]\nrecords = 0", "`records` is 0"),
            ("[workload.reuse]\nagain = 0.5", "`distances`"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = open_workload(name).unwrap_err().to_string();
            assert!(error.contains("mine.toml") && error.contains(says), "{error}");
        }
        assert!(open_workload("missing.toml").unwrap_err().to_string().contains("missing.toml"));
    }
}
