//! Sanitize: erases every namespace of the controller, and what is not addressable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::error::WriteError;
use super::{Erasure, NvmeAdmin, NvmeCommand, OF_CONTROLLER, identify};

const GET_LOG_PAGE: u8 = 0x02;
const SANITIZE: u8 = 0x84;
/// The log page with the progress, and its length.
const STATUS: u32 = 0x81;
const STATUS_LEN: usize = 512;
/// Actions (SANACT) of command word 10.
const BLOCK_ERASE: u32 = 2;
const CRYPTO_ERASE: u32 = 4;
/// Bytes 328 to 331 of the controller's identification (SANICAP): its capabilities.
const CAPABILITIES: std::ops::Range<usize> = 328..332;
const CAN_CRYPTO: u32 = 1;
const CAN_BLOCK: u32 = 1 << 1;
/// How often the progress is read.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn name(action: u32) -> &'static str {
    if action == BLOCK_ERASE { "block erase" } else { "cryptographic erase" }
}

/// Block erase is preferred: after a cryptographic erase blocks may stay mapped.
pub(super) fn plan(admin: &dyn NvmeAdmin) -> Result<Erasure, String> {
    let page = identify(admin, OF_CONTROLLER, 0)?;
    let bytes = page.get(CAPABILITIES).and_then(|bytes| bytes.try_into().ok());
    let capabilities = u32::from_le_bytes(bytes.unwrap_or_default());
    let action = match (capabilities & CAN_BLOCK != 0, capabilities & CAN_CRYPTO != 0) {
        (true, _) => BLOCK_ERASE,
        (false, true) => CRYPTO_ERASE,
        (false, false) => {
            return Err("its controller declares no sanitize by block or cryptographic erase; \
                        leave out --sanitize"
                .to_owned());
        }
    };
    Ok(Erasure::Sanitize { action })
}

/// The state in the log page (SSTAT, SPROG).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SanitizeState {
    /// The share that is done.
    Running(f64),
    Done,
    /// It failed, or the device reports none.
    Failed(&'static str),
}

/// Progress in 1/65536, then the status.
pub(super) fn state(page: &[u8]) -> SanitizeState {
    let word = |at: usize| {
        let bytes = page.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
        u16::from_le_bytes(bytes.unwrap_or_default())
    };
    match word(2) & 0b111 {
        // Done, with the blocks deallocated or not.
        1 | 4 => SanitizeState::Done,
        2 => SanitizeState::Running(f64::from(word(0)) / 65536.0),
        3 => SanitizeState::Failed("the device says that its sanitize failed"),
        0 => SanitizeState::Failed("the device accepted the sanitize, but reports none"),
        _ => SanitizeState::Failed("the device reports an unspecified state of its sanitize"),
    }
}

pub(super) fn run(
    admin: &dyn NvmeAdmin,
    action: u32,
    every: Duration,
    limit: Instant,
    stop: &AtomicBool,
    report: &mut dyn FnMut(f64),
) -> Result<(), WriteError> {
    let call = |what| move |error| WriteError::Call { what, error };
    let erase = NvmeCommand {
        opcode: SANITIZE,
        cdw10: action,
        timeout_ms: 60_000,
        ..NvmeCommand::default()
    };
    admin.submit(erase, &mut []).map_err(call("starting the sanitize"))?;
    let mut page = [0; STATUS_LEN];
    loop {
        std::thread::sleep(every);
        // The command holds their number less one.
        let dwords = STATUS_LEN as u32 / 4 - 1;
        let log = NvmeCommand {
            opcode: GET_LOG_PAGE,
            namespace: u32::MAX,
            cdw10: STATUS | dwords << 16,
            ..NvmeCommand::default()
        };
        admin.submit(log, &mut page).map_err(call("reading the progress of the sanitize"))?;
        match state(&page) {
            SanitizeState::Done => return Ok(()),
            SanitizeState::Failed(words) => return Err(WriteError::Other(words.to_owned())),
            SanitizeState::Running(share) => report(share),
        }
        if stop.load(Ordering::Relaxed) || Instant::now() > limit {
            return Err(WriteError::Other(
                "the sanitize continues inside the device; wait for its end and start again"
                    .to_owned(),
            ));
        }
    }
}
