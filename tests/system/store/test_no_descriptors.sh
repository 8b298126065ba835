#!/usr/bin/env bash
# The server's own trouble is never blamed on its clients: it runs out of descriptors when the updates that it
# accepted are to be read. It tries again, says why, and commits the round with all of them.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

synthetic "$dir/data" 2 --seed 5
state=$dir/srv.state
descriptors() { # soft limit of the running server, or "hard"; what is open stays open
  "$python" -c 'import resource, sys
pid, soft = int(sys.argv[1]), sys.argv[2]
hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard if soft == "hard" else int(soft), hard))' "${pid_of[srv]}" "$1"
}
free_one() { # the number that the next file of the server gets
  local fd=0
  while [ -e "/proc/${pid_of[srv]}/fd/$fd" ] || [ -L "/proc/${pid_of[srv]}/fd/$fd" ]; do fd=$((fd + 1)); done
  echo "$fd"
}

# text, times: it was tried so often, or an update was left out, which the checks below find
tried_or_dropped() { [ "$(grep -cF -- "$1" "$dir/srv.log")" -ge "$2" ] || in_log srv "left out"; }
# An update of more than 16 KiB: a smaller one is read while its head is.
write_server srv "log_level: debug" "model: {input: 60, layers: [\"dense 200\", \"relu\", \"dense 10\"]}" "strategy: {personal: own, aggregate: mcsa}" "rounds: 2" \
  "round: {start_clients: 2, min_responders: 2, retry: 50ms}"
start_server srv

# The first round is held where both updates are accepted: no personal model can be written into what is no folder.
mv "$state/personal_models" "$dir/personal_models"
: >"$state/personal_models"
for i in 0 1; do start_client "c$i" "$dir/data/client-00$i"; done
wait_for "the aggregation to be held" in_log srv "round 1: AGGREGATING failed: "
has_line "both updates are accepted" "$dir/srv.log" "UPLOADING -> AGGREGATING, 2 updates of 2 responders"

### No descriptor is left: not one of the updates can be opened
check "the limit is lowered" descriptors 0
rm "$state/personal_models"
mv "$dir/personal_models" "$state/personal_models"
closed="work failed: cannot open '$state/spool/c0.upload': Too many open files"
wait_for "the want of descriptors, twice" tried_or_dropped "$closed" 2

### One is left: the updates can be looked at, but not read beside the file that is written
# No file can be opened now, so the free one stays free until the limit goes up to it.
check "the limit is raised by one" descriptors $(($(free_one) + 1))
unread="work failed: cannot read '$state/spool/c0.upload': Too many open files"
wait_for "a failure of reading" tried_or_dropped "$unread" 1
lacks_line "no update was left out" "$dir/srv.log" "left out" || finish
check "the limit is raised again" descriptors hard

### All is there again
for i in 0 1; do
  wait_end "c$i"
  equal "client c$i is done" 0 "$rc"
  equal "c$i trained each round once" 2 "$(grep -c 'trained round' "$dir/c$i.log")"
done
wait_for "both rounds" at_round srv 2
equal "both are in both rounds" "2 2" "$(ctl srv rounds --last 0 --json | json '" ".join(str(r["responders"]) for r in d)')"
equal "nobody is blamed" "2 0 0 2 0 0" \
  "$(ctl srv clients --json | json '" ".join("%d %d %d" % (c["accepted"], c["rejected"], c["lost"]) for c in d)')"
lacks_line "the round was not begun again" "$dir/srv.log" "round 1 attempt 2"
stop srv
equal "the server ends well" 0 "$rc"
finish
