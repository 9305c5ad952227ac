//! The commands that are sent to a controller, and the handling of its answers.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{Erasure, NvmeAdmin, NvmeCommand, format, sanitize};

/// A controller that records its commands.
#[derive(Default)]
struct Fake {
    controller: Vec<(usize, u8)>,
    of_namespace: Vec<(usize, u8)>,
    /// Progress and status, one for each look.
    states: RefCell<VecDeque<(u16, u16)>>,
    fails: Option<i32>,
    commands: RefCell<Vec<NvmeCommand>>,
}

impl NvmeAdmin for Fake {
    fn submit(&self, command: NvmeCommand, into: &mut [u8]) -> io::Result<()> {
        self.commands.borrow_mut().push(command.clone());
        if let Some(code) = self.fails {
            return Err(io::Error::from_raw_os_error(code));
        }
        let mut fill = |bytes: &[(usize, u8)]| bytes.iter().for_each(|(at, b)| into[*at] = *b);
        match (command.opcode, command.cdw10) {
            (0x06, 1) => fill(&self.controller),
            (0x06, 0) => fill(&self.of_namespace),
            (0x02, _) => {
                let (progress, status) = self.states.borrow_mut().pop_front().unwrap();
                into[..2].copy_from_slice(&progress.to_le_bytes());
                into[2..4].copy_from_slice(&status.to_le_bytes());
            }
            (0x80 | 0x84, _) => {}
            other => panic!("{other:?} is no command that this one knows"),
        }
        Ok(())
    }

    fn namespace(&self) -> io::Result<u32> {
        Ok(7)
    }
}

fn sanitized(fake: &Fake, action: u32, stop: bool) -> (Result<(), String>, Vec<f64>) {
    let mut shares = Vec::new();
    let limit = Instant::now() + Duration::from_secs(60);
    let stop = AtomicBool::new(stop);
    let report = &mut |share| shares.push(share);
    let done = sanitize::run(fake, action, Duration::ZERO, limit, &stop, report);
    (done.map_err(|error| error.to_string()), shares)
}

#[test]
fn the_structure_is_the_kernels() {
    assert_eq!(size_of::<NvmeCommand>(), 72);
    assert_eq!(std::mem::offset_of!(NvmeCommand, cdw10), 40);
    assert_eq!(std::mem::offset_of!(NvmeCommand, timeout_ms), 64);
}

#[test]
fn the_sanitize_is_one_that_the_controller_declares() {
    let plan = |capabilities: u8| {
        sanitize::plan(&Fake { controller: vec![(328, capabilities)], ..Fake::default() })
    };
    assert_eq!(plan(0b01).unwrap(), Erasure::Sanitize { action: 4 });
    assert_eq!(plan(0b10).unwrap(), Erasure::Sanitize { action: 2 });
    assert_eq!(plan(0b11).unwrap(), Erasure::Sanitize { action: 2 });
    // Overwriting alone wears the device out.
    for none in [0, 0b100] {
        assert!(plan(none).unwrap_err().contains("declares no sanitize"));
    }
    let other = Fake { fails: Some(libc::ENOTTY), ..Fake::default() };
    assert_eq!(sanitize::plan(&other).unwrap_err(), "is not an NVMe device");
    assert_eq!(other.commands.borrow().len(), 1, "nothing but the question was sent");
}

#[test]
fn a_sanitize_is_started_once_and_awaited() {
    let states = [(0, 2), (0x8000, 2), (0xffff, 1)];
    let fake = Fake { states: RefCell::new(states.into()), ..Fake::default() };
    let (done, shares) = sanitized(&fake, 2, false);
    done.unwrap();
    assert_eq!(shares, [0.0, 0.5]);
    let commands = fake.commands.borrow();
    let words = |c: &NvmeCommand| (c.opcode, c.namespace, c.cdw10);
    // SANACT 2; log page 0x81 of 128 dwords (127 as they are counted), of the whole subsystem.
    assert_eq!(words(&commands[0]), (0x84, 0, 2));
    for look in &commands[1..] {
        assert_eq!(words(look), (0x02, u32::MAX, 0x007f_0081));
    }
    assert_eq!(commands.len(), 4);
}

#[test]
fn a_failed_sanitize_is_reported() {
    for (status, words) in [(3, "failed"), (0, "but reports none"), (5, "unspecified state")] {
        let fake = Fake { states: RefCell::new([(0, status)].into()), ..Fake::default() };
        assert!(sanitized(&fake, 2, false).0.unwrap_err().contains(words));
    }
    // Without deallocation is done, too, and other bits of the word are of no meaning here.
    let fake = Fake { states: RefCell::new([(0, 0x0104)].into()), ..Fake::default() };
    sanitized(&fake, 4, false).0.unwrap();
    let fake = Fake { states: RefCell::new([(9, 2)].into()), ..Fake::default() };
    assert!(sanitized(&fake, 4, true).0.unwrap_err().contains("continues inside the device"));
    let refuses = Fake { fails: Some(libc::EIO), ..Fake::default() };
    assert!(sanitized(&refuses, 4, false).0.unwrap_err().contains("starting the sanitize"));
    assert_eq!(refuses.commands.borrow().len(), 1, "it is not tried again");
}

#[test]
fn a_format_keeps_the_block_format() {
    // Format 3, metadata inside the blocks, protection of type 2 at their beginning.
    let fake = Fake {
        controller: vec![(256, 0b10)],
        of_namespace: vec![(26, 0b1_0011), (29, 0b1010)],
        ..Fake::default()
    };
    let plan = format::plan(&fake).unwrap();
    let how = 3 | 1 << 4 | 2 << 5 | 1 << 8 | 1 << 9;
    assert_eq!(plan, Erasure::Format { namespace: 7, how, all_namespaces: false });
    assert!(!plan.reaches_others() && plan.describe().contains("namespace 7"));
    format::run(&fake, 7, how).unwrap();
    let commands = fake.commands.borrow();
    let last = commands.last().unwrap();
    assert_eq!((last.opcode, last.namespace, last.cdw10), (0x80, 7, 0x353));
    // The 2 upper bits of more than 16 formats stand elsewhere in the command.
    assert_eq!(format::how(0b0110_0001, 0), 1 | 1 << 9 | 3 << 12);
}

#[test]
fn an_undeclared_format_is_refused_and_a_wider_one_described() {
    let none = Fake { controller: vec![(256, 0xfd)], ..Fake::default() };
    assert!(format::plan(&none).unwrap_err().contains("declares no format"));
    assert_eq!(none.commands.borrow().len(), 1, "nothing but the question was sent");
    let all = Fake { controller: vec![(256, 2), (524, 2)], ..Fake::default() };
    let plan = format::plan(&all).unwrap();
    assert!(plan.reaches_others() && plan.describe().contains("every namespace"));
}
