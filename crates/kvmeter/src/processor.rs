//! Whether this processor has the instructions that this program was compiled for.
//!
//! This runs before anything else and is itself compiled for them, so it uses only bit tests and
//! static strings, which need no newer instructions.

use std::io::Write;
use std::process::ExitCode;

/// Reports missing instructions, which would otherwise kill the program by a signal.
///
/// # Errors The exit code, after the missing instruction set was printed.
pub fn check() -> Result<(), ExitCode> {
    let Some(missing) = missing() else { return Ok(()) };
    let mut stderr = std::io::stderr();
    for text in [
        "error: this processor lacks ",
        missing,
        ", for which this kvmeter was built; build it here with RUSTFLAGS=\"-C target-cpu=native\"\n",
    ] {
        // A closed stderr is ignored.
        let _ = stderr.write_all(text.as_bytes());
    }
    Err(ExitCode::from(2))
}

/// The first missing one of levels v2 and v3 of the x86-64 ABI, which `RUSTFLAGS` may have enabled.
#[cfg(target_arch = "x86_64")]
fn missing() -> Option<&'static str> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    // Intel SDM volume 2A, CPUID; AMD64 APM volume 3, appendix E.
    let basic = __cpuid(1).ecx;
    let more = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    let extended = __cpuid(0x8000_0001).ecx;
    for (name, needed, register, bit) in [
        ("SSE3", cfg!(target_feature = "sse3"), basic, 0),
        ("PCLMULQDQ", cfg!(target_feature = "pclmulqdq"), basic, 1),
        ("SSSE3", cfg!(target_feature = "ssse3"), basic, 9),
        ("FMA", cfg!(target_feature = "fma"), basic, 12),
        ("CMPXCHG16B", cfg!(target_feature = "cmpxchg16b"), basic, 13),
        ("SSE4.1", cfg!(target_feature = "sse4.1"), basic, 19),
        ("SSE4.2", cfg!(target_feature = "sse4.2"), basic, 20),
        ("MOVBE", cfg!(target_feature = "movbe"), basic, 22),
        ("POPCNT", cfg!(target_feature = "popcnt"), basic, 23),
        ("AVX", cfg!(target_feature = "avx"), basic, 28),
        ("F16C", cfg!(target_feature = "f16c"), basic, 29),
        ("BMI1", cfg!(target_feature = "bmi1"), more, 3),
        ("AVX2", cfg!(target_feature = "avx2"), more, 5),
        ("BMI2", cfg!(target_feature = "bmi2"), more, 8),
        ("AVX-512F", cfg!(target_feature = "avx512f"), more, 16),
        ("LZCNT", cfg!(target_feature = "lzcnt"), extended, 5),
    ] {
        if needed && register >> bit & 1 == 0 {
            return Some(name);
        }
    }
    None
}

/// Every 64-bit Arm processor supports the baseline.
#[cfg(not(target_arch = "x86_64"))]
fn missing() -> Option<&'static str> {
    None
}
