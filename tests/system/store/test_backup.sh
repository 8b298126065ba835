#!/usr/bin/env bash
# A backup taken beside a running server, at any moment, is whole, and a federation goes on from it on
# another folder with the same bits; restoring refuses what would lose something.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/failures.sh
. "$(dirname "$0")/../failures.sh"
synthetic "$dir/data" 3 --seed 5
flctl=$build/flctl
backup() { "$flctl" --state-dir "$dir/$1.state" backup "$dir/$2" "${@:3}"; } # server, folder, options
restore() { "$flctl" --state-dir "$dir/$1.state" restore "$dir/$2" "${@:3}"; } # server, backup, options
# A server whose clients train the same whoever asks, and the model that it comes to.
server() { # name, algorithm, rounds, lines…
  write_server "$1" "rounds: $3" "algorithm: $2" "model: {preset: dnn60}" "seed: 7" \
    "round: {start_clients: 3, min_responders: 3}" "training: {epochs: 2}" "${@:4}"
}
clients() { # prefix, lines…: of the server at $address
  local i
  for i in 0 1 2; do start_client "$1$i" "$dir/data/client-00$i" "name: c$i" "${@:2}"; done
}
clients_end() { for i in 0 1 2; do wait_end "$1$i"; done; }
model_of() { # server
  ctl "$1" export --output "$dir/$1.safetensors" >/dev/null && tensors "$dir/$1.safetensors"
}

### What an uninterrupted run comes to
server whole fedavgm 6
start_server whole
clients w
wait_for "six rounds" at_round whole 6
want=$(model_of whole)
clients_end w
stop whole

### In the middle of a round: two updates are accepted, the third is on its way
server first fedavgm 6 "log_level: debug"
start_server first
start_client f0 "$dir/data/client-000" "name: c0"
start_client f1 "$dir/data/client-001" "name: c1"
start_client f2 "$dir/data/client-002" "name: c2" "limits: {upload_rate: 2kB/s}"
two_accepted() {
  grep -q "accepted 'c0' round=1 " "$dir/first.log" && grep -q "accepted 'c1' round=1 " "$dir/first.log"
}
wait_for "two updates" two_accepted
check "a backup beside the running server" backup first b1
has_line "says where it is" "$dir/check.out" "federation 'integ' after round 0"
has_line "and what it holds" "$dir/check.out" "round 1, attempt 1 is open, with 2 accepted updates"
equal "the accepted updates are in it" 2 "$(find "$dir/b1/state/spool" -type f | wc -l)"
check "its checksums are as sha256sum has them" bash -c "cd '$dir/b1' && sha256sum --quiet -c SHA256SUMS"
equal "nobody else can read it" "700 600" "$(stat -c %a "$dir/b1" "$dir/b1/state/federation.db" | tr '\n' ' ' | sed 's/ $//')"
check "the server goes on beside" running first
kill_hard first
for s in f0 f1 f2; do kill_hard "$s"; done

### Elsewhere: the clients that were there come back to it
server second fedavgm 6 "log_level: debug"
check "restoring" restore second b1
has_line "says where it is" "$dir/check.out" "after round 0"
start_server second
has_line "the start says so" "$dir/second.log" "restored from a backup of round 0: the federation resumes after round 0"
for i in 0 1 2; do mv "$dir/f$i.state" "$dir/s$i.state"; done
clients s
wait_for "six rounds" at_round second 6
equal "the same bits as without a backup" "$want" "$(model_of second)"
lacks_line "what was accepted is not asked for again" "$dir/second.log" "task 'c0' round=1 "
has_line "but what was not" "$dir/second.log" "task 'c2' round=1 "
has_line "whose result is of before, and made again" "$dir/s2.log" "trained round 1: "
clients_end s
ctl second rounds >"$dir/second.rounds"
has_line "the record says it" "$dir/second.rounds" "restored from a backup of round 0"
stop second

