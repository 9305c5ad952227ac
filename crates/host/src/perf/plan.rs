//! The events, groups and targets to count for a run. Decided from files alone,
//! so that a recorded machine gives the same plan as the real one.

use model::{Scope, Unavailable};

use super::encoding::{EncodedEvent, cpumask, encode, event, pmus, user_event};
use super::kernel::PerfTarget;
use super::privilege::Privilege;
use super::session::EventGroup;
use super::table::{CoreEvents, LastLevel, PerfQuantity, RawEvent, core};
use crate::facts::topology::online;
use crate::probe::{Context, CounterScope};
use crate::root::Root;

/// The role of an event in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRole {
    UserInstructions,
    KernelInstructions,
    Of(PerfQuantity),
    /// The user's own event of this number.
    User(usize),
}

/// A group and the roles of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGroup {
    pub roles: Vec<EventRole>,
    pub group: EventGroup,
    /// Counted by units outside the cores: of the whole machine, whatever the plan's scope.
    pub uncore: bool,
}

/// An event that the user named: how it is shown, and whether it can be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserEvent {
    pub name: String,
    pub event: Result<EncodedEvent, Unavailable>,
    /// It is counted by units outside the cores.
    pub uncore: bool,
}

/// The events to be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterPlan {
    /// The core's PMU and table; without it only the user's own events are counted.
    pub core: Result<CoreEvents, Unavailable>,
    pub scope: Scope,
    pub groups: Vec<PlannedGroup>,
    /// Events that are not counted, and why.
    pub absent: Vec<(EventRole, Unavailable)>,
    pub user_events: Vec<UserEvent>,
    /// Only user space is counted, and why.
    pub only_user: Option<Unavailable>,
}

/// The quantities that are counted together, so that their quotients hold. Four
/// general counters hold each group on every CPU of the tables.
const GROUPS: &[&[EventRole]] = &[
    &[
        EventRole::UserInstructions,
        EventRole::KernelInstructions,
        EventRole::Of(PerfQuantity::Cycles),
    ],
    &[
        EventRole::Of(PerfQuantity::Instructions),
        EventRole::Of(PerfQuantity::Branches),
        EventRole::Of(PerfQuantity::BranchMisses),
    ],
    &[
        EventRole::Of(PerfQuantity::Instructions),
        EventRole::Of(PerfQuantity::L1dMisses),
        EventRole::Of(PerfQuantity::L1iMisses),
    ],
    &[
        EventRole::Of(PerfQuantity::Instructions),
        EventRole::Of(PerfQuantity::L2Misses),
        EventRole::Of(PerfQuantity::LlcReferences),
        EventRole::Of(PerfQuantity::LlcMisses),
    ],
    &[
        EventRole::Of(PerfQuantity::Instructions),
        EventRole::Of(PerfQuantity::DtlbMisses),
        EventRole::Of(PerfQuantity::ItlbMisses),
    ],
];

/// Makes the plan.
///
/// # Errors
/// There is no PMU or no table for it and the user named no event, nothing may
/// be counted, or there is nothing to count on.
pub fn plan(root: &Root, context: &Context) -> Result<CounterPlan, Unavailable> {
    let core = core(root);
    if let (Err(why), true) = (&core, context.counters.events.is_empty()) {
        return Err(why.clone());
    }
    let privilege = Privilege::of(root)?;
    let (scope, targets) = targets(root, context)?;
    privilege.user_mode()?;
    let inherit = targets.iter().any(|target| matches!(target, PerfTarget::Thread(_)));
    if !inherit {
        privilege.whole_cpus()?;
    }
    let mut plan = CounterPlan {
        core,
        scope,
        groups: Vec::new(),
        absent: Vec::new(),
        user_events: Vec::new(),
        only_user: privilege.kernel_mode().err(),
    };
    for slots in GROUPS {
        let mut planned = PlannedGroup {
            roles: Vec::new(),
            group: EventGroup { events: Vec::new(), targets: targets.clone(), inherit },
            uncore: false,
        };
        for slot in *slots {
            match plan.core_events(root, *slot) {
                Ok(events) => {
                    planned.roles.extend(std::iter::repeat_n(*slot, events.len()));
                    planned.group.events.extend(events);
                }
                Err(None) => {}
                Err(Some(why)) => plan.absent.push((*slot, why)),
            }
        }
        // Instructions alone are in the first group already.
        if planned.roles.iter().any(|slot| *slot != EventRole::Of(PerfQuantity::Instructions)) {
            plan.groups.push(planned);
        }
    }
    plan.last_level(root, privilege);
    for (at, text) in context.counters.events.iter().enumerate() {
        plan.add_user_event(root, at, text, &targets, inherit, privilege);
    }
    Ok(plan)
}

