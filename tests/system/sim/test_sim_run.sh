#!/usr/bin/env bash
# fl-sim run: the same files for any number of threads and after any number of kills; nothing that is
# finished runs again; what cannot be run is refused before anything runs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
fl_sim=$build/fl-sim
pid=''
trap 'kill -KILL $pid 2>/dev/null; end_all' EXIT
cd "$dir" || exit 99

experiment() { # file, further lines
  local file=$1
  shift
  cat >"$file" <<END
server:
  algorithm: fedldf
  model: {input: [64], layers: [dense 32, relu, dense 10]}
  training: {epochs: 2, batch_size: 5, learning_rate: 0.05}
  evaluation: {every: 2, clients: yes}
client: {data: {validation: 0.2}}
data: {set: $srcdir/deploy/data/optdigits, method: dirichlet, alpha: 0.5, clients: 20, seed: 3}
END
  printf '%s\n' "$@" >>"$file"
}

# All that is to be the same, of a folder of results.
files_of() { (cd "$1" && find . \( -name 'rounds.*' -o -name clients.jsonl -o -name summary.json -o -name results.csv -o -name report.html \) -print0 | sort -z | xargs -0 sha256sum); }

experiment e.yaml "stop: {rounds: 12}" "trials: 2" "world: {uplink: {uniform: [1Mbit/s, 8Mbit/s]}, downlink: 20Mbit/s, latency: 30ms, train: {samples_per_s: 200}, drop: {chance: 0.1, away: 20s}, server: {uplink: 50Mbit/s, downlink: 50Mbit/s}}" \
  "sweep:" "  server.algorithm: [fedldf, scaffold, fedmcsa]"

# --- threads ---
for jobs in 1 2 8; do
  check "it runs with $jobs jobs" "$fl_sim" run e.yaml --quiet --clients --jobs "$jobs" --out "jobs-$jobs"
  files_of "jobs-$jobs" >"sums-$jobs"
done
equal "24 files, 4 a trial, the table and the report" "$(wc -l <sums-1)" 26
check "two threads change nothing" cmp sums-1 sums-2
check "eight threads change nothing" cmp sums-1 sums-8

# --- progress ---
"$fl_sim" run e.yaml --out piped >piped.out 2>piped.err
equal "it says nothing of its progress when nobody looks" "$(cat piped.err)" ""
cat >terminal.py <<'PY'
# A program in a terminal of 80x24, stdout elsewhere where a file is named first: what it writes to the terminal.
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    if sys.argv[1]:
        os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600), 1)
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    try:
        data = os.read(fd, 65536)
    except OSError:
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
check "it runs where stderr is a terminal" "$python" terminal.py line.txt "$fl_sim" run e.yaml --out line
cp check.out line.out
check "one line says how far it is" grep -qE '[0-9]+ of 6 trials; .*round [0-9]+, accuracy .* up, .* simulated, .* left' line.out
equal "and is gone at the end" "$(tr -d '\r' <line.out | sed 's/.*\x1b\[K//' | tail -n 1)" ""
has_line "the end is on stdout" line.txt "6 trials in line"
check "it runs in a terminal" "$python" terminal.py "" "$fl_sim" run e.yaml --jobs 2 --out seen
cp check.out seen.out
check "as flctl watch: trials, those that run, rounds; within the terminal; gone at the end" "$python" - seen.out <<'PY'
import re, sys
raw = open(sys.argv[1], encoding="utf-8", newline="").read().replace("\r", "")
frames = [f for f in re.split(r"\x1b\[\d+A\x1b\[J", raw)]
assert len(frames) >= 2, len(frames)
assert all(len(f.split("\n")) <= 24 and max(map(len, f.split("\n"))) <= 80 for f in frames), max(frames, key=len)
assert any(re.match(r"done +\d of 6 trials, for .* left\ntrial +seed +round +accuracy +up +simulated\n", f) for f in frames), frames[0]
assert any(re.search(r"algorithm=\w+ +\d+ +\d+ of 12 +", f) and re.search(r"\n +round selected responders", f) for f in frames), frames[0]
assert frames[-1] == "6 trials in seen\n", frames[-1]
assert "\x1b" not in "".join(frames)
PY

