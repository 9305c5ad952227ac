//! The program: all of it is in the library, where tests see the definition of its command line.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    kvmeter::main()
}
