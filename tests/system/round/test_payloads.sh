#!/usr/bin/env bash
# What travels beside the model and the update, and what both sides keep of it: control variates of
# scaffold and personalized models of personal models come through kills of the server and of a client.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3
model=$((4 * 1430)) # bytes of dnn60

of_rounds() { ctl "$1" rounds --last 0 --json | json "$2"; } # server, expression over the rounds d
files() { (cd "$dir/$1" && find . -type f | sort | tr '\n' ' '); }
odd() { "$build/tests/system/odd_client" "$@" >"$dir/odd.out" 2>&1; } # address, name, words…
# So that it is in the middle of what it does, however fast it is.
freeze() { kill -STOP "${pid_of[$1]}"; }
client_is() { # server, client, states
  local state
  state=$(ctl "$1" clients --json | json "next(c['state'] for c in d if c['name'] == '$2')")
  [[ " $3 " == *" $state "* ]]
}

### Control variates: 4 rounds, a client killed in the second and the server in the third
write_server scaffold "rounds: 4" "seed: 4" "model: {preset: dnn60}" "training: {epochs: 120}" \
  "strategy: {solver: scaffold, fraction: {fraction: 1}}" \
  "round: {start_clients: 3, min_responders: 3, lost_grace: 60s, retry: 100ms}" \
  "checkpoints: {keep: 100}"
start_server scaffold
for i in 0 1 2; do start_client "s$i" "$dir/data/client-00$i"; done
wait_for "the first round" at_round scaffold 1
freeze s0 # which trains longest
kill_hard s0
odd "$address" guest fetch:2:control fetch:2:model fetch:1:control fetch:2:momentum fetch:2:personal_model
has_line "the control is for everybody" "$dir/odd.out" "fetch control OK bytes=$model"
has_line "as the model" "$dir/odd.out" "fetch model OK bytes=$model"
has_line "in its round" "$dir/odd.out" "fetch control NOT_FOUND bytes=0"
has_line "what is not served is not there" "$dir/odd.out" "fetch momentum NOT_FOUND bytes=0"
has_line "no client is asked for a summary" "$dir/odd.out" "welcome summary=0"
odd "$address" guest summary:0:5:5 wait
has_line "nor may tell any" "$dir/odd.out" "attend INVALID_ARGUMENT no data summary, or no more of it,"
run_client s0
wait_for "the second round" at_round scaffold 2
kill_hard scaffold
start_server scaffold
wait_for "the other rounds" at_round scaffold 4
for i in 0 1 2; do wait_end "s$i"; done
equal "all of them answered in every round" "[3, 3, 3, 3]" "$(of_rounds scaffold '[r["responders"] for r in d]')"
equal "uplink: update and change of the control, of each" "[$((2 * 3 * model))]" \
  "$(of_rounds scaffold 'sorted(set(r["uplink_bytes"] for r in d))')"
equal "what FedAvg would have sent" "[$((3 * model))]" \
  "$(of_rounds scaffold 'sorted(set(r["uplink_bytes_full"] for r in d))')"
equal "downlink: model and control, to each" "[$((2 * 3 * model))]" \
  "$(of_rounds scaffold 'sorted(set(r["downlink_bytes"] for r in d))')"
for r in 1 2 3 4; do
  check "round $r: the control is checkpointed" finite "$dir/scaffold.state/models/round-00000$r.control_sum.safetensors"
done
# The rule that every crash must leave true: the server has the sum of all c_k, of which c is the
# mean. The older of the two files of a client is what the third round made, the newer waits for the
# next task.
check "the control of the server is the sum of the clients' own" "$python" - "$dir" <<'PY'
import array, glob, re, struct, sys
d = sys.argv[1]
def floats(raw):
    return array.array("f", raw)
def server(r):
    raw = open(f"{d}/scaffold.state/models/round-{r:06}.control_sum.safetensors", "rb").read()
    (n,) = struct.unpack("<Q", raw[:8])
    return floats(raw[8 + n:])
def client(k, which):
    names = glob.glob(f"{d}/s{k}.state/keep/scaffold.control.*.keep")
    names.sort(key=lambda name: int(re.findall(r"\.(\d+)\.keep$", name)[0]))
    assert len(names) == 2, names
    raw = open(names[which], "rb").read()
    return floats(raw[4096:4096 + 4 * 1430])
for r, which in (3, 0), (4, 1):
    c = server(r)
    own = [client(k, which) for k in range(3)]
    worst = max(abs(c[i] - sum(o[i] for o in own)) for i in range(1430))
    size = max(abs(x) for x in c)
    print(r, worst, size)
    assert size > 1e-3 and worst < 1e-5 * size, (r, worst, size)
PY
stop scaffold
equal "scaffold: the server ends well" 0 "$rc"

