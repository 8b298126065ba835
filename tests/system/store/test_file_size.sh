#!/usr/bin/env bash
# A limit of file sizes (ulimit -f) is a full disk, no death by SIGXFSZ: both daemons say what could not be
# written and where, no client is blamed for it, and without the limit the federation goes on and loses nothing.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

real=$build
full='no space left, or no larger file allowed'
limit=300 # KiB: more than the database needs, less than the 555 KiB of the model
model='model: {input: 60, layers: ["dense 2000", "relu", "dense 10"]}'
mkdir "$dir/small"
for daemon in fl-serverd fl-clientd; do
  printf '#!/usr/bin/env bash\nulimit -f %s\nexec "%s/%s" "$@"\n' "$limit" "$real" "$daemon" >"$dir/small/$daemon"
  chmod +x "$dir/small/$daemon"
done
limited() { # command…: the daemon that it starts has the limit
  build=$dir/small
  "$@"
  build=$real
}
synthetic "$dir/data" 2 --seed 5
figures() { # server, keys of its clients
  local name=$1
  shift
  ctl "$name" clients --json | json "' '.join(str(c[k]) for c in d for k in '$*'.split())"
}
told_or_ended() { in_log "$1" "$2" || ended "$1"; }
tells() { # name, what, text: the daemon writes it to its log; one that was killed never will
  wait_for "$2" told_or_ended "$1" "$3"
  has_line "$2" "$dir/$1.log" "$3"
}
responders() { ctl "$1" rounds --last 0 --json | json '" ".join(str(r["responders"]) for r in d)'; }

### Where not even the first checkpoint can be written the start ends and says so
write_server srv "$model" "rounds: 3" "round: {start_clients: 2, min_responders: 2, retry: 50ms}"
models=$dir/srv.state/models
says "the start names the file" 4 "cannot start: cannot write '$models/round-000000.safetensors.tmp': $full" \
  "$dir/small/fl-serverd" "$dir/srv.yaml"

### Uploads and results that are larger than the limit
start_server srv
stop srv
notify_socket
limited start_server srv
for i in 0 1; do limited start_client "c$i" "$dir/data/client-00$i"; done
for i in 0 1; do
  tells "c$i" "what it cannot keep" \
    "the result is not saved on disk, so a restart loses it: cannot write '$dir/c$i.state/result.bin.tmp': $full"
  tells srv "the upload of c$i is refused" \
    "upload of client 'c$i' for round 1 ended: cannot write '$dir/srv.state/spool/c$i.upload': $full"
  tells "c$i" "it hears of it" "upload of round 1 interrupted, retrying: cannot write"
done
wait_for "systemctl status to show it" in_log notify "STATUS=failed, retrying: cannot write '"
for name in srv c0 c1; do # no signal ended them
  check "$name goes on" running "$name" || finish
done
equal "nobody is blamed" "0 0 0 0" "$(figures srv rejected lost)"
has_line "nobody will be late for it" "$dir/srv.log" "uploads cannot be stored, upload deadline extended to"
says "why says it" 0 "storing an upload failed, retrying: cannot write" \
  "$build/flctl" --state-dir "$dir/srv.state" why
stop srv
equal "the server ends well" 0 "$rc"

# The clients, still limited, kept their results in memory.
start_server srv
for i in 0 1; do
  wait_end "c$i"
  equal "client c$i is done" 0 "$rc"
  equal "c$i trained each round once" 3 "$(grep -c 'trained round' "$dir/c$i.log")"
done
wait_for "all rounds" at_round srv 3
equal "both are in all rounds" "2 2 2" "$(responders srv)"
equal "both were accepted three times, and nobody was blamed" "3 0 0 3 0 0" "$(figures srv accepted rejected lost)"
stop srv

### Uploads that fit, and a checkpoint that does not: accepted updates stay accepted
write_server sum "$model" "rounds: 2" "strategy: {codec: ternary}" \
  "round: {start_clients: 2, min_responders: 2, retry: 50ms}"
models=$dir/sum.state/models
start_server sum
stop sum
limited start_server sum
for i in 0 1; do start_client "d$i" "$dir/data/client-00$i"; done
tells sum "which checkpoint" "work failed: cannot write '$models/round-000001.safetensors.tmp': $full"
for pause in 50 100 200; do # each is longer than the one before
  tells sum "a pause of $pause ms" "$full, retrying in $pause ms"
done
check "the server goes on" running sum || finish
# Between two pauses it is writing.
why_says() { "$build/flctl" --state-dir "$dir/sum.state" why | grep -F "failed, retrying: " | grep -qF "$full"; }
wait_for "flctl why to say it" why_says
equal "both updates are accepted" "1 0 0 1 0 0" "$(figures sum accepted rejected lost)"
kill_hard sum

start_server sum
for i in 0 1; do
  wait_end "d$i"
  equal "client d$i is done" 0 "$rc"
  equal "d$i trained each round once" 2 "$(grep -c 'trained round' "$dir/d$i.log")"
done
wait_for "both rounds" at_round sum 2
equal "both are in both rounds" "2 2" "$(responders sum)"
equal "and nobody was blamed" "2 0 0 2 0 0" "$(figures sum accepted rejected lost)"
stop sum
equal "the server ends well" 0 "$rc"
finish
