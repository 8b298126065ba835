#!/usr/bin/env bash
# Each failure of docs/operating.md#failures has its message, and the page says it: here those of folders and disks.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/failures.sh
. "$(dirname "$0")/../failures.sh"
synthetic "$dir/data" 2 --seed 3
serverd=$build/fl-serverd
clientd=$build/fl-clientd
small='model: {preset: dnn60}'

### Whose the folder is
documented no-configuration "$serverd" "$dir/none.yaml"
documented client-no-configuration "$clientd" "$dir/none.yaml"
write_server srv "$small" "rounds: 2" "round: {start_clients: 2, min_responders: 2}"
start_server srv
for i in 0 1; do start_client "c$i" "$dir/data/client-00$i" "exit_when_done: no"; done
wait_for "two rounds" at_round srv 2
documented two-servers "$serverd" "$dir/srv.yaml"
documented two-clients "$clientd" "$dir/c0.yaml"
check "backup" "$build/flctl" --state-dir "$dir/srv.state" backup "$dir/backup"
rm -rf "$dir/mine" && cp -r "$dir/srv.state" "$dir/mine.state"
documented restore-running "$build/flctl" --state-dir "$dir/srv.state" restore "$dir/backup"
for s in srv c0 c1; do stop "$s"; done

# Another user: nobody runs the programs in a folder of root. As another user than root this cannot be made.
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$serverd"; then
  chmod 755 "$dir"
  mkdir -m 777 "$dir/sockets"
  nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  write_server user "$small" "listen: [\"unix:$dir/sockets/s\"]" "admin_socket: $dir/sockets/admin"
  sed "s|$dir/user.state|$dir/srv.state|" "$dir/user.yaml" >"$dir/theirs.yaml"
  documented state-user "${nobody[@]}" "$serverd" "$dir/theirs.yaml"
  documented client-state-user "${nobody[@]}" "$clientd" "$dir/c0.yaml"
  documented state-user "${nobody[@]}" "$serverd" --check-config "$dir/theirs.yaml"
  cp -r "$dir/srv.state" "$dir/user.state"
  chown -R 65534:65534 "$dir/user.state"
  chown root: "$dir/user.state/federation.db"
  documented database-user "${nobody[@]}" "$serverd" "$dir/user.yaml"
  chown 65534 "$dir/user.state/federation.db"
  chown root: "$dir/user.state/.lock"
  chmod 600 "$dir/user.state/.lock"
  documented lock-user "${nobody[@]}" "$serverd" "$dir/user.yaml"
else
  echo "not run: folders of another user (only root can make them, and $serverd has to be for everybody)"
fi

