//! The file system and the devices under a store's path.

mod device;
pub(crate) mod disk;
pub(crate) mod mount;

pub(crate) use device::{DeviceStack, under, whole_disk};

use std::path::{Component, Path, PathBuf};

use model::{Fact, Unavailable};

use crate::facts::Facts;
use crate::format;
use crate::root::Root;
use crate::unavailable::live_only;
use mount::{MOUNTS, Mount};

/// The storage under `path`: mount, file system, space, and the block devices
/// below every partition, mapping, array and loop file. If the path does not
/// exist yet, its nearest existing parent counts.
pub fn storage(root: &Root, path: &Path) -> Vec<Fact> {
    let mut facts = Facts::default();
    let path = existing(root, path);
    let mount = mount_of(root, &path);
    let of = |pick: fn(&Mount) -> &str| mount.as_ref().map(|mount| pick(mount).to_owned());
    facts.add("store.mount", MOUNTS, of(|mount| &mount.point));
    facts.add("store.filesystem", MOUNTS, of(|mount| &mount.kind));
    facts.add("store.source", MOUNTS, of(|mount| &mount.source));
    let options = mount.as_ref().map(Mount::all_options);
    facts.add("store.options", MOUNTS, options);
    match space(root, &path) {
        Ok(space) => {
            facts.known("store.free", "statvfs", format::bytes(space.free));
            facts.known("store.capacity", "statvfs", format::bytes(space.capacity));
        }
        Err(why) => {
            facts.unknown("store.free", "statvfs", &why.reason);
            facts.unknown("store.capacity", "statvfs", &why.reason);
        }
    }
    let stack = mount.and_then(|mount| device::under(root, &mount));
    match stack {
        Ok(stack) => {
            facts.known("store.device", disk::BLOCK, &stack.description);
            disk_facts(root, &stack, &mut facts);
        }
        Err(reason) => facts.unknown("store.device", disk::BLOCK, reason),
    }
    facts.0
}

/// Bytes that this user may still write under `path`.
pub fn free_bytes(root: &Root, path: &Path) -> Result<u64, Unavailable> {
    Ok(space(root, &existing(root, path))?.free)
}

/// The mount that holds a path, and the devices below it.
pub(crate) fn stack_of(root: &Root, path: &Path) -> Result<DeviceStack, String> {
    let mount = mount_of(root, &existing(root, path))?;
    under(root, &mount)
}

/// One fact an attribute; where a store lies on several disks, each is named.
fn disk_facts(root: &Root, stack: &DeviceStack, facts: &mut Facts) {
    for name in &stack.disks {
        let prefix = match stack.disks.len() {
            1 => "store.device".to_owned(),
            _ => format!("store.device.{name}"),
        };
        for attribute in disk::attributes(root, name) {
            let fact = format!("{prefix}.{}", attribute.name);
            facts.add(fact, attribute.source, attribute.value);
        }
    }
}

/// The whole disk, mapping or loop under the file system of a path, by its kernel name: the device
/// that the file system waits for.
///
/// # Errors
/// Why there is none, in words.
pub fn volume_of(root: &Root, path: &Path) -> Result<String, String> {
    whole_disk(root, &mount_of(root, &existing(root, path))?)
}

fn mount_of(root: &Root, path: &Path) -> Result<Mount, String> {
    let mounts = mount::mounts(root).map_err(|error| error.to_string())?;
    let device = root.is_live().then(|| mount::device_number(path)).flatten();
    mount::holding(&mounts, path, device)
        .cloned()
        .ok_or_else(|| format!("{MOUNTS} has no mount above {}", path.display()))
}

struct Space {
    free: u64,
    capacity: u64,
}

fn space(root: &Root, path: &Path) -> Result<Space, Unavailable> {
    if !root.is_live() {
        return Err(live_only("statvfs"));
    }
    let stat = nix::sys::statvfs::statvfs(path).map_err(|error| {
        Unavailable::new(
            format!("statvfs of {} failed: {error}", path.display()),
            "name a path that this user may enter",
        )
    })?;
    let block = stat.fragment_size();
    Ok(Space { free: stat.blocks_available() * block, capacity: stat.blocks() * block })
}

/// The path itself or its nearest folder above that exists, without links.
fn existing(root: &Root, path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if root.is_live() {
        for above in path.ancestors() {
            if let Ok(found) = above.canonicalize() {
                return found;
            }
        }
    }
    // A recorded tree has no user's files: the path counts as it is written.
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