### Personal models: the server dies between the commit and the fetching of the personal models
own() { # rounds, lines…
  write_server own "rounds: $1" "seed: 5" "model: {preset: dnn60}" "training: {epochs: 120}" \
    "strategy: {personal: own, aggregate: mcsa, upload: {policy: hdfl, n: 2}, solver: {policy: prox, mu: 0.1}, fraction: {fraction: 1}}" \
    "round: {start_clients: 3, min_clients: 3, lost_grace: 60s}" "${@:2}"
}
own 2
start_server own
for i in 0 1 2; do start_client "o$i" "$dir/data/client-00$i"; done
wait_for "o0 to train" in_log o0 "joined federation"
freeze o0 # which trains longest, so that the round waits for it
# With o2 away the second round cannot begin, and nobody fetches anything.
wait_for "o2 to have answered" client_is own o2 "accepted empty"
kill_hard o2
kill -CONT "${pid_of[o0]}"
wait_for "the first round" at_round own 1
equal "one file with the personal models" "./000001.mix " "$(files own.state/personal_models)"
kill_hard own
cp "$dir/own.state/personal_models/000001.mix" "$dir/made.mix"
# A round that was aggregated and not committed, and one that was being written.
cp "$dir/made.mix" "$dir/own.state/personal_models/000002.mix"
head -c 5000 "$dir/made.mix" >"$dir/own.state/personal_models/000002.mix.tmp"
start_server own
equal "those of the committed round are valid, no others" "./000001.mix " "$(files own.state/personal_models)"
check "they are untouched" cmp "$dir/made.mix" "$dir/own.state/personal_models/000001.mix"
run_client o2
wait_for "o2 to train" grep -q "round 2 attempt 1: SELECTING -> TRAINING" "$dir/own.log"
freeze o0
odd "$address" guest fetch:2:personal_model fetch:2:model
has_line "a personal model is for its client alone" "$dir/odd.out" "fetch personal_model NOT_FOUND bytes=0"
has_line "the model is for all" "$dir/odd.out" "fetch model OK bytes=$model"
kill -CONT "${pid_of[o0]}"
wait_for "the second round" at_round own 2
for i in 0 1 2; do wait_end "o$i"; done
equal "those of the round before stay with its checkpoint" "./000001.mix ./000002.mix " "$(files own.state/personal_models)"
check "both uploaders started from what was mixed for them" "$python" - "$dir" <<'PY'
import glob, re, struct, sys
d = sys.argv[1]
raw = open(f"{d}/made.mix", "rb").read()
assert raw[:16] == b"FL-FILE1personal", raw[:16]
version, n = struct.unpack("<II", raw[16:24])
fields = 32 + 16 * n
rnd, size = struct.unpack("<QQ", raw[fields : fields + 16])
assert (version, n, rnd, size) == (1, 2, 1, 5720), (version, n, rnd, size)
start = 4096
for i in range(n):
    name = raw[fields + 16 + 128 * i : fields + 144 + 128 * i].rstrip(b"\0").decode()
    files = glob.glob(f"{d}/{name}.state/keep/own.anchor.*.keep")
    newest = max(files, key=lambda f: int(re.findall(r"\.(\d+)\.keep$", f)[0]))
    got = open(newest, "rb").read()[4096 : 4096 + size]
    assert got == raw[start + i * size : start + (i + 1) * size], (name, newest)
PY
stop own
own 3 "checkpoints: {keep: 1}"
start_server own
for i in 0 1 2; do run_client "o$i"; done
wait_for "the third round" at_round own 3
for i in 0 1 2; do wait_end "o$i"; done
equal "without a checkpoint to go back to only the last" "./000003.mix " "$(files own.state/personal_models)"
equal "two of three send their models" "[$((2 * model))]" "$(of_rounds own 'sorted(set(r["uplink_bytes"] for r in d))')"
equal "downlink: the model at first, then personal models" "[$((3 * model)), $((2 * model)), $((2 * model))]" \
  "$(of_rounds own '[r["downlink_bytes"] for r in d]')"
equal "personal models are measured" True "$(of_rounds own \
  'all(0 < r["personal_accuracy"] <= 1 and 0 < r["personal_mean"] <= 1 and r["personal_clients"] == 3 for r in d)')"
equal "mean, worst tenth and median are of the same models" True "$(of_rounds own \
  'all(abs(r["client_accuracy_mean"] - r["personal_mean"]) < 1e-12 and 0 <= r["client_accuracy_worst_tenth"] <= r["client_accuracy_median"] <= 1 and r["client_loss_mean"] > 0 for r in d)')"
