"""The command on another architecture: a study, latency inside of servers, causes."""

from case import Case

CASE = Case(
    summary="quickstart, memcached and Redis timed from inside by both ways, --why; amd64 and arm64",
    script=r"""
mkfs.ext4 -q -F /dev/vda && mount /dev/vda /disk || fail "mount"
export TMPDIR=/disk
mount -t tracefs tracefs /sys/kernel/tracing
# RocksDB by the name that its package gives it.
rocksdb=$(basename /usr/sbin/librocksdb.so.*); ln -s /usr/sbin/$rocksdb /lib/$rocksdb
cd /disk
# What is emulated is rarely fast enough for valid runs, so either code will do.
expect "quickstart runs" '[01]' '' kvmeter run quickstart --set data.records=2k --set measure.time=1s --set measure.warm_up=0s --out quickstart.sqlite
kvmeter export quickstart.sqlite --format json >/tmp/runs.json
figure "quickstart: $(jq length /tmp/runs.json) runs, $(jq 'map(.operations) | add' /tmp/runs.json) operations, stores $(jq -r 'map(.store) | unique | join(", ")' /tmp/runs.json)"
check "each of its 16 runs is there" jq -e 'length == 16' /tmp/runs.json
check "each answer was right" jq -e 'all(.[]; .failures == [] and .errors == 0)' /tmp/runs.json
check "its page is there" grep -q '</html>' quickstart.html

# Broken: without tracefs no eBPF program can be attached.
[ -z "${lab_broken:-}" ] || umount /sys/kernel/tracing
for way in tap ebpf; do
    for server in memcached redis; do
        expect "$server with --server-latency $way runs" '[01]' '' sh -c "kvmeter bench $server --server default -w etc -n 500 -t 2s --warm-up 0s -j 1 -c 2 --server-latency $way --probes off --json -o servers.sqlite >/tmp/$server.json"
        check "$server with --server-latency $way: each request was timed, and less than at the client" jq -e \
            '.server_latency_us.count > 0.9 * .operations and .server_latency_us.p50 < .latency_us.read.p50' /tmp/$server.json
        figure "$server, $way: $(jq -r '"\(.server_latency_us.count) of \(.operations) requests timed, p50 \(.server_latency_us.p50) us, at the client \(.latency_us.read.p50) us"' /tmp/$server.json)"
    done
done
expect "--why runs" '[01]' '' sh -c "kvmeter bench spill:why?durability=100ms -w ycsb-a -n 500 -t 3s --warm-up 0s -j 1 --probes off --why --json -o why.sqlite >/tmp/why.json"
check "--why: stacks were sampled, the kernel counted waits and block requests" jq -e \
    '(.profile.processes | any(.state == "on_cpu" and .samples > 50)) and ([.profile.kernel_counts.histograms[].quantity] | contains(["run_queue", "block_latency"]))' /tmp/why.json
figure "--why: $(jq -r '[.profile.processes[] | "\(.samples) samples \(.state)"] + [.profile.kernel_counts.histograms[] | "\(.count) of \(.quantity) \(.subject)"] + [.profile.kernel_counts.unavailable[] | tostring] | join(", ")' /tmp/why.json)"
""",
    limit_s=900,
    memory="2G",
    packages=["e2fsprogs", "memcached", "redis-server", "librocksdb7.8"],
    programs=["sbin/mkfs.ext4", "usr/bin/memcached", "usr/bin/redis-server", "librocksdb.so.7.8"],
    modules=["ext4", "crc32c_generic", "inet_diag", "tcp_diag"],
    disks=[1024],
    variants={"amd64": {}, "arm64": {"arch": "arm64"}},
)
