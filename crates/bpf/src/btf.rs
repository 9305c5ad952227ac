//! The kernel's own type information (BTF), by which a program names the tracepoint that it
//! attaches to and finds fields of structures. Format: `Documentation/bpf/btf.rst`.

use std::fs;

use crate::error::BpfError;

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
/// Qualifiers and names between a use of a type and the type; deeper chains are damaged.
const MOST_STEPS: usize = 16;

/// Kinds of types.
mod kind {
    pub const INT: u32 = 1;
    pub const POINTER: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const RESTRICT: u32 = 11;
    pub const FUNCTION_PROTOTYPE: u32 = 13;
    pub const VARIABLE: u32 = 14;
    pub const DATA_SECTION: u32 = 15;
    pub const DECLARATION_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM_64: u32 = 19;
    /// The last one that is known.
    pub const LAST: u32 = ENUM_64;
}

/// Why type information could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    #[error("it is cut short")]
    Short,
    #[error("it does not start as type information does")]
    Magic,
    #[error("it has a kind of type, {0}, that this program does not know")]
    Kind(u32),
}

/// Types with their names.
pub struct Btf {
    bytes: Vec<u8>,
    strings: usize,
    /// Where each type begins; the first has number 1.
    types: Vec<usize>,
}

/// A tracepoint that programs can attach to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    /// The number of its type.
    pub(crate) number: u32,
    pub arguments: Vec<Argument>,
}

/// What a tracepoint passes to its programs, 8 bytes each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A pointer to a structure with this name.
    Structure(String),
    /// A whole number of so many bytes, also an enumeration.
    Number(u32),
    Other,
}

/// A field of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// In bytes from the structure's begin.
    pub offset: i16,
    /// 0 where it is neither number nor pointer.
    pub bytes: u32,
}

fn word(bytes: &[u8], at: usize) -> Result<u32, BtfError> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    four.map(|four| u32::from_ne_bytes(*four)).ok_or(BtfError::Short)
}

/// Bytes that follow the 12 of a type's common part.
fn further_bytes(kind: u32, members: usize) -> Result<usize, BtfError> {
    Ok(match kind {
        kind::INT | kind::VARIABLE | kind::DECLARATION_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATA_SECTION | kind::ENUM_64 => 12 * members,
        kind::ENUM | kind::FUNCTION_PROTOTYPE => 8 * members,
        1..=kind::LAST => 0,
        unknown => return Err(BtfError::Kind(unknown)),
    })
}

impl Tracepoint {
    /// The place of the `nth` argument that points to a structure with this name, counted from 0.
    pub fn structure(&self, name: &str, nth: usize) -> Option<usize> {
        let is = |argument: &Argument| matches!(argument, Argument::Structure(of) if of == name);
        let places = self.arguments.iter().enumerate();
        places.filter(|(_, argument)| is(argument)).nth(nth).map(|(place, _)| place)
    }
}

impl Btf {
    /// Of the running kernel.
    ///
    /// # Errors
    /// There is none, or it is not understood.
    pub fn of_kernel() -> Result<Btf, BpfError> {
        let none = |detail: String| BpfError::NoTypes { detail: format!("{VMLINUX}: {detail}") };
        let bytes = fs::read(VMLINUX).map_err(|error| none(error.to_string()))?;
        Btf::parse(bytes).map_err(|error| none(error.to_string()))
    }

    /// Reads types.
    ///
    /// # Errors
    /// They are damaged, or of a kind that is not known.
    pub fn parse(bytes: Vec<u8>) -> Result<Btf, BtfError> {
        if word(&bytes, 0)? as u16 != MAGIC {
            return Err(BtfError::Magic);
        }
        let header = word(&bytes, 4)? as usize;
        let part = |offset_at: usize| -> Result<(usize, usize), BtfError> {
            let start = header.saturating_add(word(&bytes, offset_at)? as usize);
            let end = start.saturating_add(word(&bytes, offset_at + 4)? as usize);
            bytes.get(start..end).map(|_| (start, end)).ok_or(BtfError::Short)
        };
        let ((mut at, end), (strings, _)) = (part(8)?, part(16)?);
        let mut types = Vec::new();
        while at < end {
            let info = word(&bytes, at + 4)?;
            types.push(at);
            at += 12 + further_bytes(info >> 24 & 0x1f, (info & 0xffff) as usize)?;
        }
        match at == end {
            true => Ok(Btf { bytes, strings, types }),
            false => Err(BtfError::Short),
        }
    }

