//! Stacks of a process, from registers and the top of the stack.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder, UnwinderNative,
};
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};

use crate::maps::{self, CodeMap};
use crate::symbols::FileSymbols;
use crate::sys::REGISTER_COUNT;

/// The largest file whose tables are read.
const LARGEST: u64 = 1 << 30;
/// Frames of a stack at most.
const DEEPEST: usize = 256;
/// The list of mapped files is read again at most so often.
const AGAIN: Duration = Duration::from_millis(200);

/// Files by their name: several processes may share one.
pub(crate) type Files = HashMap<String, Option<Rc<CodeFile>>>;

/// A file of code.
pub(crate) struct CodeFile {
    /// Its last part: `libc.so.6`.
    pub name: String,
    pub symbols: FileSymbols,
    /// Offset in the file and address of each segment of code.
    segments: Vec<(Range<u64>, u64)>,
    sections: HashMap<&'static str, (Range<u64>, Vec<u8>)>,
}

/// A file as it lies in a process.
struct Loaded {
    addresses: Range<u64>,
    /// What is added to the addresses of the file.
    bias: u64,
    file: Rc<CodeFile>,
}

/// The code of a process.
pub(crate) struct ProcessUnwinder {
    pid: u32,
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    loaded: Vec<Loaded>,
    read: Option<Instant>,
}

impl ProcessUnwinder {
    pub fn new(pid: u32) -> ProcessUnwinder {
        ProcessUnwinder {
            pid,
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
            loaded: Vec::new(),
            read: None,
        }
    }

    /// Reads the files of its code: large ones take a while, in which samples would have no room.
    pub fn prepare(&mut self, files: &mut Files) {
        self.refresh(files);
    }

    /// Addresses within functions, the innermost first; as far as they can be found.
    pub fn stack(
        &mut self,
        registers: [u64; REGISTER_COUNT],
        stack: &[u8],
        files: &mut Files,
    ) -> Vec<u64> {
        let (address, begin, registers) = begin_of(registers);
        if self.find(address).is_none() {
            self.refresh(files);
        }
        let mut read = |at: u64| {
            let at = at.checked_sub(begin).ok_or(())? as usize;
            stack.get(at..).and_then(<[u8]>::first_chunk).map(|w| u64::from_le_bytes(*w)).ok_or(())
        };
        let mut found = Vec::new();
        let mut frames = self.unwinder.iter_frames(address, registers, &mut self.cache, &mut read);
        while let Ok(Some(frame)) = frames.next() {
            found.push(frame.address_for_lookup());
            if found.len() == DEEPEST {
                break;
            }
        }
        found
    }

    /// The name of the function at an address.
    pub fn name(&self, address: u64) -> String {
        match self.find(address) {
            Some(loaded) => {
                loaded.file.symbols.name(address.wrapping_sub(loaded.bias), &loaded.file.name)
            }
            None => "[unknown]".to_owned(),
        }
    }

    fn find(&self, address: u64) -> Option<&Loaded> {
        self.loaded.iter().find(|loaded| loaded.addresses.contains(&address))
    }

    /// Adds the files that were mapped since.
    fn refresh(&mut self, files: &mut Files) {
        if self.read.is_some_and(|read| read.elapsed() < AGAIN) {
            return;
        }
        self.read = Some(Instant::now());
        for map in maps::code_of(self.pid) {
            if self.loaded.iter().any(|loaded| loaded.addresses == map.addresses) {
                continue;
            }
            let file = files.entry(map.name.clone()).or_insert_with(|| read_file(&map));
            let Some(file) = file.clone() else { continue };
            let Some(bias) = file.bias(&map) else { continue };
            self.unwinder.add_module(Module::new(
                map.name.clone(),
                map.addresses.clone(),
                bias,
                file.sections(),
            ));
            self.loaded.push(Loaded { addresses: map.addresses, bias, file });
        }
    }
}

/// Program counter, stack pointer, and the registers in the unwinder's form.
#[cfg(target_arch = "x86_64")]
fn begin_of([frame, stack, counter]: [u64; REGISTER_COUNT]) -> (u64, u64, UnwindRegsNative) {
    (counter, stack, UnwindRegsNative::new(counter, stack, frame))
}

#[cfg(target_arch = "aarch64")]
fn begin_of([frame, link, stack, counter]: [u64; REGISTER_COUNT]) -> (u64, u64, UnwindRegsNative) {
    (counter, stack, UnwindRegsNative::new(link, stack, frame))
}

fn read_file(map: &CodeMap) -> Option<Rc<CodeFile>> {
    // The process names it: at that name may lie a pipe by now.
    let bytes = map.paths.iter().find_map(|path| safe_file::read_bytes(path, LARGEST).ok())?;
    let name = map.name.rsplit('/').next().unwrap_or_default();
    CodeFile::of(name.trim_end_matches(" (deleted)"), &bytes).map(Rc::new)
}

impl CodeFile {
    fn of(name: &str, bytes: &[u8]) -> Option<CodeFile> {
        let file = object::File::parse(bytes).ok()?;
        // The first page of one may be the last of another: only those of code are mapped as code.
        let is_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & object::elf::PF_X != 0);
        let of_code = file.segments().filter(|segment| is_code(segment.flags()));
        let segments = of_code.map(|segment| {
            let (offset, size) = segment.file_range();
            (offset..offset.saturating_add(size), segment.address())
        });
        let section = |name: &'static str| {
            let section = file.section_by_name(name)?;
            let begin = section.address();
            Some((
                name,
                (begin..begin.saturating_add(section.size()), section.data().ok()?.to_vec()),
            ))
        };
        Some(CodeFile {
            name: name.to_owned(),
            symbols: FileSymbols::of(&file),
            segments: segments.collect(),
            sections: [".eh_frame", ".eh_frame_hdr", ".got"]
                .into_iter()
                .filter_map(section)
                .collect(),
        })
    }

    /// What is added to its addresses where it is mapped so.
    fn bias(&self, map: &CodeMap) -> Option<u64> {
        let (range, address) = self.segments.iter().find(|(range, _)| {
            // A mapping begins at a page, a segment anywhere in it.
            let page = range.start & !0xfff..range.end;
            page.contains(&map.offset)
        })?;
        let of_file = address.wrapping_sub(range.start).wrapping_add(map.offset);
        Some(map.addresses.start.wrapping_sub(of_file))
    }

    fn sections(&self) -> ExplicitModuleSectionInfo<Vec<u8>> {
        let range = |name| self.sections.get(name).map(|(range, _)| range.clone());
        let data = |name| self.sections.get(name).map(|(_, data)| data.clone());
        ExplicitModuleSectionInfo {
            base_svma: 0,
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            ..ExplicitModuleSectionInfo::default()
        }
    }
}
