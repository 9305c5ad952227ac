//! Encodes an event (`event=0x2e,umask=0x41`) for the kernel by the layout that
//! each PMU states in sysfs
//! (`Documentation/ABI/testing/sysfs-bus-event_source-devices-format`).

use model::{Unavailable, cpu_list};

use crate::root::{Root, RootError};

pub(crate) const PMUS: &str = "/sys/bus/event_source/devices";

/// An event of one PMU, ready for the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedEvent {
    /// `cpu/event=0x2e,umask=0x41/`: the source of a reading.
    pub text: String,
    /// The manual's name for it, where a table knows it.
    pub label: Option<&'static str>,
    /// The PMU's number, which the kernel gives at boot.
    pub kind: u32,
    /// `config`, `config1`, `config2`.
    pub config: [u64; 3],
    /// Only what happens in user space (`u`), or in the kernel (`k`).
    pub only_user: bool,
    pub only_kernel: bool,
    /// It happens whenever a CPU runs, so a counter that does not move does not work.
    pub always: bool,
}

impl EncodedEvent {
    /// `cpu/event=0x2e,umask=0x41/ (LONGEST_LAT_CACHE.MISS)`.
    pub fn shown(&self) -> String {
        match self.label {
            Some(label) => format!("{} ({label})", self.text),
            None => self.text.clone(),
        }
    }

    /// Marks the event as one that happens whenever a CPU runs.
    #[must_use]
    pub fn always(self) -> Self {
        EncodedEvent { always: true, ..self }
    }

    /// The event without the kernel's part.
    #[must_use]
    pub fn user(mut self) -> Self {
        self.only_user = true;
        self.text.push('u');
        self
    }

    /// The event without user space's part.
    #[must_use]
    pub fn kernel(mut self) -> Self {
        self.only_kernel = true;
        self.text.push('k');
        self
    }
}

/// The names of all PMUs.
///
/// # Errors
/// Sysfs cannot be read.
pub fn pmus(root: &Root) -> Result<Vec<String>, RootError> {
    root.list(PMUS)
}

/// Encodes terms such as `event=0x2e,umask=0x41` or `config=0x3` for a PMU.
///
/// # Errors
/// The PMU is not there, has no such term, or the value has no room in it.
pub fn encode(root: &Root, pmu: &str, terms: &str) -> Result<EncodedEvent, Unavailable> {
    let kind = root.number(&format!("{PMUS}/{pmu}/type"))?;
    let mut config = [0; 3];
    for term in terms.split(',').map(str::trim).filter(|term| !term.is_empty()) {
        // A term without a value is a flag, as in `inv`.
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = number(value).ok_or_else(|| bad(pmu, terms, &format!("`{term}`")))?;
        match name {
            "config" => config[0] |= value,
            "config1" => config[1] |= value,
            "config2" => config[2] |= value,
            _ => place(root, pmu, terms, name, value, &mut config)?,
        }
    }
    let text = format!("{pmu}/{terms}/");
    let (only_user, only_kernel, always) = (false, false, false);
    Ok(EncodedEvent { text, label: None, kind, config, only_user, only_kernel, always })
}

/// Encodes an event that the PMU lists in sysfs by a name (`cas_count_read`).
///
/// # Errors
/// As [`encode`]; and where the PMU lists no such event.
pub fn named(root: &Root, pmu: &str, name: &str) -> Result<EncodedEvent, Unavailable> {
    let terms =
        root.value(&format!("{PMUS}/{pmu}/events/{name}")).map_err(|error| match error {
            RootError::Missing { .. } => Unavailable::new(
                format!("the PMU {pmu} has no event {name}"),
                "this CPU or its kernel driver does not count it",
            ),
            other => other.into(),
        })?;
    encode(root, pmu, &terms)
}

/// Encodes terms, or an event that the PMU lists by this name.
///
/// # Errors
/// As [`encode`] and [`named`].
pub fn event(root: &Root, pmu: &str, text: &str) -> Result<EncodedEvent, Unavailable> {
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let listed = is_word && root.exists(&format!("{PMUS}/{pmu}/events/{text}"));
    // A word may be a term without a value, too.
    if listed { named(root, pmu, text) } else { encode(root, pmu, text) }
}