    /// A tracepoint by its name.
    ///
    /// # Errors
    /// This kernel has none of this name.
    pub fn tracepoint(&self, name: &'static str) -> Result<Tracepoint, BpfError> {
        let wanted = format!("btf_trace_{name}");
        let found = (1..=self.types.len() as u32)
            .find(|number| self.kind(*number) == kind::TYPEDEF && self.name(*number) == wanted);
        let number = found.ok_or(BpfError::NoTracepoint(name))?;
        let prototype = self.target(self.target(number));
        let parameters = match self.kind(prototype) {
            kind::FUNCTION_PROTOTYPE => self.members(prototype),
            _ => 0,
        };
        // The first is the tracepoint's own, which programs do not get.
        let arguments = (1..parameters).map(|nth| self.argument(self.field(prototype, 8, nth, 4)));
        Ok(Tracepoint { number, arguments: arguments.collect() })
    }

    /// A field of a structure by its name, also one within its unnamed parts.
    ///
    /// # Errors
    /// This kernel has no such field at a whole byte within the first 32 KiB.
    pub fn member(&self, structure: &str, name: &str) -> Result<Field, BpfError> {
        (1..=self.types.len() as u32)
            .filter(|number| self.kind(*number) == kind::STRUCT && self.name(*number) == structure)
            .find_map(|number| self.member_of(number, name, 0))
            .ok_or_else(|| BpfError::NoField(format!("{structure}.{name}")))
    }

    fn member_of(&self, number: u32, name: &str, depth: usize) -> Option<Field> {
        let flagged = self.word(number, 4) >> 31 == 1;
        for nth in 0..self.members(number) {
            let word = |at| self.field(number, 12, nth, at);
            let (member, of, place) = (self.string(word(0)), word(4), word(8));
            // With the flag the upper 8 bits are the size of a bit field.
            let bits = if flagged { place & 0xff_ffff } else { place };
            let offset = i16::try_from(bits / 8).ok().filter(|_| bits % 8 == 0);
            if member == name {
                let of = self.resolved(of);
                let bytes = match self.kind(of) {
                    kind::POINTER => 8,
                    kind::INT | kind::ENUM | kind::ENUM_64 => self.word(of, 8),
                    _ => 0,
                };
                return offset.map(|offset| Field { offset, bytes });
            }
            let unnamed = member.is_empty() && depth < MOST_STEPS;
            if unnamed && matches!(self.kind(of), kind::STRUCT | kind::UNION) {
                let within = self.member_of(of, name, depth + 1);
                if let Some((offset, within)) = offset.zip(within) {
                    let offset = offset.checked_add(within.offset)?;
                    return Some(Field { offset, ..within });
                }
            }
        }
        None
    }

    fn argument(&self, number: u32) -> Argument {
        let number = self.resolved(number);
        match self.kind(number) {
            kind::INT | kind::ENUM | kind::ENUM_64 => Argument::Number(self.word(number, 8)),
            kind::POINTER => {
                let target = self.resolved(self.target(number));
                match self.kind(target) {
                    kind::STRUCT => Argument::Structure(self.name(target).to_owned()),
                    _ => Argument::Other,
                }
            }
            _ => Argument::Other,
        }
    }

    /// The type behind names and qualifiers.
    fn resolved(&self, mut number: u32) -> u32 {
        for _ in 0..MOST_STEPS {
            match self.kind(number) {
                kind::TYPEDEF..=kind::RESTRICT | kind::TYPE_TAG => number = self.target(number),
                _ => break,
            }
        }
        number
    }

    /// A word of a type; 0 where the type is damaged or `void`.
    fn word(&self, number: u32, at: usize) -> u32 {
        let begin = (number as usize).checked_sub(1).and_then(|nth| self.types.get(nth));
        begin.and_then(|begin| word(&self.bytes, begin + at).ok()).unwrap_or(0)
    }

    fn kind(&self, number: u32) -> u32 {
        self.word(number, 4) >> 24 & 0x1f
    }

    fn members(&self, number: u32) -> u32 {
        self.word(number, 4) & 0xffff
    }

    /// The type that a pointer or a name stands for.
    fn target(&self, number: u32) -> u32 {
        self.word(number, 8)
    }

