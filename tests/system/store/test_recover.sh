#!/usr/bin/env bash
# State folders that lost something: the server goes on from the newest record and checkpoint that fit, or
# refuses with 4 and says the way out; nothing that somebody may need is removed.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 5
serverd=$build/fl-serverd
small='model: {preset: dnn60}'
state=$dir/fed.state
rounds() { # number of rounds the federation runs to
  write_server fed "$small" "rounds: $1" "algorithm: scaffold" "round: {start_clients: 2, min_responders: 2}" \
    "checkpoints: {keep: 3}"
}
clients() { for i in 0 1; do start_client "c$i" "$dir/data/client-00$i"; done; }
runs_to() { # rounds
  rounds "$1"
  start_server fed
  clients
  wait_for "$1 rounds" at_round fed "$1"
  stop fed
  for i in 0 1; do wait_end "c$i"; done
}
models() { ls "$state/models"; }

runs_to 6
cp -r "$state" "$dir/whole"
for f in federation.db models/round-000006.safetensors; do
  equal "$f is not for everybody" 640 "$(stat -c %a "$state/$f")"
done
equal "three checkpoints with their control are kept" 6 "$(models | wc -l)"
again() { rm -rf "$state" && cp -r "$dir/whole" "$state"; }

### The database is gone
rm "$state/federation.db"
before=$(models)
says "no database beside checkpoints" 4 "holds checkpoints up to round 6; nothing was touched" \
  "$serverd" "$dir/fed.yaml"
says "and how to go on" 4 "fl-serverd --recover CONFIG" "$serverd" "$dir/fed.yaml"
equal "nothing was touched" "$before" "$(models)"
check "no database was made" test ! -e "$state/federation.db"
says "it recovers" 0 "continues after round 6" "$serverd" --recover "$dir/fed.yaml"
says "a second time there is nothing to do" 0 "nothing to recover: round 6" "$serverd" --recover "$dir/fed.yaml"
runs_to 8
check "it went on" test -e "$state/models/round-000008.safetensors"
equal "the federation says so" 8 "$(rounds 8; start_server fed; status_of fed rounds_committed; stop fed)"

### An empty one, and one that is damaged, with the newest checkpoint damaged as well
again
: >"$state/federation.db"
says "an empty database beside checkpoints" 4 "federation.db' is empty, but" "$serverd" "$dir/fed.yaml"
says "--check-config says so too" 4 "federation.db' is empty, but" "$serverd" --check-config "$dir/fed.yaml"
rm "$state/federation.db"
says "and of one that is missing" 4 "federation.db' is missing, but" "$serverd" --check-config "$dir/fed.yaml"
again
dd if=/dev/urandom of="$state/federation.db" bs=1k count=8 conv=notrunc status=none
printf 'x' | dd of="$state/models/round-000006.safetensors" bs=1 seek=3000 conv=notrunc status=none
says "a damaged database" 4 "--recover" "$serverd" "$dir/fed.yaml"
says "goes on from the checkpoint before" 0 "continues after round 5" "$serverd" --recover "$dir/fed.yaml"
check "the old database is kept" test -s "$state/federation.db.bad-1"
check "so is the bad checkpoint" compgen -G "$state/models/round-000006.safetensors.bad-*"
sed 's/dnn60/mlr60/' "$dir/fed.yaml" >"$dir/other.yaml"
says "of another model" 4 "belongs to another model" "$serverd" --recover "$dir/other.yaml"

### One letter in one row of the database
again
"$python" - "$state/federation.db" <<'PY'
import sys
data = open(sys.argv[1], "rb").read()
assert b"fl-clientd " in data  # the agent of a client; pages keep what was there before it, too
open(sys.argv[1], "wb").write(data.replace(b"fl-clientd ", b"gl-clientd "))
PY
says "a row that changed by itself" 4 "of table 'client' is not what was written" "$serverd" "$dir/fed.yaml"
says "goes on from the newest checkpoint" 0 "continues after round 6" "$serverd" --recover "$dir/fed.yaml"

