//! Every signal of a run that no probe reads.

use super::Signal;
use crate::{Scope, Unit};

/// Makes a constant of each line `NAME: "name", unit, scope, "source"`, and the list of all.
macro_rules! signals {
    ($($id:ident: $name:literal, $unit:ident, $scope:ident, $source:literal $(, $more:ident)*;)*) => {
        $(
            #[doc = $source]
            pub const $id: Signal =
                Signal::new($name, Unit::$unit, Scope::$scope, $source)$(.$more())*;
        )*

        /// Every signal of a run that no probe reads.
        pub const RUN_SIGNALS: &[Signal] = &[$($id),*];
    };
}

signals! {
    // The client.
    CPU_PACER_SPIN: "cpu.pacer_spin", Seconds, Harness,
        "time that the pacer spun until a request was due, part of cpu.user";
    CLIENT_DUE: "client.due", Count, Harness, "requests that were due in the window";
    CLIENT_ANSWERED_IN_TIME: "client.answered_in_time", Count, Harness,
        "requests that were due and answered in the window";
    CLIENT_NEVER_SENT: "client.never_sent", Count, Harness,
        "requests that were due in the window and never sent";
    CLIENT_LATENESS: "client.lateness", Seconds, Harness,
        "mean of response time less that of a client without cost or lateness";
    CLIENT_BUSY: "client.busy", Ratio, Harness,
        "share of the threads' time not spent waiting for a request to be due";
    CLIENT_ACHIEVED_RATE: "client.achieved_rate", OpsPerSecond, Harness,
        "requests answered in the window / its length";
    CLIENT_OFFERED_RATE: "client.offered_rate", OpsPerSecond, Harness,
        "mean in an interval of the rate profile";
    CLIENT_QUEUED: "client.queued", Count, Client, "requests that waited for a connection";
    CLIENT_QUEUE_WAIT: "client.queue_wait", Seconds, Client,
        "mean wait of those requests for a connection with room";
    CLIENT_QUEUE_LONGEST: "client.queue_longest", Count, Client,
        "the most requests that waited at once, summed over the threads";
    CLIENT_DROPPED: "client.dropped", Count, Client,
        "requests that were never sent because the queue was full";
    CLIENT_WAKE_UP: "client.wake_up", Seconds, Client,
        "mean from the answer's arrival in the kernel (SO_TIMESTAMPNS) to its thread";
    CLIENT_RECONNECTED: "client.reconnected", Count, Client,
        "connections that were lost and opened again";
    CLUSTER_JOINED: "cluster.joined", Count, Client,
        "nodes that joined the cluster in the window";
    CLUSTER_MOVED: "cluster.moved", Count, Client,
        "answers that sent a request to another node for good (MOVED)";
    CLUSTER_ASKED: "cluster.asked", Count, Client,
        "answers that sent one request to another node (ASK)";
    CLUSTER_RETRIED: "cluster.retried", Count, Client,
        "repeats of requests: the node was lost, busy or no primary any more";
    CLUSTER_SERVED_LATE: "cluster.served_late", Count, Client,
        "repeated requests that a node served in the end";
    CLUSTER_UNAVAILABLE: "cluster.unavailable", Seconds, Client,
        "the longest time until a repeated request was served";
    CLUSTER_LOST_SLOTS: "cluster.lost_slots", Ratio, Client,
        "share of the slots whose node was lost";
    CLUSTER_LOST_KEYS: "cluster.lost_keys", Count, Client,
        "acknowledged keys that were gone after a replica had taken over";
    RING_LOST_SHARE: "ring.lost_share", Ratio, Client,
        "share of the keys whose servers were lost and ejected at once";
    RING_FAILED: "ring.failed", Count, Client,
        "requests that a lost server did not answer";
    NODE_IMBALANCE: "node.imbalance", Ratio, Client,
        "answers of the most loaded server / mean of the servers that answered";
    NODE_RATE: "node.NODE.rate", OpsPerSecond, Client, "requests that one server answered";
    NODE_LATENCY: "node.NODE.latency", Seconds, Client,
        "mean from sending a request to one server to its answer";
    NODE_P99: "node.NODE.p99", Seconds, Client,
        "99th percentile from sending a request to one server to its answer";
    NODE_FAILED: "node.NODE.failed", Count, Client, "requests that one server did not answer";
    NODE_HIT_RATIO: "node.NODE.hit_ratio", Ratio, Client,
        "keys that one server had / keys that were requested from it";
    NODE_CPU: "node.NODE.cpu", Seconds, Server, "CPU time of one server's process";
    CALIBRATED_MAXIMUM: "calibrated.maximum", OpsPerSecond, Client, "the highest rate that held";
    TRACE_RATE: "trace.rate", OpsPerSecond, Harness,
        "requests of the trace that were due / seconds of the window with the last of them";
    TRACE_PEAK_RATE: "trace.peak_rate", OpsPerSecond, Harness,
        "requests that were due in the busiest second of the window";
    TRACE_WORST_SECOND: "trace.worst_second", Ratio, Harness,
        "answered within a second of being due / due, in the second of the window with the least";

    // Several client machines.
    AGENTS_CLOCK_BOUND: "agents.clock_bound", Seconds, Client,
        "half of the longest of the agents' shortest round trips: no agent started further from \
         the common instant";
    CLIENT_LLC_REFERENCES: "client.llc.references", Count, Client,
        "sum of the agents' llc.references";
    CLIENT_LLC_MISSES: "client.llc.misses", Count, Client, "sum of the agents' llc.misses";
    CLIENT_LLC_MISS_RATIO: "client.llc.miss_ratio", Ratio, Client,
        "the agents' llc.misses / their llc.references";
    AGENT: "agent.N.SIGNAL", Count, Client, "one client machine, by its number";
    AGENTS_LOAD: "load.SIGNAL", Count, Client, "the agents' load where the coordinator measures";

    // The store and its data.
    CACHE_HIT_RATIO: "cache.hit_ratio", Ratio, Store, "keys of reads that were found / keys read";
    CACHE_REFILLS: "cache.refills", Count, Harness,
        "misses that were set again, besides the operations";
    MISS_COUNT: "miss.count", Count, Client,
        "reads that missed and waited for the modelled database";
    MISS_LATENCY: "miss.latency", Seconds, Client,
        "mean from a read that missed to its refill, the modelled database in between",
        modelled;
    MISS_P50: "miss.p50", Seconds, Client,
        "median from a read that missed to its refill, the modelled database in between",
        modelled;
    MISS_P99: "miss.p99", Seconds, Client,
        "99th percentile from a read that missed to its refill, the modelled database in between",
        modelled;
    DATABASE_LATENCY: "database.latency", Seconds, Client,
        "mean of the latencies of the modelled database, as drawn for these misses", modelled;
    WORKLOAD_WRITTEN: "workload.written", Bytes, Harness, "keys and values given to the store";
    WORKLOAD_READ: "workload.read", Bytes, Harness, "keys and values that the store returned";
    SETTLING: "settle.SIGNAL", Count, Process, "while the store settled after the window";
    DISK_BYTES: "disk.bytes", Bytes, Store,
        "blocks allocated to the store's files after the run";
    STORE_STATISTIC: "store.NAME", Count, Store, "the store's own statistics";

    // The processes of servers.
    SERVER_CPU: "server.cpu", Seconds, Server, "CPU time";
    SERVER_CPU_USER: "server.cpu.user", Seconds, Server, "/proc/PID/stat: utime";
    SERVER_CPU_SYSTEM: "server.cpu.system", Seconds, Server, "/proc/PID/stat: stime";
    SERVER_VOLUNTARY: "server.switches.voluntary", Count, Server,
        "/proc/PID/task/*/status: voluntary_ctxt_switches";
    SERVER_INVOLUNTARY: "server.switches.involuntary", Count, Server,
        "/proc/PID/task/*/status: nonvoluntary_ctxt_switches";
    SERVER_MINOR_FAULTS: "server.faults.minor", Count, Server, "/proc/PID/stat: minflt";
    SERVER_MAJOR_FAULTS: "server.faults.major", Count, Server, "/proc/PID/stat: majflt";
    SERVER_READ_CALLS: "server.calls.read", Count, Server,
        "/proc/PID/io: syscr (read, readv, pread; not recv, recvfrom, recvmsg)";
    SERVER_WRITE_CALLS: "server.calls.write", Count, Server,
        "/proc/PID/io: syscw (write, writev, pwrite; not send, sendto, sendmsg)";
    SERVER_IO_READ: "server.io.read", Bytes, Server, "/proc/PID/io: read_bytes";
    SERVER_IO_WRITTEN: "server.io.written", Bytes, Server, "/proc/PID/io: write_bytes";
    SERVER_RESIDENT: "server.memory.resident", Bytes, Server, "/proc/PID/status: VmRSS", at_end;
    SERVER_THREADS: "server.threads", Count, Server, "/proc/PID/stat: num_threads", at_end;
    SERVER_CONTEXT_SWITCHES: "server.context_switches", Count, Server,
        "voluntary and involuntary switches together";
    SERVER_SYSCALLS: "server.syscalls", Count, Server, "system calls of the process";
    SERVER_LATENCY: "server.latency", Seconds, Server,
        "mean of the requests that were timed inside the server";
    SERVER_LATENCY_TIMED: "server.latency.timed", Count, Server,
        "requests that were timed inside the server";
    SERVER_LATENCY_COST: "server.latency.cost", Seconds, Server, "what the timing itself took";

    // What runs beside the load, and the harness.
    BESIDE_BANDWIDTH: "beside.hog.bandwidth", BytesPerSecond, Cpus, "bytes that it moved";
    BESIDE_CPU: "beside.cpu", Seconds, Cpus, "CPU time of its process";
    BESIDE_HELD: "beside.hog.held", Ratio, Cpus, "bytes that it moved / bytes requested";
    PROBE_COST: "probe.NAME.cost", Nanoseconds, Harness,
        "time of the probe's two readings", at_end;
    SPLIT_PACKAGE: "split.package.PART", Joules, Package,
        "energy.package by busy time of the CPUs, the rest of the time as idle", modelled, derived;
    SPLIT_DRAM: "split.dram.PART", Joules, Memory,
        "energy.dram by busy time of the CPUs, the rest of the time as idle", modelled, derived;
    IDLE_POWER: "power.idle.NAME", Watts, Node, "the same sensor before the first run";
    IDLE_BUSY: "idle.machine.busy", Ratio, Machine, "/proc/stat before the first run";

    // Microbenchmarks and simulations.
    MICRO_THROUGHPUT: "micro.throughput", BytesPerSecond, Client, "payload / seconds";
    MICRO_CPU_PER_BYTE: "micro.cpu_per_byte", Nanoseconds, Client,
        "CPU time of the end where the payload arrives / payload";
    MICRO_SENDER_CPU_PER_BYTE: "micro.sender.cpu_per_byte", Nanoseconds, Server,
        "CPU time of the sending end / payload";
    MICRO_SENDER: "micro.sender.SIGNAL", Count, Server, "the same signal of the sending end";
    MICRO_LOST: "micro.lost", Ratio, Client,
        "messages that never arrived completely / messages that were sent";
    MICRO_LATE: "micro.late", Count, Client, "messages that came late, twice or out of order";
    MICRO_COPY: "micro.copy", BytesPerSecond, Cpus, "STREAM: copy";
    MICRO_SCALE: "micro.scale", BytesPerSecond, Cpus, "STREAM: scale";
    MICRO_ADD: "micro.add", BytesPerSecond, Cpus, "STREAM: add";
    MICRO_TRIAD: "micro.triad", BytesPerSecond, Cpus, "STREAM: triad";
    MICRO_LOAD: "micro.load", Nanoseconds, Cpus,
        "a load that waits for the one before it, the shortest of the batches";
    MICRO_LOAD_MEDIAN: "micro.load_median", Nanoseconds, Cpus, "of the batches";
    SIMULATED_INSTRUCTIONS: "simulated.instructions_per_mop", PerMillionOps, Process,
        "cachegrind: Ir", simulated;
    SIMULATED_BRANCHES: "simulated.branches_per_mop", PerMillionOps, Process,
        "cachegrind: Bc + Bi", simulated;
    SIMULATED_MISPREDICTS: "simulated.mispredicts_per_mop", PerMillionOps, Process,
        "cachegrind: Bcm + Bim", simulated;
    SIMULATED_D1_MISSES: "simulated.d1_misses_per_mop", PerMillionOps, Process,
        "cachegrind: D1mr + D1mw", simulated;
    SIMULATED_LL_MISSES: "simulated.ll_misses_per_mop", PerMillionOps, Process,
        "cachegrind: ILmr + DLmr + DLmw", simulated;
    SIMULATED_THROUGHPUT: "simulated.throughput", OpsPerSecond, Component,
        "packets that were finished", simulated;
    SIMULATED_OFFERED: "simulated.offered", OpsPerSecond, Component,
        "packets that arrived", simulated;
    SIMULATED_DROPPED: "simulated.dropped", Ratio, Component,
        "packets dropped for lack of room", simulated;
    SIMULATED_LLC_MISS_RATIO: "simulated.llc.miss_ratio", Ratio, Component,
        "accesses of the workers to the last-level cache", simulated;
    SIMULATED_WRITE_HIT_RATIO: "simulated.pcie.write_hit_ratio", Ratio, Component,
        "lines that the card wrote", simulated;
    SIMULATED_READ_HIT_RATIO: "simulated.pcie.read_hit_ratio", Ratio, Component,
        "lines that the card read", simulated;
    SIMULATED_MEMORY_READ: "simulated.memory.read", BytesPerSecond, Component,
        "bytes read from memory", simulated;
    SIMULATED_MEMORY_WRITTEN: "simulated.memory.written", BytesPerSecond, Component,
        "bytes written to memory", simulated;
    SIMULATED_MEMORY_TRAFFIC: "simulated.memory.traffic", BytesPerSecond, Component,
        "bytes to and from memory", simulated;
    SIMULATED_LATENCY: "simulated.latency.POINT", Seconds, Component,
        "packets that were finished", simulated;
    SIMULATED_BUSY: "simulated.busy", Ratio, Component, "time of the workers", simulated;
    SIMULATED_NEIGHBOUR_MISS_RATIO: "simulated.neighbour.NAME.llc.miss_ratio", Ratio, Component,
        "accesses of the neighbour", simulated;
    SIMULATED_NEIGHBOUR_ACCESSES: "simulated.neighbour.NAME.accesses", OpsPerSecond, Component,
        "accesses of the neighbour", simulated;
    MODELLED_ENERGY_PER_PACKET: "modelled.energy_per_packet", JoulesPerOp, Component,
        "lines of the last-level cache and of memory times their costs / packets", modelled;
    MODELLED_ENERGY_DELAY: "modelled.energy_delay", JouleSeconds, Component,
        "modelled.energy_per_packet * simulated.latency.mean", modelled;

    // What is derived when the run has ended.
    CPU_S_PER_MOP: "cpu_s_per_mop", CpuSecondsPerMillionOps, Process,
        "(cpu.user + cpu.system) / operations", derived;
    SERVER_CPU_S_PER_MOP: "server.cpu_s_per_mop", CpuSecondsPerMillionOps, Server,
        "server.cpu / operations", derived;
    SERVER_CONTEXT_SWITCHES_PER_MOP: "server.context_switches_per_mop", PerMillionOps, Server,
        "server.context_switches / operations", derived;
    SERVER_SYSCALLS_PER_MOP: "server.syscalls_per_mop", PerMillionOps, Server,
        "server.syscalls / operations", derived;
    WRITE_AMPLIFICATION: "write_amplification", Ratio, Process,
        "io.written / bytes the workload wrote", derived;
    WRITE_AMPLIFICATION_DEVICE: "write_amplification.device", Ratio, Device,
        "device.written / bytes the workload wrote", derived;
    SERVER_WRITE_AMPLIFICATION: "server.write_amplification", Ratio, Server,
        "server.io.written / bytes the workload wrote", derived;
    WRITE_AMPLIFICATION_SETTLED: "write_amplification.settled", Ratio, Process,
        "(io.written + settle.io.written) / bytes the workload wrote", derived;
    READ_AMPLIFICATION: "read_amplification", Ratio, Process,
        "io.read / bytes the workload read", derived;
    SERVER_READ_AMPLIFICATION: "server.read_amplification", Ratio, Server,
        "server.io.read / bytes the workload read", derived;
    READ_AMPLIFICATION_DEVICE: "read_amplification.device", Ratio, Device,
        "device.read / bytes the workload read", derived;
    MANAGEMENT_TRAFFIC_DEVICE: "management_traffic.device", Ratio, Device,
        "1 - bytes the workload read and wrote / (device.read + device.written)", derived;
    SPACE_AMPLIFICATION: "space_amplification", Ratio, Store,
        "disk.bytes / keys and values of the records that were inserted", derived;
    OPS_PER_JOULE: "ops_per_joule", OpsPerJoule, Node, "operations / energy.NAME", derived;
    OPS_PER_JOULE_AT: "ops_per_joule.NAME", OpsPerJoule, Node,
        "operations / energy.NAME", derived;
    OPS_PER_JOULE_NET: "ops_per_joule_net", OpsPerJoule, Node,
        "operations / energy.NAME beyond the idle machine's", derived;
    OPS_PER_JOULE_NET_AT: "ops_per_joule_net.NAME", OpsPerJoule, Node,
        "operations / energy.NAME beyond the idle machine's", derived;
    JOULES_PER_OP: "joules_per_op", JoulesPerOp, Node, "energy.NAME / operations", derived;
    JOULES_PER_OP_AT: "joules_per_op.NAME", JoulesPerOp, Node,
        "energy.NAME / operations", derived;
    JOULES_PER_OP_NET: "joules_per_op_net", JoulesPerOp, Node,
        "energy.NAME beyond the idle machine's / operations", derived;
    JOULES_PER_OP_NET_AT: "joules_per_op_net.NAME", JoulesPerOp, Node,
        "energy.NAME beyond the idle machine's / operations", derived;
    USD_PER_GOP: "usd_per_gop", UsdPerBillionOps, Node,
        "price / operations of the lifetime + joules_per_op * price of electricity", derived;
    MBWU_UNITS: "mbwu.units", Count, Harness, "operations / seconds / the unit", derived;
}