# --- what is finished ---
before=$(find jobs-1 -name rounds.jsonl -printf '%p %T@\n' | sort)
check "it runs again" "$fl_sim" run e.yaml --quiet --clients --jobs 1 --out jobs-1
equal "a finished trial never runs twice" "$before" "$(find jobs-1 -name rounds.jsonl -printf '%p %T@\n' | sort)"

# --- kills ---
RANDOM=7
kills=0
tries=0
while [ "$kills" -lt 20 ] && [ "$tries" -lt 400 ]; do
  tries=$((tries + 1))
  "$fl_sim" run e.yaml --quiet --clients --out killed >kill.log 2>&1 &
  pid=$!
  read -r -t "0.$(printf '%03d' $((RANDOM % 400)))" <> <(:) # An instant of its own each time.
  if kill -KILL "$pid" 2>/dev/null; then kills=$((kills + 1)); fi
  wait "$pid" 2>/dev/null
  if [ -e killed/results.csv ]; then rm -rf killed; fi # Fast enough to end: from the start again.
done
equal "it was killed at 20 instants" "$kills" 20
check "the last one goes on to the end" "$fl_sim" run e.yaml --quiet --clients --out killed
files_of killed >sums-killed
check "after 20 kills the files are the same" cmp sums-1 sums-killed

# --- an interruption ---
"$fl_sim" run e.yaml --quiet --clients --jobs 1 --out stopped >stop.log 2>&1 &
pid=$!
wait_for "the first round" test -s "stopped/1-algorithm=fedldf/seed-1/rounds.jsonl"
kill -TERM "$pid" 2>/dev/null
wait "$pid"
rc=$?
check "it ends with 3, or was done" test "$rc" = 3 -o "$rc" = 0
check "and goes on" "$fl_sim" run e.yaml --quiet --clients --jobs 1 --out stopped
files_of stopped >sums-stopped
check "with the same files" cmp sums-1 sums-stopped

# --- what is refused, before anything runs ---
refused() { # name, words, file, arguments…
  local name=$1 words=$2
  shift 2
  "$fl_sim" run "$@" --quiet --out refused >refused.out 2>refused.err
  rc=$?
  equal "$name: exit code" "$rc" 1
  check "$name: says '$words'" grep -qF -- "$words" refused.err
  check "$name: nothing ran" test ! -e refused/results.csv
  rm -rf refused
}
experiment bad.yaml "stop: {rounds: 2}" "sweeep: {}"
refused "an unknown key" "bad.yaml:9: unknown key 'sweeep', did you mean 'sweep'" bad.yaml
experiment bad.yaml "stop: {rounds: 2}" "sweep: {server.training.learning_rat: [1, 2]}"
refused "a sweep over no key" "unknown key" bad.yaml
experiment bad.yaml "stop: {rounds: 2}" "world: {uplink: 3}"
refused "a rate without unit" "bad.yaml:9" bad.yaml
experiment bad.yaml "stop: {rounds: 2}"
refused "a model that does not fit" "takes 32 inputs, a sample of the data has 64 values" bad.yaml --set "server.model.input=[32]"
refused "a round that waits for more clients than there are" "expected at most 20, the number of clients in the data, found 21" \
  bad.yaml --set server.round.start_clients=21
refused "a server without samples to evaluate on" "robust 'fltrust' trains on 400 samples of the test part of the data, which has 300" \
  bad.yaml --set "server.strategy={robust: {policy: fltrust, samples: 400}}"
refused "summaries that no client allows" "client.summaries: yes" bad.yaml --set server.algorithm=fedmix
refused "data that is not there" "nowhere" bad.yaml --set data.set=nowhere
refused "more clients than samples" "5000 clients cannot share 1497 samples" bad.yaml --set data.clients=5000
sed -i 's/method: dirichlet, alpha: 0.5/method: iid/' bad.yaml
refused "more memory than there is" "of memory" bad.yaml --set data.clients=1000 \
  --set "server.model.layers=[dense 1048576, relu, dense 10]"