/// The CPUs on which a PMU outside the cores is opened, one for each unit.
///
/// # Errors
/// The PMU states no list.
pub fn cpumask(root: &Root, pmu: &str) -> Result<Vec<u32>, RootError> {
    let path = format!("{PMUS}/{pmu}/cpumask");
    let text = root.value(&path)?;
    cpu_list::parse(&text)
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| RootError::malformed(&path, &text, "a list of CPUs"))
}

/// An event in perf's own syntax, with the name by which its number is shown:
/// `cpu/event=0x2e,umask=0x41,name=llc/u`, `cpu/cache-misses/`, or `r412e` on
/// the core's PMU.
///
/// # Errors
/// The text is not one of these forms, or the machine has no such PMU or term.
pub fn user_event(
    root: &Root,
    core: Result<&str, Unavailable>,
    text: &str,
) -> Result<(String, EncodedEvent), Unavailable> {
    let form = |what: &str| {
        Unavailable::new(
            format!("`{text}` is not an event: {what}"),
            "write it as perf does: `cpu/event=0x2e,umask=0x41/`, with `u` or `k` after it for one \
             mode, or `r412e`",
        )
    };
    let Some((pmu, rest)) = text.split_once('/') else {
        let (digits, modifiers) = text.split_once(':').unwrap_or((text, ""));
        let config = digits.strip_prefix('r').and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let config = config.ok_or_else(|| form("neither `PMU/terms/` nor `r` and hex digits"))?;
        let event = encode(root, core?, &format!("config={config:#x}"))?;
        let event = modify(event, modifiers).ok_or_else(|| form("only `u` and `k` may follow"))?;
        return Ok((text.to_owned(), event));
    };
    let (terms, modifiers) =
        rest.split_once('/').ok_or_else(|| form("the closing `/` is missing"))?;
    if pmu.is_empty() || pmu.contains("..") || terms.trim().is_empty() {
        return Err(form("the PMU or its terms are missing"));
    }
    let is_name = |term: &&str| term.starts_with("name=");
    let name = terms.split(',').find(is_name).and_then(|term| term.strip_prefix("name="));
    let plain: Vec<&str> = terms.split(',').filter(|term| !is_name(term)).collect();
    let plain = plain.join(",");
    let event = modify(event(root, pmu, &plain)?, modifiers)
        .ok_or_else(|| form("only `u` and `k` may follow"))?;
    Ok((name.map_or_else(|| text.to_owned(), str::to_owned), event))
}

fn modify(event: EncodedEvent, modifiers: &str) -> Option<EncodedEvent> {
    match modifiers {
        "" | "uk" | "ku" => Some(event),
        "u" => Some(event.user()),
        "k" => Some(event.kernel()),
        _ => None,
    }
}

/// Puts a value into the bits that `format/NAME` states, the lowest first.
fn place(
    root: &Root,
    pmu: &str,
    terms: &str,
    name: &str,
    value: u64,
    config: &mut [u64; 3],
) -> Result<(), Unavailable> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(bad(pmu, terms, &format!("`{name}`")));
    }
    let path = format!("{PMUS}/{pmu}/format/{name}");
    let text = root.value(&path).map_err(|error| match error {
        RootError::Missing { .. } => Unavailable::new(
            format!("the PMU {pmu} has no term `{name}` ({pmu}/{terms}/)"),
            format!("use the terms that {PMUS}/{pmu}/format lists"),
        ),
        other => other.into(),
    })?;
    let malformed = || RootError::malformed(&path, &text, "a field such as config:0-7,32-35");
    let (field, bits) = text.split_once(':').ok_or_else(malformed)?;
    let target = match field {
        "config" => 0,
        "config1" => 1,
        "config2" => 2,
        _ => return Err(malformed().into()),
    };
    let bits = cpu_list::parse(bits).filter(|bits| bits.iter().all(|bit| *bit < 64));
    let bits = bits.ok_or_else(malformed)?;
    if bits.len() < 64 && value >> bits.len() != 0 {
        return Err(bad(pmu, terms, &format!("{value:#x}, for which `{name}` has no room")));
    }
    for (from, to) in bits.iter().enumerate() {
        config[target] |= (value >> from & 1) << to;
    }
    Ok(())
}

fn number(text: &str) -> Option<u64> {
    match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}

fn bad(pmu: &str, terms: &str, what: &str) -> Unavailable {
    Unavailable::new(
        format!("the event {pmu}/{terms}/ contains {what}"),
        format!("use the terms that {PMUS}/{pmu}/format lists"),
    )
}
