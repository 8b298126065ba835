#!/usr/bin/env bash
# TLS on both sides with an operator's own PKI, as docs/security.md#a-pki-of-your-own has it; and what goes wrong with
# certificates: each failure is named on the side that finds it, with file or peer, what was expected and what was found,
# and is an answer for good on the client (exit 7, or reconnect.after_refusal).
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/pki.sh
. "$(dirname "$0")/../pki.sh"
command -v openssl >/dev/null || skip "openssl(1) is not there"
cd "$dir" || exit 99

made() { "$@" >pki.out 2>&1 || { cat pki.out; errors=1 finish; }; }
made pki_authority ca
made pki_authority other
made pki_leaf ca server serverAuth DNS:localhost,IP:127.0.0.1
made pki_leaf ca edge-1 clientAuth DNS:edge-1.edge.example.org
made pki_leaf ca edge-2 clientAuth DNS:edge-2.edge.example.org
synthetic "$dir/data" 2 --seed 3

# name of the certificates of the server [lines…]: restarted with these
serve() {
  local cert=$1
  shift
  running srv && stop srv
  : >srv.log
  write_server srv "listen: [\"127.0.0.1:0\"]" "rounds: 2" "model: {preset: dnn60}" \
    "round: {start_clients: 2, min_responders: 2, retry: 20ms}" \
    "tls: {certificate: $cert.pem, key: $cert.key, ca: ca.pem, names: ['client dns:{name}.edge.example.org']${crl:+, crl: $crl}}" "$@"
  sed -i '/^insecure:/d' srv.yaml
  start_server srv || { cat srv.log; errors=1 finish; }
}

# file's name, folder of data, certificate, roots, lines of YAML…: named after the certificate unless they say another name
write_tls_client() {
  local name=$1 data=$2 cert=$3 ca=$4 more=()
  shift 4
  [[ " $*" == *" name:"* ]] || more+=("name: edge-1")
  [[ " $*" == *" tls:"* ]] || more+=("tls: {certificate: $cert.pem, key: $cert.key, ca: $ca.pem}")
  write_client "$name" "$data" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 0s}" "${more[@]}" "$@"
  sed -i '/^insecure:/d' "$name.yaml"
}

### A federation with it
serve server
for k in 1 2; do
  write_tls_client "edge-$k" "$dir/data/client-00$((k - 1))" "edge-$k" ca "name: edge-$k"
  run_client "edge-$k"
done
for k in 1 2; do
  wait_end "edge-$k"
  equal "client $k takes part to the end" 0 "$rc"
done
wait_for "2 rounds" at_round srv 2

### A name that was shown with a certificate is refused without TLS, also after a restart and while its client is away
serve server "listen_insecure: [\"unix:$dir/plain.sock\"]"
for k in 1 2; do
  write_tls_client "edge-$k" "$dir/data/client-00$((k - 1))" "edge-$k" ca "name: edge-$k"
  run_client "edge-$k"
done
for k in 1 2; do wait_end "edge-$k"; done
serve server "listen_insecure: [\"unix:$dir/plain.sock\"]"
tls_address=$address address=unix:$dir/plain.sock
write_client plain "$dir/data/client-000" "name: edge-1" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 0s}"
address=$tls_address
run_client plain
wait_end plain
equal "it is refused" 7 "$rc"
has_line "and hears why" plain.log "'edge-1' has a certificate and is refused without TLS"

### Files of the client: the start says the same as --check-config
file=$dir/data/client-001
client_files() { # what, text, certificate, key, roots
  write_tls_client c "$file" edge-1 ca
  sed -i "s|^tls:.*|tls: {certificate: $3, key: $4, ca: $5}|" c.yaml
  says "$1" 4 "$2" "$build/fl-clientd" --check-config c.yaml
  says "$1, at a start" 4 "$2" "$build/fl-clientd" c.yaml
}
head -c 200 edge-1.pem >half.pem
(umask 077 && head -c 80 edge-1.key >half.key && openssl ec -in edge-1.key -aes128 -passout pass:x -out locked.key 2>/dev/null)
cp edge-1.key open.key && chmod 644 open.key
: >empty.pem
client_files "no certificate" "none.pem" none.pem edge-1.key ca.pem
client_files "no key" "none.key" edge-1.pem none.key ca.pem
client_files "no roots" "none.pem" edge-1.pem edge-1.key none.pem
client_files "half a certificate" "half.pem" half.pem edge-1.key ca.pem
client_files "an empty certificate" "empty.pem" empty.pem edge-1.key ca.pem
client_files "half a key" "half.key" edge-1.pem half.key ca.pem
client_files "a key with a passphrase" "locked.key" edge-1.pem locked.key ca.pem
client_files "a key that others may read" "open.key" edge-1.pem open.key ca.pem
client_files "a key of another certificate" "edge-2.key" edge-1.pem edge-2.key ca.pem
client_files "a key in place of a certificate" "edge-1.key" edge-1.key edge-1.key ca.pem
client_files "a certificate in place of a key" "edge-1.pem" edge-1.pem edge-1.pem ca.pem
write_tls_client c "$file" edge-1 ca
sed -i "/^tls:/d" c.yaml
says "nothing of all that" 4 "ask the operator of the server for an invitation" "$build/fl-clientd" --check-config c.yaml