equal "so is what they were given" True "$(of_rounds own 'all(0 < r["received_accuracy"] <= 1 for r in d)')"
equal "and the attention" True "$(of_rounds own 'all(1 <= r["effective_clients"] <= 2 and 0 < r["self_weight"] <= 1 for r in d)')"
has_line "the operator reads them" "$dir/own.log" " personal=0."
check "status shows them" ctl own status
has_line "in words" "$dir/check.out" "over 3 clients"
has_line "of how many is not told of what they were given" "$dir/check.out" " on average of the clients"
for word in twice never; do
  odd "unix:$dir/own.state/admin.sock" - "$word"
  has_line "one request a call: $word" "$dir/odd.out" "INVALID_ARGUMENT messages="
done
stop own
equal "own: the server ends well" 0 "$rc"

### Summaries: what clients tell of their data, fixed when the first round begins
write_server mix "rounds: 3" "seed: 6" "model: {preset: dnn60}" \
  "strategy: {solver: fedmix, fraction: {fraction: 1}}" "round: {start_clients: 3, min_responders: 3, lost_grace: 3s}" "limits: {summary: 200K}"
start_server mix
slip() { # name, expected status and text, words…
  local name=$1 want=$2
  shift 2
  odd "$address" guest samples "$@" wait
  has_line "$name" "$dir/odd.out" "attend $want"
}
slip "a summary with a gap" "INVALID_ARGUMENT the pieces of the data summary have gaps or overlap" summary:0:100:50 summary:60:100:40
slip "that overlaps" "INVALID_ARGUMENT the pieces of the data summary have gaps or overlap" summary:0:100:50 summary:40:100:60
slip "of changing length" "INVALID_ARGUMENT the pieces of the data summary have different totals" summary:0:100:50 summary:50:101:51
slip "of empty pieces" "INVALID_ARGUMENT empty piece in a data summary" summary:0:100:0
slip "that is too large" "RESOURCE_EXHAUSTED the data summary of 300000 bytes is larger than limits.summary (204800 bytes)" summary:0:300000:1000
slip "that is sent twice" "INVALID_ARGUMENT no data summary, or no more of it," summary:0:0:0 summary:0:0:0
odd "$address" thief samples summary:0:100:100 stay # ended by the server
has_line "that is none" "$dir/odd.out" "attend INVALID_ARGUMENT"
has_line "the operator reads it" "$dir/mix.log" "data summary of client 'thief'"
"$build/tests/system/odd_client" "$address" mute samples stay >"$dir/mute.out" 2>&1 &
pid_of[mute]=$!
wait_for "mute to be welcome" grep -q "welcome summary=1" "$dir/mute.out"
check "who tells nothing is not selected" ctl mix why
has_line "and why says so" "$dir/check.out" "; 1 connected clients have not sent their data summary yet (solver 'fedmix'"
for i in 0 1; do start_client "m$i" "$dir/data/client-00$i"; done
wait_for "both summaries" test -e "$dir/mix.state/summaries/m0.summary" -a -e "$dir/mix.state/summaries/m1.summary"
kill_hard mix
kill_hard mute
equal "they are on disk, and nothing is fixed" "./guest.summary ./m0.summary ./m1.summary " "$(files mix.state/summaries)"
start_server mix
start_client m2 "$dir/data/client-002"
wait_for "the first round" at_round mix 1
kill_hard mix
sections() { # files…
  local file
  for file in "$@"; do "$python" "$srcdir/tests/system/container.py" "$file"; done
}
sections "$dir/mix.state/summaries/guest.summary" "$dir/mix.state/summaries/m"[012].summary >"$dir/all"
check "all summaries in client order" cmp "$dir/all" \
  <(sections "$dir/mix.state/summaries/fixed")
cp "$dir/mix.state/summaries/fixed" "$dir/fixed"
# Nothing is drawn while it is there: it would be selected, and fetch nothing.
freeze m0
freeze m1
start_server mix
odd "$address" late samples wait
has_line "late clients are not asked any more" "$dir/odd.out" "welcome summary=0"
for i in 0 1; do kill -CONT "${pid_of[m$i]}"; done
wait_for "the other rounds" at_round mix 3
for i in 0 1 2; do wait_end "m$i"; done
check "what was fixed stays" cmp "$dir/fixed" "$dir/mix.state/summaries/fixed"
equal "downlink: the model, and the summaries once to each" \
  "[$((3 * model + 3 * $(stat -c %s "$dir/all"))), $((3 * model)), $((3 * model))]" \
  "$(of_rounds mix '[r["downlink_bytes"] for r in d]')"
stop mix
equal "mix: the server ends well" 0 "$rc"

### What makes no sense is refused before anything begins
write_server odd "model: {preset: dnn60}" "strategy: {personal: own, aggregate: mcsa, upload: ldf}"
says "personal models of models in parts" 3 "upload 'ldf' cannot be combined with aggregate 'mcsa'" \
  "$build/fl-serverd" --check-config "$dir/odd.yaml"
finish
