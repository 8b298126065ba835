#!/usr/bin/env bash
# The figures of what went over the network are all bytes between server and clients: a relay between them counts the
# same, until the last commit and what is said after it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 5
write_server srv "rounds: 4" "model: {preset: dnn60}" "round: {start_clients: 3}" \
  "evaluation: {every: 1, data: \"$dir/data/server\"}"
start_server srv
"$python" "$srcdir/tests/system/relay.py" "$dir/relay.sock" "${address#unix:}" "$dir/totals" >"$dir/relay.log" 2>&1 &
pid_of[relay]=$!
wait_for "the relay" test -s "$dir/totals"
address=unix:$dir/relay.sock
for i in 0 1 2; do start_client "c$i" "$dir/data/client-00$i"; done
wait_for "four rounds" at_round srv 4
for i in 0 1 2; do wait_end "c$i"; done
ctl srv rounds --json >"$dir/rounds"
ctl srv status --json >"$dir/status"
read -r up down <"$dir/totals"
sum() { json "sum(r['$1'] for r in d)" <"$dir/rounds"; }
equal "status has the sum of the bytes up" "$(sum wire_up_bytes)" "$(json 'd["wire_up_bytes"]' <"$dir/status")"
equal "and of those down" "$(sum wire_down_bytes)" "$(json 'd["wire_down_bytes"]' <"$dir/status")"
# After the last commit: acknowledgements, evaluations of the last model, the end.
full=$(json 'd[0]["downlink_bytes"]' <"$dir/rounds")
check "no byte up is counted twice" test "$(sum wire_up_bytes)" -le "$up"
check "none up is left out" test "$(sum wire_up_bytes)" -ge $((up - 30000))
check "no byte down is counted twice" test "$(sum wire_down_bytes)" -le "$down"
check "none down is left out" test "$(sum wire_down_bytes)" -ge $((down - 30000))
check "payloads are part of them" test "$(sum wire_up_bytes)" -gt "$(sum uplink_bytes)"
check "those down, too" test "$(sum wire_down_bytes)" -gt "$(sum downlink_bytes)"
check "each round has its own" test "$(json 'min(r["wire_down_bytes"] - r["downlink_bytes"] for r in d)' <"$dir/rounds")" -gt 0
check "and no other's" test "$(json 'max(r["wire_down_bytes"] for r in d)' <"$dir/rounds")" -lt $((full + 30000))
stop srv
kill_hard relay
finish
