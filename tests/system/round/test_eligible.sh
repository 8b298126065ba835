#!/usr/bin/env bash
# round.eligible: only clients with the labels take part, and rounds wait for the hours; flctl says why.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3
asks() { # name, exit code, text, arguments of flctl…
  says "$1" "$2" "$3" "$build/flctl" --state-dir "$dir/e.state" "${@:4}"
}
of() { ctl e clients --json | json "next(c['$2'] for c in d if c['name'] == '$1')"; } # client, key
start() { # YAML of eligible
  write_server e "rounds: 2" "model: {preset: dnn60}" "$1"
  start_server e
}

### Labels
start "round: {eligible: {labels: {site: [berlin, paris]}}}"
start_client rome "$dir/data/client-000" "labels: {site: rome}" "exit_when_done: no"
wait_for "the client without the label" connected e 1
asks "that no client has them" 0 "0 of 1 clients are connected, with the labels of round.eligible; all 1 connected clients do not have the labels of round.eligible (site=berlin, site=paris)" why
has_line "a warning in the log" "$dir/e.log" "no connected client has the labels of round.eligible (site=berlin, site=paris): no round starts until one connects"
asks "the reason for people" 0 "not selected now: its labels do not match round.eligible.labels: site is 'rome'" clients
equal "and as JSON" "its labels do not match round.eligible.labels: site is 'rome'" "$(of rome ineligible)"
start_client paris "$dir/data/client-001" "labels: {site: paris, rack: \"7\"}" "exit_when_done: no"
wait_for "two rounds" at_round e 2
equal "only the client with the label took part" "0 2" "$(of rome selected) $(of paris selected)"
equal "it is eligible" None "$(of paris ineligible)"
stop rome
stop paris
stop e

### Hours that begin hours from now, in a time zone of their own
now=$(date -u +%s)
hours=$(date -u -d "@$((now + 3600 + 7 * 3600))" +%H:%M)-$(date -u -d "@$((now + 3600 + 9 * 3600))" +%H:%M)
rm -rf "$dir/e.state"
start "round: {eligible: {hours: [\"$hours\"], utc_offset: +01:00}}"
start_client any "$dir/data/client-002" "exit_when_done: no"
wait_for "the client" connected e 1
asks "why says when they begin" 0 "round 1 is IDLE: outside round.eligible.hours, the next begin at ${hours%-*} (utc_offset +01:00), in " why
equal "so does the list of clients" "outside round.eligible.hours: the next begin at ${hours%-*} (utc_offset +01:00), in" \
  "$(of any ineligible | sed 's/ in .*/ in/')"
has_line "and the log" "$dir/e.log" "round 1 waits for round.eligible.hours: the next begin at ${hours%-*}"
stop e

### Without them the same federation continues, and the change is recorded
start "round: {start_clients: 1}"
wait_for "two rounds" at_round e 2
asks "the change is recorded" 0 "from round 1 on: round.eligible.hours '$hours' -> ''" rounds
finish