impl CounterPlan {
    /// The core's events of a slot; `None` where it is counted elsewhere.
    fn core_events(
        &self,
        root: &Root,
        slot: EventRole,
    ) -> Result<Vec<EncodedEvent>, Option<Unavailable>> {
        use PerfQuantity::{Instructions, LlcMisses, LlcReferences};
        let core = self.core.as_ref().map_err(|why| Some(why.clone()))?;
        let apart = core.table.last_level != LastLevel::Core;
        let quantity = match slot {
            EventRole::UserInstructions | EventRole::KernelInstructions => Instructions,
            EventRole::Of(LlcMisses | LlcReferences) if apart => return Err(None),
            EventRole::Of(quantity) => quantity,
            EventRole::User(_) => return Err(None),
        };
        if let (EventRole::KernelInstructions, Some(why)) = (slot, &self.only_user) {
            return Err(Some(why.clone()));
        }
        let raws = core.events(root, quantity).map_err(Some)?;
        let events: Result<Vec<EncodedEvent>, Unavailable> = raws
            .iter()
            .map(|raw| {
                let event = shown(encode(root, &core.pmu, raw.terms)?, raw);
                let event = match quantity {
                    Instructions | PerfQuantity::Cycles => event.always(),
                    _ => event,
                };
                Ok(match slot {
                    EventRole::KernelInstructions => event.kernel(),
                    EventRole::UserInstructions => event.user(),
                    _ if self.only_user.is_some() => event.user(),
                    _ => event,
                })
            })
            .collect();
        events.map_err(Some)
    }

    /// The last level where it counts for itself: one group for each of its PMUs. The first
    /// X-Gene has one counter a PMU, so that its group never gets on.
    fn last_level(&mut self, root: &Root, privilege: Privilege) {
        let Ok(table) = self.core.as_ref().map(|core| core.table) else { return };
        let LastLevel::Uncore(prefix) = table.last_level else { return };
        let quantities = [PerfQuantity::LlcReferences, PerfQuantity::LlcMisses];
        let groups = privilege.whole_cpus().and_then(|()| {
            let names = pmus(root)?.into_iter().filter(|name| {
                name.strip_prefix(prefix)
                    .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            });
            let group = |pmu: String| {
                let (mut slots, mut events) = (Vec::new(), Vec::new());
                for quantity in quantities {
                    let rows = table.of(quantity).unwrap_or_default();
                    for raw in rows {
                        slots.push(EventRole::Of(quantity));
                        events.push(shown(event(root, &pmu, raw.terms)?, raw));
                    }
                }
                let targets = cpumask(root, &pmu)?.into_iter().map(PerfTarget::Cpu).collect();
                Ok(PlannedGroup {
                    roles: slots,
                    group: EventGroup { events, targets, inherit: false },
                    uncore: true,
                })
            };
            let groups: Result<Vec<PlannedGroup>, Unavailable> = names.map(group).collect();
            groups.and_then(|groups| match groups.is_empty() {
                false => Ok(groups),
                true => Err(Unavailable::new(
                    format!("the last level counts in the PMU {prefix}, which is not here"),
                    "load its driver (amd_uncore for AMD), or measure on bare metal",
                )),
            })
        });
        match groups {
            Ok(groups) => self.groups.extend(groups),
            Err(why) => {
                self.absent
                    .extend(quantities.map(|quantity| (EventRole::Of(quantity), why.clone())));
            }
        }
    }

