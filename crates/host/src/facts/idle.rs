use super::Facts;
use crate::root::{Root, RootError};

const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
const STATES: &str = "/sys/devices/system/cpu/cpu0/cpuidle";

pub(super) fn add(root: &Root, facts: &mut Facts) {
    facts.file(root, "idle.driver", DRIVER);
    facts.file(root, "idle.governor", GOVERNOR);
    let states = states(root).map(|states| {
        let texts: Vec<String> = states.iter().map(IdleState::describe).collect();
        texts.join(", ")
    });
    facts.add("idle.states", format!("{STATES}/state*"), states);
}

/// An idle state of the first CPU. What the kernel asks for, not what the
/// hardware or a hypervisor does.
pub(crate) struct IdleState {
    pub name: String,
    /// Microseconds to leave it, as its driver states.
    pub exit_us: Option<u64>,
    pub disabled: bool,
}

impl IdleState {
    pub fn describe(&self) -> String {
        let exit = self.exit_us.map_or("exit unknown".to_owned(), |us| format!("exit {us} us"));
        let disabled = if self.disabled { ", disabled" } else { "" };
        format!("{} ({exit}{disabled})", self.name)
    }
}

pub(crate) fn states(root: &Root) -> Result<Vec<IdleState>, RootError> {
    let numbers = root.numbered(STATES, "state")?;
    if numbers.is_empty() {
        return Err(RootError::Missing { path: format!("{STATES}/state0") });
    }
    let state = |n: u32| {
        let file = |name: &str| format!("{STATES}/state{n}/{name}");
        Ok(IdleState {
            name: root.value(&file("name"))?,
            exit_us: root.number(&file("latency")).ok(),
            disabled: root.number::<u64>(&file("disable")).is_ok_and(|value| value != 0),
        })
    };
    numbers.into_iter().map(state).collect()
}
