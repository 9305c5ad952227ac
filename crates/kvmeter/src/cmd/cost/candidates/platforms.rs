//! Which platform a machine has, and what the machine is called.

use analyse::cost::Platform;
use model::Execution;

use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// Characters of a shortened machine id.
const SHORT_ID: usize = 8;

/// The `--platform` of the machine of these runs.
pub fn flag_for<'f>(
    id: &str,
    flags: &[&'f PlatformFlag],
) -> anyhow::Result<Option<&'f PlatformFlag>> {
    let of_it = |flag: &&&PlatformFlag| {
        flag.machine.as_ref().is_some_and(|machine| id.starts_with(machine.as_str()))
    };
    if let Some(flag) = flags.iter().find(of_it) {
        return Ok(Some(flag));
    }
    let mut general = flags.iter().filter(|flag| flag.machine.is_none());
    match (general.next(), general.next()) {
        (Some(_), Some(second)) => Err(request(format!(
            "--platform {}: a second one for the same results; name the machine of each with \
             `machine=ID`, or add `throughput=` to one without results",
            second.text
        ))),
        (first, _) => Ok(first.copied()),
    }
}

/// The platform of the machine of an execution, and the machine's name.
pub fn platform_and_name(
    flag: Option<&PlatformFlag>,
    execution: &Execution,
) -> anyhow::Result<(Option<Platform>, String)> {
    let base = flag.and_then(|flag| flag.base.as_deref());
    let base = base.or(execution.design.platform.as_deref());
    let platform = base.map(study::open_platform).transpose()?;
    let id = &execution.machine.id;
    let machine = match (flag.and_then(|flag| flag.name.clone()), &platform) {
        (Some(name), _) => name,
        (None, Some(platform)) => platform.name.clone(),
        (None, None) => format!("machine {}", id.chars().take(SHORT_ID).collect::<String>()),
    };
    Ok((platform, machine))
}