### Connections: client, its log, the server's log
# name of the case, certificate of the client, its roots, text in the client's log, text in the server's log [lines of YAML…]
refused() {
  local what=$1 cert=$2 ca=$3 client=$4 server=$5
  shift 5
  : >c.log
  write_tls_client c "$file" "$cert" "$ca" "$@"
  run_client c
  wait_end c
  equal "$what: an answer for good" 7 "$rc"
  has_line "$what: the client's log" c.log "$client"
  [ -z "$server" ] || wait_for "$what: the server's log" grep -qF -- "$server" srv.log
}
made pki_leaf other stranger clientAuth DNS:edge-1.edge.example.org
made pki_leaf ca past clientAuth DNS:edge-1.edge.example.org 20200101000000Z 20210101000000Z
made pki_leaf ca future clientAuth DNS:edge-1.edge.example.org 20900101000000Z 20910101000000Z
made pki_leaf ca asserver serverAuth DNS:edge-1.edge.example.org
made pki_leaf ca nameless clientAuth DNS:edge-1.example.org
made pki_leaf ca broken clientAuth DNS:edge-1.edge.example.org
made pki_leaf other root2 serverAuth DNS:localhost,IP:127.0.0.1
made pki_leaf ca elsewhere serverAuth DNS:fl.example.org,IP:192.0.2.1
made pki_leaf ca pastserver serverAuth DNS:localhost,IP:127.0.0.1 20200101000000Z 20210101000000Z
made pki_leaf ca asclient clientAuth DNS:localhost,IP:127.0.0.1

refused "roots of another PKI" edge-1 other "no connection to '$address'" "127.0.0.1"
refused "a certificate of another PKI" stranger ca "no connection to '$address'" "stranger"
refused "a certificate that is over" past ca "no connection to '$address'" "past"
has_line "a certificate that is over: both times" srv.log "2021-01-01"
# Whether the certificate or the clock is wrong the client cannot know: it waits, and says both times.
: >c.log
write_tls_client c "$file" future ca
run_client c
wait_for "a certificate that is not valid yet: both times" in_log c "valid from 2090-01-01 00:00:00Z"
running c || note_failure "a certificate that is not valid yet: the client does not wait"
stop c
refused "a server's certificate on a client" asserver ca "no connection to '$address'" "asserver"
refused "no rule for the name" nameless ca "no connection to '$address'" "nameless"
refused "another name than the certificate's" edge-2 ca "edge-2" "" "name: edge-1"

crl=ca.crl
made pki_list ca
serve server
refused "a list that does not have it is no matter, the name is" edge-2 ca "edge-2" "" "name: edge-1"
made pki_revoke ca broken
serve server
refused "a revoked certificate" broken ca "no connection to '$address'" "broken"
crl=

### A server that a client does not believe, and one that cannot start
serve elsewhere
refused "a server of another host" edge-1 ca "127.0.0.1" "127.0.0.1"
has_line "a server of another host: what it is for" c.log "fl.example.org"
refused "the same, when that is what is meant: it is the name that counts" stranger ca "no connection" "stranger" \
  "tls: {certificate: stranger.pem, key: stranger.key, ca: ca.pem, server_name: fl.example.org}"
serve root2
refused "a server of another PKI" edge-1 ca "no connection to '$address'" "127.0.0.1"

### Plaintext on one side
serve server
write_client c "$file" "name: edge-1" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 0s}"
run_client c
wait_for "a client in plaintext to be told" in_log c "the peer speaks TLS"
wait_for "a server to say it" in_log srv "without TLS"
stop c
### The commands of docs/security.md, as they stand there; the server's by the change that it names
mkdir doc
sed -n '/^With openssl alone:/,/^The server/p' "$srcdir/docs/security.md" | sed -n 's/^    //p' >doc/client.sh
sed -e '/ca\.key$/,/-out ca\.pem/d' -e 's/clientAuth/serverAuth/; s/client/server/g; s/CN=edge-001/CN=fl.example.org/' \
  -e 's/DNS:edge-001.edge.example.org/DNS:localhost,IP:127.0.0.1/' doc/client.sh >doc/server.sh
check "the documented commands make a client's certificate" bash -ec "cd doc && . ./client.sh"
check "and a server's" bash -ec "cd doc && . ./server.sh"
stop srv
write_server own "listen: [\"127.0.0.1:0\"]" "rounds: 1" "model: {preset: dnn60}" \
  "round: {start_clients: 1, min_responders: 1, retry: 20ms}" \
  "tls: {certificate: doc/server.pem, key: doc/server.key, ca: doc/ca.pem, names: ['client dns:{name}.edge.example.org']}"
sed -i '/^insecure:/d' own.yaml
start_server own || { cat own.log; errors=1 finish; }
write_tls_client edge-001 "$dir/data/client-000" doc/client doc/ca "name: edge-001"
run_client edge-001
wait_end edge-001
equal "who has one of them takes part to the end" 0 "$rc"

finish
