//! Permissions of files that hold secrets.

/// Whether everyone on a machine can read a file of this mode: then it holds no secret.
pub const fn is_exposed(mode: u32) -> bool {
    mode & 0o004 != 0
}

#[cfg(test)]
mod tests {
    use super::is_exposed;

    #[test]
    fn world_readable_is_exposed() {
        assert!(is_exposed(0o644) && is_exposed(0o604));
        assert!(!is_exposed(0o640) && !is_exposed(0o600) && !is_exposed(0o662));
    }
}
