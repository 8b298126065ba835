#!/usr/bin/env bash
# A client that is revoked in the middle of a round: its sessions end, what was accepted of it is not aggregated, also
# when the server is killed right after; the others and their updates are not touched. For each verb.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/failures.sh
. "$(dirname "$0")/../failures.sh"
synthetic "$dir/data" 2 --seed 3
free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# The third one trains until the gate is opened, and fails then: so long the round stays open.
# shellcheck disable=SC2016
printf 'until [ -e "%s/gate" ]; do sleep 0.05; done; exit 3\n' "$dir" >"$dir/hold.sh"

# A federation of two that answer and one that holds; round 1 is open and edge-1 and edge-2 are accepted.
begin() { # name
  local name=$1 port k
  rm -f "$dir/gate"
  port=$(free_port)
  write_server "$name" "listen: [\"127.0.0.1:$port\"]" "rounds: 1" "model: {preset: dnn60}" "algorithm: fedavg-1.0" \
    "round: {start_clients: 3, min_clients: 1, min_responders: 1, straggler_factor: 0}" "checkpoints: {keep: 1}"
  sed -i '/^insecure:/d' "$dir/$name.yaml"
  check "$name: init" "$build/fl-serverd" --init "$dir/$name.yaml"
  start_server "$name" || finish
  for k in 1 2 3; do
    ctl "$name" invite "edge-$k" >"$dir/line" 2>/dev/null
    if [ "$k" -eq 3 ]; then
      write_client "$name-$k" "" "name: edge-3" "exit_when_done: no" "trainer: command" \
        "command: {program: [/bin/sh, \"$dir/hold.sh\"], samples: 10, time_limit: 1h, first_limit: 1h}"
    else
      write_client "$name-$k" "$dir/data/client-00$((k - 1))" "name: edge-$k" "exit_when_done: no" "reconnect: {first: 50ms, longest: 13s}"
    fi
    sed -i '/^insecure:/d' "$dir/$name-$k.yaml"
    check "$name: edge-$k joins" "$build/fl-clientd" --join "$dir/$name-$k.yaml" <"$dir/line"
    run_client "$name-$k"
  done
  wait_for "$name: two updates" accepted "$name" 2
}
accepted() { # name, number
  [ "$(grep -c "update of .* accepted\|accepted 1\.1" "$dir/$1.log")" -ge "$2" ] ||
    [ "$(ctl "$1" clients --json | json '[c["state"] for c in d].count("accepted")')" = "$2" ]
}
connected() { ctl "$1" status | grep -qF "$2 connected"; } # name, number
# What came of the round.
outcome() { # name
  touch "$dir/gate"
  wait_for "$1: the round" at_round "$1" 1
  ctl "$1" rounds --last 0 --json | json '"%d of %d" % (d[0]["responders"], d[0]["selected"])'
}
end() { # name
  local k
  for k in 1 2 3; do stop "$1-$k"; done
  stop "$1"
}

### As it is without
begin plain
equal "two of three are counted" "2 of 3" "$(outcome plain)"
end plain

### Revoked, evicted, disabled
for verb in revoke evict disable; do
  begin "$verb"
  says "$verb: it is said what follows" 0 "what it was uploading is not aggregated" \
    "$build/flctl" --state-dir "$dir/$verb.state" "$verb" edge-1 --yes --reason "lost on a train"
  wait_for "$verb: the client to hear why" in_log "$verb-1" "lost on a train"
  wait_for "$verb: that it waits" in_log "$verb-1" "reconnecting in"
  case $verb in # by name, for test_failures.sh looks whether each row is provoked
    revoke) documented_log revoked-revoke "$dir/revoke-1.log"; documented_log revoked-revoke-there "$dir/revoke.log" ;;
    evict) documented_log revoked-evict "$dir/evict-1.log"; documented_log revoked-evict-there "$dir/evict.log" ;;
    disable) documented_log revoked-disable "$dir/disable-1.log"; documented_log revoked-disable-there "$dir/disable.log" ;;
  esac
  equal "$verb: one of three is counted" "1 of 3" "$(outcome "$verb")"
  known=yes
  [ "$verb" != revoke ] || known=no
  equal "$verb: its record stays: $known" "$known" \
    "$(ctl "$verb" clients --json | json '"yes" if [c for c in d if c["name"] == "edge-1" and c["selected"] == 1] else "no"')"
  says "$verb: the others are there" 0 "2 connected" "$build/flctl" --state-dir "$dir/$verb.state" status
  if [ "$verb" != disable ]; then
    check "$verb: the client asks rarely" grep -qE "reconnecting in (9[0-9]{2}|10[0-9]{2}) s" "$dir/$verb-1.log"
  else
    check "disable: the client asks soon" grep -qE "reconnecting in 1[0-3] s" "$dir/$verb-1.log"
    says "enable says what to expect" 0 "within a minute" "$build/flctl" --state-dir "$dir/$verb.state" enable edge-1
    wait_for "the client that is enabled again" connected "$verb" 3 # within `longest`, not `after_refusal`
  fi
  end "$verb"
done

### By its certificate, and the server is killed right after
begin killed
serial=$(ctl killed certificates edge-1 --json | json 'd[0]["serial"]')
ctl killed revoke --serial "$serial" --yes --reason "lost on a train" >/dev/null
kill_hard killed
start_server killed
equal "also after a kill one of three is counted" "1 of 3" "$(outcome killed)"
end killed
finish
