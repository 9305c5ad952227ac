"""Control groups of version 2 alone, as root and delegated."""

from case import Case

CASE = Case(
    summary="limits of version 2 in doctor and in readings; work units under io.max; an OOM kill; delegated groups",
    limit_s=1800,
    memory="1G",
    disks=[1024],
    packages=["e2fsprogs", "coreutils", "util-linux", "mount"],
    programs=["sbin/mkfs.ext4", "usr/bin/setpriv", "sbin/losetup", "usr/bin/unshare", "bin/mount",
              "bin/mktemp", "usr/bin/truncate", "bin/readlink", "usr/bin/seq", "bin/sync", "usr/bin/setsid"],
    modules=["ext4", "crc32c_generic", "loop"],
    files={"lab/units.toml": "scripts/lab/guest/units.toml", "lab/bin/mbwu-rig": "scripts/mbwu-rig"},
    script=r"""
mount -t cgroup2 cgroup /sys/fs/cgroup
G=/sys/fs/cgroup
echo "+cpu +cpuset +io +memory" >$G/cgroup.subtree_control
mkfs.ext4 -q -F /dev/vda && mount /dev/vda /disk
# in_group GROUP COMMAND...: the command and what it starts are in it.
in_group() { group=$1; shift; sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' $group "$@"; }
value() { jq -r ".readings[] | select(.signal == \"$1\") | .answer.value // (\"unavailable: \" + .answer.unavailable.reason)" $2; }
load() { kvmeter bench null -w ycsb-c -n 1000 -t 3s --warm-up 0s -j 1 --json -o /tmp/results.sqlite "$@"; }

mkdir $G/half $G/small $G/one
echo "20000 100000" >$G/half/cpu.max
[ -z "${lab_broken:-}" ] || echo max >$G/half/cpu.max
expect "doctor says cpu.max" 0 'cgroup.cpu_limit +0.2 CPUs .*cpu.max' in_group $G/half kvmeter doctor
in_group $G/half kvmeter bench null -w ycsb-c -n 1000 -t 3s --warm-up 0s -j 1 --json -o /tmp/results.sqlite >/tmp/half.json 2>/tmp/err; code=$?
figure "under cpu.max of 20 %: exit code $code; quota.throttled $(value quota.throttled /tmp/half.json), throttled_time $(value quota.throttled_time /tmp/half.json) s, limit.cpu $(value limit.cpu /tmp/half.json)"
check "the reading says that the quota ran out" holds "$(value quota.throttled /tmp/half.json) > 0.5"
check "the CPU limit is the one that is used up" holds "$(value limit.cpu /tmp/half.json) > 0.8"
load >/tmp/free.json 2>/tmp/err
check "without a quota nothing is throttled" holds "$(value quota.throttled /tmp/free.json) == 0"

echo 1 >$G/one/cpuset.cpus
check "cpuset: the load runs on CPU 1" sh -c 'echo $$ >/sys/fs/cgroup/one/cgroup.procs; kvmeter bench null -w ycsb-c -n 1000 -t 1s --warm-up 0s --probes off -o /tmp/one.sqlite --json >/tmp/one.json; jq -e ".threads == 1" /tmp/one.json'
expect "cpuset: another CPU is refused" 2 '0' in_group $G/one kvmeter knob set cpus=0 -- true

echo 300M >$G/small/memory.max
expect "doctor says memory.max" 0 'cgroup.memory_limit +300 MiB .*memory.max' in_group $G/small kvmeter doctor
# A store in a file system of memory that outgrows its group is killed: that memory cannot be reclaimed.
# What was finished before stays, and the file goes on.
check "a first run" in_group $G/small kvmeter bench spill:/disk/store -w ycsb-a -n 2000 -t 1s --warm-up 0s -j 1 --probes off -o /disk/oom.sqlite
echo 60M >$G/small/memory.max
in_group $G/small kvmeter bench spill:/tmp/big -w ycsb-load -n 150000 --value-size 1KiB -t 60s --warm-up 0s -j 1 --probes off -o /disk/oom.sqlite >/tmp/out 2>&1
code=$?
figure "a store above memory.max of 60 MiB: exit code $code, $(sed -n 's/^oom_kill /OOM kills: /p' $G/small/memory.events)"
report "it is killed by the kernel" "$([ $code = 137 ] || echo exit code $code)"
rm -rf /tmp/big
check "the finished run is there" sh -c 'kvmeter export /disk/oom.sqlite --format json | jq -e "length == 1 and .[0].operations > 0"'
check "the file takes another run" kvmeter bench spill:/disk/store -w ycsb-a -n 2000 -t 1s --warm-up 0s -j 1 --probes off -o /disk/oom.sqlite
check "both are there" sh -c 'kvmeter export /disk/oom.sqlite --format json | jq -e "length == 2"'
expect "drop_caches=pages is proven where files are cached" 0 proven kvmeter knob set drop_caches=pages -- true

# Delegated: another user's group below one with a limit that this user cannot see past.
mkdir -p $G/half/theirs && chown -R 1000:1000 $G/half/theirs && chmod 777 /tmp
expect "a delegated group: the limit above is said" 0 'cgroup.cpu_limit +0.2 CPUs' \
    in_group $G/half/theirs setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/tmp kvmeter doctor
in_group $G/half/theirs setpriv --reuid 1000 --regid 1000 --clear-groups \
    env HOME=/tmp kvmeter bench null -w ycsb-c -n 1000 -t 1s --warm-up 0s -j 1 --json -o /tmp/theirs.sqlite >/tmp/theirs.json 2>/tmp/err; code=$?
figure "a delegated group: exit code $code, valid $(jq .valid /tmp/theirs.json), $(jq -c '.invalid_because' /tmp/theirs.json | cut -c 1-300)"
check "a delegated group: a load runs, and the quota above it is in its readings" \
    holds "$(jq .operations /tmp/theirs.json) > 0 and $(value quota.throttled /tmp/theirs.json) > 0.5"

# Work units on loop devices under io.max. tmpfs has no direct I/O before Linux 6.6.
export TMPDIR=/disk
mbwu-rig --devices 2 --iops 120 --size 64M -- kvmeter run /lab/units.toml --out /tmp/units.sqlite >/tmp/out 2>&1
code=$?; cat /tmp/out
report "work units under io.max" "$([ $code = 0 ] || echo exit code $code)"
kvmeter mbwu /tmp/units.sqlite --json >/tmp/units.json; cat /tmp/units.json
units=$(jq -r .units /tmp/units.json)
figure "work units of two loop devices under io.max: $units"
check "they are 2.0 within 5 %" holds "$units > 1.9 and $units < 2.1"
# Devices that do more than an emulated CPU's quarter asks of them, on a host of any speed.
mbwu-rig --devices 2 --iops 1200 --size 64M --cpu 25 -- kvmeter run /lab/units.toml --out /tmp/cpu.sqlite --set mbwu.rounds=6 >/tmp/out 2>&1
code=$?; cat /tmp/out
kvmeter mbwu /tmp/cpu.sqlite --json >/tmp/cpu.json
figure "faster devices under cpu.max of 25 %: exit code $code; bottlenecks $(jq -c '[.rounds[].bottleneck]' /tmp/cpu.json)"
check "most rounds name the CPU" jq -e '[.rounds[].bottleneck == "cpu"] | (map(select(.)) | length) * 2 > length' /tmp/cpu.json
""",
)
