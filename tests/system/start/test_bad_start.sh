#!/usr/bin/env bash
# What can be wrong around a daemon when it starts: data, address, state folder, server, name. Each has
# its message and its exit code, and nothing that was there is lost.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3
one=$dir/data/client-000
serverd=$build/fl-serverd
clientd=$build/fl-clientd
small='model: {preset: dnn60}'
# name, exit code, text, daemon, configuration: a start says so, and so does --check-config
refuses() {
  says "$1" "$2" "$3" "$4" "$5"
  says "$1, when it is only checked" "$2" "$3" "$4" --check-config "$5"
}

### Data of a client. Exit code 5, and the file is named.
address=unix:$dir/nobody.sock
bad_data() { # name, expected text, folder
  write_client bad "$3"
  refuses "data: $1" 5 "$2" "$clientd" "$dir/bad.yaml"
}
bad_data "missing folder" "cannot open folder '$dir/none'" "$dir/none"
mkdir "$dir/empty"
bad_data "empty folder" "contains no train data" "$dir/empty"
copy() { cp -r "$one" "$dir/$1"; }
copy truncated
truncate -s 1000 "$dir/truncated/train-x.npy"
bad_data "truncated NPY" "train-x.npy" "$dir/truncated"
copy magic
printf 'XXXXXX' | dd of="$dir/magic/train-x.npy" conv=notrunc status=none
bad_data "wrong magic of NPY" "train-x.npy" "$dir/magic"
copy half
rm "$dir/half/train-y.npy"
bad_data "labels missing" "train-y.npy" "$dir/half"
mkdir "$dir/ragged"
printf '1,2,0\n1,2\n' >"$dir/ragged/train.csv"
bad_data "ragged CSV" "line 2" "$dir/ragged"
mkdir "$dir/idx"
printf '\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2abcdefgh' >"$dir/idx/train-images-idx3-ubyte"
printf '\0\0\10\1\0\0\0\2\1' >"$dir/idx/train-labels-idx1-ubyte"
bad_data "truncated IDX" "train-labels-idx1-ubyte" "$dir/idx"
printf '\1\2\3\4\0\0\0\2\1\2' >"$dir/idx/train-labels-idx1-ubyte"
bad_data "wrong magic of IDX" "train-labels-idx1-ubyte" "$dir/idx"

### Data of the server
bad_evaluation() { # name, expected text, lines of YAML…
  local name=e-$1 text=$2
  shift 2
  write_server "$name" "$@"
  refuses "server data: $name" 5 "$text" "$serverd" "$dir/$name.yaml"
}
bad_evaluation "missing" "cannot open folder" "$small" "evaluation: {data: \"$dir/none\"}"
bad_evaluation "shape" "has 60 values" "model: {preset: mlr}" \
  "evaluation: {data: \"$dir/data/server\"}"
bad_evaluation "no test part" "test" "$small" "evaluation: {data: \"$dir/idx\"}"

### State folders. Exit code 4.
: >"$dir/file"
write_server below "$small" "state_dir: \"$dir/file/state\""
sed -i '2d' "$dir/below.yaml" # the other state_dir
refuses "server: a state folder that cannot be made" 4 "$dir/file" "$serverd" "$dir/below.yaml"
write_client below-c "$one"
sed -i "s|^state_dir:.*|state_dir: \"$dir/file/state\"|" "$dir/below-c.yaml"
refuses "client: a state folder that cannot be made" 4 "$dir/file" "$clientd" "$dir/below-c.yaml"

has_line "with its line and key" "$dir/says.out" "below-c.yaml:3: key 'state_dir': cannot make '$dir/file/state'"

### Sockets that cannot be made. Exit code 6.
write_server nowhere "$small" "listen: [\"unix:$dir/none/s.sock\"]"
refuses "a socket in a folder that is not there" 6 "key 'listen': cannot use folder '$dir/none'" \
  "$serverd" "$dir/nowhere.yaml"
write_server nowhere "$small" "admin_socket: $dir/none/s.sock"
refuses "an admin socket in a folder that is not there" 6 "key 'admin_socket': cannot use folder '$dir/none'" \
  "$serverd" "$dir/nowhere.yaml"
write_server nowhere "$small" "admin_socket: $dir/file"
refuses "an admin socket in the place of a file" 6 "key 'admin_socket': '$dir/file' exists and is not a socket" \
  "$serverd" "$dir/nowhere.yaml"