experiment other.yaml "stop: {rounds: 3}"
"$fl_sim" run other.yaml --quiet --out jobs-1 >/dev/null 2>refused.err
equal "a folder of another experiment: exit code" "$?" 1
check "it names both" grep -q "experiment 'e'.*'other'" refused.err
mkdir -p mine && touch mine/thesis.txt
"$fl_sim" run other.yaml --quiet --out mine >/dev/null 2>refused.err
equal "a folder with something else: exit code" "$?" 1
check "it is left alone" test -e mine/thesis.txt

# --- what a daemon's file has ---
experiment first.yaml "stop: {rounds: 3}"
check "a run leaves a model" "$fl_sim" run first.yaml --quiet --keep-state --out first
model=first/base/seed-1/state/server/models/round-000003.safetensors
last() { "$python" -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["accuracy"])' "$1/base/seed-1/rounds.jsonl"; }
experiment goes-on.yaml "stop: {rounds: 1}"
check "a federation begins with the model of server.model.file" "$fl_sim" run goes-on.yaml --quiet --out goes-on \
  --set "server.model.file=$model" --set server.training.learning_rate=0 --set server.evaluation.every=1
equal "its accuracy is that of the model in the file" "$(last goes-on)" "$(last first)"
refused "a model file that is missing" "server.model.file" goes-on.yaml --set server.model.file=nowhere.safetensors
"$fl_sim" run goes-on.yaml --quiet --out warned --set server.listen=[] --set client.tls.ca=x --set server.limits.idle=9s >/dev/null 2>warned.err
equal "keys without effect are named in a warning" "$(cat warned.err)" \
  "fl-sim run: warning: without effect in a simulation: server.listen, server.limits.idle, client.tls"
"$fl_sim" run goes-on.yaml --quiet --out no-state --set server.checkpoints.keep=3 >/dev/null 2>warned.err
equal "rules for checkpoints without --keep-state, too" "$(cat warned.err)" \
  "fl-sim run: warning: without effect in a simulation: server.checkpoints (without --keep-state)"
"$fl_sim" run goes-on.yaml --quiet --keep-state --out with-state --set server.checkpoints.keep=3 >/dev/null 2>warned.err
equal "with it they are obeyed" "$(cat warned.err)" ""

# --- a trial that diverges ends, the others go on ---
experiment diverges.yaml "stop: {rounds: 4}" "sweep:" "  - {label: tame, server.training.weight_decay: 0}" "  - {label: wild, server.training.learning_rate: 1000, server.training.weight_decay: 10}"
check "the experiment goes on" "$fl_sim" run diverges.yaml --quiet --out diverges
check "one trial is done" grep -q '"ended": "done"' diverges/1-*/seed-1/summary.json
check "one says in which round it diverged" grep -q '"ended": "diverged"' diverges/2-*/seed-1/summary.json

# --- times and bytes without arithmetic ---
check "no training" "$fl_sim" run e.yaml --quiet --no-training --out dry
check "its rounds take time" grep -q '"training_us":[1-9]' "dry/1-algorithm=fedldf/seed-1/rounds.jsonl"
# --- hours of round.eligible, in virtual time ---
cat >hours.yaml <<END
server:
  algorithm: fedavg
  model: {input: [64], layers: [dense 10]}
  round: {eligible: {labels: {site: x}, hours: ["03:00-03:01"], utc_offset: "+00:30"}}
data: {set: $srcdir/deploy/data/optdigits, method: iid, clients: 4, seed: 3}
stop: {rounds: 6}
world: {train: {samples_per_s: 20}}
END
says "labels have no effect, and a warning says so" 0 "without effect in a simulation: server.round.eligible.labels" \
  "$fl_sim" run hours.yaml --out hours
equal "four rounds start in that minute, the others a day later" "02:30:00 02:30:18 02:30:37 02:30:56 02:30:00 02:30:18" \
  "$("$python" -c 'import json, sys, time
print(" ".join(time.strftime("%H:%M:%S", time.gmtime(json.loads(line)["started_ms"] // 1000)) for line in sys.stdin))' <hours/base/seed-1/rounds.jsonl)"
finish
