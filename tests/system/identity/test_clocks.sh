#!/usr/bin/env bash
# Clocks that disagree: a client that is a day ahead joins and takes part, and both sides name the clocks; with certificates of
# twelve hours it trusts the server no more, and both sides say that a clock may be wrong; a client that is ten years behind
# waits for its time service. The federation goes on with the client whose clock is right.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
clientd=$build/fl-clientd
faketime=$(find /usr/lib /usr/lib64 -name libfaketime.so.1 2>/dev/null | head -n 1)
[ -n "$faketime" ] || skip "libfaketime (package faketime) is not there"
! ldd "$clientd" | grep -q 'lib[at]san' || skip "libfaketime does not go with a sanitizer"
synthetic "$dir/data" 3 --seed 3
serve() { # name, identity
  write_server "$1" "rounds: 1000000" "model: {preset: dnn60}" "listen: [\"127.0.0.1:0\"]" \
    "round: {start_clients: 1, min_responders: 1, retry: 20ms, lost_grace: 0s}" "identity: {hosts: [127.0.0.1]$2}"
  sed -i '/^insecure:/d' "$dir/$1.yaml"
  check "$1 gets its identity" "$build/fl-serverd" --init "$dir/$1.yaml"
  start_server "$1" || finish
}
# The library reads a time in the zone of the host.
ahead=(env TZ=UTC0 LD_PRELOAD="$faketime" FAKETIME=+25h)
behind=(env TZ=UTC0 LD_PRELOAD="$faketime" FAKETIME=-10y)
join() { # server, client, number of its data, a command in front
  ctl "$1" invite "$2" >"$dir/$2.line" 2>"$dir/invite.out" || note_failure "flctl invite: $(cat "$dir/invite.out")"
  says "$2 joins" 0 "joined 'integ' as '$2'" "${@:4}" "$clientd" --join --invitation "$dir/$2.line" \
    --data "$dir/data/client-00$3" --state-dir "$dir/$2.state" "$dir/$2.yaml"
  cp "$dir/says.out" "$dir/$2.joined"
  echo "reconnect: {first: 50ms, longest: 200ms}" >>"$dir/$2.yaml"
}
run_with() { # client, a command in front
  "${@:2}" "$clientd" "$dir/$1.yaml" >>"$dir/$1.out" 2>>"$dir/$1.log" &
  pid_of[$1]=$!
}
leave() { # client; the library leaves its clock behind
  local pid=${pid_of[$1]}
  stop "$1"
  rm -f "/dev/shm/faketime_shm_$pid" "/dev/shm/sem.faketime_sem_$pid"
}
accepted() { ctl "$1" clients --json | json "next(c['accepted'] for c in d if c['name'] == '$2')"; } # server, client
more() { [ "$(accepted "$1" "$2")" -gt "$3" ]; } # server, client, number
goes_on() { wait_for "further updates of $2" more "$1" "$2" "$(accepted "$1" "$2")"; } # server, client

### A day ahead, with certificates of a month: nothing is refused, and both sides know
serve srv ""
join srv right 0
lacks_line "a right clock is not mentioned" "$dir/right.joined" "clock"
lacks_line "nor on the server" "$dir/srv.log" "clocks differ"
run_client right
wait_for "an update" more srv right 0
join srv ahead 1 "${ahead[@]}"
has_line "the client names the clocks" "$dir/ahead.joined" "the clocks differ by 1 day (this host: "
has_line "and what to do" "$dir/ahead.joined" "); set the wrong one (timedatectl)"
has_line "the server names them, and the client" "$dir/srv.log" "client 'ahead' (127.0.0.1"
has_line "with both times" "$dir/srv.log" "the clocks differ by 1 day (this host: "
run_with ahead "${ahead[@]}"
wait_for "an update of the client that is ahead" more srv ahead 0

### Ten years behind: it waits, the others do not
join srv behind 2
run_with behind "${behind[@]}"
wait_for "the client to name its clock" in_log behind "is wrong: the certificate of this client is valid from "
has_line "and to wait" "$dir/behind.log" "waiting for the time service to set it (see timedatectl)"
equal "it is not connected" False "$(ctl srv clients --json | json "any(c['name'] == 'behind' and c['connected'] for c in d)")"
goes_on srv right
goes_on srv ahead
for name in behind ahead; do leave $name; done
stop right
stop srv

### A day ahead, with certificates of twelve hours
serve short ", validity: 12h"
join short near 0
join short far 1
run_client near
wait_for "an update" more short near 0
run_with far "${ahead[@]}"
wait_for "the client to name its clock" in_log far "expired: this machine's clock says "
has_line "it is the server's certificate" "$dir/far.log" "if the clock is right, have the server's certificate issued again"
wait_for "the server to name the clocks" in_log short "our certificate has expired or is not valid yet; compare the clocks of both hosts"
goes_on short near
leave far
stop near
stop short
finish
