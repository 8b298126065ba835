#!/usr/bin/env bash
# Attackers of fl-sim: the same files for any number of threads and after a kill, without attackers those of a run
# without the section; an attack under the plain mean costs accuracy; names and rows say who attacks.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
fl_sim=$build/fl-sim
pid=''
trap 'kill -KILL $pid 2>/dev/null; end_all' EXIT
cd "$dir" || exit 99

cat >attacked.yaml <<END
server:
  algorithm: fedavg
  model: {input: [64], layers: [dense 32, relu, dense 10]}
  training: {epochs: 1, batch_size: 10, learning_rate: 0.1}
data: {set: $srcdir/deploy/data/optdigits, method: iid, clients: 20, seed: 3}
stop: {rounds: 20}
sweep:
- {label: none, attackers: {share: 0, attack: sign_flip}}
- {label: flipped, server.strategy: {robust: {policy: multi_krum, f: 8, report: yes}}, server.round: {min_responders: 19}, attackers: {share: 40%, attack: sign_flip}}
- {label: noise, attackers: {clients: 3, attack: gaussian}}
- {label: claims, server.algorithm: fedldf, attackers: {clients: 3, attack: inflated_divergence}}
- {label: collusion, server.algorithm: fedldf, attackers: {clients: 6, attack: min_max}}
- {label: poison, attackers: {clients: 3, attack: backdoor}}
- {label: tailored, server.strategy: {robust: {policy: trimmed_mean, f: 6, mix: nnm}}, server.round: {min_responders: 13}, attackers: {clients: 6, attack: tailored}}
- {label: imitation, server.algorithm: fedmcsa, attackers: {clients: 1, attack: imitation, scale: 10}}
- {label: samples, attackers: {clients: 3, attack: false_samples}}
END
grep -v attackers attacked.yaml | sed '/^sweep/d' >honest.yaml
files_of() { (cd "$1" && find . \( -name 'rounds.*' -o -name clients.jsonl -o -name summary.json -o -name results.csv \) -print0 | sort -z | xargs -0 sha256sum); }
trial() { echo "$1"/*"$2"/seed-1; }
last() { "$python" -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["accuracy"])' "$(trial "$1" "$2")/rounds.jsonl"; }

# --- threads, and no attackers ---
"$fl_sim" run attacked.yaml --clients --jobs 1 --out one >out.txt 2>names.txt
equal "it runs" 0 "$?"
check "with eight threads" "$fl_sim" run attacked.yaml --quiet --clients --jobs 8 --out eight
equal "eight threads change nothing" "$(files_of one)" "$(files_of eight)"
check "without the section" "$fl_sim" run honest.yaml --quiet --clients --out honest
for file in rounds.jsonl rounds.csv clients.jsonl; do
  check "no attackers, the same $file" cmp "$(trial one none)/$file" "$(trial honest base)/$file"
done

# --- who attacks ---
equal "one line for each trial with attackers" 8 "$(grep -c "seed 1: [1368] of 20 clients attack" names.txt)"
names=$(sed -n "s/.*'flipped'.*(sign_flip): //p" names.txt | tr ' ' '\n' | sort)
rows=$(grep '"attacker":true' "$(trial one flipped)/clients.jsonl" | sed 's/.*"name":"\([^"]*\)".*/\1/' | sort -u)
equal "eight are named" 8 "$(printf '%s\n' "$names" | wc -l)"
equal "those that are named attack" "$names" "$rows"
equal "the report of a robust rule names them, by the largest scores" "$names" "$("$python" -c 'import json, sys
row = json.loads(open(sys.argv[1]).readlines()[-1])
scores = [c["score"] for c in row["robust_clients"]]
assert scores == sorted(scores, reverse=True) and row["robust_out"] == 8, row
print("\n".join(sorted(c["client"] for c in row["robust_clients"] if c["used"] == 0)))' "$(trial one flipped)/rounds.jsonl")"
check "and in CSV" grep -q "$(printf '%s\n' "$names" | head -n 1) 0 " "$(trial one flipped)/rounds.csv"
equal "of a few the same as of many" 3 \
  "$(comm -12 <(printf '%s\n' "$names") <(sed -n "s/.*'noise'.*(gaussian): //p" names.txt | tr ' ' '\n' | sort) | wc -l)"

# --- what it does ---
check "sign_flip of 40 % under the mean costs 20 % of accuracy" "$python" -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]) + 0.2)' \
  "$(last one none)" "$(last one flipped)"
check "false divergences are rejected" grep -q '"state":"rejected".*"attacker":true' "$(trial one claims)/clients.jsonl"
check "others are not" test -z "$(grep '"state":"rejected"' "$(trial one claims)/clients.jsonl" | grep -v '"attacker":true')"
check "samples are claimed" grep -q '"samples":7[0-9]0,.*"attacker":true' "$(trial one samples)/clients.jsonl"
check "claims need no training" "$fl_sim" run attacked.yaml --quiet --clients --no-training --out dry
check "samples are claimed without training" grep -q '"samples":7[0-9]0,.*"attacker":true' "$(trial dry samples)/clients.jsonl"
# 3 of 20 clients with model replacement: the trigger works; without a backdoor nothing is measured.
success() { "$python" -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["backdoor_success"])' "$(trial one "$1")/rounds.jsonl"; }
check "the backdoor has a success rate" "$python" -c 'import sys; sys.exit(not 0.5 < float(sys.argv[1]) <= 1)' "$(success poison)"
equal "another attack has none" None "$(success flipped)"

# --- what one attacker gets (round.share_cap) ---
check "one long update in a round" "$fl_sim" run attacked.yaml --quiet --clients --out shares --set server.algorithm=fedldf-1 \
  --set 'sweep=[{label: open, attackers: {clients: 1, attack: scaling, scale: 3}, server: {round: {share_cap: 0}}},
    {label: capped, attackers: {clients: 1, attack: scaling, scale: 3}}]'
layers() { grep '"attacker":true' "$(trial shares "$1")/clients.jsonl" | sed 's/.*"asked":"\([01]*\)".*/\1/' | tr -cd 1 | wc -c; }
# 20 rounds with two layers, each sent by 4 of 20 clients: 8 for each.
equal "without a bound the attacker sends all layers" 40 "$(layers open)"
check "with one 1.5 times its share" test "$(layers capped)" -le 13 -a "$(layers capped)" -ge 11
equal "its rounds say so" 20 "$(grep -c '"share_capped":[1-9]' "$(trial shares capped)/rounds.jsonl")"
check "others do not" test -z "$(grep '"share_capped":[1-9]' "$(trial shares open)/rounds.jsonl")"

# --- a kill ---
"$fl_sim" run attacked.yaml --quiet --clients --jobs 1 --out killed >kill.log 2>&1 &
pid=$!
wait_for "a round of an attack" test -s killed/2-flipped/seed-1/rounds.jsonl
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
check "it continues" "$fl_sim" run attacked.yaml --quiet --clients --jobs 2 --out killed
equal "after a kill the files are the same" "$(files_of one)" "$(files_of killed)"

# --- more attackers than clients ---
"$fl_sim" run attacked.yaml --quiet --out refused --set "sweep=[{attackers: {clients: 21, attack: sign_flip}}]" >out.txt 2>refused.err
equal "more attackers than clients: exit code" 1 "$?"
has_line "more attackers than clients" refused.err "key 'attackers.clients': expected at most 20, the number of clients in the data, found 21"
finish
