use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How long the other side has said nothing.
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

    /// A sign of life came.
    pub fn heard(&mut self) {
        self.until = Instant::now() + self.limit;
        self.waited = false;
    }

    /// Returns when there was none for too long. May be dropped and asked again.
    pub async fn too_long(&mut self) {
        loop {
            sleep_until(self.until).await;
            let grace = self.limit / 4;
            let now = Instant::now();
            // This thread itself was kept from running: what came may lie unread.
            if self.waited || now < self.until + grace {
                return;
            }
            self.waited = true;
            self.until = now + grace;
        }
    }

    pub fn words(&self) -> String {
        format!("no sign of life for {} s", self.limit.as_secs_f64())
    }
}
