use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Detects that the other side has been silent for too long.
#[derive(Debug)]
pub struct SilenceTimer {
    limit: Duration,
    until: Instant,
    waited: bool,
}

impl SilenceTimer {
    pub fn new(limit: Duration) -> SilenceTimer {
        SilenceTimer { limit, until: Instant::now() + limit, waited: false }
    }

    /// A message came.
    pub fn reset(&mut self) {
        self.until = Instant::now() + self.limit;
        self.waited = false;
    }

    /// Returns when there was none for too long. Cancel-safe.
    pub async fn expired(&mut self) {
        loop {
            sleep_until(self.until).await;
            let grace = self.limit / 4;
            let now = Instant::now();
            // This thread itself was delayed: messages may be unread.
            if self.waited || now < self.until + grace {
                return;
            }
            self.waited = true;
            self.until = now + grace;
        }
    }

    pub fn message(&self) -> String {
        format!("no sign of life for {} s", self.limit.as_secs_f64())
    }
}
