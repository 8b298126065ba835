#!/usr/bin/env bash
# A disk that does not answer: the server reports it, times out no client meanwhile, answers operators, goes on
# when the disk answers again, and ends after the limit of a stop when it does not, as a client does.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
if ldd "$build/fl-serverd" | grep -qE 'lib(a|t|m)san'; then
  skip "this build has a sanitizer, which wants to be the first library, as does the one that stands in for the disk"
fi
hang=$dir/hang
${CC:-cc} -shared -fPIC -O1 -o "$dir/hang.so" "$srcdir/tests/system/hang.c" -ldl >"$dir/cc.out" 2>&1 ||
  skip "no C compiler for the library that stands in for the disk: $(head -n 1 "$dir/cc.out")"
synthetic "$dir/data" 2 --seed 5
write_server srv "model: {preset: mlr60}" "rounds: 100000" \
  "round: {start_clients: 2, min_responders: 2, train_deadline: 5s, upload_deadline: 5s}"
notify_socket
WATCHDOG_USEC=2000000 FL_HANG=$hang LD_PRELOAD=$dir/hang.so start_server srv
start_client c0 "$dir/data/client-000"
start_client c1 "$dir/data/client-001"
wait_for "a round" at_round srv 1

### Uploads cannot be written
echo "srv.state/spool" >"$hang"
wait_for "a line of the log" in_log srv "the disk of '$dir/srv.state' has not answered for 1"
check "the line says what waits and where to look" in_log srv \
  "(thread io): rounds and commands are waiting, no client is timed out meanwhile; check the kernel log"
says "why names the disk before the clients" 0 \
  "the disk of '$dir/srv.state' has not answered for " timeout 60 "$build/flctl" -d "$dir/srv.state" why
wait_for "systemctl status to show it" in_log notify "STATUS=the disk of '$dir/srv.state' has not answered for "
before=$(status_of srv rounds_committed)
equal "the round waits for uploads" UPLOADING "$(status_of srv phase)"
# After five periods of 2 s, that is from a STATUS of 12 s on.
fed() { sed -nE '/answered for (1[2-9]|[2-9][0-9]|[0-9]{3,}) s/,$p' "$dir/notify.log" | grep -c WATCHDOG=1; }
hangs_on() { grep -qE 'answered for (1[5-9]|[2-9][0-9]|[0-9]{3,}) s' "$dir/notify.log"; }
fed_again() { [ "$(fed)" -gt 0 ]; }
wait_for "a status after the limit of the watchdog" hangs_on
check "the watchdog was fed before" in_log notify WATCHDOG=1
equal "it is no longer fed" 0 "$(fed)"
rm "$hang"
wait_for "the disk" in_log srv "answers again after "
wait_for "the watchdog to be fed again" fed_again
wait_for "the next round" at_round srv $((before + 2))
lacks_line "the deadlines of 5 s passed for no client in 10 s of waiting" "$dir/srv.log" ": timed out at the deadline: "
lacks_line "nor was a round aborted" "$dir/srv.log" "aborted"
equal "both are in every round" 0 "$(ctl srv rounds --last 0 --json | json 'sum(r["selected"] - r["responders"] for r in d)')"

### Records cannot be written
echo "srv.state/" >"$hang"
says "a command whose promise cannot be kept is answered" 1 \
  "the command is not on disk yet and may be executed when the disk answers" \
  timeout 300 "$build/flctl" -d "$dir/srv.state" pause
rm "$hang"
wait_for "the pause" in_phase srv PAUSED

### The checkpoint cannot be written while updates are aggregated
before=$(status_of srv rounds_committed)
echo "srv.state/models" >"$hang"
check "the rounds go on" "$build/flctl" -d "$dir/srv.state" resume
wait_for "the thread that aggregates to be named" in_log srv "(thread work): rounds and commands are waiting"
says "why names it, too" 0 "s (thread work)" timeout 60 "$build/flctl" -d "$dir/srv.state" why
equal "the round waits for its model" AGGREGATING "$(status_of srv phase)"
rm "$hang"
wait_for "rounds after it" at_round srv $((before + 2))
check "a pause" "$build/flctl" -d "$dir/srv.state" pause
wait_for "the pause" in_phase srv PAUSED

### The disk never answers
echo "srv.state/" >"$hang"
"$build/flctl" -d "$dir/srv.state" resume >/dev/null 2>&1 &
wait_for "a job that hangs" in_log srv "(thread db): rounds and commands are waiting"
kill -TERM "${pid_of[srv]}"
wait_end srv
equal "the stop ends as a failure" 1 "$rc"
has_line "and says what it waited for" "$dir/srv.log" "stop timed out after 25 s: "
rm "$hang"
start_server srv
equal "what was not on disk is as it was" PAUSED "$(status_of srv phase)"
before=$(status_of srv rounds_committed)
check "and can be asked for again" "$build/flctl" -d "$dir/srv.state" resume
wait_for "rounds after it" at_round srv $((before + 2))

### The disk of a client never answers
FL_HANG=$dir/hang2 LD_PRELOAD=$dir/hang.so start_client c2 "$dir/data/client-001"
wait_for "the client" connected srv 3
echo "c2.state" >"$dir/hang2"
wait_for "a step that hangs" in_log srv ": timed out at the deadline: c2"
kill -TERM "${pid_of[c2]}"
wait_end c2
equal "its stop ends as a failure" 1 "$rc"
has_line "and says what it waited for" "$dir/c2.log" "stop timed out after 25 s: the current step of the task has not finished"
stop srv
equal "and an orderly end" 0 "$rc"

### The files of the identity cannot be written: who is waited for says so
{
  echo "federation: integ"
  echo "state_dir: \"$dir/tls.state\""
  echo "listen: [\"127.0.0.1:0\"]"
  echo "identity: {hosts: [localhost, 127.0.0.1]}"
  echo "model: {preset: mlr60}"
} >"$dir/tls.yaml"
check "a federation with an identity" "$build/fl-serverd" --init "$dir/tls.yaml"
FL_HANG=$hang LD_PRELOAD=$dir/hang.so start_server tls
echo "tls.state/identity" >"$hang"
timeout 300 "$build/flctl" -d "$dir/tls.state" invite later >"$dir/invite.out" 2>&1 &
invite=$!
waits() { grep -qF "no answer for 10 s: the server received the command and is waiting" "$dir/invite.out"; }
wait_for "flctl to say that it waits" waits
rm "$hang"
check "the invitation is made when the disk answers" wait "$invite"
stop tls
finish
