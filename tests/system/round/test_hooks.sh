#!/usr/bin/env bash
# The hooks of a server run an operator's programs, real ones, on each event; one that hangs, fails, is missing or may not be
# executed costs a message, and the rounds go on.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 3
export HOOKS=$dir
cat >"$dir/note.sh" <<'SH'
#!/bin/sh
# Leaves a line, in one write: what it was told, and what the server says through flctl.
line="$FL_EVENT $FL_FEDERATION round=$FL_ROUND client=$FL_CLIENT reason=$FL_REASON accuracy=$FL_ACCURACY"
[ -z "$FL_ENDS" ] || [ "$FL_ENDS" -gt 1600000000 ] || line="no time: $line"
echo "$line args=$* known=$("$FLCTL" status --json | sed -n 's/.*"clients_known": \([0-9]*\).*/\1/p') stdin=$(cat)" >>"$HOOKS/notes"
SH
cat >"$dir/hang.sh" <<'SH'
#!/bin/sh
echo "hanging" >&2
echo "$$" >>"$HOOKS/hung"
exec sleep 10000
SH
printf '#!/bin/sh\necho "no mail server" >&2\nexit 7\n' >"$dir/fail.sh"
printf '#!/bin/sh\n' >"$dir/plain.sh"
chmod +x "$dir/note.sh" "$dir/hang.sh" "$dir/fail.sh"
export FLCTL=$build/flctl
notes() { [ "$(grep -c "$1" "$dir/notes")" -ge "$2" ]; } # text, number
settings=("model: {preset: dnn60}" "round: {start_clients: 2, min_clients: 2}" "evaluation: {every: 1, data: \"$dir/data/server\"}")

### Configuration
write_server bad "model: {preset: dnn60}" "hooks: {paused: ['', x]}"
says "an empty name" 3 "hooks.paused" "$build/fl-serverd" --check-config "$dir/bad.yaml"
write_server bad "model: {preset: dnn60}" "hooks: {pause: [x]}"
says "an unknown event" 3 "paused" "$build/fl-serverd" --check-config "$dir/bad.yaml"

### Each event
note="[\"$dir/note.sh\", \"to you\"]"
write_server srv "rounds: 3" "${settings[@]}" \
  "hooks: {round_committed: $note, paused: $note, finished: $note, client_quarantined: $note}"
start_server srv
check "pause" ctl srv pause --reason "for the test"
wait_for "the pause" notes "^paused integ round=1 client= reason=.*paused by the operator: for the test" 1
check "resume" ctl srv resume
start_client c0 "$dir/data/client-000"
start_client c1 "$dir/data/client-001"
wait_for "the rounds" notes '^round_committed integ' 3
wait_for "the end" notes '^finished integ round=3' 1
equal "in order, each once" "1 2 3" "$(sed -n 's/^round_committed integ round=\([0-9]*\) .*/\1/p' "$dir/notes" | paste -sd ' ')"
check "with its figures, its arguments, an answer of the server, and nothing on standard input" \
  grep -qE '^round_committed integ round=3 client= reason= accuracy=0\.[0-9]+ args=to you known=2 stdin=$' "$dir/notes"
wait_end c0
wait_end c1
check "quarantine" ctl srv clients quarantine c1 --reason "for the hook"
wait_for "the quarantine" notes "^client_quarantined integ round=.* client=c1 reason=client 'c1' is quarantined .*for the hook" 1
stop srv
lacks_line "nothing is wrong" "$dir/srv.log" "warning hooks"

### Programs that hang, fail, are missing, may not be executed
write_server odd "rounds: 0" "log_level: debug" "${settings[@]}" \
  "hooks: {round_committed: [\"$dir/hang.sh\"], paused: [\"$dir/fail.sh\"], client_quarantined: [\"$dir/none.sh\"], limit: 500ms," \
  "  finished: [\"$dir/plain.sh\"]}"
start_server odd
has_line "what is missing is told at the start" "$dir/odd.log" "hooks.client_quarantined: cannot run '$dir/none.sh': No such file or directory; the federation runs without this hook"
has_line "and what may not be executed" "$dir/odd.log" "hooks.finished: cannot run '$dir/plain.sh': Permission denied"
start_client d0 "$dir/data/client-000" "exit_when_done: no"
start_client d1 "$dir/data/client-001" "exit_when_done: no"
wait_for "a hook that hangs to be ended" in_log odd "hook 'round_committed' failed, the federation continues: '$dir/hang.sh': it ran for longer than hooks.limit and was ended; its stderr ends: hanging"
wait_for "rounds meanwhile" at_round odd 5
check "pause" ctl odd pause
wait_for "a failure with the end of stderr" in_log odd "hook 'paused' failed, the federation continues: '$dir/fail.sh': "
has_line "it says why" "$dir/odd.log" "no mail server"
check "quarantine" ctl odd clients quarantine d0
wait_for "a missing program" in_log odd "hook 'client_quarantined' failed, the federation continues: '$dir/none.sh': cannot run"
stop odd
equal "a stop waits for no hook" 0 "$rc"
gone() { ! kill -0 "$(tail -n 1 "$dir/hung")" 2>/dev/null; }
check "and leaves none behind" gone
stop d0
stop d1

### A program that is slower than its events
cat >"$dir/hold.sh" <<'SH'
#!/bin/sh
# Ends when somebody has opened the gate and closed it again.
echo "$$" >>"$HOOKS/held"
exec cat "$HOOKS/gate"
SH
chmod +x "$dir/hold.sh"
mkfifo "$dir/gate"
write_server slow "rounds: 0" "${settings[@]}" "hooks: {round_committed: [\"$dir/hold.sh\"], limit: 1h}"
start_server slow
start_client e0 "$dir/data/client-000" "exit_when_done: no"
start_client e1 "$dir/data/client-001" "exit_when_done: no"
wait_for "more events than wait" at_round slow 20
wait_for "the first program" test -s "$dir/held"
equal "one program at a time" 1 "$(wc -l <"$dir/held")"
: >"$dir/gate"
wait_for "events to be left out, and that to be said" in_log slow "hook 'round_committed' is slower than its events: 16 waited already, and "
stop slow
equal "a stop does not wait for the next" 0 "$rc"
stop e0
stop e1

### A certificate that is in the last quarter of its time
state=$dir/tls.state
{
  echo "federation: integ"
  echo "state_dir: \"$state\""
  echo "listen: [\"127.0.0.1:0\"]"
  echo "identity: {hosts: [localhost, 127.0.0.1], validity: 720h, back_date: 0s}"
  echo "model: {preset: dnn60}"
  echo "hooks: {certificate_expiring: $note}"
} >"$dir/tls.yaml"
check "the federation gets its identity" "$build/fl-serverd" --init "$dir/tls.yaml"
start_server tls
stop tls
equal "not while it is fresh" 0 "$(grep -c '^certificate_expiring' "$dir/notes")"
# An hour of 25 is left.
sed -i 's/validity: 720h, back_date: 0s/validity: 1h, back_date: 24h/' "$dir/tls.yaml"
rm -r "$state"
check "another identity" "$build/fl-serverd" --init "$dir/tls.yaml"
start_server tls
wait_for "the certificate" notes '^certificate_expiring integ round= ' 1
stop tls
finish
