#!/usr/bin/env bash
# A client with one unusable upload after the other is quarantined, and the honest ones finish without it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
bad=$build/tests/system/bad_client
[ -x "$bad" ] || skip "no $bad"
synthetic "$dir/data" 3 --seed 3

# word: the client connects, is selected, uploads that once, and leaves
offends() {
  local code=0
  timeout -k 5 "$patience" "$bad" "$address" bad "$1" >"$dir/bad.$1" 2>&1 || code=$?
  equal "the bad client came through: $1" 0 "$code"
}
asks() { # name, exit code, text, arguments of flctl…
  says "$1" "$2" "$3" "$build/flctl" --state-dir "$dir/q.state" "${@:4}"
}
of_bad() { ctl q clients --json | json "next(c['$1'] for c in d if c['name'] == 'bad')"; }
waits() { ctl q why >"$dir/why" && grep -qF "round 4 is IDLE: 2 of 3 clients are connected and not quarantined" "$dir/why"; }

# A round starts with three clients: one for each upload of the bad one, which leaves after it.
write_server q "rounds: 6" "model: {preset: dnn60}" "round: {start_clients: 3, min_clients: 3}"
start_server q
start_client honest-0 "$dir/data/client-000"
start_client honest-1 "$dir/data/client-001"
offends nan
wait_for "the first round" at_round q 1
offends shape
wait_for "the second round" at_round q 2
equal "two offences are not enough" None "$(of_bad quarantine)"

### The second kill is between the second and the third offence
kill_hard q
start_server q
offends large
wait_for "the third round" at_round q 3
reason="3 offences in the last 20 rounds: round 1 (invalid update), round 2 (invalid update), round 3 (update left out); last: update with RMS norm "
has_line "the log warns, with all offences" "$dir/q.log" \
  "client 'bad' is quarantined until 'flctl clients release bad' or for 24h: $reason"
wait_for "the federation to wait for a third client" waits
has_line "why names it, its offences, and how it is released" "$dir/why" \
  "client 'bad' is quarantined until 'flctl clients release bad' or for 24h: $reason"
equal "its state" quarantined "$(of_bad state)"
ctl q clients >"$dir/clients"
has_line "the list of clients says why" "$dir/clients" "$reason"

### It survives a kill, and ends by the operator's command
kill_hard q
start_server q
wait_for "both clients" connected q 2
wait_for "the federation to wait after a restart too" waits
equal "it is quarantined still" quarantined "$(of_bad state)"
asks "release" 0 "client 'bad' is released: it can be selected from the next round on" clients release bad
equal "it is released" None "$(of_bad quarantine)"
asks "release again" 0 "nothing to release: client 'bad' is not quarantined" clients release bad
asks "nobody of that name" 1 "no client 'nobody' is known" clients quarantine nobody
asks "quarantine" 0 "quarantined by the operator: for the test" clients quarantine bad --reason "for the test"
has_line "the audit has it" "$dir/q.log" "quarantine bad: for the test"

### It stays connected without a task while the others finish
"$bad" "$address" bad nan >"$dir/bad.last" 2>&1 &
pid_of[bad]=$!
wait_for "the bad client" connected q 3
start_client honest-2 "$dir/data/client-002"
wait_for "all rounds" at_round q 6
equal "it was selected three times" 3 "$(of_bad selected)"
equal "the honest ones lost nothing" "6 0 6 0 3 0" \
  "$(ctl q clients --json | json '" ".join("%d %d" % (c["accepted"], c["rejected"]) for c in d if c["name"] != "bad")')"
equal "the records of the rounds" "0 0 1 1 1 1" "$(ctl q rounds --last 0 --json | json '" ".join(str(r["quarantined"]) for r in d)')"
stop q
equal "the server ends well" 0 "$rc"
for i in 0 1 2; do wait_end "honest-$i"; done
finish
