#!/usr/bin/env bash
# Going back to an older model: the wish is on disk when flctl has its answer, whatever becomes of the
# server then; the model of that round is what comes next, and what clients hold of later rounds is not
# taken.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 3
common=("seed: 4" "model: {preset: dnn60}" "training: {learning_rate: 0.02}"
  "round: {start_clients: 2, min_responders: 2, lost_grace: 600s, retry: 100ms}" "checkpoints: {keep: 8}")
model() { printf '%s/%s.state/models/round-%06d.safetensors' "$dir" "$1" "$2"; }
flctl() { # server, arguments…
  local name=$1
  shift
  "$build/flctl" --state-dir "$dir/$name.state" "$@"
}
client_is() { # server, client, state
  [ "$(ctl "$1" clients --json | json "next(c['state'] for c in d if c['name'] == '$2')")" = "$3" ]
}
started() { [ "$(grep -c "federation 'integ' runs" "$dir/$1.log")" -ge "$2" ]; }
four_rounds() { # server, lines…
  local name=$1
  write_server "$name" "rounds: 4" "${common[@]}" "${@:2}"
  start_server "$name" || finish
  for i in 0 1; do start_client "$name-$i" "$dir/data/client-00$i"; done
  wait_for "$name: four rounds" at_round "$name" 4
  for i in 0 1; do stop "$name-$i"; done
}

### What cannot be done changes nothing
evaluated="evaluation: {data: \"$dir/data/client-000\"}"
four_rounds fed "algorithm: fedavg" "$evaluated"
back=("$build/flctl" --state-dir "$dir/fed.state" rollback)
says "which round?" 2 "expected the round to go back to" "${back[@]}"
says "no number" 2 "expected a number, found 'far'" "${back[@]}" far
says "a round to come" 1 "rollback to round 7 refused: no such round is committed; rounds with a checkpoint: 4, 3, 2, 1" \
  "${back[@]}" 7
says "the last one" 1 "it is the last committed round" "${back[@]}" 4
cp "$(model fed 1)" "$dir/good"
printf 'x' | dd of="$(model fed 1)" bs=1 seek=3000 conv=notrunc status=none
says "a damaged one" 1 "rollback to round 1 refused: " "${back[@]}" 1
mv "$dir/good" "$(model fed 1)"
equal "the server goes on as it was" 4 "$(status_of fed rounds_committed)"
ctl fed rounds --abandoned >"$dir/fed.abandoned"
equal "nothing was abandoned" "no round was abandoned" "$(cat "$dir/fed.abandoned")"
equal "nor in JSON" "[]" "$(ctl fed rounds --abandoned --json)"
figures=$(ctl fed rounds --last 0 --json | json "[(r['accuracy'], r['loss']) for r in d[2:]]")
stop fed

### Killed right after the answer, while round 5 is open and clients hold results of it
write_server fed "rounds: 6" "${common[@]}" "algorithm: fedavg" "$evaluated"
start_server fed || finish
second=$(tensors "$(model fed 2)")
fourth=$(tensors "$(model fed 4)")
run_client fed-0
wait_for "the first client of round 5" connected fed 1
kill -STOP "${pid_of[fed-0]}"
run_client fed-1
wait_for "an accepted update of round 5" client_is fed fed-1 accepted
check "it is asked for" flctl fed rollback 2
kill_hard fed
start_server fed || finish
has_line "the start does it" "$dir/fed.log" "rolled back to round 2: rounds 3 to 4 are abandoned"
has_line "and drops the open attempt" "$dir/fed.log" \
  "round 5: attempt 1 discarded with 1 accepted updates, which were made for an abandoned model"
equal "two rounds count" 2 "$(status_of fed rounds_committed)"
check "the model of now" flctl fed export --output "$dir/now"
equal "is that of round 2" "$second" "$(tensors "$dir/now")"
check "nothing is left of round 5" test -z "$(ls "$dir/fed.state/spool")"
kill -CONT "${pid_of[fed-0]}"
wait_for "the rounds after it" at_round fed 6
equal "the checkpoint of round 2 is what it was" "$second" "$(tensors "$(model fed 2)")"
equal "the newest abandoned one is beside the others" "$fourth" "$(tensors "$(model fed 4).generation-1")"
ctl fed rounds --last 0 --json >"$dir/fed.rounds.json"
check "rounds 3 to 6 have attempts that no round had before" json \
  "[r['attempt'] for r in d] == [1, 1, 2, 2, 2, 1]" <"$dir/fed.rounds.json"