### A server that is down, moved to another folder: nothing is made again
server third fedavgm 6 "log_level: debug"
start_server third
clients t
wait_for "three rounds" at_round third 3
stop third
for i in 0 1 2; do stop "t$i"; done
### Fenced: once it has moved, nothing starts from the old folder
check "a backup that moves" backup third b3 --moved
documented moved-start "$build/fl-serverd" "$dir/third.yaml"
says "nor does a check pass" 4 "state folder '$dir/third.state' was moved at 20" "$build/fl-serverd" --check-config "$dir/third.yaml"
says "nor a recovery" 4 "with the backup '$dir/b3'" "$build/fl-serverd" --recover "$dir/third.yaml"
says "it moves once" 1 "was moved at 20" "$flctl" --state-dir "$dir/third.state" backup "$dir/b3-again" --moved
check "which made nothing" test ! -e "$dir/b3-again"
check "a plain backup of it is still made" backup third b3-plain
check "no backup carries the mark" test ! -e "$dir/b3/state/moved" -a ! -e "$dir/b3-plain/state/moved"
says "unmove takes no folder" 2 "flctl --state-dir DIR unmove" "$flctl" --state-dir "$dir/third.state" unmove "$dir/b3"
server fourth fedavgm 6 "log_level: debug"
check "moving" restore fourth b3 --moved
start_server fourth
lacks_line "the federation continues as after a restart" "$dir/fourth.log" "restored from a backup"
for i in 0 1 2; do mv "$dir/t$i.state" "$dir/m$i.state"; done
clients m
wait_for "six rounds" at_round fourth 6
equal "with the same bits" "$want" "$(model_of fourth)"
clients_end m
documented moved-running "$flctl" --state-dir "$dir/fourth.state" backup "$dir/b4" --moved
check "a server that runs is not fenced" test ! -e "$dir/fourth.state/moved" -a ! -e "$dir/b4"
stop fourth
### Called off
says "a folder that was not moved" 1 "is not marked as moved" "$flctl" --state-dir "$dir/fourth.state" unmove
says "the move is called off" 0 "a server may start from $dir/third.state again" "$flctl" --state-dir "$dir/third.state" unmove
: >"$dir/third.state/moved" # a damaged mark is one
says "whatever the mark holds" 4 "was moved at ? after round ?" "$build/fl-serverd" --check-config "$dir/third.yaml"
check "it is removed" "$flctl" --state-dir "$dir/third.state" unmove
start_server third
stop third
equal "and it starts again" 0 "$rc"

### What solver and clients keep together: it goes on after a move, and else begins anew on both sides
server kept scaffold 3
start_server kept
clients k
wait_for "three rounds with control variates" at_round kept 3
clients_end k
stop kept
check "a backup with a vector beside the model" backup kept b-kept
check "the vector is in it" test -s "$dir/b-kept/state/models/round-000003.control_sum.safetensors"
go_on() { # server, prefix: to six rounds with the clients as they were left; sets $got
  local i
  server "$1" scaffold 6
  start_server "$1"
  for i in 0 1 2; do cp -r "$dir/k$i.state" "$dir/$2$i.state"; done
  clients "$2"
  wait_for "six rounds of $1" at_round "$1" 6
  got=$(model_of "$1")
  clients_end "$2"
  stop "$1"
}
cp -r "$dir/kept.state" "$dir/same.state"
go_on same a
want=$got
check "moving it" restore elsewhere b-kept --moved
go_on elsewhere b
equal "it goes on with the same bits" "$want" "$got"
check "restoring it" restore anew b-kept
go_on anew c
has_line "else it begins anew" "$dir/anew.log" "solver 'scaffold': the state of server and clients is reset"
has_line "on clients, too" "$dir/c0.log" "dropping the client state of round"
lacks_line "which is no loss of theirs" "$dir/c0.log" "is lost"

### At any moment: what is removed meanwhile is in the backup, or the backup is of later
server busy fedavgm 100000 "checkpoints: {keep: 1, keep_for: 0s, keep_best: 0}"
start_server busy
clients r
wait_for "rounds" at_round busy 2
bad=0
last=-1
back=0
for n in $(seq 100); do
  rm -rf "$dir/any" "$dir/any.state"
  backup busy any >"$dir/any.out" 2>&1 || { bad=$((bad + 1)); cat "$dir/any.out"; continue; }
  (cd "$dir/any" && sha256sum --quiet -c SHA256SUMS) || bad=$((bad + 1))
  restore any any >"$dir/any.out" 2>&1 || { bad=$((bad + 1)); cat "$dir/any.out"; continue; }
  round=$(sed -n "s/.*after round \([0-9]*\): .*/\1/p" "$dir/any.out")
  [ "$round" -ge "$last" ] || back=$((back + 1))
  last=$round
