//! The kernel's messages about failing block devices, which have the sector that no system call
//! returns. `/dev/kmsg`, `Documentation/ABI/testing/dev-kmsg`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;

const LOG: &str = "/dev/kmsg";
/// Longest message in bytes.
const LONGEST: usize = 8192;
/// Limit on messages read: a failing device fills the log.
const MOST_MESSAGES: usize = 100_000;

/// The kernel's log from a point in time on.
#[derive(Debug)]
pub struct KernelLog {
    file: io::Result<File>,
}

impl KernelLog {
    /// From now on.
    pub fn from_now() -> KernelLog {
        let open = || {
            let flags = OFlag::O_NONBLOCK.bits();
            let mut file = OpenOptions::new().read(true).custom_flags(flags).open(LOG)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        KernelLog { file: open() }
    }

    /// I/O errors of these devices since [`KernelLog::from_now`] or the last call: the first of each
    /// device with its sector (of 512 B), and the number of further ones.
    ///
    /// # Errors
    /// In words, why the log cannot be read.
    pub fn errors_of(&mut self, devices: &[String]) -> Result<Vec<String>, String> {
        let file = match &mut self.file {
            Ok(file) => file,
            Err(error) => return Err(format!("{LOG}: {error}")),
        };
        let mut all: Vec<(String, usize)> = Vec::new();
        let mut message = [0; LONGEST];
        for _ in 0..MOST_MESSAGES {
            let length = match file.read(&mut message) {
                Ok(length) => length,
                // Messages that were overwritten before they were read.
                Err(error) if error.raw_os_error() == Some(nix::libc::EPIPE) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("{LOG}: {error}")),
            };
            let text = String::from_utf8_lossy(&message[..length]);
            let Some((device, words)) = error_in(&text, devices) else { continue };
            let own = format!("dev {device},");
            match all.iter_mut().find(|(first, _)| first.contains(&own)) {
                Some((_, further)) => *further += 1,
                None => all.push((words, 0)),
            }
        }
        let summarise = |(first, further): (String, usize)| match further {
            0 => first,
            many => format!("{first}, and {many} more"),
        };
        Ok(all.into_iter().map(summarise).collect())
    }
}

/// `6,12,345,-;I/O error, dev loop1, sector 8 op 0x0:(READ) ...` and lines of details.
fn error_in(record: &str, devices: &[String]) -> Option<(String, String)> {
    let (_, message) = record.split_once(';')?;
    let words = message.lines().next()?;
    let from = words.find("I/O error")?;
    let device = devices.iter().find(|name| words.contains(&format!("dev {name},")))?;
    let words = words[from..].split(" flags ").next()?;
    Some((device.clone(), words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_sectors_in_messages() {
        let devices = ["loop1".to_owned()];
        let record = "3,812,6129,-;I/O error, dev loop1, sector 2056 op 0x0:(READ) flags 0x0 \
                      phys_seg 1 prio class 2\n SUBSYSTEM=block\n";
        let (device, words) = error_in(record, &devices).unwrap();
        assert_eq!(device, "loop1");
        assert_eq!(words, "I/O error, dev loop1, sector 2056 op 0x0:(READ)");
        assert_eq!(error_in(&record.replace("loop1", "loop10"), &devices), None);
        assert_eq!(error_in("6,1,1,-;EXT4-fs (loop1): mounted", &devices), None);
        assert_eq!(error_in("", &devices), None);
    }

    #[test]
    fn reads_the_log_of_this_machine_or_gives_a_reason() {
        match KernelLog::from_now().errors_of(&["nothing".to_owned()]) {
            Ok(found) => assert!(found.is_empty(), "{found:?}"),
            Err(why) => assert!(why.starts_with(LOG), "{why}"),
        }
    }
}
