#!/usr/bin/env bash
# What --check-config says is what a start needs: all errors at once, the addresses, the values that cannot be meant, as the
# owner of the state folder, before the first start and beside a running server. It changes nothing.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 3
serverd=$build/fl-serverd
clientd=$build/fl-clientd
small='model: {preset: dnn60}'
has() { has_line "$1" "$dir/says.out" "$2"; }
lacks() { lacks_line "$1" "$dir/says.out" "$2"; }

### All errors of a file at once, also at the start
write_server many "$small" "rouns: 3" "round: {start_clients: many, retry: 5}" "strategy: {codec: {name: int9}}"
for how in --check-config ""; do
  # shellcheck disable=SC2086 # no argument at all
  says "a wrong key ($how)" 3 "many.yaml:6: unknown key 'rouns'" "$serverd" $how "$dir/many.yaml"
  has "and a wrong number ($how)" "many.yaml:7: key 'round.start_clients': expected a whole number"
  has "and a duration ($how)" "many.yaml:7: key 'round.retry': expected a duration"
  has "and a policy ($how)" "many.yaml:8: key 'strategy.codec"
  equal "nothing else ($how)" 4 "$(wc -l <"$dir/says.out")"
done
address=unix:$dir/none.sock
write_client many "" "unknown: 1" "limits: {upload_rate: 5}"
sed -i '/^state_dir:/d' "$dir/many.yaml"
says "the same of a client" 3 "unknown key 'unknown'" "$clientd" --check-config "$dir/many.yaml"
has "and its limit" "key 'limits.upload_rate'"
has "and what is missing" "the required key 'state_dir' is missing"
equal "and nothing else" 3 "$(wc -l <"$dir/says.out")"

### Values that fit their range and cannot be meant
write_server zero "$small" "training: {learning_rate: 0}" "round: {min_clients: 30}" "limits: {clients: 20}" \
  "identity: {hosts: [\"https://fl.example.org/\", \"fl.example.org:0\", \"fl.example.org:443\", \"::1\", \"fl.example.org\"]}"
says "a step size of 0" 3 "key 'training.learning_rate': expected a number above 0" "$serverd" --check-config "$dir/zero.yaml"
has "more clients than may connect" "key 'limits.clients': expected at least round.min_clients, 30, found 20"
has "a URL" "key 'identity.hosts': 'https://fl.example.org/': expected only the name or address of a host, found a URL"
has "a port that is none" "key 'identity.hosts': 'fl.example.org:0': expected the name or address of a host, and a port from 1 on or none"
equal "addresses and names are hosts" 4 "$(wc -l <"$dir/says.out")"
write_server zero "$small" "training: {learning_rate_decay: 0}"
says "a step size of 0 from the second round on" 3 "key 'training.learning_rate_decay': expected a number above 0" \
  "$serverd" --check-config "$dir/zero.yaml"
write_server zero "$small" "round: {min_responders: 30}" "limits: {clients: 20}"
says "more responders than may connect" 3 "expected at least round.min_responders, 30, found 20" \
  "$serverd" --check-config "$dir/zero.yaml"
write_server odd "$small" "training: {learning_rate: 500}" "round: {start_clients: 2, min_clients: 5, population: 4}"
says "odd values are warnings" 0 "key 'training.learning_rate': warning: " "$serverd" --check-config "$dir/odd.yaml"
has "of a number without effect" "key 'round.start_clients': warning: 2 has no effect: no round starts with fewer clients than min_clients, 5"
has "of more clients than there are" "key 'round.min_clients': warning: "
start_server odd
has_line "the log of a start has them" "$dir/odd.log" "key 'training.learning_rate': warning: "
stop odd
write_server beside "model: {preset: mlp200}" "algorithm: scaffold" "strategy: {codec: ternary}"
says "what a codec does not shrink" 0 "key 'strategy': warning: codec 'ternary' makes " "$serverd" --check-config "$dir/beside.yaml"
has "with the bytes" "but solver 'scaffold' sends 'control_change' uncompressed beside it: "
has "and with what is less" "codec float32 with solver {rebuild_dc: yes} sends 796.8 kB"
write_server beside "model: {preset: mlp200}" "algorithm: lean+scaffold"
says "of a preset" 0 "key 'algorithm': warning: codec 'ternary' makes " "$serverd" --check-config "$dir/beside.yaml"
write_server beside "model: {preset: mlp200}" "algorithm: scaffold"
says "without a codec" 0 "beside.yaml" "$serverd" --check-config "$dir/beside.yaml"
equal "nothing is said" 0 "$(grep -c "uncompressed beside it" "$dir/says.out")"
write_server beside "model: {preset: mlp200}" "algorithm: lean+scaffold"
start_server beside
has_line "the log of a start has it too" "$dir/beside.log" "key 'algorithm': warning: codec 'ternary' makes "
stop beside

### Addresses
write_server held "$small" "listen: [\"127.0.0.1:0\"]"
start_server held
held=$address
write_server place "$small" "listen: [\"$held\"]" "listen_insecure: [\"unix:$dir/none/s.sock\"]" \
  "listen_admin: [\"192.0.2.1:7800\"]" "evaluation: {data: $dir/none}"
