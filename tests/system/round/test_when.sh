#!/usr/bin/env bash
# A device that is available only sometimes (`when`): outside it is connected and not selected, or disconnected, a round that
# has begun is finished, server and owner read why, and the federation goes on. The device's load is a file of the test.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 3
mkdir -p "$dir/system/proc"
load() { printf '%s 0.10 0.20 1/345 6789\n' "$1" >"$dir/system/loadavg.new" && mv "$dir/system/loadavg.new" "$dir/system/proc/loadavg"; }
load 0.01
write_server srv "model: {preset: dnn60}" "rounds: 1000000" "strategy: {fraction: {fraction: 1}}" "heartbeat: 200ms" \
  "round: {start_clients: 2, min_responders: 1, retry: 20ms}"
start_server srv || finish
rules="load_below: 1, check: 20ms, system_root: \"$dir/system\""
start_client hours "$dir/data/client-000" "when: {$rules}"
start_client leaves "$dir/data/client-001" "when: {$rules, outside: disconnect}"
accepted() { # client, number
  ctl srv clients --json | json "any(c['name'] == '$1' and c['accepted'] >= $2 for c in d)"
}
of() { # client, key
  ctl srv clients --json | json "[c['$2'] for c in d if c['name'] == '$1'][0]"
}
is() { [ "$(of "$1" "$2")" = "$3" ]; }
wait_for "an update of the first" accepted hours 1
wait_for "an update of the second" accepted leaves 1

### Busy: both finish their round and say why
load 99.00
told() { of "$1" last_error | grep -q '^not available: it is busy: load .*, not below 1.00$'; }
for name in hours leaves; do wait_for "the server to have the reason of $name" told $name; done
wait_for "one stays connected and is not available" is hours state unavailable
wait_for "the other is not connected" is leaves connected False
for name in hours leaves; do
  has_line "the owner of $name reads why" "$dir/$name.log" "not available (section 'when'): it is busy: load "
  check "$name runs" running $name
done
wait_for "no round" in_phase srv IDLE
ctl srv why >"$dir/why.out"
has_line "flctl why says it too" "$dir/why.out" "1 connected clients are not available ('flctl clients' has the reasons): hours"

### A third client without rules: the federation goes on without them
stop srv
sed -i 's/start_clients: 2/start_clients: 1/' "$dir/srv.yaml"
start_server srv || finish
wait_for "the first to say so again" is hours state unavailable
selected=$(of hours selected)
start_client free "$dir/data/client-000"
wait_for "rounds of the third" accepted free 3
equal "the first was not selected in them" "$selected" "$(of hours selected)"
is hours connected True || wait_for "it is connected" is hours connected True

### Idle again: both take part again by themselves
load 0.01
one=$(of hours accepted) other=$(of leaves accepted)
wait_for "the first again" accepted hours $((one + 1))
wait_for "the second again" accepted leaves $((other + 1))
has_line "its owner reads that" "$dir/hours.log" "available again (section 'when')"

### A task that comes when the device is not lent any more, before the client has looked: no fault of the client
lost() { of "$1" lost; }
load 0.01
start_client late "$dir/data/client-001" "when: {load_below: 1, check: 1h, system_root: \"$dir/system\"}"
wait_for "an update of it" accepted late 1
before=$(lost late)
load 99.00
wait_for "it leaves the round" told late
has_line "with its reason" "$dir/srv.log" "client 'late' is not available: it is busy: load "
has_line "which does not count" "$dir/srv.log" "; it leaves the round, which does not count against it"
equal "it does not count" "$before" "$(lost late)"

### Rules that cannot be
bad() { # text, rules
  { grep -v '^when:' "$dir/hours.yaml"; echo "when: {$2}"; } >"$dir/bad.yaml"
  says "when: {$2}" 3 "$1" "$build/fl-clientd" --check-config "$dir/bad.yaml"
}
bad "key 'when.hours': expected two different times, found '09:00-09:00'" "hours: [\"09:00-09:00\"]"
bad "key 'when.hours': expected two times of the day such as 22:00-06:00, 00:00 to 24:00, found 'nights'" "hours: nights"
bad "key 'when.free_memory': 1.1 TB of memory never are free: this host has" "free_memory: 1T"
finish
