#!/usr/bin/env bash
# flctl check against a live server: each measure reaches its bounds, the three outputs can be parsed, the exit codes are
# those of a monitoring plugin; and flctl rounds as CSV, as lines of JSON, and followed.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
flctl=$build/flctl
synthetic "$dir/data" 2 --seed 3
state=$dir/srv.state
c() { # name, exit code, text, arguments…
  local name=$1 want=$2 text=$3
  shift 3
  says "$name" "$want" "$text" "$flctl" -d "$state" "$@"
}
# A certificate, disks and times of this machine are no part of what a test may depend on.
calm="disk=off,late=off,age=off"
checks() { # name, exit code, text, warning bounds, arguments…
  c "$1" "$2" "$3" check --warn "$calm${4:+,$4}" --critical "$calm" "${@:5}"
}

### Command line: a wrong one is unknown, not critical
c "no such measure" 3 "unknown measure 'temper', expected one of age, late, failed, paused, missing, quarantined, disk, certificate" check --warn temper=3
c "no such value" 3 "late: expected a factor such as 3x or off, found 'soon'" check --critical late=soon
c "no duration" 3 "certificate: expected a duration such as 2h or off, found '7'" check --warn certificate=7
c "no value at all" 3 "expected NAME=VALUE, found 'late'" check --warn late
c "no such output" 3 "--format: expected nagios, json or prometheus, found 'xml'" check --format xml
c "an argument" 3 "unexpected argument 'now'" check now
c "an unknown option" 3 "try flctl --help" check --nonsense
c "rounds in another form" 2 "--format: expected csv or jsonl, found 'xml'" rounds --format xml
c "rounds in two forms" 2 "expected --json or --format, found both" rounds --format csv --json
c "following a list" 2 "--follow is for committed rounds as text, or with --format" rounds --follow --json

### No server
c "no server is critical" 2 "FL CRITICAL - no fl-serverd at '$state/admin.sock'" check
c "as JSON" 2 '"status": "critical"' check --json
c "for Prometheus" 2 "fl_check_status 2" check --format prometheus
c "nothing to follow" 3 "no fl-serverd at '$state/admin.sock'" rounds --follow

### Before the first round
write_server srv "rounds: 4" "model: {preset: dnn60}" "round: {start_clients: 2, min_clients: 2}"
start_server srv
checks "nothing is wrong" 0 "FL OK - round 1 is IDLE: " ""
checks "the time since the start" 1 "age " age=0s
c "a disk that is never that empty" 1 "disk " check --warn "disk=100%" --critical disk=off
c "critical before warning" 2 "disk " check --warn "disk=100%" --critical "disk=100%"
c "what is critical need not be a warning" 2 "FL CRITICAL - quarantined 0 (critical at 0)" check --warn "$calm" --critical "$calm,quarantined=0"
c "by default nothing" 0 "FL OK" check --warn disk=off --critical disk=off
check "pausing" ctl srv pause --reason "for a|while"
checks "paused, without a bar in the text" 1 "FL WARNING - paused 1 (warning at 1); round 1 is PAUSED: paused by the operator: for a/while" ""
checks "no round is late meanwhile" 0 "FL OK" "age=0s,paused=off"
check "resuming" ctl srv resume

### After some rounds
start_client c0 "$dir/data/client-000"
start_client c1 "$dir/data/client-001"
"$flctl" -d "$state" rounds --follow --format jsonl >"$dir/followed" 2>"$dir/follow.err" &
pid_of[follow]=$!
wait_for "all rounds" at_round srv 4
wait_end c0
wait_end c1
wait_end follow
equal "following ends with the last round" 0 "$rc"
equal "each round once, on a line of its own" "1 2 3 4" \
  "$("$python" -c 'import json, sys; print(*(json.loads(l)["round"] for l in open(sys.argv[1])))' "$dir/followed")"
check "a line says what the list says" "$python" - "$dir/followed" <(ctl srv rounds --json) <<'PY'
import json, sys
assert [json.loads(line) for line in open(sys.argv[1])] == json.load(open(sys.argv[2]))
PY
ctl srv rounds --format csv --last 3 >"$dir/rounds.csv"
check "CSV has the same figures, empty where they are not known" "$python" - "$dir/rounds.csv" <(ctl srv rounds --json) <<'PY'
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
rounds = json.load(open(sys.argv[2]))[-3:]
assert len(rows) == 3
for row, r in zip(rows, rounds):
    assert set(row) == set(r) - {"robust_clients", "changes"}, set(row) ^ set(r)
    assert row.pop("metrics") == "" and r["metrics"] == {}
    for key, text in row.items():
        assert (r[key] is None) == (text == "") or r[key] == 0, (key, text, r[key])
        assert text == "" or abs(float(text) - r[key]) <= 1e-9 * abs(r[key]), (key, text, r[key])
