"""The quick case: a guest boots, `doctor` knows what it is, and a load runs."""

from case import Case

CASE = Case(
    summary="a guest boots; doctor names it; Spill answers a load; a wrong line is refused",
    limit_s=110,
    memory="768M",
    script=r"""
expect "doctor names a virtual machine" 0 'virtualisation.machine +virtual' kvmeter doctor
check "a load of Spill is valid" kvmeter bench spill:/tmp/store -w ycsb-a -n 1000 -t 2s --warm-up 0s -j 1 \
    --probes off -o /tmp/results.sqlite
check "an export has the run" sh -c 'kvmeter export /tmp/results.sqlite --format json | jq -e "length == 1 and .[0].operations > 0"'
expect "a store that there is not is refused" 2 'nosuch' kvmeter bench nosuch:/tmp/x
""",
)
