#!/usr/bin/env bash
# What went over the wire, as the records of rounds have it, against a proxy between client and server that counts for
# itself: joining, TLS handshakes, HTTP/2, control messages and payloads. While the last upload is on its way the proxy
# holds back what the server sends, so that the client is silent at the commit: up, both counted the same bytes then; down,
# what lies between is the answer to that upload. A restarted server counts from 0.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 1 --seed 3
model=$((4 * (60 * 200 + 200 + 200 * 10 + 10)))
extra=20000 # bytes of a round beside its payload, at most; joining and two handshakes take less than 10000

configure() { # rounds
  write_server srv "listen: [\"127.0.0.1:0\"]" "identity: {hosts: [127.0.0.1]}" "rounds: $1" "when_finished: stay" \
    'model: {input: [60], layers: ["dense 200", "relu", "dense 10"]}' "heartbeat: 1h" \
    "round: {start_clients: 1, min_responders: 1, retry: 20ms}"
  sed -i '/^insecure:/d' "$dir/srv.yaml"
}
start_proxy() { # name, bytes: where it holds; sets $through
  "$python" "$srcdir/tests/system/counting_proxy.py" "${address##*:}" "$2" >"$dir/$1.out" 2>"$dir/$1.log" &
  pid_of[$1]=$!
  wait_for "the proxy $1" grep -q '^listening ' "$dir/$1.out"
  through=$(sed -n 's/^listening //p' "$dir/$1.out")
}
counted() { # proxy, column
  tail -n 1 "$dir/$1.out" | cut -d' ' -f"$2"
}
of_rounds() { ctl srv rounds --last 0 --json | json "$1"; } # expression over the rounds d
read_down() { [ "$(counted "$1" 2)" -ge "$2" ]; } # proxy, bytes

# proxy, bytes up and down by the records of rounds
agree() {
  local up
  up=$(counted "$1" 1)
  echo "$1: up $2 by the server, $up by the proxy; down $3 by the server, $(counted "$1" 2) by the proxy"
  # The end of the upload's call may come behind the last byte of the update.
  check "$1: no byte to the server is missing" test "$2" -ge $((up - 60))
  check "$1: none was counted twice" test "$2" -le "$up"
  check "$1: no byte from the server is missing" test "$3" -ge "$(counted "$1" 3)"
  # The record may be ahead of what has come through the proxy.
  wait_for "the proxy $1 to have read what the server wrote" read_down "$1" "$3"
  check "$1: behind the last upload lies its answer only" test "$(($(counted "$1" 2) - $(counted "$1" 3)))" -le 1000
}

configure 3
says "the server's identity" 0 "" "$build/fl-serverd" --init "$dir/srv.yaml"
start_server srv || finish
start_proxy first $((3 * model))
ctl srv invite edge-001 2>"$dir/invite.out" | sed "s/^\(fl1:[^:]*\):[0-9]*:/\1:$through:/" >"$dir/line"
says "joining through the proxy" 0 "joined 'integ' as 'edge-001'" sh -c "'$build/fl-clientd' --join --data '$dir/data/client-000' \
  --state-dir '$dir/edge-001.state' '$dir/edge-001.yaml' <'$dir/line'"
run_client edge-001
wait_for "three rounds" at_round srv 3
ctl srv rounds --last 0 --json >"$dir/rounds.json"
agree first "$(of_rounds 'sum(r["wire_up_bytes"] for r in d)')" "$(of_rounds 'sum(r["wire_down_bytes"] for r in d)')"
equal "each round: its payload, and some more" True \
  "$(of_rounds "all(r['uplink_bytes'] == r['downlink_bytes'] == $model for r in d) and \
    all($model < r[k] < $model + $extra for r in d for k in ('wire_up_bytes', 'wire_down_bytes'))")"
equal "all rounds: flctl status" "$(of_rounds '"%d %d" % (sum(r["wire_up_bytes"] for r in d), sum(r["wire_down_bytes"] for r in d))')" \
  "$(status_of srv wire_up_bytes) $(status_of srv wire_down_bytes)"

### A restart: the first record behind it has what went over the wire since
kill_hard edge-001 2>/dev/null
kill_hard srv 2>/dev/null
configure 4
start_server srv || finish
equal "the records stay as they were" "$(cat "$dir/rounds.json")" "$(ctl srv rounds --last 0 --json)"
start_proxy second "$model"
sed -i "s/^server:.*/server: \"127.0.0.1:$through\"/" "$dir/edge-001.yaml"
run_client edge-001
wait_for "the fourth round" at_round srv 4
agree second "$(of_rounds 'd[3]["wire_up_bytes"]')" "$(of_rounds 'd[3]["wire_down_bytes"]')"
finish