PY
ctl srv rounds --follow --format csv --last 0 >"$dir/rounds.csv"
equal "following the end prints once what is asked for" "5" "$(wc -l <"$dir/rounds.csv")"
wait_for "both to be away" connected srv 0
c "clients that left, by name" 2 "missing 100.00% (critical at 50.00%: c" check --warn "$calm" --critical "$calm"
checks "as few as one likes" 0 "all 4 rounds are done" "missing=off" --critical "$calm,missing=off"
c "no round is late after the last one" 0 "FL OK" check --warn "age=0s,late=0x,missing=off,disk=off" --critical "missing=off,disk=off"
check "quarantine" ctl srv clients quarantine c0 --reason "for the test"
checks "a quarantined client" 1 "quarantined 1 (warning at 1)" "missing=off" --critical "$calm,missing=off"
# The same state in the outputs of other programs.
ctl srv check --warn "$calm" --critical "$calm" >"$dir/plugin"
check "perfdata" "$python" - "$dir/plugin" <<'PY'
import re, sys
(line,) = open(sys.argv[1]).read().splitlines()
text, perf = line.split(" | ")
values = {}
for word in perf.split():
    m = re.fullmatch(r"([a-z]+)=([0-9.]+)(s|%|)((?:;[0-9.:]*)*)", word)
    assert m, word
    values[m[1]] = (float(m[2]), m[4].split(";")[1:])
assert set(values) == {"failed", "paused", "missing", "quarantined", "disk"}, values
assert values["missing"] == (100, ["20.00", "50.00", "0", "100"]), values
assert values["disk"][1] == ["", "", "0", "100"], values
PY
ctl srv check --warn "$calm" --critical "$calm" --json >"$dir/check.json"
equal "JSON" "critical 2 critical missing" "$(json '"%s %d %s %s" % (d["status"], d["code"], max(m["status"] for m in d["measures"] if m["name"] == "missing"), [m["name"] for m in d["measures"] if m["status"] == "critical"][0])' <"$dir/check.json")"
equal "JSON: the sentence of why" "$(ctl srv why)" "$(json 'd["why"]' <"$dir/check.json")"
ctl srv check --warn "$calm" --critical "$calm" --format prometheus >"$dir/check.prom"
check "a text file of Prometheus" "$python" - "$dir/check.prom" <<'PY'
import re, sys
found, typed = {}, set()
for line in open(sys.argv[1]):
    if line.startswith("# TYPE "):
        typed.add(line.split()[2])
        continue
    if line.startswith("# HELP "):
        continue
    m = re.fullmatch(r'(fl_check_[a-z_]+)\{federation="integ"(,measure="([a-z]+)")?\} ([0-9.e+-]+)\n', line)
    assert m, line
    assert m[1] in typed, line
    found[m[1], m[3]] = float(m[4])
assert found["fl_check_status", None] == 2, found
assert found["fl_check_measure_status", "missing"] == 2 and found["fl_check_measure_status", "failed"] == 0, found
assert found["fl_check_missing_percent", None] == 100 and 0 < found["fl_check_disk_percent", None] <= 100, found
PY
equal "status has what is measured" "0 True True 0" "$(ctl srv status --json | json \
  '"%d %s %s %d" % (d["failed_attempts"], 0 < d["disk_free_bytes"] <= d["disk_bytes"], d["disk_bytes"] > 0, d["certificate_ends_ms"])')"

### Follow survives a restart of the server
stop srv
sed -i 's/^rounds: 4/rounds: 6/' "$dir/srv.yaml"
start_server srv
"$flctl" -d "$state" rounds --follow --format csv >"$dir/followed" 2>"$dir/follow.err" &
pid_of[follow]=$!
wait_for "the rounds so far" grep -q '^4,' "$dir/followed"
kill_hard srv
wait_for "it to be missed" grep -q "rounds: no fl-serverd at '.*; trying again" "$dir/follow.err"
start_server srv
check "release" ctl srv clients release c0
start_client c0 "$dir/data/client-000"
start_client c1 "$dir/data/client-001"
wait_end follow
equal "it goes on" 0 "$rc"
equal "and prints each round once" "round 1 2 3 4 5 6" "$(cut -d , -f 1 "$dir/followed" | paste -sd ' ')"
wait_end c0
wait_end c1
stop srv

### A late round
write_server bad "model: {preset: dnn60}" "round: {start_clients: 1, min_clients: 1}"
start_server bad
state=$dir/bad.state
start_client e0 "$dir/data/client-000" "exit_when_done: no"
wait_for "three rounds" at_round bad 3
checks "a round is late by the usual time" 1 "late " "late=0x"
checks "which is a minute at least" 0 "FL OK" "late=1000000x"
stop e0
stop bad

### The certificate of a server with TLS
state=$dir/tls.state
{
  echo "federation: integ"
  echo "state_dir: \"$state\""
  echo "listen: [\"127.0.0.1:0\"]"
  echo "identity: {hosts: [localhost, 127.0.0.1]}"
  echo "model: {preset: dnn60}"
} >"$dir/tls.yaml"
check "the federation gets its identity" "$build/fl-serverd" --init "$dir/tls.yaml"
start_server tls
checks "it is valid for a month" 0 "FL OK" ""
checks "but not for a year" 1 "certificate " "certificate=365d"
stop tls
finish
