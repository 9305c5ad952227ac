//! A small assembler of BPF instructions with labels.
//!
//! The programs of kvmeter have about a hundred instructions each, so
//! they are written with it instead of being compiled from C: building needs no
//! clang and no linker, and what runs in the kernel can be read in one file.
//! Encoding: `Documentation/bpf/standardization/instruction-set.rst` of Linux.

/// One instruction as the kernel takes it. A 64-bit immediate takes two.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    code: u8,
    /// Destination in the low four bits, source in the high four (little-endian
    /// machines, which both supported architectures are).
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// R0 is the result of a call, R1 to R5 its arguments (lost by it), R6 to R9
/// survive calls, R10 is the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// The right-hand side of an operation: a register or a sign-extended constant.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    Register(Reg),
    Constant(i32),
}

impl From<Reg> for Operand {
    fn from(register: Reg) -> Operand {
        Operand::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(constant: i32) -> Operand {
        Operand::Constant(constant)
    }
}

/// 64-bit arithmetic.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Move = 0xb0,
}

/// When a jump is taken; 64-bit comparisons.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum When {
    Equal = 0x10,
    NotEqual = 0x50,
    /// unsigned
    AtLeast = 0x30,
    /// unsigned
    Below = 0xa0,
    /// signed
    AtMostSigned = 0xd0,
    /// signed
    AtLeastSigned = 0x70,
}

/// How many bytes a load or a store moves; loads are zero-extended.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Size {
    /// 4 bytes
    Word = 0x00,
    /// 8 bytes
    Double = 0x18,
}

/// A place in the program that a jump goes to.
#[derive(Clone, Copy, Debug)]
pub struct Label(usize);

/// Why a program could not be assembled.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    #[error("a jump goes to a label that was never placed")]
    UnplacedLabel,
    #[error("a jump is too far for 16 bits")]
    TooFar,
}

/// Collects instructions; [`Assembler::finish`] resolves the jumps.
#[derive(Default)]
pub struct Assembler {
    program: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

const CLASS_LOAD_IMMEDIATE: u8 = 0x00;
const CLASS_LOAD: u8 = 0x01;
const CLASS_STORE: u8 = 0x03;
const CLASS_JUMP: u8 = 0x05;
const CLASS_ALU64: u8 = 0x07;
const MODE_MEMORY: u8 = 0x60;
const MODE_ATOMIC: u8 = 0xc0;
const SOURCE_REGISTER: u8 = 0x08;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// Source registers of a 64-bit load that mean "this map" and "address inside a map's value".
const PSEUDO_MAP: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;

impl Assembler {
    pub fn new() -> Assembler {
        Assembler::default()
    }

    fn push(&mut self, code: u8, destination: Reg, source: u8, offset: i16, immediate: i32) {
        let registers = destination as u8 | source << 4;
        self.program.push(Instruction { code, registers, offset, immediate });
    }

    /// A label to jump to before or after it is placed.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts `label` before the next instruction.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.program.len());
    }

    /// `destination = destination op operand` (`Move`: `destination = operand`).
    pub fn alu(&mut self, op: Alu, destination: Reg, operand: impl Into<Operand>) {
        let code = CLASS_ALU64 | op as u8;
        match operand.into() {
            Operand::Register(source) => {
                self.push(code | SOURCE_REGISTER, destination, source as u8, 0, 0);
            }
            Operand::Constant(value) => self.push(code, destination, 0, 0, value),
        }
    }

    /// `destination = *(base + offset)`.
    pub fn load(&mut self, size: Size, destination: Reg, base: Reg, offset: i16) {
        let code = CLASS_LOAD | MODE_MEMORY | size as u8;
        self.push(code, destination, base as u8, offset, 0);
    }

    /// `*(base + offset) = source`, 8 bytes.
    pub fn store(&mut self, base: Reg, offset: i16, source: Reg) {
        self.store_sized(Size::Double, base, offset, source);
    }

    /// `*(base + offset) = source`, the low bytes of it.
    pub fn store_sized(&mut self, size: Size, base: Reg, offset: i16, source: Reg) {
        let code = CLASS_STORE | MODE_MEMORY | size as u8;
        self.push(code, base, source as u8, offset, 0);
    }

    /// `*(base + offset) += source`, 8 bytes, atomically.
    pub fn atomic_add(&mut self, base: Reg, offset: i16, source: Reg) {
        let code = CLASS_STORE | MODE_ATOMIC | Size::Double as u8;
        self.push(code, base, source as u8, offset, 0);
    }

    /// A full 64-bit constant.
    pub fn constant(&mut self, destination: Reg, value: u64) {
        self.wide(destination, 0, value as u32 as i32, (value >> 32) as u32 as i32);
    }

    /// A map, as an argument of a helper.
    pub fn map(&mut self, destination: Reg, map: i32) {
        self.wide(destination, PSEUDO_MAP, map, 0);
    }

