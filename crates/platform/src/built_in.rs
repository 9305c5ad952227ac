//! The platforms that come with kvmeter.

/// A platform that is built in.
pub struct BuiltIn {
    pub name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../../platforms/", $name, ".toml")),
        }),*]
    };
}

pub const BUILT_IN: &[BuiltIn] = built_in!["s1", "s2", "s3", "s4", "mbwu-host", "mbwu-embedded"];
