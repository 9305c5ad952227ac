//! The CPU models whose registers kvmeter writes. A register is written only where its bits are
//! documented for the model; other models of the same family may differ.

use model::Unavailable;

use super::error::KnobError;
use crate::facts::cpu;
use crate::parse::field;
use crate::root::Root;

/// A register and the models (display family and model) for which its layout is documented.
pub(super) struct Register {
    pub name: &'static str,
    pub models: &'static [(u32, u32, &'static str)],
    pub document: &'static str,
}

const SKYLAKE_SP: (u32, u32, &str) = (6, 0x55, "Skylake-SP and Cascade Lake-SP");
const BROADWELL_EP: (u32, u32, &str) = (6, 0x4f, "Broadwell-EP");
const HASWELL_EP: (u32, u32, &str) = (6, 0x3f, "Haswell-EP");
const IVY_BRIDGE_EP: (u32, u32, &str) = (6, 0x3e, "Ivy Bridge-EP");

/// MSR 0x620: the highest ratio in bits 6:0, the lowest in bits 14:8, of 100 MHz.
pub(super) const UNCORE_RATIO_LIMIT: Register = Register {
    name: "MSR_UNCORE_RATIO_LIMIT (0x620)",
    models: &[BROADWELL_EP, SKYLAKE_SP],
    document: "Intel SDM volume 4, MSR_UNCORE_RATIO_LIMIT; the kernel's intel_uncore_frequency",
};

/// MSR 0xC8B: a mask of the cache ways into which devices may allocate.
pub(super) const IIO_LLC_WAYS: Register = Register {
    name: "IIO_LLC_WAYS (0xC8B)",
    models: &[SKYLAKE_SP],
    document: "Farshin et al., Reexamining Direct Cache Access, USENIX ATC 2020, section 5; Ice \
               Lake takes the write without effect",
};

/// Configuration space of a root port, offset 0x180: bit 7 Use_Allocating_Flow_Wr, bit 3
/// NoSnoopOpWrEn.
pub(super) const PERFCTRLSTS_0: Register = Register {
    name: "perfctrlsts_0 (+0x180)",
    models: &[IVY_BRIDGE_EP, HASWELL_EP, BROADWELL_EP, SKYLAKE_SP],
    document: "volume 2 of Intel's datasheets of Xeon E5 v2, v3, v4 and Scalable, perfctrlsts_0",
};

/// Why a register may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WritePermission {
    Documented,
    /// The user answers for this model.
    Trusted,
}

impl Register {
    /// Checks that this machine's CPU is on the list or trusted by the user, and that the machine
    /// is not virtual.
    pub(super) fn check(&self, root: &Root) -> Result<WritePermission, Unavailable> {
        let names: Vec<&str> = self.models.iter().map(|(_, _, name)| *name).collect();
        let machines = format!("use a machine with {} ({})", names.join(" or "), self.document);
        let text = root.text(cpu::CPUINFO)?;
        let number = |key: &str| field(&text, key).and_then(|text| text.parse::<u32>().ok());
        let vendor = field(&text, "vendor_id").unwrap_or("another vendor");
        let (family, model) = (number("cpu family"), number("model"));
        let intel = vendor == "GenuineIntel";
        let listed =
            intel && self.models.iter().any(|(f, m, _)| (Some(*f), Some(*m)) == (family, model));
        let trusted = intel && root.trusted_model().is_some();
        if !listed && !trusted {
            let name = cpu::model(root).unwrap_or_else(|_| "this CPU".to_owned());
            let numbers = match (family, model) {
                (Some(family), Some(model)) => format!(", family {family} model {model:#x}"),
                _ => String::new(),
            };
            let register = self.name;
            let remedy = match intel {
                true => format!("{machines}, or accept the risk with --trust-register {name:?}"),
                false => machines,
            };
            return Err(Unavailable::new(
                format!(
                    "{register} is not documented for {name} ({vendor}{numbers}), so it is not \
                     touched"
                ),
                remedy,
            ));
        }
        if cpu::flags(root).is_ok_and(|flags| flags.iter().any(|flag| flag == "hypervisor")) {
            let register = self.name;
            let reason = format!("{register} is the hypervisor's, not this virtual machine's");
            return Err(Unavailable::new(reason, machines));
        }
        Ok(if listed { WritePermission::Documented } else { WritePermission::Trusted })
    }
}

/// The same machine, for whose registers the user answers by its model's name.
///
/// # Errors
/// Another model's name.
pub fn trust_register(root: Root, model: &str) -> Result<Root, KnobError> {
    match cpu::model(&root) {
        Ok(here) if model.trim() == here => Ok(root.trusting(here)),
        here => {
            let here = here.unwrap_or_else(|_| "without a name".to_owned());
            Err(KnobError::OtherModel { model: model.to_owned(), here })
        }
    }
}

/// The file of one CPU's registers.
pub(super) fn msr(cpu: u32) -> String {
    format!("/dev/cpu/{cpu}/msr")
}

/// Checks that the file exists; the error says how to get it.
pub(super) fn check_msr(root: &Root, cpu: u32) -> Result<(), Unavailable> {
    let path = msr(cpu);
    if root.exists(&path) {
        return Ok(());
    }
    Err(Unavailable::new(
        format!("{path} does not exist"),
        "modprobe msr, as root, on a kernel that is not locked down",
    ))
}
