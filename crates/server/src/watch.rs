//! What the machine knows of a server process.