says "an address in use" 6 "key 'listen': address in use by another process, and no server of this state folder is running" \
  "$serverd" --check-config "$dir/place.yaml"
has "one that is not of this machine" "key 'listen_admin': cannot listen on 192.0.2.1:7800: "
has "a folder that is not there" "key 'listen_insecure': cannot use folder '$dir/none'"
has "and the data" "cannot open folder '$dir/none'"
check "nothing is made" test ! -e "$dir/place.state"
sed -i "s|^listen:.*|listen: [\"$held\"]|" "$dir/held.yaml"
says "the running server of the folder has its addresses" 0 "'$held' is in use, by the server of this state folder" \
  "$serverd" --check-config "$dir/held.yaml"
check "it is still there" ctl held status
stop held
says "then they are free" 0 "ok: federation" "$serverd" --check-config "$dir/held.yaml"
lacks "nothing is said of them" "is in use"

### Before the first start: systemd makes the folder of the admin socket
write_server first "$small" "admin_socket: /run/fl-test-none-$$/admin.sock"
says "a folder below /run that is not there" 0 "RuntimeDirectory= of the unit creates it at the start" \
  "$serverd" --check-config "$dir/first.yaml"
says "a start needs it" 6 "key 'admin_socket': cannot use folder '/run/fl-test-none-$$'" "$serverd" "$dir/first.yaml"

### Another federation's folder
sed 's/^federation:.*/federation: other/' "$dir/held.yaml" >"$dir/other.yaml"
says "another federation's folder" 4 "belongs to federation 'integ', not 'other'" "$serverd" --check-config "$dir/other.yaml"

### Another model than that of the folder, with the message of a start, and nothing is written
sed 's/preset: dnn60/preset: mlp200/' "$dir/held.yaml" >"$dir/model.yaml"
folder() { (cd "$dir/held.state" && find . -type f -exec sha256sum {} + | sort); }
before=$(folder)
says "another model's folder" 4 "belongs to another model (" "$serverd" --check-config "$dir/model.yaml"
grep -o "belongs to another model.*" "$dir/says.out" >"$dir/checked"
equal "nothing is written" "$before" "$(folder)"
says "a start says so, too" 4 "$(cat "$dir/checked")" "$serverd" "$dir/model.yaml"

### Root checks as the owner of the state folder
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$serverd"; then
  chmod 755 "$dir"
  write_server owner "$small" "listen: [\"127.0.0.1:0\"]" "evaluation: {data: \"$dir/data/server\"}"
  mkdir -m 750 "$dir/owner.state"
  chown 65534:65534 "$dir/owner.state"
  chmod 600 "$dir/owner.yaml"
  chmod 700 "$dir/data/server"
  touch "$dir/owner.state/kept"
  says "what the owner cannot read" 5 "cannot open folder '$dir/data/server': Permission denied" \
    "$serverd" --check-config "$dir/owner.yaml"
  has "as whom it is checked" "checked as user '"
  has "whether it can read the file" "cannot read this file: Permission denied"
  lacks "no advice to take the folder from the service" "chown"
  chmod 755 "$dir/data/server"
  chmod 644 "$dir/owner.yaml"
  says "what it can" 0 "ok: federation" "$serverd" --check-config "$dir/owner.yaml"
  lacks "and the file" "cannot read this file"
  equal "nothing was made there" kept "$(ls -A "$dir/owner.state")"
  write_client own-c "$dir/data/client-000"
  mkdir -m 750 "$dir/own-c.state"
  chown 65534:65534 "$dir/own-c.state"
  chmod 700 "$dir/data/client-000"
  says "data that a client's user cannot read" 5 "cannot open folder '$dir/data/client-000': Permission denied" \
    "$clientd" --check-config "$dir/own-c.yaml"
  has "as whom it is checked" "checked as user '"
  chmod 755 "$dir/data/client-000"
  says "and when it can" 0 "ok: client 'own-c'" "$clientd" --check-config "$dir/own-c.yaml"
else
  echo "not run: the owner of a state folder (only root can become another user, and $serverd has to be for everybody)"
fi

### A key that systemd hands to the service: LoadCredential=
write_server credential "$small"
sed -i '/^insecure:/d' "$dir/credential.yaml"
check "an identity" "$serverd" --init "$dir/credential.yaml"
mkdir "$dir/credentials"
mv "$dir/credential.state/identity/server.key" "$dir/credentials/server.key"
says "a key that only the service has is a note" 0 "identity/server.key: not found, so the key was not checked" \
  "$serverd" --check-config "$dir/credential.yaml"
says "a credential is the key" 0 "ok: federation" \
  env CREDENTIALS_DIRECTORY="$dir/credentials" "$serverd" --check-config "$dir/credential.yaml"
lacks "nothing is missing with it" "not found"
openssl ecparam -name prime256v1 -genkey -noout -out "$dir/credentials/server.key"
says "a credential that does not belong to the certificate" 8 "server.key" \
  env CREDENTIALS_DIRECTORY="$dir/credentials" "$serverd" --check-config "$dir/credential.yaml"
finish
