"""Hardware threads that can be switched off, CPUs that come and go, numbers with holes."""

from case import Case


def qmp_cpu(guest, words: str) -> str:
    """`add SOCKET CORE THREAD` or `remove SOCKET CORE THREAD`."""
    verb, socket, core, thread = words.split()
    name = f"cpu-{socket}-{core}-{thread}"
    if verb == "add":
        place = {"socket-id": int(socket), "core-id": int(core), "thread-id": int(thread)}
        reply = guest.qmp("device_add", driver="max-x86_64-cpu", id=name, **place)
    else:
        reply = guest.qmp("device_del", id=name)
    return "done" if "return" in reply else reply["error"]["desc"]


def play(lab) -> None:
    lab.listen(lab.boot(), host={"cpu": qmp_cpu})


CASE = Case(
    summary="smt off and on is proven, and comes back after kill -9; CPUs that are added and taken away",
    limit_s=500,
    memory="1G",
    smp="4,sockets=2,cores=2,threads=2,maxcpus=8",
    cpu="max,vendor=GenuineIntel",
    play=play,
    script=r"""
online() { cat /sys/devices/system/cpu/online; }
load() { kvmeter bench null -w ycsb-c -n 1000 -t 4s --warm-up 0s "$@" --probes off --json -o /tmp/results.sqlite; }
figure "CPUs at the start: $(online), siblings of CPU 0: $(cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list), smt $(cat /sys/devices/system/cpu/smt/control)"
expect "doctor sees hardware threads" 0 'topology.smt +on' kvmeter doctor
expect "smt=off is proven" 0 'smt.*proven' kvmeter knob set smt=off -- cat /sys/devices/system/cpu/smt/active
check "smt is on again" grep -qx 1 /sys/devices/system/cpu/smt/active
before=$(online)
kvmeter knob set -q smt=off -- sleep 60 &
knob=$!
for _ in $(seq 60); do [ "$(cat /sys/devices/system/cpu/smt/active)" = 0 ] && break; sleep 0.5; done
check "smt is off while a command runs" grep -qx 0 /sys/devices/system/cpu/smt/active
kill -9 $knob
# Broken: no supervisor puts it back.
[ -z "${lab_broken:-}" ] || pkill -9 kvmeter
for _ in $(seq 60); do [ "$(online)" = "$before" ] && break; sleep 0.5; done
check "after kill -9 the CPUs are as before ($before)" test "$(online)" = "$before"
check "after kill -9 smt is on" grep -qx on /sys/devices/system/cpu/smt/control
pkill sleep

# Numbers with holes.
echo 0 >/sys/devices/system/cpu/cpu1/online
figure "with a hole: $(online)"
expect "doctor runs with a hole" 0 'topology.threads +3' kvmeter doctor
check "a load of 3 threads runs with a hole" load -j 3
check "the knob online=0,2 works beside a hole" kvmeter knob set online=0,2 -- true
check "CPU 1 is still off" grep -qx 0 /sys/devices/system/cpu/cpu1/online
expect "a CPU that is off is refused" 2 '1' kvmeter knob set cpus=1 -- true
echo 1 >/sys/devices/system/cpu/cpu1/online

# CPUs that come while a load runs. ACPI tells the guest, which brings them up.
load -j 2 >/tmp/load 2>&1 &
running=$!
sleep 2
answer=$(ask cpu add 1 0 0)
figure "a CPU added under load: $answer"
for _ in $(seq 40); do [ -d /sys/devices/system/cpu/cpu4 ] && break; sleep 0.25; done
echo 1 >/sys/devices/system/cpu/cpu4/online
wait $running; report "the load goes on while a CPU comes" "$([ $? = 0 ] || tail -c 300 /tmp/load)"
check "the new CPU is there: $(online)" test -d /sys/devices/system/cpu/cpu4
expect "doctor counts five threads" 0 'topology.threads +5' kvmeter doctor
check "cpus=4 is proven" kvmeter knob set cpus=4 -- true
# A CPU taken away under a load that is pinned to it: Linux moves the thread.
load -j 5 >/tmp/load 2>&1 &
running=$!
sleep 3
answer=$(ask cpu remove 1 0 0)
for _ in $(seq 40); do [ -d /sys/devices/system/cpu/cpu4 ] || break; sleep 0.25; done
figure "a CPU removed under load: $answer; left: $(online)"
wait $running; code=$?
figure "the load whose CPU went ended with $code: $(jq -c '.[0].invalid_because // .invalid_because' /tmp/load 2>/dev/null | head -c 300)"
check "a load after it runs" load -j 4
check "offline CPUs are proven" kvmeter knob set online=0-1 -- true
""",
)
