//! Who holds the agent: at most one coordinator at a time.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::AgentLogEvent;

pub type Listener = Arc<dyn Fn(AgentLogEvent) + Send + Sync>;

/// Where the agent is taken and given back.
pub struct SessionSlot {
    holder: Mutex<Option<SlotHolder>>,
    tell: Listener,
}

/// A coordinator that holds the agent.
#[derive(Debug, Clone)]
pub struct SlotHolder {
    /// Its machine and where it called from.
    pub who: String,
    since: SystemTime,
    left: bool,
}

/// The agent is held as long as this lives: by the session, and by the work that it began.
pub struct SlotGuard(Arc<SessionSlot>);

impl SessionSlot {
    pub fn new(tell: Listener) -> Arc<SessionSlot> {
        Arc::new(SessionSlot { holder: Mutex::new(None), tell })
    }

    pub fn tell(&self, event: AgentLogEvent) {
        (self.tell)(event);
    }

    /// Takes the agent.
    ///
    /// # Errors
    /// Who holds it.
    pub fn take(self: &Arc<SessionSlot>, who: String) -> Result<Arc<SlotGuard>, SlotHolder> {
        let mut holder = self.lock();
        if let Some(holder) = &*holder {
            return Err(holder.clone());
        }
        *holder = Some(SlotHolder { who, since: SystemTime::now(), left: false });
        Ok(Arc::new(SlotGuard(self.clone())))
    }

    pub fn is_free(&self) -> bool {
        self.lock().is_none()
    }

    // The holder is replaced whole, so what a panicking thread left is good.
    fn lock(&self) -> MutexGuard<'_, Option<SlotHolder>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotGuard {
    pub fn tell(&self, event: AgentLogEvent) {
        self.0.tell(event);
    }

    /// The coordinator is gone, though its work may still be ending.
    pub fn leave(&self) {
        if let Some(holder) = &mut *self.0.lock() {
            holder.left = true;
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.tell(AgentLogEvent::Waiting);
    }
}

impl std::fmt::Display for SlotHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = self.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
        let ago = self.since.elapsed().unwrap_or_default().as_secs();
        let (hour, minute, second) = (since / 3600, since / 60 % 60, since % 60);
        let how =
            if self.left { "left it, and its work still ends; it held it" } else { "holds it" };
        write!(f, "{} {how} since {hour:02}:{minute:02}:{second:02} UTC ({ago} s ago)", self.who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_until_the_last_hold_goes() {
        let desk = SessionSlot::new(Arc::new(|_| {}));
        let hold = desk.take("a".to_owned()).map_err(|h| h.to_string()).unwrap();
        let at_work = hold.clone();
        assert!(desk.take("b".to_owned()).is_err_and(|holder| {
            holder.to_string().starts_with("a holds it since ") && holder.who == "a"
        }));
        hold.leave();
        drop(hold);
        assert!(desk.take("b".to_owned()).is_err_and(|h| h.to_string().contains("still ends")));
        drop(at_work);
        assert!(desk.is_free());
        assert!(desk.take("b".to_owned()).is_ok());
    }
}
