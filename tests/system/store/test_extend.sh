#!/usr/bin/env bash
# What happens behind the last round, and who tells what of its data: a federation is extended and its
# clients are there again without anybody's help; means of samples leave only a client that agreed.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3
options=("model: {preset: dnn60}" "training: {epochs: 1}" "round: {start_clients: 3, min_responders: 3}")

### All rounds are done: the clients stay, also in a restart without more, and take part when there are more
write_server srv "rounds: 2" "${options[@]}"
start_server srv
for i in 0 1 2; do
  start_client "c$i" "$dir/data/client-00$i" "exit_when_done: no" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 24h}"
done
wait_for "two rounds" at_round srv 2
for i in 0 1 2; do
  wait_for "c$i to say that it stays" in_log "c$i" "all rounds are done; staying connected"
done
check "they are still connected" connected srv 3
kill_hard srv
start_server srv
wait_for "all three, although there is nothing to do" connected srv 3
stop srv
equal "the server ends well" 0 "$rc"
sed -i 's/^rounds: 2/rounds: 5/' "$dir/srv.yaml"
start_server srv
wait_for "the new rounds" at_round srv 5
equal "all took part in each" "3 3 3 3 3" \
  "$(ctl srv rounds --last 0 --json | json '" ".join(str(r["responders"]) for r in d)')"
for i in 0 1 2; do
  check "c$i was never restarted" running "c$i"
  has_line "c$i says when it asks next" "$dir/c$i.log" "reconnecting in"
done
sed -i 's/^rounds: 5/rounds: 6/' "$dir/srv.yaml"
stop srv
sed -i 's/^exit_when_done: no/exit_when_done: yes/' "$dir/c0.yaml"
stop c0
run_client c0
start_server srv
wait_for "one more round" at_round srv 6
wait_end c0
equal "who is told to goes with the last round" 0 "$rc"
stop srv
for i in 1 2; do
  stop "c$i"
  equal "c$i ends well" 0 "$rc"
done

### A server that exits leaves clients that ask for it
write_server leaves "rounds: 1" "when_finished: exit" "${options[@]}"
start_server leaves
for i in 0 1 2; do
  start_client "l$i" "$dir/data/client-00$i" "exit_when_done: no"
done
wait_end leaves
equal "it exits" 0 "$rc"
sed -i 's/^rounds: 1/rounds: 2/' "$dir/leaves.yaml"
start_server leaves
wait_end leaves
equal "it exits again, with all of them" 0 "$rc"
for i in 0 1 2; do
  check "l$i stays" running "l$i"
  stop "l$i"
done

### Means of samples: only with a yes
write_server mix "rounds: 1" "algorithm: fedmix" "model: {preset: dnn60}" "round: {start_clients: 2, min_responders: 2}"
start_server mix
start_client shy "$dir/data/client-000" "summaries: no" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 24h}"
wait_for "the server to hear why" in_log mix "client 'shy' cannot take part: solver 'fedmix' sends means of this client's samples to all other clients"
has_line "the client says what to do" "$dir/shy.log" "the configuration of this client does not allow that ('summaries: yes')"
lacks_line "nothing was told of its data" "$dir/shy.log" "sent the data summary"
wait_for "it to be away for long" in_log shy "reconnecting in"
start_client m1 "$dir/data/client-001" "summaries: yes"
start_client m2 "$dir/data/client-002" "summaries: yes"
wait_for "a round of those who agreed" at_round mix 1
equal "without the one that did not" 0 "$(ctl mix clients --json | json 'sum(c["accepted"] for c in d if c["name"] == "shy")')"
stop shy
# A client decides of how many samples each mean is, and sends one summary in its life.
stop mix
stop m1
stop m2
write_server small "rounds: 1" "strategy: {solver: {policy: fedmix, group: 9}}" "model: {preset: dnn60}"
start_server small
start_client fresh "$dir/data/client-001" "summaries: yes" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 24h}"
wait_for "the server to read that its groups are small" \
  in_log small "client 'fresh' cannot take part: the server requests means of 9 samples each (strategy.solver.group), fewer than 'least_group' of this client, 10"
has_line "so does the client's operator" "$dir/fresh.log" "cannot take part in this federation, leaving: the server requests means of 9 samples each"
check "nothing was sent" test ! -e "$dir/fresh.state/summary.bin"
stop fresh
stop small
write_server regroup "rounds: 1" "strategy: {solver: {policy: naivemix, group: 20}}" "model: {preset: dnn60}"
start_server regroup
cp "$dir/m1.state/summary.bin" "$dir/summary.bin"
start_client m1 "$dir/data/client-001" "summaries: yes" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 24h}"
wait_for "another server to read that the samples were summarised otherwise" \
  in_log regroup "client 'm1' cannot take part: the server requests means with strategy.solver.group 20, and this client sent its data summary with 0"
check "the summary is the one that was sent" cmp "$dir/summary.bin" "$dir/m1.state/summary.bin"
stop m1
stop regroup
write_server plain "rounds: 1" "model: {preset: dnn60}"
start_server plain
start_client other "$dir/data/client-000" "summaries: no"
wait_for "a federation that wants no means takes it" at_round plain 1
finish