### Bits that flipped, and a control vector that is gone: the round before, both kept aside
again
printf 'x' | dd of="$state/models/round-000006.safetensors" bs=1 seek=3000 conv=notrunc status=none
rm "$state/models/round-000005.control_sum.safetensors"
rounds 6
start_server fed
has_line "the flipped bit is found" "$dir/fed.log" "damaged: checksum mismatch"
has_line "the control is missed" "$dir/fed.log" "round-000005.control_sum.safetensors' is missing"
has_line "it goes back to what is whole" "$dir/fed.log" "resuming from round 4, the newest"
equal "as it says" 4 "$(status_of fed rounds_committed)"
stop fed
check "what was bad is kept" compgen -G "$state/models/round-000006.safetensors.bad-*"
check "all of it" compgen -G "$state/models/round-000005.safetensors.bad-*"

### Personal models: the newest round whose personal models are there
write_server own "$small" "rounds: 6" "algorithm: fedmcsa" "round: {start_clients: 2, min_responders: 2}" \
  "checkpoints: {keep: 3}"
state=$dir/own.state
start_server own
clients
wait_for "six rounds" at_round own 6
kill_hard own
for i in 0 1; do kill_hard "c$i"; done
rm -rf "$dir/whole.own" && cp -r "$state" "$dir/whole.own"
equal "the last two rounds have their personal models" "000005.mix 000006.mix" "$(cd "$state/personal_models" && echo *)"
rm "$state/personal_models/000006.mix"
start_server own
has_line "the missing file is named" "$dir/own.log" "checkpoint of round 6: skipped as unusable: "
has_line "with its path" "$dir/own.log" "personal_models/000006.mix"
has_line "it goes back" "$dir/own.log" "resuming from round 5, the newest"
equal "to the round before" 5 "$(status_of own rounds_committed)"
lacks_line "no client continues without a personal model" "$dir/own.log" "clients resume from their own"
sed -i 's/rounds: 6/rounds: 8/' "$dir/own.yaml"
kill_hard own
start_server own
clients
wait_for "the rounds after it" at_round own 8
stop own
for i in 0 1; do wait_end "c$i"; done
rm -rf "$state" && cp -r "$dir/whole.own" "$state"
printf 'x' | dd of="$state/personal_models/000006.mix" bs=1 seek=9000 conv=notrunc status=none
start_server own
equal "so it does from a damaged one" 5 "$(status_of own rounds_committed)"
stop own
check "which is kept aside" test -s "$state/personal_models/000006.mix.bad"
rm -rf "$state" && cp -r "$dir/whole.own" "$state"
rm "$state"/personal_models/*.mix
says "without any it ends" 4 "'fl-serverd --recover CONFIG' resumes from the newest good one" "$serverd" "$dir/own.yaml"
says "it recovers" 0 "continues after round 6" "$serverd" --recover "$dir/own.yaml"
: >"$dir/own.log"
start_server own
clients
wait_for "rounds with models that began anew" at_round own 8
stop own
state=$dir/fed.state
for i in 0 1; do wait_end "c$i"; done

### An older database was put in its place
again
rounds 12
start_server fed
clients
wait_for "more rounds" at_round fed 12
stop fed
for i in 0 1; do wait_end "c$i"; done
rm -f "$state"/federation.db*
cp "$dir"/whole/federation.db* "$state/"
says "no checkpoint goes with its records" 4 "the newest file is of round 12" "$serverd" "$dir/fed.yaml"
equal "all are still there" 6 "$(models | wc -l)"
says "recovering goes on from the newest" 0 "continues after round 12" "$serverd" --recover "$dir/fed.yaml"

### A checkpoint that cannot be read is not a damaged one
if [ "$(id -u)" -ne 0 ]; then
  chmod 0 "$state/models/round-000012.safetensors"
  says "an error of reading ends the start" 4 "could not be read, leaving it unchanged" "$serverd" "$dir/fed.yaml"
  check "the file stays where it is" test -e "$state/models/round-000012.safetensors"
fi
finish
