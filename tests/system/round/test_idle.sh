#!/usr/bin/env bash
# A middlebox that drops silent connections: heartbeats keep a connection open, and so do pings of either side where heartbeats
# are rarer than its timeout; without both it is dropped. A peer that goes silent without closing is found by a ping. Pings keep
# the connections of flctl and of a client that joins while the server does not answer.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 1 --seed 3
relay() { # name, target: a fresh relay to the server; sets $address
  mkdir "$dir/$1"
  "$python" "$srcdir/tests/system/idle_relay.py" "$dir/$1.sock" "${2:-${real#unix:}}" 1500 "$dir/$1" >"$dir/$1.out" 2>&1 &
  pid_of[$1]=$!
  address=unix:$dir/$1.sock
  wait_for "the relay" test -S "$dir/$1.sock"
}
serve() { # heartbeat, lines of YAML…
  rm -rf "$dir/srv.state"
  write_server srv "model: {preset: dnn60}" "rounds: 1" "round: {start_clients: 2}" "heartbeat: $1" "${@:2}"
  start_server srv || finish
  real=$address
}
one() { ctl srv status | grep -qF "1 connected"; }

### Rare heartbeats
serve 10m "limits: {ping_after: 0s}"
relay silent
start_client a "$dir/data/client-000" "reconnect: {first: 50ms, longest: 200ms, ping_after: 0s}"
wait_for "without pings a silent connection is dropped" test -s "$dir/silent/dropped"
stop a
relay pinged
start_client b "$dir/data/client-000" "reconnect: {first: 50ms, longest: 200ms, ping_after: 200ms}"
wait_for "with pings one lasts" test -s "$dir/pinged/survived"
check "it is a session" one

### The server alone
stop b
stop srv
serve 10m "limits: {ping_after: 200ms}"
relay served
start_client e "$dir/data/client-000" "reconnect: {first: 50ms, longest: 200ms, ping_after: 0s}"
wait_for "with pings of the server one lasts, too" test -s "$dir/served/survived"
check "it is a session" one
stop e
stop srv
serve 10m "limits: {ping_after: 0s}"

### A peer that goes silent
relay deaf
sed -e "s|^server:.*|server: \"$address\"|" -e 's/ping_after: 200ms/ping_after: 200ms, ping_limit: 1s/' "$dir/b.yaml" >"$dir/c.yaml"
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
stop d
stop srv

### flctl while the server does not answer, and joining: a disk that hangs makes both wait
if ldd "$build/fl-serverd" | grep -qE 'lib(a|t|m)san'; then
  echo "not run: a disk that hangs (this build has a sanitizer)"
  finish
fi
${CC:-cc} -shared -fPIC -O1 -o "$dir/hang.so" "$srcdir/tests/system/hang.c" -ldl >"$dir/cc.out" 2>&1 ||
  { echo "not run: a disk that hangs (no C compiler)"; finish; }
mkdir "$dir/join"
"$python" "$srcdir/tests/system/idle_relay.py" 127.0.0.1:0 "$dir/ca.sock" 1500 "$dir/join" >"$dir/join.out" 2>&1 &
pid_of[join]=$!
wait_for "the relay" test -s "$dir/join/port"
port=$(cat "$dir/join/port")
cat >"$dir/ca.yaml" <<TEXT
federation: integ
state_dir: "$dir/ca.state"
listen: ["unix:$dir/ca.sock"]
limits: {ping_after: 0s}
model: {preset: dnn60}
identity: {hosts: ["127.0.0.1:$port", "localhost:1", "[2001:db8::7]:443"]}
TEXT
check "an identity" "$build/fl-serverd" --init "$dir/ca.yaml"
FL_HANG=$dir/hang LD_PRELOAD=$dir/hang.so start_server ca || finish
mkdir "$dir/credentials"
"$build/flctl" -d "$dir/ca.state" invite edge >"$dir/credentials/invitation" 2>"$dir/explained" || note_failure "invite"
has_line "an invitation has the ports of its hosts" "$dir/credentials/invitation" "fl1:127.0.0.1:$port,localhost:1,[2001:db8::7]:443:integ:"
invite() { # name, ping after
  timeout "$patience" "$build/flctl" --socket "$dir/$1.sock" --ping-after "$2" invite "$1" >"$dir/$1.flctl" 2>&1
}
echo ca.state/identity >"$dir/hang"
relay quiet "$dir/ca.state/admin.sock"
invite quiet 10m
has_line "without pings the connection of flctl is dropped" "$dir/quiet.flctl" "UNAVAILABLE: the connection is closed"
relay asking "$dir/ca.state/admin.sock"
invite asking 200ms &
pid_of[flctl]=$!
printf 'server: "127.0.0.1:%s"\nname: edge\nstate_dir: "%s"\ndata: {path: "%s"}\nexit_when_done: no\n' "$port" "$dir/edge.state" \
  "$dir/data/client-000" >"$dir/edge.yaml"
echo "reconnect: {first: 50ms, longest: 200ms, ping_after: 200ms}" >>"$dir/edge.yaml"
CREDENTIALS_DIRECTORY=$dir/credentials run_client edge
wait_for "with pings it lasts" test -s "$dir/asking/survived"
wait_for "and that of a client that joins" test -s "$dir/join/survived"
equal "which was not dropped before" no "$([ -e "$dir/join/dropped" ] && echo yes || echo no)"
rm "$dir/hang"
wait_end flctl
equal "flctl has its answer" 0 "$rc"
has_line "the invitation" "$dir/asking.flctl" "fl1:127.0.0.1:$port"
wait_for "the client to join" grep -qF "joined federation" "$dir/edge.log"
stop edge
stop ca
finish
