//! Format: erases the user data of a namespace and keeps its block size.

use super::super::error::WriteError;
use super::{Erasure, NvmeAdmin, NvmeCommand, OF_CONTROLLER, OF_NAMESPACE, identify};

const FORMAT: u8 = 0x80;
/// The controller's identification: optional commands (OACS, bytes 256 and 257), and how formats
/// are done (FNA, byte 524).
const COMMANDS: usize = 256;
const CAN_FORMAT: u8 = 1 << 1;
const ATTRIBUTES: usize = 524;
const ERASES_ALL: u8 = 1 << 1;
/// The namespace's identification: format of the blocks (FLBAS) and protection (DPS).
const BLOCKS: usize = 26;
const PROTECTION: usize = 29;
/// Secure erase setting (SES): all user data.
const USER_DATA: u32 = 1;
/// Long, as the device answers only when the format has ended.
const TIMEOUT_MS: u32 = 3_600_000;

pub(super) fn plan(admin: &dyn NvmeAdmin) -> Result<Erasure, String> {
    let controller = identify(admin, OF_CONTROLLER, 0)?;
    if controller[COMMANDS] & CAN_FORMAT == 0 {
        return Err("its controller declares no format; leave out --format".to_owned());
    }
    let namespace = admin.namespace().map_err(|error| format!("has no namespace: {error}"))?;
    let page = identify(admin, OF_NAMESPACE, namespace)?;
    let all_namespaces = controller[ATTRIBUTES] & ERASES_ALL != 0;
    Ok(Erasure::Format { namespace, how: how(page[BLOCKS], page[PROTECTION]), all_namespaces })
}

/// Command word 10 that keeps the format of the blocks and their protection.
pub(super) fn how(blocks: u8, protection: u8) -> u32 {
    let bits = |byte: u8, at: u32, count: u32| u32::from(byte) >> at & ((1 << count) - 1);
    let (index, upper, metadata) = (bits(blocks, 0, 4), bits(blocks, 5, 2), bits(blocks, 4, 1));
    let (kind, first) = (bits(protection, 0, 3), bits(protection, 3, 1));
    index | metadata << 4 | kind << 5 | first << 8 | USER_DATA << 9 | upper << 12
}

pub(super) fn run(admin: &dyn NvmeAdmin, namespace: u32, how: u32) -> Result<(), WriteError> {
    let format = NvmeCommand {
        opcode: FORMAT,
        namespace,
        cdw10: how,
        timeout_ms: TIMEOUT_MS,
        ..NvmeCommand::default()
    };
    let call = |error| WriteError::Call { what: "formatting the namespace", error };
    admin.submit(format, &mut []).map_err(call)
}
