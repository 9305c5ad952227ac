//! Names of functions: of ELF files, and of the kernel.

use std::fs;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// The largest file of symbols that is read.
const LARGEST: u64 = 4 << 30;

/// The functions of a file, by address.
#[derive(Debug, Default)]
pub(crate) struct FileSymbols {
    /// Begin, end and name, sorted.
    functions: Vec<(u64, u64, String)>,
    /// Where functions begin by the tables for exceptions, which stripped files have too.
    begins: Vec<u64>,
}

impl FileSymbols {
    /// Of a file, and of its separate file of symbols where a distribution's package put that.
    pub fn of(file: &object::File<'_>) -> FileSymbols {
        let mut functions = functions(file);
        if file.symbols().next().is_none()
            && let Some(bytes) = separate(file)
            && let Ok(debug) = object::File::parse(&*bytes)
        {
            functions.extend(self::functions(&debug));
        }
        functions.sort();
        functions.dedup_by_key(|(begin, ..)| *begin);
        let begins = file
            .section_by_name(".eh_frame_hdr")
            .and_then(|section| Some(begins(section.data().ok()?, section.address())));
        FileSymbols { functions, begins: begins.unwrap_or_default() }
    }

    /// The function at an address of the file, whose name is that: `hash_find`, or where there is
    /// no symbol `memcached@0x7a10`, which is where the function begins.
    pub fn name(&self, address: u64, file: &str) -> String {
        let at = self.functions.partition_point(|(begin, ..)| *begin <= address);
        let function = at.checked_sub(1).and_then(|at| self.functions.get(at));
        if let Some((_, _, name)) = function.filter(|(_, end, _)| address < *end) {
            return readable(name);
        }
        let at = self.begins.partition_point(|begin| *begin <= address);
        match at.checked_sub(1).and_then(|at| self.begins.get(at)) {
            Some(begin) => format!("{file}@{begin:#x}"),
            None => format!("[{file}]"),
        }
    }
}

fn functions(file: &object::File<'_>) -> Vec<(u64, u64, String)> {
    let all = file.symbols().chain(file.dynamic_symbols());
    let functions = all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    let named = functions.filter_map(|symbol| {
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        let (begin, size) = (symbol.address(), symbol.size());
        Some((begin, begin.saturating_add(size), name.to_owned()))
    });
    named.collect()
}

/// The file of symbols that has the same build identity.
fn separate(file: &object::File<'_>) -> Option<Vec<u8>> {
    let identity = file.build_id().ok()??;
    let hex: String = identity.iter().map(|byte| format!("{byte:02x}")).collect();
    let (folder, name) = hex.split_at_checked(2)?;
    let path = format!("/usr/lib/debug/.build-id/{folder}/{name}.debug");
    safe_file::read_bytes(Path::new(&path), LARGEST).ok()
}

/// Where functions begin, from `.eh_frame_hdr` at an address: the search table, as the Linux
/// Standard Base defines it, in the one encoding that linkers write.
fn begins(table: &[u8], at: u64) -> Vec<u64> {
    /// Version; encodings: pointers relative to themselves, counts of 4 bytes, the table relative to
    /// the section.
    const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    if table.first_chunk() != Some(&HEAD) {
        return Vec::new();
    }
    let entries = table.get(12..).unwrap_or_default().as_chunks::<8>().0;
    let begin = |entry: &[u8; 8]| {
        let [a, b, c, d, ..] = *entry;
        at.wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])))
    };
    entries.iter().map(begin).collect()
}

/// A name as its author wrote it, without parameters and hashes.
pub(crate) fn readable(name: &str) -> String {
    // A name without this may be read as that of a type.
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

/// The functions of the kernel; empty where this user may not see their addresses.
pub(crate) struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    pub fn read() -> KernelSymbols {
        KernelSymbols::of(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn of(text: &str) -> KernelSymbols {
        let functions = text.lines().filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let address = u64::from_str_radix(fields.next()?, 16).ok().filter(|at| *at != 0)?;
            let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
            is_code.then_some((address, fields.next()?.to_owned()))
        });
        let mut functions: Vec<_> = functions.collect();
        functions.sort();
        KernelSymbols(functions)
    }

    /// The name of the function at an address.
    pub fn name(&self, address: u64) -> &str {
        let at = self.0.partition_point(|(begin, _)| *begin <= address);
        at.checked_sub(1).and_then(|at| self.0.get(at)).map_or("[kernel]", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_their_authors() {
        assert_eq!(
            readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(readable("_ZN7rocksdb6DBImpl3GetERKNS_11ReadOptionsE"), "rocksdb::DBImpl::Get");
        assert_eq!(readable("assoc_find"), "assoc_find");
    }

    #[test]
    fn an_address_without_a_symbol_has_the_begin_of_its_function() {
        let symbols = FileSymbols {
            functions: vec![(0x100, 0x110, "a".to_owned())],
            begins: vec![0x100, 0x200, 0x300],
        };
        assert_eq!(symbols.name(0x10f, "f"), "a");
        assert_eq!(symbols.name(0x110, "f"), "f@0x100");
        assert_eq!(symbols.name(0x2ff, "f"), "f@0x200");
        assert_eq!(symbols.name(0x10, "f"), "[f]");
    }

    #[test]
    fn kernel_functions_are_found_by_address() {
        let text =
            "ffffffff81000000 T _text\nffffffff81000100 t do_read\nffffffff82000000 D data\n";
        let symbols = KernelSymbols::of(text);
        assert_eq!(symbols.name(0xffff_ffff_8100_0180), "do_read");
        assert_eq!(symbols.name(1), "[kernel]");
        let hidden = KernelSymbols::of("0000000000000000 T _text\n");
        assert_eq!(hidden.name(0xffff_ffff_8100_0180), "[kernel]");
    }
}
