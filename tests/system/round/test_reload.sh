#!/usr/bin/env bash
# SIGHUP: what a running daemon can take up of its changed file is taken up, what it cannot is named, and a
# file that is wrong changes nothing. No session is lost.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

synthetic "$dir/data" 1 --seed 3
reload() { # name, text: of the line that ends it
  local before
  before=$(grep -cF "$2" "$dir/$1.log")
  kill -HUP "${pid_of[$1]}"
  more() { [ "$(grep -cF "$2" "$dir/$1.log")" -gt "$before" ]; }
  wait_for "a reload of $1" more "$1" "$2"
}

write_server srv "rounds: 1" "model: {preset: dnn60}" "heartbeat: 200ms" "when_finished: stay"
start_server srv
start_client a "$dir/data/client-000" "exit_when_done: no"
wait_for "the round" at_round srv 1
wait_for "the session of a client that is done" connected srv 1
lacks_line "nothing is traced at first" "$dir/a.log" " debug "

### What is taken up
for d in srv a; do
  echo "log_level: debug" >>"$dir/$d.yaml"
  reload $d "reloaded '$dir/$d.yaml' log_level=debug log_format=text"
  lacks_line "no restart is asked for" "$dir/$d.log" " restart: "
done
kill_hard a
run_client a
wait_for "lines of the new level" in_log a " debug "
wait_for "the session" connected srv 1
sessions=$(grep -c ' joined from ' "$dir/srv.log")
check "sessions are counted" test "$sessions" -gt 0
for d in srv a; do
  echo "log_format: json" >>"$dir/$d.yaml"
  reload $d '"log_format":"json"'
  equal "a line of $d is an object" "notice True" \
    "$(grep -F '"log_format":"json"' "$dir/$d.log" | tail -n 1 | json '"%s %s" % (d["level"], d["message"].startswith("reloaded"))')"
  sed -i '/^log_format/d' "$dir/$d.yaml"
  reload $d "log_level=debug log_format=text"
done

### What is not, and a file that is wrong
sed -i 's/^rounds: 1/rounds: 2/; s/^heartbeat: .*/limits: {idle: 20s}/' "$dir/srv.yaml"
reload srv "takes effect at the next restart: rounds, limits.idle, heartbeat"
sed -i 's/^log_level: .*/log_level: error/' "$dir/srv.yaml"
echo "train_dedline: 3" >>"$dir/srv.yaml"
reload srv "reload failed, nothing is changed: $dir/srv.yaml:"
has_line "it says what is wrong" "$dir/srv.log" "train_dedline"
sed -i '/^train_dedline/d' "$dir/srv.yaml"
mv "$dir/srv.yaml" "$dir/srv.away"
reload srv "reload failed, nothing is changed: cannot open"
mv "$dir/srv.away" "$dir/srv.yaml"
sed -i 's/^log_level: .*/log_level: debug/; s/^server: .*/server: "127.0.0.1:1"/' "$dir/a.yaml"
reload a "takes effect at the next restart: server"
echo "nonsense" >>"$dir/a.yaml"
reload a "reload failed, nothing is changed"

### Nobody noticed
check "the client is still there" connected srv 1
equal "in the session it had" "$sessions" "$(grep -c ' joined from ' "$dir/srv.log")"
check "the server answers" at_round srv 1
stop a
equal "exit code of the client" 0 "$rc"
stop srv
equal "exit code of the server" 0 "$rc"

### log_format json: what a round came to is numbers, not text
write_server jsn "rounds: 1" "model: {preset: dnn60}" "log_format: json" "when_finished: exit"
start_server jsn
start_client b "$dir/data/client-000"
wait_end jsn
equal "round, clients and bytes are numbers" "[1, 1, 1, 5720, 5720, 'float']" \
  "$(grep -F '"message":"round 1 committed"' "$dir/jsn.log" |
    json '[d["round"], d["selected"], d["responders"], d["uplink_bytes"], d["uplink_bytes_full"], type(d["train_loss"]).__name__]')"
finish
