"""Older and newer kernels: what they lack is said, and the fallback is taken."""

from case import Case

CASE = Case(
    summary="Linux 5.10, 6.1 and backports' newest: io_uring, eBPF and system calls are there, or a fallback is taken",
    limit_s=600,
    memory="1G",
    binaries=["kvmeter", "spill", "sim"],
    packages=["e2fsprogs", "memcached"],
    programs=["sbin/mkfs.ext4", "usr/bin/memcached"],
    modules=["ext4", "crc32c_generic"],
    disks=[128],
    variants={
        "5.10": {"suite": "bullseye"},
        "6.1": {},
        "backports": {"suite": "bookworm-backports"},
    },
    script=r"""
mkfs.ext4 -q -F /dev/vda && mount /dev/vda /disk || fail "mount"
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || mount -t debugfs debugfs /sys/kernel/debug
kvmeter doctor >/tmp/doctor 2>&1
# What doctor says of each: it must be there, or be said to be missing.
for what in engine.io_uring server-latency.ebpf psi; do
    figure "$what: $(grep -m 1 -- "$what" /tmp/doctor | tr -s ' ' | cut -c 1-120)"
done
check "the unit tests of Spill" spill --test-threads=2
check "a load of Spill" kvmeter bench spill:/disk/store -w ycsb-a -n 1000 -t 1s --warm-up 0s -j 1 --probes off -o /tmp/r.sqlite
check "a load of raw, by io_uring or without" kvmeter bench raw:/disk/raw -w ycsb-a -n 500 -t 1s --warm-up 0s -j 1 --probes off -o /tmp/r.sqlite
memcached -u root -l 127.0.0.1 -p 11211 -t 1 &
server=$!
sleep 2
for engine in epoll io_uring; do
    kvmeter bench memcached://127.0.0.1:11211 -w etc -n 500 -t 1s --warm-up 0s -j 1 -c 2 --engine $engine --probes off -o /tmp/r.sqlite >/tmp/out 2>&1
    code=$?; cat /tmp/out
    figure "engine $engine: exit code $code$([ $code = 0 ] || echo ": $(grep -m 1 error /tmp/out | cut -c 1-200)")"
    report "engine $engine works or says why not" "$([ $code = 0 ] || grep -q "$engine" /tmp/out || echo exit code $code)"
done
kvmeter bench memcached://127.0.0.1:11211 -w etc -n 500 -t 2s --warm-up 0s -j 1 -c 2 --server-latency ebpf --probes off -o /tmp/r.sqlite >/tmp/out 2>&1
code=$?; cat /tmp/out
figure "latency in the server by eBPF: exit code $code$([ $code = 0 ] || echo ": $(grep -m 1 error /tmp/out | cut -c 1-300)")"
report "eBPF works or says why not" "$([ $code = 0 ] || grep -Eqi 'bpf|btf|kernel' /tmp/out || echo exit code $code)"
: >/tmp/ledger
check "Spill's writer and its check" env SPILL_POWER_STORE=/disk/power SPILL_POWER_LEDGER=/tmp/ledger SPILL_POWER_MODE=2 SPILL_POWER_WRITES=60 \
    sim --exact power_loss::round --ignored --nocapture --test-threads=1
[ -z "${lab_broken:-}" ] || fail "nothing that is broken"
""",
)
