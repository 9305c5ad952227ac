//! bpf(2) and the mapped memory behind it. All unsafe code of the crate is here and in its modules.
#![allow(unsafe_code)]

mod hash;
mod ring;

pub use self::hash::HashMap;
pub use self::ring::Ring;
use crate::asm::{AssembleError, Instruction};
use crate::btf::Tracepoint;
use crate::error::{BpfError, reason_for, reason_for_all};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Commands of bpf(2), `include/uapi/linux/bpf.h`.
mod command {
    pub const MAP_CREATE: i32 = 0;
    pub const MAP_LOOKUP_ELEM: i32 = 1;
    pub const MAP_GET_NEXT_KEY: i32 = 4;
    pub const PROG_LOAD: i32 = 5;
    pub const PROG_GET_NEXT_ID: i32 = 11;
    pub const PROG_GET_FD_BY_ID: i32 = 13;
    pub const OBJ_GET_INFO_BY_FD: i32 = 15;
    pub const RAW_TRACEPOINT_OPEN: i32 = 17;
    pub const ENABLE_STATS: i32 = 32;
}

const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_PERCPU_HASH: u32 = 5;
const MAP_TYPE_PERCPU_ARRAY: u32 = 6;
const MAP_MMAPABLE: u32 = 1 << 10;
const PROG_TYPE_TRACING: u32 = 26;
const ATTACH_RAW_TRACEPOINT: u32 = 23;
const NAME_LENGTH: usize = 16;

/// The first part of `union bpf_attr` for `BPF_MAP_CREATE`.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; NAME_LENGTH],
    map_ifindex: u32,
}

/// The first part of `union bpf_attr` for `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; NAME_LENGTH],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
}

/// `union bpf_attr` for `BPF_RAW_TRACEPOINT_OPEN`.
#[repr(C)]
#[derive(Default)]
struct RawTracepointOpen {
    name: u64,
    prog_fd: u32,
    padding: u32,
}

/// `union bpf_attr` for `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
#[derive(Default)]
struct InfoByDescriptor {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

/// `struct bpf_prog_info` up to its last field that is read here; the kernel
/// fills as much as it is given room for.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_prog_len: u32,
    xlated_prog_len: u32,
    jited_prog_insns: u64,
    xlated_prog_insns: u64,
    load_time: u64,
    created_by_uid: u32,
    nr_map_ids: u32,
    map_ids: u64,
    name: [u8; NAME_LENGTH],
    ifindex: u32,
    flags: u32,
    netns_dev: u64,
    netns_ino: u64,
    nr_jited_ksyms: u32,
    nr_jited_func_lens: u32,
    jited_ksyms: u64,
    jited_func_lens: u64,
    btf_id: u32,
    func_info_rec_size: u32,
    func_info: u64,
    nr_func_info: u32,
    nr_line_info: u32,
    line_info: u64,
    jited_line_info: u64,
    nr_jited_line_info: u32,
    line_info_rec_size: u32,
    jited_line_info_rec_size: u32,
    nr_prog_tags: u32,
    prog_tags: u64,
    run_time_ns: u64,
    run_cnt: u64,
    recursion_misses: u64,
}

/// Calls bpf(2) with one of the `repr(C)` structures above.
fn bpf<T>(command: i32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the kernel reads (and for some commands writes) size_of::<T>() bytes
    // of `attributes`, which is exclusively borrowed; addresses inside it are
    // those of live buffers of the callers below, with their true lengths.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn bpf_descriptor<T>(command: i32, attributes: &mut T) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, attributes)?;
    // SAFETY: the command returned a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn create_map(attributes: &mut MapCreate) -> Result<OwnedFd, BpfError> {
    bpf_descriptor(command::MAP_CREATE, attributes).map_err(|error| no_memory(&error))
}

fn no_memory(error: &io::Error) -> BpfError {
    reason_for("making shared memory", error, String::new())
}

fn kernel_name(name: &str) -> [u8; NAME_LENGTH] {
    let mut padded = [0; NAME_LENGTH];
    for (to, from) in padded.iter_mut().zip(name.bytes().take(NAME_LENGTH - 1)) {
        *to = from;
    }
    padded
}

/// An array map with one value, mapped into this process.
pub struct SharedMemory {
    descriptor: OwnedFd,
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is only reached as atomics, through `words`.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// A zeroed map of at least `bytes`, which must be a multiple of 8.
    pub fn create(name: &str, bytes: usize) -> Result<SharedMemory, BpfError> {
        let mut attributes = MapCreate {
            map_type: MAP_TYPE_ARRAY,
            key_size: 4,
            value_size: bytes as u32,
            max_entries: 1,
            map_flags: MAP_MMAPABLE,
            map_name: kernel_name(name),
            ..MapCreate::default()
        };
        let descriptor = create_map(&mut attributes)?;
        // SAFETY: a new mapping at an address of the kernel's choice; the map's
        // memory is rounded up to whole pages by the kernel as this length is.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                descriptor.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<AtomicU64>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(SharedMemory { descriptor, start, words: bytes / 8 })
            }
            _ => Err(no_memory(&io::Error::last_os_error())),
        }
    }

    pub fn descriptor(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, holds that many words, lives as
        // long as `self`, and others (the kernel's programs) change it only in
        // whole aligned words, which is what atomics allow.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `create`; no borrow outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * 8) };
    }
}

/// Memory of one CPU at a time, which only programs in the kernel reach.
pub struct Scratch(OwnedFd);

