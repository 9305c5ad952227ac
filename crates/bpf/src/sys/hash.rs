//! Hash tables that programs in the kernel fill and this process reads.

use super::{
    MAP_TYPE_HASH, MAP_TYPE_PERCPU_HASH, MapCreate, bpf, command, create_map, kernel_name,
};
use crate::error::{BpfError, reason_for};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The kernel copies a value for each of these CPUs.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// `union bpf_attr` for the commands on an element.
#[repr(C)]
#[derive(Default)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: u64,
    /// The value, or the key that comes next.
    value: u64,
    flags: u64,
}

/// A hash table with a fixed number of entries, made in advance.
pub struct HashMap {
    descriptor: OwnedFd,
    key_bytes: usize,
    value_bytes: usize,
    /// CPUs with a value of their own; 1 where all share it.
    copies: usize,
}

impl HashMap {
    /// A table of values that all CPUs share; sizes in bytes, of values multiples of 8.
    ///
    /// # Errors
    /// The kernel's.
    pub fn create(
        name: &str,
        key_bytes: usize,
        value_bytes: usize,
        entries: usize,
    ) -> Result<HashMap, BpfError> {
        HashMap::of_type(MAP_TYPE_HASH, 1, name, [key_bytes, value_bytes, entries])
    }

    /// A table in which every CPU has a value of its own; the entry of a key is made with zeros for
    /// the other CPUs.
    ///
    /// # Errors
    /// The kernel's, or the number of CPUs is not known.
    pub fn per_cpu(
        name: &str,
        key_bytes: usize,
        value_bytes: usize,
        entries: usize,
    ) -> Result<HashMap, BpfError> {
        let text = fs::read_to_string(POSSIBLE).map_err(|error| error.to_string());
        let unknown = |error| BpfError::Kernel { step: "reading which CPUs are possible", error };
        let cpus = text.and_then(|text| count_of(&text).ok_or(text)).map_err(unknown)?;
        let sizes = [key_bytes, value_bytes, entries];
        HashMap::of_type(MAP_TYPE_PERCPU_HASH, cpus, name, sizes)
    }

    fn of_type(
        map_type: u32,
        copies: usize,
        name: &str,
        [key_bytes, value_bytes, entries]: [usize; 3],
    ) -> Result<HashMap, BpfError> {
        let mut attributes = MapCreate {
            map_type,
            key_size: key_bytes as u32,
            value_size: value_bytes as u32,
            max_entries: entries as u32,
            map_name: kernel_name(name),
            ..MapCreate::default()
        };
        let descriptor = create_map(&mut attributes)?;
        Ok(HashMap { descriptor, key_bytes, value_bytes, copies })
    }

    pub fn descriptor(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Passes every key with its value to `each`; the values of all CPUs follow each other. Programs
    /// that fill the table must have been detached.
    ///
    /// # Errors
    /// The kernel's.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u64])) -> Result<(), BpfError> {
        let mut key = vec![0u8; self.key_bytes];
        let mut next = key.clone();
        let mut value = vec![0u64; self.value_bytes / 8 * self.copies];
        let mut first = true;
        loop {
            let from = if first { 0 } else { key.as_ptr() as u64 };
            match self.element(command::MAP_GET_NEXT_KEY, from, next.as_mut_ptr() as u64) {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(()),
                result => result.map_err(|error| unreadable(&error))?,
            }
            first = false;
            key.copy_from_slice(&next);
            self.element(command::MAP_LOOKUP_ELEM, key.as_ptr() as u64, value.as_mut_ptr() as u64)
                .map_err(|error| unreadable(&error))?;
            each(&key, &value);
        }
    }

    /// A command on a key and a value (or a next key) at these addresses, which are of buffers of
    /// the table's sizes.
    fn element(&self, command: i32, key: u64, value: u64) -> io::Result<()> {
        let map_fd = self.descriptor.as_raw_fd() as u32;
        bpf(command, &mut Element { map_fd, key, value, ..Element::default() }).map(drop)
    }
}

fn unreadable(error: &io::Error) -> BpfError {
    reason_for("reading a table of the kernel", error, String::new())
}

/// How many CPUs a list has: `0-3,8` are 5.
fn count_of(list: &str) -> Option<usize> {
    let mut cpus = 0;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        cpus += (last + 1).checked_sub(first)?;
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_cpus_are_counted() {
        for (list, cpus) in [("0\n", 1), ("0-3\n", 4), ("0-3,8,10-11", 7)] {
            assert_eq!(count_of(list), Some(cpus), "{list}");
        }
        for damaged in ["", "3-1", "0-x", "0,,1"] {
            assert_eq!(count_of(damaged), None, "{damaged}");
        }
    }
}
