#!/usr/bin/env bash
# A folder of results goes on with a later end, more trials or more points, and ends as if it had been begun with them;
# every other change is refused with the key that changed, and changes nothing.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
sim=$build/fl-sim
trap end_all EXIT
cd "$dir" || exit 99

experiment() { # points…
  cat <<END
server:
  algorithm: fedavg
  model: {input: [64], layers: [dense 16, relu, dense 10]}
  training: {epochs: 1, batch_size: 5, learning_rate: 0.05}
data: {set: $srcdir/deploy/data/optdigits, method: dirichlet, alpha: 0.5, clients: 8, seed: 3}
stop: {rounds: 3}
trials: 2
sweep: {server.algorithm: [$(echo "$*" | tr ' ' ,)]}
END
}
experiment fedavg fedmcsa >two.yaml
experiment scaffold fedavg fedmcsa >three.yaml
# Results, without what is not the same of two runs (run.json).
sums() { (cd "$1" && find . -name 'rounds.*' -o -name summary.json -o -name results.csv | sort | xargs sha256sum); }
times() { (cd "$1" && find . -name summary.json -printf '%p %T@\n' | sort); }
run() { "$sim" run "$@" --quiet >run.out 2>run.err; }
same_as_at_once() { # what, folder, file, arguments…
  local what=$1 folder=$2
  shift 2
  check "$what: it runs" run "$@" --out "$folder"
  rm -rf once
  cp run.err "$folder.err"
  check "$what: at once" run "$@" --out once
  equal "$what: the files are those of a run that had all of it" "$(sums once)" "$(sums "$folder")"
}

check "it runs" run two.yaml --out a
before=$(times a)
same_as_at_once "a trial more" a two.yaml --set trials=3
equal "finished trials stay" "$before" "$(times a | grep -v seed-3)"
same_as_at_once "a point more, before the others" a three.yaml --set trials=3
check "folders have their new numbers" test -d a/2-algorithm=fedavg -a ! -e a/1-algorithm=fedavg
same_as_at_once "more rounds" a three.yaml --set trials=3 --set stop.rounds=5
equal "it says which run again" 9 "$(grep -c 'seed-.* runs again from its first round, its state was not kept' a.err)"

check "with its state" run two.yaml --out kept --keep-state
same_as_at_once "more rounds of a kept state" kept two.yaml --keep-state --set stop.rounds=6
equal "it says which go on" 4 "$(grep -c 'seed-.* continues after its last round' kept.err)"
# Each rule and two together; a run that goes on ends where the rule that stays ends it.
more=(two.yaml --keep-state --set stop.rounds=20)
check "a rule ends it by bytes" run "${more[@]}" --set stop.uplink=200000 --set stop.bytes=300000 --out bytes
equal "every trial ended by one" 4 "$(grep -lE '"reason": ?"(uplink|bytes)"' bytes/*/seed-*/summary.json | wc -l)"
same_as_at_once "more bytes" bytes "${more[@]}" --set stop.uplink=300000 --set stop.bytes=500000
equal "it says which go on for more bytes" 4 "$(grep -c 'a later end: .* continues after its last round' bytes.err)"
same_as_at_once "no end by bytes" bytes "${more[@]}"
check "a rule ends it by accuracy" run "${more[@]}" --set stop.accuracy=0.3 --set stop.time=1h --out accuracy
equal "and by no other" 4 "$(grep -lE '"reason": ?"accuracy"' accuracy/*/seed-*/summary.json | wc -l)"
same_as_at_once "more accuracy and time" accuracy "${more[@]}" --set stop.accuracy=0.6 --set stop.time=2h
check "a mean of accuracies ends it" run two.yaml --out mean --set stop.accuracy=0.5 --set stop.mean_of=3 --set stop.rounds=100 \
  --set server.algorithm=fedavg --set trials=1 --set "sweep=[{label: one}]"