### Programs and first models that are not there. Exit code 5.
write_client program "" "trainer: command" "command: {program: [/nonexistent/program, x]}"
refuses "a program that is not there" 5 "key 'command.program': cannot run '/nonexistent/program'" \
  "$clientd" "$dir/program.yaml"
write_client program "" "trainer: command" "command: {program: [\"$dir/file\"]}"
refuses "a program that may not be run" 5 "key 'command.program': cannot run '$dir/file': Permission denied" \
  "$clientd" "$dir/program.yaml"
write_server model "model: {preset: dnn60, file: \"$dir/none.safetensors\"}"
refuses "a first model that is not there" 5 "key 'model.file': " "$serverd" "$dir/model.yaml"
write_server model "model: {preset: dnn60, file: \"$dir/file\"}"
refuses "a first model that is none" 5 "key 'model.file': " "$serverd" "$dir/model.yaml"

### A relative state folder is one of the current folder
write_server relative "$small"
sed -i 's|^state_dir:.*|state_dir: relative.state|' "$dir/relative.yaml"
cd "$dir" || exit 99
start_server relative
check "which is made there" test -s "$dir/relative.state/federation.db"
check "flctl finds it likewise" "$build/flctl" --state-dir relative.state status
stop relative
cd - >/dev/null || exit 99

write_server first "$small" "rounds: 3" "round: {start_clients: 2}"
start_server first
says "server: a state folder in use" 4 "in use" "$serverd" "$dir/first.yaml"
start_client twin "$one"
wait_for "twin joins" connected first 1
says "client: a state folder in use" 4 "in use" "$clientd" "$dir/twin.yaml"

