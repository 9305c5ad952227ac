//! The frequency of the uncore: the mesh, the last-level cache and the memory controllers.

use model::Unavailable;

use super::error::KnobRefusal;
use super::frequency::limit;
use super::level::{span, span_text, tally};
use super::models::{UNCORE_RATIO_LIMIT, check_msr, msr};
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::KnobWrite;
use super::{Knob, KnobInfo, word_file};
use crate::facts::topology;
use crate::format;
use crate::root::Root;

const FOLDER: &str = "/sys/devices/system/cpu/intel_uncore_frequency";
const RATIO_LIMIT: u64 = 0x620;
/// Kilohertz of one step of the register.
const STEP: u64 = 100_000;

pub struct Uncore;

/// The mechanism that sets the limits.
enum Limits {
    /// One folder a package and die, of the kernel's driver.
    Driver(Vec<String>),
    /// The first online CPU of each package.
    Register(Vec<u32>),
}

fn limits(root: &Root) -> Result<Limits, Unavailable> {
    let dies: Vec<String> = root
        .list(FOLDER)
        .unwrap_or_default()
        .into_iter()
        .map(|name| format!("{FOLDER}/{name}"))
        .filter(|die| root.exists(&format!("{die}/max_freq_khz")))
        .collect();
    if !dies.is_empty() {
        return Ok(Limits::Driver(dies));
    }
    UNCORE_RATIO_LIMIT.check(root)?;
    let cpus = first_of_packages(root)?;
    cpus.iter().try_for_each(|cpu| check_msr(root, *cpu))?;
    Ok(Limits::Register(cpus))
}

/// The first online CPU of each package.
pub(super) fn first_of_packages(root: &Root) -> Result<Vec<u32>, Unavailable> {
    let mut packages = Vec::new();
    let mut cpus = Vec::new();
    for thread in topology::threads(root)? {
        if !packages.contains(&thread.socket) {
            packages.push(thread.socket);
            cpus.push(thread.cpu);
        }
    }
    Ok(cpus)
}

fn register(cpu: u32) -> KnobTarget {
    KnobTarget::register(msr(cpu), RATIO_LIMIT, 8)
}

/// The register's value with its lowest and highest kilohertz.
fn ratios(root: &Root, cpu: u32) -> Result<(u64, u64, u64), Unavailable> {
    let value = u64::from_le_bytes(root.bytes_at(&msr(cpu), RATIO_LIMIT)?);
    Ok((value, (value >> 8 & 0x7f) * STEP, (value & 0x7f) * STEP))
}

/// The range of the limits of each die or package; dies may differ.
fn ranges(root: &Root, limits: &Limits) -> Result<Vec<(u64, u64)>, Unavailable> {
    let of_die = |die: &String| {
        let least = root.number(&format!("{die}/initial_min_freq_khz"))?;
        Ok((least, root.number(&format!("{die}/initial_max_freq_khz"))?))
    };
    match limits {
        Limits::Driver(dies) => dies.iter().map(of_die).collect(),
        // The register holds no other range than the firmware's.
        Limits::Register(cpus) => {
            cpus.iter().map(|cpu| ratios(root, *cpu).map(|(_, low, high)| (low, high))).collect()
        }
    }
}

impl Knob for Uncore {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "uncore",
            what: "the frequency of the mesh, the last-level cache and the memory controllers",
            mechanism: "intel_uncore_frequency/*/{min,max}_freq_khz, or MSR 0x620",
            scope: "every package and die",
            proof: "current_freq_khz stays within the limits under load",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let ranges = ranges(root, &limits(root)?)?;
        let spans =
            ranges.iter().zip(0..).map(|((low, high), n)| (span_text(*low, *high), vec![n]));
        let form = format!("FREQUENCY or LOW..HIGH within {}", tally(spans.collect()));
        Ok(vec!["all".to_owned(), "min".to_owned(), "max".to_owned(), form])
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let mut values = Vec::new();
        match limits(root)? {
            Limits::Driver(dies) => {
                for (number, die) in (0..).zip(dies) {
                    let low = root.number(&format!("{die}/min_freq_khz"))?;
                    let high = root.number(&format!("{die}/max_freq_khz"))?;
                    values.push((span_text(low, high), vec![number]));
                }
            }
            Limits::Register(cpus) => {
                for cpu in cpus {
                    let (_, low, high) = ratios(root, cpu)?;
                    values.push((span_text(low, high), vec![cpu]));
                }
            }
        }
        Ok(tally(values))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let limits = limits(root)?;
        let mut spans = Vec::new();
        for (least, most) in ranges(root, &limits)? {
            let (low, high) = span(level, least, most)?;
            if low % STEP != 0 || high % STEP != 0 {
                return Err(KnobRefusal::Level("the uncore has steps of 100 MHz".to_owned()));
            }
            spans.push((low, high));
        }
        let mut writes = Vec::new();
        match limits {
            Limits::Driver(dies) => {
                for (die, span) in dies.iter().zip(&spans) {
                    let files = (format!("{die}/min_freq_khz"), format!("{die}/max_freq_khz"));
                    writes.extend(limit(root, files, *span)?);
                }
                Ok(KnobChange { writes, prove: prove(dies.into_iter().zip(spans).collect()) })
            }
            Limits::Register(cpus) => {
                for (cpu, (low, high)) in cpus.into_iter().zip(spans) {
                    let (value, _, _) = ratios(root, cpu)?;
                    let new = (value & !0x7f7f) | ((low / STEP) << 8) | (high / STEP);
                    writes.extend(KnobWrite::turn(root, register(cpu), format!("{new:#x}"))?);
                }
                let prove = word_file::unverified(
                    "the register read back as written, which proves nothing; the kernel's \
                     intel_uncore_frequency would show the frequency",
                );
                Ok(KnobChange { writes, prove })
            }
        }
    }
}

fn prove(dies: Vec<(String, (u64, u64))>) -> Prove {
    Box::new(move |root| {
        if root.is_live() {
            super::load::spin(std::time::Duration::from_millis(60));
        }
        let mut observed = Vec::new();
        for (die, (low, high)) in &dies {
            let now: u64 = match root.number(&format!("{die}/current_freq_khz")) {
                Ok(now) => now,
                Err(error) => return ProofOutcome::Unverified(error.to_string()),
            };
            let text = format!("{die} ran at {}", format::kilohertz(now));
            // The register has whole steps.
            if now > high + STEP || now + STEP < *low {
                return ProofOutcome::Refuted(text);
            }
            observed.push(text);
        }
        ProofOutcome::Proven(observed.join(", "))
    })
}