    /// The address of the value of a one-entry array map, without a look-up.
    pub fn map_value(&mut self, destination: Reg, map: i32) {
        self.wide(destination, PSEUDO_MAP_VALUE, map, 0);
    }

    fn wide(&mut self, destination: Reg, source: u8, low: i32, high: i32) {
        self.push(CLASS_LOAD_IMMEDIATE | Size::Double as u8, destination, source, 0, low);
        self.push(0, Reg::R0, 0, 0, high);
    }

    /// Jumps to `label` if `register when operand`.
    pub fn jump_if(
        &mut self,
        when: When,
        register: Reg,
        operand: impl Into<Operand>,
        label: Label,
    ) {
        self.jumps.push((self.program.len(), label));
        let code = CLASS_JUMP | when as u8;
        match operand.into() {
            Operand::Register(source) => {
                self.push(code | SOURCE_REGISTER, register, source as u8, 0, 0);
            }
            Operand::Constant(value) => self.push(code, register, 0, 0, value),
        }
    }

    /// Jumps to `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.program.len(), label));
        self.push(CLASS_JUMP, Reg::R0, 0, 0, 0);
    }

    /// Calls a kernel helper by its number; the result is in R0.
    pub fn call(&mut self, helper: i32) {
        self.push(CLASS_JUMP | CALL, Reg::R0, 0, 0, helper);
    }

    /// Returns 0 from the program.
    pub fn leave(&mut self) {
        self.alu(Alu::Move, Reg::R0, 0);
        self.push(CLASS_JUMP | EXIT, Reg::R0, 0, 0, 0);
    }

    /// The instructions with every jump resolved.
    ///
    /// # Errors
    /// A label that was not placed, or one further away than 32,767 instructions.
    pub fn finish(mut self) -> Result<Vec<Instruction>, AssembleError> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].ok_or(AssembleError::UnplacedLabel)?;
            let distance = target as i64 - at as i64 - 1;
            self.program[at].offset = i16::try_from(distance).map_err(|_| AssembleError::TooFar)?;
        }
        Ok(self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(program: &[Instruction]) -> Vec<[u8; 8]> {
        program
            .iter()
            .map(|i| {
                let offset = i.offset.to_le_bytes();
                let immediate = i.immediate.to_le_bytes();
                [
                    i.code,
                    i.registers,
                    offset[0],
                    offset[1],
                    immediate[0],
                    immediate[1],
                    immediate[2],
                    immediate[3],
                ]
            })
            .collect()
    }

    #[test]
    fn instructions_are_encoded_as_the_kernel_documents_them() {
        let mut a = Assembler::new();
        a.alu(Alu::Move, Reg::R6, Reg::R1);
        a.alu(Alu::ShiftRight, Reg::R0, 32);
        a.load(Size::Double, Reg::R7, Reg::R6, 8);
        a.load(Size::Word, Reg::R9, Reg::R1, 112);
        a.store(Reg::R9, -8, Reg::R0);
        a.store_sized(Size::Word, Reg::R10, -4, Reg::R5);
        a.atomic_add(Reg::R1, 16, Reg::R2);
        a.call(14);
        let program = a.finish().unwrap();
        assert_eq!(
            bytes(&program),
            [
                [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
                [0x77, 0x00, 0, 0, 32, 0, 0, 0],
                [0x79, 0x67, 8, 0, 0, 0, 0, 0],
                [0x61, 0x19, 112, 0, 0, 0, 0, 0],
                [0x7b, 0x09, 0xf8, 0xff, 0, 0, 0, 0],
                [0x63, 0x5a, 0xfc, 0xff, 0, 0, 0, 0],
                [0xdb, 0x21, 16, 0, 0, 0, 0, 0],
                [0x85, 0x00, 0, 0, 14, 0, 0, 0],
            ]
        );
    }

    #[test]
    fn jumps_count_from_the_next_instruction_and_go_both_ways() {
        let mut a = Assembler::new();
        let (start, end) = (a.label(), a.label());
        a.place(start);
        a.jump_if(When::Equal, Reg::R7, 1, end);
        a.constant(Reg::R1, 0x1_0000_0002);
        a.jump_if(When::NotEqual, Reg::R7, Reg::R1, start);
        a.place(end);
        a.leave();
        let program = a.finish().unwrap();
        assert_eq!(program[0].offset, 3);
        assert_eq!((program[1].immediate, program[2].immediate), (2, 1));
        assert_eq!(program[3].offset, -4);
    }

    #[test]
    fn refuses_unplaced_labels() {
        let mut a = Assembler::new();
        let nowhere = a.label();
        a.jump_if(When::Equal, Reg::R0, 0, nowhere);
        assert_eq!(a.finish(), Err(AssembleError::UnplacedLabel));
    }
}