done
equal "a hundred backups beside rounds that come and go are whole" 0 "$bad"
equal "none is older than the one before" 0 "$back"
check "rounds were committed meanwhile" test "$last" -gt 2
wait_for "rounds to go on" at_round busy $((last + 1))
server any fedavgm 100000
start_server any
# When the open round had all its updates in the backup, it is committed with the start.
first=$(status_of any rounds_committed)
check "the last one starts where it says, after round $last, not $first" test "$first" -eq "$last" -o "$first" -eq $((last + 1))
stop any
for i in 0 1 2; do kill_hard "r$i"; done
stop busy

### Keys
mkdir -m 700 "$dir/kept.state/identity"
echo secret >"$dir/kept.state/identity/root.key"
"$python" - "$dir/kept.state/identity/identity.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA journal_mode = WAL")
db.execute("CREATE TABLE t (x)")
db.execute("INSERT INTO t VALUES (42)")
db.commit()
PY
check "a backup with keys" backup kept b-keys
has_line "says so" "$dir/check.out" "the backup contains the keys of the federation: keep it as secret as the server"
check "restoring them" restore keys b-keys --moved
equal "for nobody else" "600 600 700" \
  "$(cd "$dir/keys.state/identity" && stat -c %a root.key identity.db . | tr '\n' ' ' | sed 's/ $//')"
equal "the key is the same" secret "$(cat "$dir/keys.state/identity/root.key")"
equal "and the database" 42 "$("$python" -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT x FROM t").fetchone()[0])' "$dir/keys.state/identity/identity.db")"
check "without keys" backup kept b-none --without-keys
check "there are none" test ! -e "$dir/b-none/state/identity"

### A server with keys and invitations that are not written into the file of their database yet
write_server tls "model: {preset: dnn60}" 'listen: ["127.0.0.1:0"]' 'identity: {hosts: [127.0.0.1]}'
sed -i '/^insecure:/d' "$dir/tls.yaml"
check "its keys" "$build/fl-serverd" --init "$dir/tls.yaml"
start_server tls
check "an invitation" ctl tls invite edge
check "a backup beside it" backup tls b-tls
stop tls
sed "s|tls.state|tls2.state|" "$dir/tls.yaml" >"$dir/tls2.yaml"
check "restoring it" restore tls2 b-tls
start_server tls2
equal "the invitation is still good" "edge open" "$(ctl tls2 invitations --json | json "' '.join(d[0][k] for k in ('name', 'state'))")"
stop tls2

### A disk that is full before the backup is whole: it says so, what is there is no backup, and the server goes on
server full fedavgm 100000 "model: {input: 60, layers: [\"dense 2000\", \"relu\", \"dense 10\"]}"
sed -i '/^model: {preset/d' "$dir/full.yaml"
start_server full
clients u
wait_for "a round" at_round full 1
small=(bash -c 'ulimit -f "$1" && shift && exec "$@"' small)
for room in 4 300; do # KiB: less than the database; more than that, and less than a checkpoint
  rm -rf "$dir/b-full"
  documented backup-full "${small[@]}" "$room" "$flctl" --state-dir "$dir/full.state" backup "$dir/b-full"
  check "nothing says that it is whole" test ! -e "$dir/b-full/SHA256SUMS"
  says "what is left is refused" 1 "it has no SHA256SUMS, which is written last" \
    "$flctl" --state-dir "$dir/never.state" restore "$dir/b-full"
done
check "a checkpoint did not fit" grep -q 'models/round-.*safetensors.*no space left, or no larger file' "$dir/documented.out"
check "and nothing is made of it" test ! -e "$dir/never.state/federation.db"
check "the server goes on" running full
wait_for "and its rounds" at_round full $(($(status_of full rounds_committed) + 1))
rm -rf "$dir/b-full"
check "with room again it is whole" backup full b-full
check "as its checksums say" bash -c "cd '$dir/b-full' && sha256sum --quiet -c SHA256SUMS"
for i in 0 1 2; do kill_hard "u$i"; done
stop full

### Whose it is, when root restores
if [ "$(id -u)" -eq 0 ]; then
  mkdir "$dir/owned.state"
  chown 65534:65534 "$dir/owned.state"
  check "into the folder of another user" restore owned b-kept
  equal "all of it is that user's" "" "$(find "$dir/owned.state" ! -user 65534 -o ! -group 65534)"
fi

### What is refused, and that nothing is begun then
says "a backup over another" 1 "'$dir/b-kept' is not empty" "$flctl" --state-dir "$dir/kept.state" backup "$dir/b-kept"
mkdir "$dir/nothing"
says "a folder that is no state folder" 1 "'$dir/nothing' is no state folder of a server: it has no federation.db" \
  "$flctl" --state-dir "$dir/nothing" backup "$dir/b-nothing"