impl Scratch {
    /// So many bytes a CPU.
    pub fn create(name: &str, bytes: usize) -> Result<Scratch, BpfError> {
        let mut attributes = MapCreate {
            map_type: MAP_TYPE_PERCPU_ARRAY,
            key_size: 4,
            value_size: bytes as u32,
            max_entries: 1,
            map_name: kernel_name(name),
            ..MapCreate::default()
        };
        create_map(&mut attributes).map(Scratch)
    }

    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// A program that is in the kernel but runs nowhere yet.
pub struct Program(OwnedFd);

/// A program's place at a tracepoint; dropping it detaches.
pub struct Attached {
    /// Keeps the link open.
    _link: OwnedFd,
}

/// How often and how long a program ran, as far as statistics were on.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTime {
    pub runs: u64,
    pub nanoseconds: u64,
    /// Runs that the kernel left out because an interrupt came while the program ran (Linux 5.12).
    pub left_out: u64,
}

impl Program {
    /// Loads a program for a tracepoint, under a name in the kernel.
    ///
    /// # Errors
    /// The kernel's, with the end of the verifier's log, or the assembler's.
    pub fn load(
        name: &str,
        tracepoint: &Tracepoint,
        program: Result<Vec<Instruction>, AssembleError>,
    ) -> Result<Program, BpfError> {
        let program = program.map_err(|error| BpfError::Rejected { log: error.to_string() })?;
        let license = c"GPL";
        let mut attributes = ProgramLoad {
            prog_type: PROG_TYPE_TRACING,
            insn_cnt: program.len() as u32,
            insns: program.as_ptr() as u64,
            license: license.as_ptr() as u64,
            prog_name: kernel_name(name),
            expected_attach_type: ATTACH_RAW_TRACEPOINT,
            attach_btf_id: tracepoint.number,
            ..ProgramLoad::default()
        };
        let error = match bpf_descriptor(command::PROG_LOAD, &mut attributes) {
            Ok(descriptor) => return Ok(Program(descriptor)),
            Err(error) => error,
        };
        // The log only now: it slows every load.
        let mut log = vec![0u8; 1 << 20];
        attributes.log_level = 1;
        attributes.log_size = log.len() as u32;
        attributes.log_buf = log.as_mut_ptr() as u64;
        match bpf_descriptor(command::PROG_LOAD, &mut attributes) {
            Ok(descriptor) => Ok(Program(descriptor)),
            Err(_) => Err(reason_for("loading a BPF program", &error, last_lines(&log))),
        }
    }

    /// Lets the program run at its tracepoint until the result is dropped.
    ///
    /// # Errors
    /// The kernel's.
    pub fn attach(&self) -> Result<Attached, BpfError> {
        let mut attributes =
            RawTracepointOpen { prog_fd: self.0.as_raw_fd() as u32, ..Default::default() };
        let link = bpf_descriptor(command::RAW_TRACEPOINT_OPEN, &mut attributes)
            .map_err(|error| reason_for("attaching to a tracepoint", &error, String::new()))?;
        Ok(Attached { _link: link })
    }

    /// How often it ran so far.
    ///
    /// # Errors
    /// The kernel's.
    pub fn run_time(&self) -> Result<RunTime, BpfError> {
        let info = program_info(&self.0)
            .map_err(|error| reason_for("reading run times", &error, String::new()))?;
        Ok(RunTime {
            runs: info.run_cnt,
            nanoseconds: info.run_time_ns,
            left_out: info.recursion_misses,
        })
    }
}

fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

fn program_info(program: &OwnedFd) -> io::Result<ProgramInfo> {
    let mut info = ProgramInfo::default();
    let mut attributes = InfoByDescriptor {
        bpf_fd: program.as_raw_fd() as u32,
        info_len: size_of::<ProgramInfo>() as u32,
        info: &raw mut info as u64,
    };
    bpf(command::OBJ_GET_INFO_BY_FD, &mut attributes)?;
    Ok(info)
}

/// Makes the kernel time every BPF program of the machine until the result is dropped.
///
/// # Errors
/// A kernel before 5.8, or no `CAP_SYS_ADMIN`, which this alone takes.
pub fn enable_statistics() -> Result<OwnedFd, BpfError> {
    bpf_descriptor(command::ENABLE_STATS, &mut [0u32; 1])
        .map_err(|error| reason_for_all("have BPF programs timed", &error))
}

/// Number and name of all BPF programs in the kernel, from every process. Needs `CAP_SYS_ADMIN`.
///
/// # Errors
/// The kernel's.
pub fn list_programs() -> Result<Vec<(u32, String)>, BpfError> {
    list().map_err(|error| reason_for_all("list BPF programs", &error))
}

fn list() -> io::Result<Vec<(u32, String)>> {
    let mut programs = Vec::new();
    // start_id and next_id, and prog_id, next_id, open_flags
    let mut ids = [0u32; 3];
    loop {
        match bpf(command::PROG_GET_NEXT_ID, &mut ids) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(programs),
            Err(error) => return Err(error),
        }
        let id = ids[1];
        // It may have ended meanwhile.
        if let Ok(program) = bpf_descriptor(command::PROG_GET_FD_BY_ID, &mut [id, 0, 0]) {
            let name = program_info(&program)?.name;
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_LENGTH);
            programs.push((id, String::from_utf8_lossy(&name[..end]).into_owned()));
        }
        ids = [id, 0, 0];
    }
}
