//! Only one process turns knobs.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::error::KnobError;

const NAME: &str = "lock";
/// How long to wait for the supervisor of a killed process to put its knobs back.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Takes the lock (`flock(2)`) of a folder and leaves this process's number in it. The lock goes
/// with the last descriptor of the file; the supervisor has one, too.
pub(super) fn take(folder: &Path) -> Result<File, KnobError> {
    let path = folder.join(NAME);
    let failed = |error: std::io::Error| KnobError::Journal {
        path: path.display().to_string(),
        why: error.to_string(),
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(failed)?;
    let limit = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let holder: String = text.chars().take_while(char::is_ascii_digit).collect();
        let lives = holder.is_empty() || Path::new("/proc").join(&holder).exists();
        if (lives && !holder.is_empty()) || Instant::now() > limit {
            let who = match (lives, holder.is_empty()) {
                (_, true) => "another kvmeter".to_owned(),
                (true, false) => format!("another kvmeter (process {holder})"),
                (false, false) => format!("the supervisor of process {holder}"),
            };
            return Err(KnobError::Busy { who, lock: path.display().to_string() });
        }
        thread::sleep(PAUSE);
    }
    file.set_len(0)
        .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()))
        .map_err(failed)?;
    Ok(file)
}
