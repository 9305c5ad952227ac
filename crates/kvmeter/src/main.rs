//! The program is in the library, so that tests can use the definition of its command line.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    kvmeter::main()
}