check "no target is made then" test ! -e "$dir/b-nothing"
says "a state folder that is used already" 1 "'$dir/kept.state' is not empty" \
  "$flctl" --state-dir "$dir/kept.state" restore "$dir/b-kept"
start_server kept
says "a state folder of a server that runs" 1 "folder '$dir/kept.state' is in use by process" \
  "$flctl" --state-dir "$dir/kept.state" restore "$dir/b-kept"
stop kept
says "no backup at all" 1 "'$dir/nothing' is no whole backup: it has no SHA256SUMS" \
  "$flctl" --state-dir "$dir/x.state" restore "$dir/nothing"
broken() { # name, text, command in the folder
  rm -rf "$dir/broken" "$dir/x.state"
  cp -r "$dir/b-kept" "$dir/broken"
  (cd "$dir/broken" && eval "$3")
  says "$1" 1 "$2" "$flctl" --state-dir "$dir/x.state" restore "$dir/broken"
  check "$1: nobody starts from it" test ! -e "$dir/x.state/federation.db"
}
model=state/models/round-000003.safetensors
broken "a damaged byte" "broken/$model' is not what the backup's SHA256SUMS says" \
  "printf x | dd of=$model bs=1 seek=3000 conv=notrunc status=none"
has_line "what to do" "$dir/says.out" "'$dir/x.state' is half restored: remove what is in it"
broken "a damaged database" "broken/state/federation.db' is not what" \
  "printf x | dd of=state/federation.db bs=1 seek=9000 conv=notrunc status=none"
broken "a missing file" "cannot open '$dir/broken/$model'" "rm $model"
broken "a vector of another round under a good checksum" "control_sum.safetensors' is of round '2'" \
  "f=state/models/round-000003.control_sum.safetensors; cp \${f/003/002} \$f
   sed -i '/000003.control_sum/d' SHA256SUMS; sha256sum \$f >>SHA256SUMS"
broken "a list that leads out of the folder" "line 1: expected a SHA-256, two blanks and a file of the backup" \
  "sed -i '1s|  .*|  state/../../x|' SHA256SUMS"
broken "a list that is cut" "expected a SHA-256" "truncate -s -20 SHA256SUMS"
broken "a list without the database" "does not name 'state/federation.db'" "sed -i '/federation.db/d' SHA256SUMS"
broken "a form of a later version" "is a backup of another version" \
  "sed -i '1s/1/2/' BACKUP; sed -i '/BACKUP/d' SHA256SUMS; sha256sum BACKUP >>SHA256SUMS"
says "no state folder is said" 2 "expected 'flctl --state-dir DIR backup TARGET" "$flctl" backup "$dir/x"
says "an option of the other" 2 "--without-keys is for backup" "$flctl" --state-dir "$dir/kept.state" restore "$dir/x" --without-keys

### A checkpoint that is damaged in the state folder: better no backup than one that does not start
printf x | dd of="$dir/kept.state/models/round-000003.safetensors" bs=1 seek=3000 conv=notrunc status=none
says "a damaged checkpoint" 1 "round-000003.safetensors" "$flctl" --state-dir "$dir/kept.state" backup "$dir/b-bad"
check "is no backup" test ! -e "$dir/b-bad/SHA256SUMS"
### What changed since the models that clients hold goes along
lattice='strategy: {broadcast: {policy: lattice, step: 0.015625}}'
downloads() { ctl "$1" rounds --last 0 --json | json '[r["downlink_bytes"] for r in d if r["round"] == '"$2"'][0]'; } # server, round
server steps fedavg 6 "$lattice"
start_server steps
clients s
wait_for "six rounds on a lattice" at_round steps 6
want=$(model_of steps)
clients_end s
stop steps
server before fedavg 3 "$lattice"
start_server before
clients b
wait_for "three rounds" at_round before 3
clients_end b
check "a backup of it" backup before b-steps
equal "the steps of its rounds are in it" 3 "$(find "$dir/b-steps/state/steps" -name '*.step' | wc -l)"
stop before
server after fedavg 6 "$lattice"
check "restoring it" restore after b-steps
start_server after
clients b # with the models that they hold
wait_for "the other three rounds" at_round after 6
equal "they come to the same model" "$want" "$(model_of after)"
check "and downloaded what changed" test "$(downloads after 4)" -lt 5720
clients_end b
stop after

finish
