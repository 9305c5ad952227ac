//! The memory policy of the calling thread as a target of knobs.

#![allow(unsafe_code, reason = "the memory policy calls have no safe form")]

use model::cpu_list;
use nix::errno::Errno;
use nix::libc;

use crate::root::RootError;

pub(super) const CALL: &str = "set_mempolicy(2) of this process";
pub(super) const DEFAULT: &str = "default";

/// The policies of `linux/mempolicy.h`, indexed by number.
const MODES: &[&str] =
    &[DEFAULT, "preferred", "bind", "interleave", "local", "preferred-many", "weighted-interleave"];
/// Flags in the upper bits of a mode.
const MODE: i32 = 0xff;
const F_NODE: usize = 1;
const F_ADDR: usize = 2;

const WORD: usize = usize::BITS as usize;
/// The kernel refuses a mask that is smaller than its number of nodes, at most 1024.
const WORDS: usize = 1024 / WORD;
const PAGE: usize = 4096;

fn failed(path: &str, error: Errno) -> RootError {
    RootError::Io { path: path.to_owned(), why: error.desc().to_owned() }
}

/// `default`, or `bind:0`, `interleave:0-1`.
pub(super) fn read(path: &str) -> Result<String, RootError> {
    let (mut mode, mut mask) = (0i32, [0usize; WORDS]);
    // SAFETY: both pointers are to locals, and the mask has as many bits as is said.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            mask.as_mut_ptr(),
            WORDS * WORD,
            std::ptr::null::<u8>(),
            0usize,
        )
    };
    Errno::result(result).map_err(|error| failed(path, error))?;
    let nodes: Vec<u32> = (0..(WORDS * WORD) as u32).filter(|node| is_set(&mask, *node)).collect();
    let name = MODES.get((mode & MODE) as usize).copied().unwrap_or("unknown");
    Ok(if nodes.is_empty() {
        name.to_owned()
    } else {
        format!("{name}:{}", cpu_list::show(&nodes))
    })
}

fn is_set(mask: &[usize; WORDS], node: u32) -> bool {
    mask[node as usize / WORD] >> (node as usize % WORD) & 1 == 1
}

pub(super) fn write(path: &str, value: &str) -> Result<(), RootError> {
    let bad = || RootError::malformed(path, value, "a memory policy such as bind:0");
    let (name, list) = value.split_once(':').unwrap_or((value, ""));
    let mode = MODES.iter().position(|known| *known == name).ok_or_else(bad)?;
    let mut mask = [0usize; WORDS];
    for node in cpu_list::parse(list).ok_or_else(bad)? {
        let word = mask.get_mut(node as usize / WORD).ok_or_else(bad)?;
        *word |= 1 << (node as usize % WORD);
    }
    // A policy without nodes needs a null mask, not an empty one.
    let mask = if list.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: the kernel only reads the mask, which is null or has as many bits as is said.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, WORDS * WORD) };
    Errno::result(result).map(drop).map_err(|error| failed(path, error))
}

/// Touches a megabyte and returns its nodes.
pub(super) fn nodes_of_new_memory() -> Result<Vec<u32>, RootError> {
    let memory = vec![1u8; 1 << 20];
    let mut nodes = Vec::new();
    for page in memory.chunks(PAGE) {
        let mut node = 0i32;
        // SAFETY: `node` is a local, no mask is asked for, and the address is of memory that
        // lives until after the call and is only looked up.
        let result = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut node,
                std::ptr::null_mut::<usize>(),
                0usize,
                page.as_ptr(),
                F_NODE | F_ADDR,
            )
        };
        Errno::result(result).map_err(|error| failed(CALL, error))?;
        nodes.push(node.unsigned_abs());
    }
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_set_and_put_back() {
        // A thread of its own: the policy is the thread's.
        let policies = std::thread::spawn(|| {
            let before = read(CALL)?;
            write(CALL, "bind:0")?;
            let during = (read(CALL)?, nodes_of_new_memory()?);
            write(CALL, &before)?;
            Ok::<_, RootError>((before, during, read(CALL)?))
        });
        match policies.join().unwrap() {
            Ok((before, (policy, nodes), after)) => {
                assert_eq!((policy.as_str(), nodes.as_slice()), ("bind:0", &[0][..]));
                assert_eq!(before, after);
            }
            // A kernel without NUMA has no such call.
            Err(error) => assert!(error.to_string().contains("not implemented"), "{error}"),
        }
        assert!(write(CALL, "bind:9999").is_err() && write(CALL, "nowhere:0").is_err());
    }
}
