#!/usr/bin/env bash
# Few descriptors: too few are refused at the start, and with just enough two hundred idle connections
# of strangers do not keep the clients out.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

real=$build
mkdir "$dir/few"
few() { # number: from now on the server has so many
  printf '#!/bin/sh\nulimit -n %s\nexec "%s/fl-serverd" "$@"\n' "$1" "$real" >"$dir/few/fl-serverd"
  chmod +x "$dir/few/fl-serverd"
}
synthetic "$dir/data" 2 --seed 3
write_server srv "model: {preset: dnn60}" "round: {start_clients: 2}" "heartbeat: 500ms"

### Too few
few 60
for how in "" --check-config; do
  # shellcheck disable=SC2086 # nothing is no argument
  says "60 are too few $how" 1 \
    "key 'round.start_clients': 60 descriptors allow 0 connections, but a round begins with 2 clients" \
    "$dir/few/fl-serverd" $how "$dir/srv.yaml"
done
write_server both "model: {preset: dnn60}" "round: {start_clients: 20}" "limits: {clients: 10}"
says "limits that exclude each other" 3 "expected at least round.start_clients, 20, found 10" \
  "$build/fl-serverd" --check-config "$dir/both.yaml"

### Just enough: room for 28 connections
few 120
room="120 descriptors allow 28 connections, limits.clients allows"
says "fewer than the file allows is said" 0 "srv.yaml: $room" "$dir/few/fl-serverd" --check-config "$dir/srv.yaml"
build=$dir/few
start_server srv
build=$real
has_line "it says what it has" "$dir/srv.log" "120 descriptors allow 28 connections"
mkfifo "$dir/idle.in"
"$python" "$srcdir/tests/system/greedy.py" "$address" idle 200 <"$dir/idle.in" >"$dir/idle.out" 2>&1 &
pid_of[idle]=$!
exec 9>"$dir/idle.in"
wait_for "two hundred idle connections" grep -q ready "$dir/idle.out"
printf '#!/bin/sh\nulimit -Sn 256\nexec "%s/fl-clientd" "$@"\n' "$real" >"$dir/few/fl-clientd"
chmod +x "$dir/few/fl-clientd"
build=$dir/few
start_client c0 "$dir/data/client-000" 9>&- # or the strangers would never see their end
build=$real
start_client c1 "$dir/data/client-001" 9>&-
wait_for "rounds beside them" at_round srv 5
equal "a client raises its own limit too" "$(ulimit -Hn)" \
  "$(awk '/^Max open files/ { print $4 }' "/proc/${pid_of[c0]}/limits")"
has_line "strangers made room" "$dir/srv.log" "connection closed: another connection needs its place"
equal "nobody was rejected" "0 0" "$(ctl srv clients --json | json '" ".join(str(c["rejected"]) for c in d)')"
exec 9>&-
wait_end idle
checks=$((checks + 1))
gone=$(sed -n 's/^closed \([0-9]*\) of 200$/\1/p' "$dir/idle.out")
[ "${gone:-0}" -ge 172 ] || note_failure "only '$gone' of 200 connections were closed"
stop srv
equal "the server ends well" 0 "$rc"
finish
