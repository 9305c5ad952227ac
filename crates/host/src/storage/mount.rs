//! `/proc/self/mountinfo`, the mounts as this process sees them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::parse::unescape;
use crate::root::{Root, RootError};

pub(crate) const MOUNTS: &str = "/proc/self/mountinfo";

/// Major and minor number of a block device.
pub(crate) type DeviceNumber = (u64, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub number: DeviceNumber,
    /// The folder of the file system that is mounted; `/` is all of it.
    pub root: String,
    pub point: String,
    pub options: String,
    pub kind: String,
    pub source: String,
    pub super_options: String,
}

impl Mount {
    /// The options of the mount and of its file system, each once.
    pub fn all_options(&self) -> String {
        let mut options: Vec<&str> = self.options.split(',').collect();
        for option in self.super_options.split(',') {
            if !options.contains(&option) {
                options.push(option);
            }
        }
        options.join(",")
    }

    /// The value of an option `key=value` of the file system.
    pub fn option(&self, key: &str) -> Option<&str> {
        let options = self.super_options.split(',');
        options.filter_map(|option| option.split_once('=')).find(|(k, _)| *k == key).map(|o| o.1)
    }
}

pub(crate) fn mounts(root: &Root) -> Result<Vec<Mount>, RootError> {
    let text = root.text(MOUNTS)?;
    let line = |line: &str| {
        parse(line).ok_or_else(|| RootError::malformed(MOUNTS, line, "a line of mountinfo"))
    };
    text.lines().map(line).collect()
}

/// `36 35 98:0 /root /point options [tags...] - kind source super_options`
fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(2);
    let number = number(before.next()?)?;
    let (root, point) = (unescape(before.next()?), unescape(before.next()?));
    let options = before.next()?.to_owned();
    let mut after = after.splitn(3, ' ');
    let (kind, source) = (after.next()?.to_owned(), unescape(after.next()?));
    let super_options = unescape(after.next().unwrap_or_default());
    Some(Mount { number, root, point, options, kind, source, super_options })
}

/// `254:0`
pub(crate) fn number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The device number of the file system that holds a path of this machine.
pub(crate) fn device_number(path: &Path) -> Option<DeviceNumber> {
    let device = path.metadata().ok()?.dev();
    // The kernel's layout of a dev_t in user space.
    let major = ((device >> 32) & 0xffff_f000) | ((device >> 8) & 0xfff);
    let minor = ((device >> 12) & 0xffff_ff00) | (device & 0xff);
    Some((major, minor))
}

/// The mount that holds `path`: the deepest above it, the last where one hides
/// another, and one with the path's own device number before all others.
pub(crate) fn holding<'a>(
    mounts: &'a [Mount],
    path: &Path,
    device: Option<DeviceNumber>,
) -> Option<&'a Mount> {
    mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| path.starts_with(&mount.point))
        .max_by_key(|(at, mount)| (Some(mount.number) == device, mount.point.len(), *at))
        .map(|(_, mount)| mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Mount> {
        text.lines().map(|line| parse(line).unwrap()).collect()
    }

    const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 8:1 / /data rw,noatime shared:1 - xfs /dev/sda1 rw,noquota
41 40 8:2 /sub /data/my\\040store rw - xfs /dev/sda2 rw
42 27 0:50 / /data rw - tmpfs tmpfs rw,size=1k";

    #[test]
    fn tags_escapes_and_options() {
        let mounts = all(TEXT);
        assert_eq!(mounts[1].all_options(), "rw,noatime,noquota");
        assert_eq!((mounts[2].root.as_str(), mounts[2].point.as_str()), ("/sub", "/data/my store"));
        assert_eq!(mounts[3].option("size"), Some("1k"));
        assert_eq!(parse("a line of something else"), None);
    }

    #[test]
    fn the_deepest_and_last_mount_holds_a_path() {
        let mounts = all(TEXT);
        let point = |path: &str, device| holding(&mounts, Path::new(path), device).unwrap().number;
        assert_eq!(point("/database", None), (254, 0));
        assert_eq!(point("/data/x", None), (0, 50));
        // The path's device number takes precedence over the order of the lines.
        assert_eq!(point("/data/x", Some((8, 1))), (8, 1));
        assert_eq!(point("/data/my store/x", None), (8, 2));
        assert_eq!(point("/data/my", Some((9, 9))), (0, 50));
    }
}