    /// One event of the user's: with the instructions on the core, alone elsewhere.
    fn add_user_event(
        &mut self,
        root: &Root,
        at: usize,
        text: &str,
        targets: &[PerfTarget],
        inherit: bool,
        privilege: Privilege,
    ) {
        let core = self.core.as_ref().map(|core| core.pmu.as_str()).map_err(Clone::clone);
        let (name, event) = match user_event(root, core.clone(), text) {
            Ok((name, event)) => (name, Ok(event)),
            Err(why) => (text.to_owned(), Err(why)),
        };
        let pmu = event.as_ref().ok().and_then(|event| event.text.split('/').next());
        let outside = pmu.filter(|pmu| core.as_ref().ok() != Some(pmu));
        let units = outside.and_then(|pmu| cpumask(root, pmu).ok());
        let apart = units.is_some();
        let event = event.and_then(|event| {
            if apart {
                privilege.whole_cpus()?;
            }
            // Where the kernel is out of bounds, the event is counted without it.
            let open = !event.only_user && !event.only_kernel && !apart;
            Ok(if open && self.only_user.is_some() { event.user() } else { event })
        });
        if let Ok(event) = &event {
            let group = match units {
                Some(cpus) => EventGroup {
                    events: vec![event.clone()],
                    targets: cpus.into_iter().map(PerfTarget::Cpu).collect(),
                    inherit: false,
                },
                None => {
                    EventGroup { events: vec![event.clone()], targets: targets.to_vec(), inherit }
                }
            };
            self.groups.push(PlannedGroup {
                roles: vec![EventRole::User(at)],
                group,
                uncore: apart,
            });
        }
        self.user_events.push(UserEvent { name, event, uncore: apart });
    }
}

/// The event with the manual's name as its label.
fn shown(mut event: EncodedEvent, raw: &RawEvent) -> EncodedEvent {
    event.label = Some(raw.name);
    event
}

/// The threads or CPUs to count on, and the boundary that they make.
pub(crate) fn targets(
    root: &Root,
    context: &Context,
) -> Result<(Scope, Vec<PerfTarget>), Unavailable> {
    let scope = match context.counters.scope {
        CounterScope::Auto if context.server_pids.is_empty() => CounterScope::Process,
        CounterScope::Auto => CounterScope::Servers,
        chosen => chosen,
    };
    let threads = |process: &str| -> Result<Vec<PerfTarget>, Unavailable> {
        let tids = root.numbers(&format!("/proc/{process}/task"))?;
        Ok(tids.into_iter().map(PerfTarget::Thread).collect())
    };
    match scope {
        CounterScope::Auto | CounterScope::Process => Ok((Scope::Process, threads("self")?)),
        CounterScope::Servers => {
            if context.server_pids.is_empty() {
                return Err(Unavailable::new(
                    "no server's process is known on this machine",
                    "let kvmeter start the server here, or name its process",
                ));
            }
            let mut all = Vec::new();
            for pid in &context.server_pids {
                all.extend(threads(&pid.to_string())?);
            }
            Ok((Scope::Server, all))
        }
        CounterScope::Cpus => {
            if context.cpus.is_empty() {
                return Err(Unavailable::new(
                    "no CPUs were named for the counters",
                    "pin the load, or count the process or the machine",
                ));
            }
            Ok((Scope::Cpus, context.cpus.iter().copied().map(PerfTarget::Cpu).collect()))
        }
        CounterScope::Machine => {
            Ok((Scope::Machine, online(root)?.into_iter().map(PerfTarget::Cpu).collect()))
        }
    }
}