### Addresses. Exit code 6; the running server is not disturbed.
write_server tcp "$small" 'listen: ["127.0.0.1:0"]'
start_server tcp
port=${address##*:}
write_server taken "$small" "listen: [\"127.0.0.1:$port\"]"
says "a port in use" 6 "127.0.0.1:$port" "$serverd" "$dir/taken.yaml"
write_server sock "$small" "listen: [\"unix:$dir/first.sock\"]"
says "a socket in use" 6 "$dir/first.sock" "$serverd" "$dir/sock.yaml"
stop tcp
equal "the server whose port was wanted still ran" 0 "$rc"
check "the server whose socket was wanted still answers" connected first 1

### A state folder of another federation, or of another model
address=unix:$dir/first.sock
start_client b "$dir/data/client-001"
wait_for "three rounds" at_round first 3
stop first
wait_end twin
wait_end b
cp "$dir/first.yaml" "$dir/other.yaml"
sed -i 's/^federation:.*/federation: other/' "$dir/other.yaml"
says "a state folder of another federation" 4 "belongs to federation 'integ'" "$serverd" "$dir/other.yaml"
sed 's/dnn60/mlr60/' "$dir/first.yaml" >"$dir/model.yaml"
says "a state folder of another model" 4 "model" "$serverd" "$dir/model.yaml"
head -c 100 /dev/urandom >"$dir/junk"
start_server first
check "what the folder holds is still there" at_round first 3
stop first
cp -r "$dir/first.state" "$dir/damaged.state"
write_server damaged "$small"
sed -i "s/^federation:.*/federation: integ/" "$dir/damaged.yaml"
database=$(find "$dir/damaged.state" -maxdepth 1 -name '*.db' -o -maxdepth 1 -name '*.sqlite*' | head -n 1)
check "the database is found" test -n "$database"
cp "$dir/junk" "$database"
rm -f "$database-wal" "$database-shm"
says "a database that is none" 4 "$database" "$serverd" "$dir/damaged.yaml"

### A server that is not there: the client goes on trying, and joins when it comes
write_server late "$small" "rounds: 1"
address=unix:$dir/late.sock
start_client early "$one"
wait_for "the client says whom it dials" in_log early "no connection to 'unix:$dir/late.sock'"
check "it goes on" running early
start_server late
wait_for "it joins when the server is there" at_round late 1
wait_end early
equal "and ends with the federation" 0 "$rc"
stop late

### Two clients of one name
write_server names "$small" "rounds: 0" "training: {epochs: 200}"
start_server names
start_client older "$one" "name: same" "reconnect: {after_refusal: 0s}"
wait_for "the older one works" in_log names "client 'same' joined"
start_client newer "$one" "name: same"
wait_end older
equal "the older one ends with 7" 7 "$rc"
has_line "and says why" "$dir/older.log" "a newer session with the same client name took over"
has_line "the server tells the operator" "$dir/names.log" "client 'same' disconnected: a newer session took over, from "
before=$(status_of names rounds_committed)
wait_for "the newer one serves" at_round names $((before + 2))
check "by itself" running newer
equal "one takeover is counted, and no error" "1 None" "$(ctl names clients --json | json '"%d %s" % (d[0]["takeovers"], d[0]["last_error"])')"
lacks_takeover() { ! ctl names why | grep -q "take over from each other"; }
check "why says nothing of it" lacks_takeover
start_client clone "$one" "name: same"
flips() { [ "$(ctl names clients --json | json 'd[0]["takeovers"]')" -ge 4 ]; }
wait_for "a copied machine and the first one take over from each other" flips
says "clients says what to do" 0 "two machines use its identity (a copied state folder or disk image?): stop one and give it its own invitation" \
  "$build/flctl" --state-dir "$dir/names.state" clients
has_line "and how long the right one takes to come back" "$dir/says.out" "the other connects within a minute"
has_line "and how often" "$dir/says.out" "sessions were taken over by a newer one of the same name"
says "so does why" 0 "sessions of client 'same' take over from each other: two machines use its identity" \
  "$build/flctl" --state-dir "$dir/names.state" why
wait_for "one waits, without ending the other's session" in_log names "refused: another session of this client is open"
logs_refusals_once() { # name: no two errors in a row about the same rival
  ! sed -n 's/.* error .* client: the server refused this client: //p' "$dir/$1.log" | uniq -d | grep -q "another session"
}
check "a client logs a refusal once, however often it asks" logs_refusals_once clone
check "so does the other" logs_refusals_once newer
kill_hard clone
before=$(status_of names rounds_committed)
wait_for "when one is stopped, the other goes on" at_round names $((before + 2))
kill_hard newer
stop names

### Data that does not fit the model: the client says both numbers and stays away
write_server fits "model: {preset: mlr}" "rounds: 1"
start_server fits
start_client short "$one" "reconnect: {after_refusal: 0s}"
wait_end short
equal "it ends with 7" 7 "$rc"
has_line "the client's numbers" "$dir/short.log" "60 values"
has_line "the model's numbers" "$dir/short.log" "784"
mkdir "$dir/labels"
for i in 0 1 2 3; do printf '%s%s\n' "$(printf '0.5,%.0s' $(seq 784))" $((i * 4)); done >"$dir/labels/train.csv"
start_client labels "$dir/labels" "reconnect: {after_refusal: 0s}"
wait_end labels
equal "a label out of range: 7" 7 "$rc"
has_line "the client's classes" "$dir/labels.log" "13"
has_line "the model's classes" "$dir/labels.log" "10"
check "the server waits for others" running fits
# The operator of the server hears it too, also after a restart.
check_told() { # when
  equal "$1: what was wrong is among the clients" True "$(ctl fits clients --json | json \
    'all("network " in c["last_error"] and c["last_error_ms"] > 1.6e12 for c in d if c["name"] in ("short", "labels")) and len(d) == 2')"
  ctl fits clients >"$dir/fits.clients"
  has_line "$1: for people" "$dir/fits.clients" "the server's network takes 784 inputs"
}
check_told "at once"
ctl fits why >"$dir/fits.why"
has_line "why has the newest" "$dir/fits.why" "; newest error, of 'labels' "
has_line "and so has the log, as a warning" "$dir/fits.log" "warning round: client 'short' cannot take part: the server's network takes 784 inputs"
stop fits
start_server fits
check_told "after a restart"
# Nobody has the names: what is left of them can be forgotten too.
says "a name of which the error is left" 0 "1 client forgotten" "$build/flctl" --state-dir "$dir/fits.state" clients forget short
says "only once" 1 "no client 'short' is known" "$build/flctl" --state-dir "$dir/fits.state" clients forget short
kill_hard fits
start_server fits
equal "a kill does not bring it back" labels "$(ctl fits clients --json | json '" ".join(c["name"] for c in d)')"
none_left() {
  ctl fits --unseen-for 1s clients forget >/dev/null
  [ "$(ctl fits clients --json | json d)" = "[]" ]
}
wait_for "the age of the other" none_left
stop fits
finish
