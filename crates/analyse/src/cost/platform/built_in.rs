//! The platforms that come with kvmeter.

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../../platforms/", $name, ".toml")))),*]
    };
}

/// Names and texts.
pub(super) const BUILT_IN: &[(&str, &str)] =
    built_in!["s1", "s2", "s3", "s4", "mbwu-host", "mbwu-embedded"];
