//! The session slot: at most one coordinator at a time.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::AgentLogEvent;

pub type EventListener = Arc<dyn Fn(AgentLogEvent) + Send + Sync>;

/// The slot that a coordinator takes.
pub struct SessionSlot {
    holder: Mutex<Option<SlotHolder>>,
    log: EventListener,
}

/// The coordinator in the slot.
#[derive(Debug, Clone)]
pub struct SlotHolder {
    /// Its machine and where it called from.
    pub coordinator: String,
    since: SystemTime,
    disconnected: bool,
}

/// The agent is taken as long as this lives: by the session, and by its task.
pub struct SlotGuard(Arc<SessionSlot>);

impl SessionSlot {
    pub fn new(log: EventListener) -> Arc<SessionSlot> {
        Arc::new(SessionSlot { holder: Mutex::new(None), log })
    }

    pub fn log(&self, event: AgentLogEvent) {
        (self.log)(event);
    }

    /// Takes the agent.
    ///
    /// # Errors
    /// The current holder.
    pub fn take(
        self: &Arc<SessionSlot>,
        coordinator: String,
    ) -> Result<Arc<SlotGuard>, SlotHolder> {
        let mut holder = self.lock();
        if let Some(holder) = &*holder {
            return Err(holder.clone());
        }
        *holder = Some(SlotHolder { coordinator, since: SystemTime::now(), disconnected: false });
        Ok(Arc::new(SlotGuard(self.clone())))
    }

    pub fn is_free(&self) -> bool {
        self.lock().is_none()
    }

    // The holder is replaced as a whole, so it is valid after a panic.
    fn lock(&self) -> MutexGuard<'_, Option<SlotHolder>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotGuard {
    pub fn log(&self, event: AgentLogEvent) {
        self.0.log(event);
    }

    /// The coordinator has disconnected, though its task may still be ending.
    pub fn disconnect(&self) {
        if let Some(holder) = &mut *self.0.lock() {
            holder.disconnected = true;
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.log(AgentLogEvent::Waiting);
    }
}

impl std::fmt::Display for SlotHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = self.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
        let ago = self.since.elapsed().unwrap_or_default().as_secs();
        let (hour, minute, second) = (since / 3600, since / 60 % 60, since % 60);
        let how = if self.disconnected {
            "has disconnected, but its task is still ending; it has used the agent"
        } else {
            "has used it"
        };
        write!(
            f,
            "{} {how} since {hour:02}:{minute:02}:{second:02} UTC ({ago} s ago)",
            self.coordinator
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_is_free_after_the_last_guard() {
        let slot = SessionSlot::new(Arc::new(|_| {}));
        let guard = slot.take("a".to_owned()).map_err(|h| h.to_string()).unwrap();
        let at_work = guard.clone();
        assert!(slot.take("b".to_owned()).is_err_and(|holder| {
            holder.to_string().starts_with("a has used it since ") && holder.coordinator == "a"
        }));
        guard.disconnect();
        drop(guard);
        assert!(slot.take("b".to_owned()).is_err_and(|h| h.to_string().contains("still ending")));
        drop(at_work);
        assert!(slot.is_free());
        assert!(slot.take("b".to_owned()).is_ok());
    }
}
