#!/usr/bin/env bash
# A client that sends its update a byte at a time moves, and is a straggler once half of the uploads are in: the round
# does not wait for it until round.upload_deadline. A slow client that keeps round.straggler_rate is waited for.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3
round="round: {start_clients: 3, min_responders: 2, straggler_factor: 2, straggler_min: 3s, upload_deadline: 1h"
lost_of() { ctl "$1" clients --json | json "next(c['lost'] for c in d if c['name'] == '$2')"; }
with_slow() { # server, name and rate of the slow client, line of the round's options
  write_server "$1" "rounds: 1" "model: {preset: dnn60}" "heartbeat: 1s" "when_finished: stay" "$4"
  start_server "$1"
  start_client "$1-0" "$dir/data/client-000"
  start_client "$1-1" "$dir/data/client-001"
  start_client "$2" "$dir/data/client-002" "limits: {upload_rate: $3}"
  wait_for "the round" at_round "$1" 1
}

with_slow srv trickles 1B/s "$round, straggler_rate: 500B/s}"
equal "two of three are aggregated" 2 "$(ctl srv rounds --last 0 --json | json 'd[0]["responders"]')"
equal "the one that trickles is lost" 1 "$(lost_of srv trickles)"
has_line "the server's log says why" "$dir/srv.log" "timed out, upload stalled or slower than "
has_line "and whose upload it was" "$dir/srv.log" " ms: trickles"
equal "flctl says it, too" True "$(ctl srv clients --json |
  json '"(round.straggler_factor, round.straggler_rate)" in next(str(c) for c in d if c["name"] == "trickles")')"
stop srv

# 5720 bytes take it 12 s, four times the straggler timeout.
with_slow fair slow 500B/s "$round, straggler_rate: 100B/s}"
equal "a slow upload is waited for" 3 "$(ctl fair rounds --last 0 --json | json 'd[0]["responders"]')"
finish
