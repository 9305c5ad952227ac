//! The results file from outside: one binary, because each one links SQLite.

mod bad_files;
mod crash;
mod example;
mod export;
mod full_disk;
mod round_trip;
mod sql;
mod summary;