equal "when the mean of three is there, and not before" "accuracy True False" "$("$python" - mean/one/seed-1 <<'PY'
import json, sys
ended = json.load(open(sys.argv[1] + "/summary.json"))["reason"]
found = [json.loads(line)["accuracy"] for line in open(sys.argv[1] + "/rounds.jsonl")]
means = [sum(found[i - 3:i]) / 3 >= 0.5 for i in range(3, len(found) + 1)]
print(ended, means[-1], any(means[:-1]))
PY
)"
check "a rule ends it" run two.yaml --out rule --set stop.accuracy=0.1
before=$(times rule | grep fedavg)
check "more rounds" run two.yaml --out rule --set stop.accuracy=0.1 --set stop.rounds=9
equal "what a rule ended stays" "$before" "$(times rule | grep fedavg)"

refused() { # what, text, arguments…
  local what=$1 text=$2 before
  shift 2
  before=$(sums a && cat a/run.json)
  says "$what" 1 "$text" "$sim" run "$@" --quiet --out a
  equal "$what: nothing changes" "$before" "$(sums a && cat a/run.json)"
}
refused "another rate" "(server.training changed)" three.yaml --set trials=3 --set stop.rounds=5 --set server.training.learning_rate=0.1
refused "other data" "(data.alpha changed)" three.yaml --set trials=3 --set stop.rounds=5 --set data.alpha=0.1
refused "fewer rounds" "stop.rounds ends 'algorithm=scaffold' earlier now" three.yaml --set trials=3 --set stop.rounds=4
refused "a mean of more evaluations" "stop.mean_of" three.yaml --set trials=3 --set stop.rounds=5 --set stop.mean_of=3
refused "one end more" "stop.accuracy ends 'algorithm=scaffold' earlier now" three.yaml --set trials=3 --set stop.rounds=5 --set stop.accuracy=0.9
refused "fewer trials" "its trial with seed 3 is not in trials" three.yaml --set stop.rounds=5
refused "fewer points" "its point 'algorithm=scaffold' has changed" two.yaml --set trials=3 --set stop.rounds=5
refused "without training" "that run trained" three.yaml --set trials=3 --set stop.rounds=5 --no-training
### Another build made the folder
check "a run" run two.yaml --out builds
by_another_build() { sed -i 's/"git": *"[^"]*"/"git": "0123abcd"/' builds/run.json; }
by_another_build
same_as_at_once "another build with the same results, more rounds" builds two.yaml --set stop.rounds=4
check "run.json has both builds" grep -q 0123abcd builds/run.json
check "nothing of the comparison is left" test ! -e builds/.replay
by_another_build
first=$(find builds -path '*1-algorithm*seed-1/rounds.jsonl')
loss=$(sed -n 's/.*"train_loss": *\([0-9.e-]*\).*/\1/p' "$first" | sed -n 2p)
sed -i "2s/\"train_loss\": *$loss/\"train_loss\":0.5/" "$first"
before=$(sums builds && cat builds/run.json)
says "other results than this build computes" 1 "was made by another build, 0123abcd" "$sim" run two.yaml --quiet --out builds --set stop.rounds=5
says "the figure is named" 1 "train_loss of round 2 was 0.5 and is $(printf %.8s "$loss")" "$sim" run two.yaml --quiet --out builds --set stop.rounds=5
equal "nothing changes" "$before" "$(sums builds && cat builds/run.json)"
### A run of lean, whose downloads depend on the models that clients hold, is killed and continues
experiment lean >lean.yaml
lean=(lean.yaml --set trials=1 --set stop.rounds=300 --set server.strategy.broadcast.step=0.015625)
begun() { [ "$(cat killed/*/seed-1/rounds.jsonl 2>/dev/null | wc -l)" -ge "$1" ]; }
for n in 5 100; do
  "$sim" run "${lean[@]}" --out killed --quiet >kill.log 2>&1 &
  pid=$!
  wait_for "$n rounds" begun "$n"
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null
  check "it was killed after $n rounds, before its end" test ! -e "$(echo killed/*/seed-1/)summary.json"
done
same_as_at_once "lean, killed twice" killed "${lean[@]}"
check "clients downloaded what changed" awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) if ($i ~ /^downlink_bytes/) c = i}
  NR > 1 {sum += $c} END {exit !(c > 0 && sum > 0)}' killed/*/seed-1/rounds.csv
finish
