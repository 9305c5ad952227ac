//! Whether this processor has the instructions that this program was compiled for.

/// The first line of the way out.
const REMEDY: &str = "build kvmeter on this machine with RUSTFLAGS=\"-C target-cpu=native\"";

/// Before anything else runs: an instruction that is not there ends a process by a signal.
///
/// # Errors
/// One is missing: which, in words for the user.
pub fn check() -> Result<(), String> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("this processor lacks {}, which this build needs; {REMEDY}", missing.join(", ")))
}

#[cfg(target_arch = "x86_64")]
fn missing() -> Vec<&'static str> {
    let cpuid = raw_cpuid::CpuId::new();
    let basic = cpuid.get_feature_info();
    let basic = |has: fn(&raw_cpuid::FeatureInfo) -> bool| basic.as_ref().is_some_and(has);
    let more = cpuid.get_extended_feature_info();
    let more = |has: fn(&raw_cpuid::ExtendedFeatures) -> bool| more.as_ref().is_some_and(has);
    let amd = cpuid.get_extended_processor_and_feature_identifiers();
    let amd = |has: fn(&raw_cpuid::ExtendedProcessorFeatureIdentifiers) -> bool| {
        amd.as_ref().is_some_and(has)
    };
    // The levels v2 and v3 of the x86-64 ABI; `RUSTFLAGS` may have asked for any.
    [
        ("SSE3", cfg!(target_feature = "sse3"), basic(|f| f.has_sse3())),
        ("SSSE3", cfg!(target_feature = "ssse3"), basic(|f| f.has_ssse3())),
        ("SSE4.1", cfg!(target_feature = "sse4.1"), basic(|f| f.has_sse41())),
        ("SSE4.2", cfg!(target_feature = "sse4.2"), basic(|f| f.has_sse42())),
        ("POPCNT", cfg!(target_feature = "popcnt"), basic(|f| f.has_popcnt())),
        ("CMPXCHG16B", cfg!(target_feature = "cmpxchg16b"), basic(|f| f.has_cmpxchg16b())),
        ("PCLMULQDQ", cfg!(target_feature = "pclmulqdq"), basic(|f| f.has_pclmulqdq())),
        ("AVX", cfg!(target_feature = "avx"), basic(|f| f.has_avx())),
        ("F16C", cfg!(target_feature = "f16c"), basic(|f| f.has_f16c())),
        ("FMA", cfg!(target_feature = "fma"), basic(|f| f.has_fma())),
        ("MOVBE", cfg!(target_feature = "movbe"), basic(|f| f.has_movbe())),
        ("LZCNT", cfg!(target_feature = "lzcnt"), amd(|f| f.has_lzcnt())),
        ("AVX2", cfg!(target_feature = "avx2"), more(|f| f.has_avx2())),
        ("BMI1", cfg!(target_feature = "bmi1"), more(|f| f.has_bmi1())),
        ("BMI2", cfg!(target_feature = "bmi2"), more(|f| f.has_bmi2())),
        ("AVX-512F", cfg!(target_feature = "avx512f"), more(|f| f.has_avx512f())),
    ]
    .into_iter()
    .filter_map(|(name, needed, there)| (needed && !there).then_some(name))
    .collect()
}

/// Every 64-bit Arm processor has what the baseline asks for.
#[cfg(not(target_arch = "x86_64"))]
fn missing() -> Vec<&'static str> {
    Vec::new()
}