    /// A word of the `nth` member, where members have so many bytes.
    fn field(&self, number: u32, bytes: usize, nth: u32, at: usize) -> u32 {
        self.word(number, 12 + bytes * nth as usize + at)
    }

    fn name(&self, number: u32) -> &str {
        self.string(self.word(number, 0))
    }

    fn string(&self, at: u32) -> &str {
        let bytes = self.bytes.get(self.strings + at as usize..).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `int`, `struct a { int; struct { b: int at bit 32; } at bit 64; c: a* at bit 136 }`, and
    /// a tracepoint `t(void *, struct a *, const int)`.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0a\0b\0c\0btf_trace_t\0";
        let (int, a, b, c, t) = (1, 5, 7, 9, 11);
        let info = |kind: u32, members: u32| kind << 24 | members;
        let types: &[u32] = &[
            // 1: int
            int,
            info(kind::INT, 0),
            4,
            32,
            // 2: the unnamed part
            0,
            info(kind::STRUCT, 1),
            8,
            b,
            1,
            32,
            // 3: struct a
            a,
            info(kind::STRUCT, 3),
            32,
            0,
            1,
            0,
            0,
            2,
            64,
            c,
            4,
            136,
            // 4: a pointer to it
            0,
            info(kind::POINTER, 0),
            3,
            // 5: const int
            0,
            info(10, 0),
            1,
            // 6: the prototype
            0,
            info(kind::FUNCTION_PROTOTYPE, 3),
            0,
            0,
            0,
            0,
            4,
            0,
            5,
            // 7: a pointer to it
            0,
            info(kind::POINTER, 0),
            6,
            // 8: the tracepoint
            t,
            info(kind::TYPEDEF, 0),
            7,
        ];
        let types_bytes = types.len() as u32 * 4;
        let header: [u32; 6] =
            [u32::from(MAGIC) | 1 << 16, 24, 0, types_bytes, types_bytes, strings.len() as u32];
        let words = header.iter().chain(types).flat_map(|word| word.to_ne_bytes());
        words.chain(*strings).collect()
    }

    #[test]
    fn tracepoints_have_their_arguments_and_structures_their_fields() {
        let btf = Btf::parse(sample()).unwrap();
        let tracepoint = btf.tracepoint("t").unwrap();
        assert_eq!(tracepoint.number, 8);
        let expected = [Argument::Structure("a".to_owned()), Argument::Number(4)];
        assert_eq!(tracepoint.arguments, expected);
        assert_eq!((tracepoint.structure("a", 0), tracepoint.structure("a", 1)), (Some(0), None));
        assert_eq!(btf.tracepoint("other"), Err(BpfError::NoTracepoint("other")));
        assert_eq!(btf.member("a", "b"), Ok(Field { offset: 12, bytes: 4 }));
        assert_eq!(btf.member("a", "c"), Ok(Field { offset: 17, bytes: 8 }));
        let none = BpfError::NoField("a.d".to_owned());
        assert_eq!(btf.member("a", "d"), Err(none));
    }

    #[test]
    fn damaged_input_is_an_error_not_a_panic() {
        let whole = sample();
        for length in 0..whole.len() {
            assert!(Btf::parse(whole[..length].to_vec()).is_err(), "{length}");
        }
        // Any word may be wrong.
        for at in 24..whole.len() - 4 {
            let mut wrong = whole.clone();
            wrong[at] ^= 0xff;
            if let Ok(btf) = Btf::parse(wrong) {
                let _ = (btf.tracepoint("t"), btf.member("a", "b"));
            }
        }
        let mut wrong = whole;
        wrong[24 + 7] = 31;
        assert_eq!(Btf::parse(wrong.clone()).err(), Some(BtfError::Kind(31)));
        wrong[0] = 0;
        assert_eq!(Btf::parse(wrong).err(), Some(BtfError::Magic));
    }

    /// Fields of the running kernel, which the programs of kvmeter need.
    #[test]
    fn this_kernels_types_are_read() {
        let Ok(btf) = Btf::of_kernel() else {
            eprintln!("SKIPPED: this kernel has no type information");
            return;
        };
        assert_eq!(btf.member("task_struct", "tgid").unwrap().bytes, 4);
        let switch = btf.tracepoint("sched_switch").unwrap();
        let (before, after) =
            (switch.structure("task_struct", 0), switch.structure("task_struct", 1));
        assert!(before.is_some() && after > before, "{switch:?}");
    }
}
