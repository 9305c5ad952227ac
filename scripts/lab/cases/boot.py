"""The quick case: a guest boots, `doctor` knows what it is, and a load runs."""

from case import Case

CASE = Case(
    summary="a guest boots; doctor names it; Spill answers a load; a wrong line is refused",
    limit_s=240,
    memory="768M",
    script=r"""
expect "doctor names a virtual machine" 0 'virtualisation.machine +virtual' kvmeter doctor
check "a load of Spill is valid" kvmeter bench spill:/tmp/store -w ycsb-a -n 1000 -t 2s --warm-up 0s -j 1 \
    --probes off -o /tmp/results.sqlite
check "an export has the run" sh -c 'kvmeter export /tmp/results.sqlite --format json | jq -e "length == 1 and .[0].operations > 0"'
for knob in thp=never aslr=off; do
    expect "$knob is proven" 0 proven kvmeter knob set $knob -- true
done
[ -z "${lab_broken:-}" ] || echo 0 >/proc/sys/kernel/randomize_va_space
check "aslr is as it was" grep -qx 2 /proc/sys/kernel/randomize_va_space
kvmeter bench null -w ycsb-c -n 100 -t 100ms --warm-up 0s -j 1 --json -q -o /tmp/results.sqlite >/tmp/probes.json
figure "knobs: $(kvmeter knob list --json | jq -r '[.[] | select(.levels | type == "array") | .knob.name // .info.name // .name] | join(" ")')"
figure "probes: $(jq -r '[.readings[] | select((.signal | test("^probe\\..*\\.cost$")) and .answer.value != null) | .signal[6:-5]] | join(" ")' /tmp/probes.json)"
expect "a store that there is not is refused" 2 'nosuch' kvmeter bench nosuch:/tmp/x
""",
)
