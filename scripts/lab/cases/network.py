"""Two network namespaces with a link that delays, jitters, loses and reorders packets."""

from case import Case

CASE = Case(
    summary="an injected delay is what the latency grows by; loss is reported as retransmits; agents keep one clock",
    limit_s=1800,
    memory="1G",
    packages=["iproute2", "memcached"],
    programs=["bin/ip", "sbin/tc", "usr/bin/memcached"],
    modules=["veth", "sch_netem", "sch_tbf"],
    script=r"""
ip netns add far || note "no namespace"
ip link add near type veth peer name far
ip link set far netns far
ip addr add 10.9.0.1/24 dev near && ip link set near up
ip netns exec far ip addr add 10.9.0.2/24 dev far
ip netns exec far ip link set far up
ip netns exec far ip link set lo up
ip netns exec far memcached -u root -l 10.9.0.2 -p 11211 -t 1 &
sleep 2
# link WORDS: what netem does to packets in each direction.
link() {
    tc qdisc replace dev near root netem "$@" limit 10000
    ip netns exec far tc qdisc replace dev far root netem "$@" limit 10000
}
load() { kvmeter bench memcached://10.9.0.2:11211 -w etc -n 500 -t 6s --warm-up 1s -j 1 -c 1 --rate 5 --json --quiet -o /tmp/results.sqlite "$@"; }
value() { jq -r ".readings[] | select(.signal == \"$1\") | .answer.value // (\"unavailable: \" + .answer.unavailable.reason)" $2; }
p50() { jq -r '.service_us.read.p50' $1; }
# The shortest one: of the others an emulated CPU that shares its host adds milliseconds.
least() { jq -r '.service_us.read.min' $1; }
load >/tmp/base.json 2>/tmp/err || cat /tmp/err
base=$(least /tmp/base.json)
figure "service time without delay: least $base us, median $(p50 /tmp/base.json) us"
for ms in 10 50; do
    link delay ${ms}ms
    load >/tmp/delay.json 2>/tmp/err || cat /tmp/err
    got=$(least /tmp/delay.json); want=$((ms * 2000)); [ -z "${lab_broken:-}" ] || want=$((want + 10000))
    figure "$ms ms each way: least $got us, $(jq -n "$got - $base - $want") us beside base and delay; median $(p50 /tmp/delay.json) us"
    check "$ms ms each way: base + delay within 5 %" holds "($got - $base - $want | fabs) < 0.05 * ($base + $want)"
done
link delay 20ms 5ms
load >/tmp/jitter.json 2>/tmp/err
figure "20 ms +- 5 ms each way: p50 $(p50 /tmp/jitter.json) us, min $(jq .service_us.read.min /tmp/jitter.json), max $(jq .service_us.read.max /tmp/jitter.json)"
check "jitter: the least lies within its bounds" holds "$(jq .service_us.read.min /tmp/jitter.json) > 29900"
link delay 10ms reorder 25% 50%
check "reordered packets: a load ends well" sh -c 'kvmeter bench memcached://10.9.0.2:11211 -w etc -n 500 -t 4s --warm-up 0s -j 1 -c 2 --depth 4 --probes off -o /tmp/reorder.sqlite'
link rate 1mbit
check "a slow link: a load ends well" sh -c 'kvmeter bench memcached://10.9.0.2:11211 -w etc -n 500 -t 4s --warm-up 0s -j 1 -c 1 --probes off -o /tmp/rate.sqlite'
link loss 5%
kvmeter bench memcached://10.9.0.2:11211 -w etc -n 500 -t 8s --warm-up 0s -j 1 -c 4 --json --quiet -o /tmp/loss.sqlite >/tmp/loss.json 2>/tmp/err
code=$?; cat /tmp/err
retransmits=$(jq -r '[.readings[] | select(.signal | test("retrans"))][0] | "\(.signal) \(.answer.value // .answer.unavailable.reason)"' /tmp/loss.json)
echo "$retransmits" >/tmp/retransmits
figure "5 % loss each way: exit code $code, $retransmits, errors $(jq .errors /tmp/loss.json), max $(jq .latency_us.read.max /tmp/loss.json) us"
check "loss is reported as retransmits" grep -q " [1-9]" /tmp/retransmits
tc qdisc del dev near root; ip netns exec far tc qdisc del dev far root

# Two agents, one of them behind a slow link, and one clock.
echo 0123456789abcdef0123456789abcdef >/tmp/token; chmod 600 /tmp/token
ip netns exec far kvmeter agent --listen 10.9.0.2:9377 --agent-token-file /tmp/token --allow-server 10.9.0.2 &
kvmeter agent --listen 10.9.0.1:9377 --agent-token-file /tmp/token --allow-server 10.9.0.2 &
# Both listen (state 0A) on port 9377.
listens() { "$@" cat /proc/net/tcp | grep -q ':24A1 .* 0A '; }
for _ in $(seq 240); do listens env && listens ip netns exec far && break; sleep 0.5; done
link delay 25ms
kvmeter bench memcached://10.9.0.2:11211 -w etc -n 500 -t 5s --warm-up 1s -j 2 -c 4 --rate 40 --json --quiet \
    --agents 10.9.0.1,10.9.0.2 --agent-token-file /tmp/token -o /tmp/agents.sqlite >/tmp/agents.json 2>/tmp/err
code=$?; [ $code = 0 ] || note "agents: $(head -c 300 /tmp/err | tr '\n' ' ')"
# Whether an emulated client is late says nothing; that all was done does.
check "two agents over a link of 25 ms, exit code $code" holds "$(jq .errors /tmp/agents.json) == 0 and $(jq .operations /tmp/agents.json) > 150"
figure "agents: $(jq -c '[.readings[] | select(.signal | startswith("agents.")) | {(.signal): .answer.value}]' /tmp/agents.json)"
bound=$(value agents.clock_bound /tmp/agents.json)
check "their clocks are known within half of the link's round trip" holds "$bound > 0 and $bound < 0.0275"
# Each operation of the near agent takes the link, none of the far one's does.
figure "agents' service times: p50 $(jq .service_us.read.p50 /tmp/agents.json), p90 $(jq .service_us.read.p90 /tmp/agents.json) us"
check "half of the operations take 50 ms" holds "$(jq .service_us.read.p90 /tmp/agents.json) > 50000"
""",
)