check "the record says so in JSON" json \
  "d[2]['changes'] == [\"the model '4' -> '2: rolled back to round 2, rounds 3 to 4 abandoned'\"]" <"$dir/fed.rounds.json"
ctl fed rounds >"$dir/fed.rounds"
has_line "and for people" "$dir/fed.rounds" \
  "* from round 3 on: the model '4' -> '2: rolled back to round 2, rounds 3 to 4 abandoned'"
ctl fed rounds --abandoned --json >"$dir/fed.abandoned.json"
check "those that were given up are listed" json "[(r['generation'], r['round'], r['attempt']) for r in d] \
  == [(1, 3, 1), (1, 4, 1)] and all(r['abandoned_ms'] >= r['ended_ms'] > 0 for r in d)" <"$dir/fed.abandoned.json"
equal "with the accuracies and losses that they had" "$figures" "$(json "[(r['accuracy'], r['loss']) for r in d]" <"$dir/fed.abandoned.json")"
check "that were measured" json "len([r for r in d if r['accuracy'] is not None]) == 2" <"$dir/fed.abandoned.json"
check "and what gave them up" json \
  "{r['abandoned_by'] for r in d} == {'rolled back to round 2, rounds 3 to 4 abandoned'}" <"$dir/fed.abandoned.json"
check "no round that counts is among those" json \
  "not any('abandoned_by' in r or 'generation' in r for r in d) and len(d) == 6" <"$dir/fed.rounds.json"
equal "the newest of them" "[4]" "$(ctl fed rounds --abandoned --last 1 --json | json "[r['round'] for r in d]")"
ctl fed rounds --abandoned >"$dir/fed.abandoned"
equal "for people: a heading and two lines" 3 "$(wc -l <"$dir/fed.abandoned")"
fourth_accuracy=$(json "'%.4f' % d[1]['accuracy']" <"$dir/fed.abandoned.json")
check "of generation, round, attempt, accuracy, times and rollback" grep -qE \
  "^ +1 +4 +1 +$fourth_accuracy [0-9TZ:-]{20}  [0-9TZ:-]{20}  rolled back to round 2, rounds 3 to 4 abandoned\$" \
  "$dir/fed.abandoned"
ctl fed checkpoints >"$dir/fed.kept"
has_line "it is listed" "$dir/fed.kept" "abandoned: models/round-000004.safetensors.generation-1, until unpinned"
check "and unpinned" flctl fed unpin --round 4
check "then it is gone" test ! -e "$(model fed 4).generation-1"
says "once" 1 "the checkpoint of round 4 is not pinned" "$build/flctl" --state-dir "$dir/fed.state" unpin --round 4
for i in 0 1; do stop "fed-$i"; done

### The server starts again by itself; the clients come back
check "once more" flctl fed rollback --json 3
wait_for "it runs again" started fed 4
wait_for "and is behind round 3" in_log fed "rolled back to round 3: rounds 4 to 6 are abandoned"
for i in 0 1; do run_client "fed-$i"; done
wait_for "the rounds come again" at_round fed 6
stop fed
equal "it ends well" 0 "$rc"
for i in 0 1; do stop "fed-$i"; done

### State that both sides keep: only with --force, and then it begins anew
four_rounds kept "algorithm: scaffold"
back=("$build/flctl" --state-dir "$dir/kept.state" rollback)
says "not without force" 1 "with 'scaffold', clients and the server keep state between rounds" "${back[@]}" 2
equal "nothing happened" 4 "$(status_of kept rounds_committed)"
check "with force" "${back[@]}" --force 2
wait_for "it is done" in_log kept "rolled back to round 2"
has_line "what is kept begins anew" "$dir/kept.log" "state of the solver on the server and on clients is reset"
for i in 0 1; do run_client "kept-$i"; done
wait_for "the rounds after it" at_round kept 4
stop kept
for i in 0 1; do stop "kept-$i"; done
finish
