#!/usr/bin/env bash
# State of an earlier version, as it lay on the disk: this one takes it over, server and clients, and goes on where
# that one stopped. (test_store has the other way: state of a later version is refused.)
# tests/integ/state/DATE.tar.xz is what the programs of that day left of this federation after 3 rounds.
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"
command -v xz >/dev/null || skip "no xz"

synthetic "$dir/data" 2 --seed 3
federation() { # rounds
  write_server srv "rounds: $1" "algorithm: scaffold" "strategy: {fraction: {fraction: 1}}" "model: {preset: dnn60}" \
    "round: {start_clients: 2}" "evaluation: {every: 0}" "when_finished: stay"
  sed -i "s/^federation: .*/federation: stored/; s,^state_dir: .*,state_dir: \"$dir/srv.state\"," "$dir/srv.yaml"
}
for stored in "$srcdir"/tests/integ/state/*.tar.xz; do
  day=$(basename "$stored" .tar.xz)
  rm -rf "$dir"/*.state
  tar xJf "$stored" -C "$dir" --no-same-owner
  mv "$dir/server" "$dir/srv.state"
  mv "$dir/c0" "$dir/c0.state"
  mv "$dir/c1" "$dir/c1.state"

  ### Nothing is asked for, nothing is lost
  federation 3
  start_server srv
  equal "$day: what was committed stays" "1 2 3" \
    "$(ctl srv rounds --json | json '" ".join(str(r["round"]) for r in d)')"
  check "$day: the model is there" ctl srv export --output "$dir/model.safetensors"
  equal "$day: as it was" \
    "$(tensors "$dir/srv.state/models/round-000003.safetensors")" "$(tensors "$dir/model.safetensors")"
  stop srv

  ### It goes on, with what clients and server kept for each other
  federation 5
  start_server srv
  for i in 0 1; do start_client "c$i" "$dir/data/client-00$i"; done
  wait_for "$day: two more rounds" at_round srv 5
  equal "$day: both clients are in each of them" "2 2" \
    "$(ctl srv rounds --json | json '" ".join(str(r["responders"]) for r in d[-2:])')"
  for i in 0 1; do
    wait_end "c$i"
    equal "$day: exit code of client $i" 0 "$rc"
    lacks_line "$day: what client $i kept is good" "$dir/c$i.log" ".bad-"
  done
  stop srv
done
finish
