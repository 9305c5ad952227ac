//! The library that is preloaded into a server (`LD_PRELOAD`). With
//! `KVMETER_TAP` naming a file that kvmeter made it times the server's
//! requests; otherwise, and in whatever the server forks, it passes every
//! call on and does nothing else.
//!
//! Root of a library of its own (`rustc --crate-type cdylib`): nothing in it
//! may be linked into kvmeter, whose own `read` and `write` it would replace.
//!
//! Nothing here locks, panics or allocates after the first call of a thread and on a descriptor; no
//! call's result or `errno` is changed.

mod attached;
mod clock;
mod connection;
mod descriptors;
mod hooks;
#[path = "../layout.rs"]
mod layout;
mod parse;
mod real;
#[path = "../sys.rs"]
mod sys;
mod thread;
mod watch;

/// Runs when the library is loaded, before the server's `main`.
#[allow(unsafe_code)]
// SAFETY: the dynamic linker calls what is in this section, with arguments
// that may be left alone.
#[unsafe(link_section = ".init_array")]
#[used]
static START: extern "C" fn() = {
    extern "C" fn start() {
        real::look_up_all();
        attached::attach();
    }
    start
};
