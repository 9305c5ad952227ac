//! The files that a process has mapped as code, `proc_pid_maps(5)`.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

/// A file that is mapped as code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeMap {
    pub addresses: Range<u64>,
    /// Offset in the file of the first byte.
    pub offset: u64,
    /// As the process names it: `/usr/bin/memcached`, `[vdso]`.
    pub name: String,
    /// Paths to it from here: the mapped file itself, which only root may open, and its name.
    pub paths: [PathBuf; 2],
}

/// Those of a process; none where it has ended.
pub(crate) fn code_of(pid: u32) -> Vec<CodeMap> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.lines().filter_map(|line| parse(line, pid)).collect()
}

fn parse(line: &str, pid: u32) -> Option<CodeMap> {
    let mut fields = line.splitn(6, ' ');
    let (range, flags, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let (begin, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let name = fields.nth(2)?.trim().to_owned();
    if !flags.contains('x') || name.is_empty() {
        return None;
    }
    // The name may be of another mount namespace, or deleted.
    let paths = [format!("map_files/{range}"), format!("root{name}")];
    let paths = paths.map(|path| PathBuf::from(format!("/proc/{pid}/{path}")));
    Some(CodeMap { addresses: hex(begin)?..hex(end)?, offset: hex(offset)?, name, paths })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_is_executable_and_has_a_name() {
        let text = "55d0a000-55d0f000 r-xp 00002000 fd:01 131 /usr/bin/my server (deleted)";
        let map = parse(text, 7).unwrap();
        assert_eq!((map.addresses, map.offset), (0x55d0_a000..0x55d0_f000, 0x2000));
        assert_eq!(map.name, "/usr/bin/my server (deleted)");
        assert_eq!(map.paths[0], PathBuf::from("/proc/7/map_files/55d0a000-55d0f000"));
        assert_eq!(map.paths[1], PathBuf::from("/proc/7/root/usr/bin/my server (deleted)"));
        assert_eq!(parse("7f00-7f01 rw-p 00000000 00:00 0 [stack]", 7), None);
        assert_eq!(parse("7f00-7f01 r-xp 00000000 00:00 0 ", 7), None);
        assert!(code_of(std::process::id()).iter().any(|map| map.name.contains("libc.so")));
    }
}
