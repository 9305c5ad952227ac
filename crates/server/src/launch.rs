//! Starts a server for a study, waits until it answers and ends it.
