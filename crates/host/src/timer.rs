//! Timer slack: how promptly the kernel wakes sleeping threads.

/// Asks the kernel to end the calling thread's sleeps when they are due. By default it may let
/// each run on for 50 us (the timer slack) to wake several threads at once. Says why it could not.
pub fn wake_promptly() -> Result<(), String> {
    nix::sys::prctl::set_timerslack(1).map_err(|error| format!("timer slack: {}", error.desc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slack_is_gone() {
        std::thread::spawn(|| {
            wake_promptly().unwrap();
            assert_eq!(nix::sys::prctl::get_timerslack(), Ok(1));
        })
        .join()
        .unwrap();
    }
}