### What is in it
: >"$dir/file"
write_server place "$small"
sed -i "s|^state_dir:.*|state_dir: \"$dir/file/state\"|" "$dir/place.yaml"
documented state-place "$serverd" "$dir/place.yaml"
sed 's/^federation:.*/federation: other/' "$dir/srv.yaml" >"$dir/other.yaml"
documented state-federation "$serverd" "$dir/other.yaml"
sed 's/dnn60/mlr60/' "$dir/srv.yaml" >"$dir/model.yaml"
documented state-model "$serverd" "$dir/model.yaml"
again() { rm -rf "$dir/srv.state" && cp -r "$dir/mine.state" "$dir/srv.state"; }
again
rm "$dir"/srv.state/federation.db*
documented database-gone "$serverd" "$dir/srv.yaml"
again
rm -f "$dir"/srv.state/federation.db-*
head -c 100000 /dev/urandom >"$dir/srv.state/federation.db"
documented database-damaged "$serverd" "$dir/srv.yaml"
again
sql() { "$python" -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript(sys.argv[2])' "$dir/srv.state/federation.db" "$1"; }
rm -f "$dir"/srv.state/federation.db*
sql "CREATE TABLE other (x)"
documented database-other "$serverd" "$dir/srv.yaml"
again
sql "INSERT INTO migration (version, applied_ms) VALUES (99, 0)"
documented state-newer "$serverd" "$dir/srv.yaml"
says "no backup is made of it" 1 "has schema version 99" "$build/flctl" --state-dir "$dir/srv.state" backup "$dir/later"
again
rm "$dir"/srv.state/models/*
cp "$dir/data/client-000/train-y.npy" "$dir/srv.state/models/round-000007.safetensors"
documented checkpoints-bad "$serverd" "$dir/srv.yaml"
later() { # file, of a later format
  printf 'FL-FILE2%04088d' 0 >"$1"
}
mkdir -p "$dir/c0.state/keep"
later "$dir/c0.state/result.bin"
documented result-newer "$clientd" "$dir/c0.yaml"
rm "$dir/c0.state/result.bin"
later "$dir/c0.state/keep/index"
documented kept-newer "$clientd" "$dir/c0.yaml"
rm "$dir/c0.state/keep/index"

### Disks that are full: for these processes no file may be larger than 300 KiB
wide='model: {input: 60, layers: ["dense 2000", "relu", "dense 10"]}'
write_server full "$wide" "rounds: 1" "round: {start_clients: 2, min_responders: 2, retry: 50ms}"
documented disk-full bash -c 'ulimit -f 300 && exec "$@"' limited "$serverd" "$dir/full.yaml"
start_server full
stop full
real=$build
mkdir "$dir/small"
for daemon in fl-serverd fl-clientd; do
  printf '#!/usr/bin/env bash\nulimit -f 300\nexec "%s/%s" "$@"\n' "$real" "$daemon" >"$dir/small/$daemon"
  chmod +x "$dir/small/$daemon"
done
build=$dir/small
start_server full
for i in 0 1; do start_client "f$i" "$dir/data/client-00$i"; done
build=$real
wait_for "an upload that cannot be stored" in_log full "upload of client 'f0' for round 1 ended: "
wait_for "a result that cannot be kept" in_log f0 "the result is not saved on disk"
documented_log upload-full "$dir/full.log"
documented_log result-full "$dir/f0.log"
for s in f0 f1 full; do stop "$s"; done
start_server full # with room
for i in 0 1; do start_client "f$i" "$dir/data/client-00$i"; done
wait_for "the round when there is room" at_round full 1
for s in f0 f1 full; do stop "$s"; done

### Sockets
write_server nowhere "$small" "listen: [\"unix:$dir/none/s.sock\"]"
documented socket-place "$serverd" "$dir/nowhere.yaml"
write_server tcp "$small" 'listen: ["127.0.0.1:0"]'
start_server tcp
write_server taken "$small" "listen: [\"127.0.0.1:${address##*:}\"]"
documented port-taken "$serverd" "$dir/taken.yaml"
stop tcp

### Backups
again
ctl_of=("$build/flctl" --state-dir "$dir/srv.state")
documented backup-target "${ctl_of[@]}" backup "$dir/backup"
mkdir "$dir/nothing"
documented backup-nothing "$build/flctl" --state-dir "$dir/nothing" backup "$dir/x"
documented restore-over "${ctl_of[@]}" restore "$dir/backup"
documented restore-half "$build/flctl" --state-dir "$dir/x.state" restore "$dir/nothing"
printf x | dd of="$dir/backup/state/models/round-000002.safetensors" bs=1 seek=3000 conv=notrunc status=none
documented restore-damaged "$build/flctl" --state-dir "$dir/x.state" restore "$dir/backup"
printf x | dd of="$dir/srv.state/models/round-000002.safetensors" bs=1 seek=3000 conv=notrunc status=none
documented backup-damaged "${ctl_of[@]}" backup "$dir/bad"

### The page
rows=$(sed -n 's/^| \([a-z-]*\) | .* | .* | .* | .* | .* |$/\1/p' "$srcdir/docs/operating.md" | grep -v '^failure$' | grep -v -- '^-*$')
check "the page has at least 25 failures" test "$(wc -l <<<"$rows")" -ge 25
for row in $rows; do
  check "'$row' is provoked by a test" grep -qE "documented(_log)? $row( |\$)" "$srcdir"/tests/system/*/*.sh
done
equal "each has one row" "" "$(sort <<<"$rows" | uniq -d)"
finish
