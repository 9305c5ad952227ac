//! The command as a user meets it: real processes, real stores, real files.
#![allow(clippy::unwrap_used)]

mod agents;
mod bad_input;
mod bench;
mod benches;
mod capture;
mod cluster;
mod cost;
mod cut_off;
mod devices;
mod etcd;
#[path = "../../../store/tests/shared/etcd.rs"]
#[allow(dead_code)]
mod etcd_servers;
mod factors;
mod fleet;
mod full_disk;
mod gate;
mod graduated;
mod knob;
#[cfg(feature = "kubernetes")]
mod kubernetes;
#[cfg(feature = "kubernetes")]
#[path = "../../../fleet/tests/shared/kubernetes.rs"]
mod kubernetes_cluster;
mod large_plans;
mod live;
mod machine;
mod machines;
mod mbwu;
mod micro;
mod micro_net;
mod misses;
mod moving;
mod network;
mod plan;
#[path = "../../../store/tests/shared/plugins.rs"]
mod plugin_sources;
mod plugins;
#[path = "../../../model/tests/shared/ports.rs"]
mod ports;
mod results;
mod rocksdb;
mod search;
mod servers;
mod simulate;
#[path = "../shared/slice.rs"]
mod slice;
mod slurm;
#[path = "../../../fleet/tests/shared/slurm.rs"]
mod slurm_cluster;
mod study;
mod terminal;
mod tool;
mod trace;
mod why;
mod workload;
