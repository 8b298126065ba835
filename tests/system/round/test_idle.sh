#!/usr/bin/env bash
# A middlebox that drops silent connections: heartbeats keep a connection open, and so do pings where heartbeats are rarer than
# its timeout; without both it is dropped. A peer that goes silent without closing is found by a ping.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 1 --seed 3
relay() { # name: a fresh relay to the server; sets $address
  mkdir "$dir/$1"
  "$python" "$srcdir/tests/system/idle_relay.py" "$dir/$1.sock" "${real#unix:}" 1500 "$dir/$1" >"$dir/$1.out" 2>&1 &
  pid_of[$1]=$!
  address=unix:$dir/$1.sock
  wait_for "the relay" test -S "$dir/$1.sock"
}
serve() { # heartbeat
  rm -rf "$dir/srv.state"
  write_server srv "model: {preset: dnn60}" "rounds: 1" "round: {start_clients: 2}" "heartbeat: $1"
  start_server srv || finish
  real=$address
}
one() { ctl srv status | grep -qF "1 connected"; }

### Rare heartbeats
serve 10m
relay silent
start_client a "$dir/data/client-000" "reconnect: {first: 50ms, longest: 200ms, ping_after: 0s}"
wait_for "without pings a silent connection is dropped" test -s "$dir/silent/dropped"
stop a
relay pinged
start_client b "$dir/data/client-000" "reconnect: {first: 50ms, longest: 200ms, ping_after: 200ms}"
wait_for "with pings one lasts" test -s "$dir/pinged/survived"
check "it is a session" one

### A peer that goes silent
stop pinged
relay deaf
sed -e "s|^server:.*|server: \"$address\"|" -e 's/ping_after: 200ms/ping_after: 200ms, ping_limit: 1s/' "$dir/b.yaml" >"$dir/c.yaml"
stop b
run_client c
wait_for "the session" one
touch "$dir/deaf/deaf"
lost() { grep -qF "timed out: the connection is silent and a ping was not answered" "$dir/c.log"; }
wait_for "the client to find that" lost
rm "$dir/deaf/deaf"
joined() { [ "$(grep -cF "joined federation" "$dir/c.log")" -ge 2 ]; }
wait_for "the client to reconnect" joined
stop c
stop srv

### Frequent heartbeats alone do it too
serve 300ms
relay beating
start_client d "$dir/data/client-000" "reconnect: {first: 50ms, longest: 200ms, ping_after: 0s}"
wait_for "with heartbeats one lasts" test -s "$dir/beating/survived"
finish
