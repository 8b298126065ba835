#!/usr/bin/env bash
# What changes while sessions stand: another certificate of the server, a list of revoked ones, a certificate that ends.
# Who has nothing to do with it keeps its connection. With an operator's own PKI, since there everything can be said from
# outside.
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
made pki_leaf ca second serverAuth DNS:localhost,IP:127.0.0.1
for k in 1 2; do made pki_leaf ca "edge-$k" clientAuth "DNS:edge-$k.edge.example.org"; done
made pki_list ca
synthetic "$dir/data" 2 --seed 3
for what in certificate key; do cp "server.${what/certificate/pem}" "now.$what"; done
chmod 600 now.key

# Both are there, and wait for a third that never comes.
write_server srv "listen: [\"127.0.0.1:0\"]" "rounds: 1" "model: {preset: dnn60}" "round: {start_clients: 3}" \
  "tls: {certificate: now.certificate, key: now.key, ca: ca.pem, crl: ca.crl, names: ['client dns:{name}.edge.example.org']}"
sed -i '/^insecure:/d' srv.yaml
start_server srv || finish
client() { # name, certificate
  write_client "$1" "$dir/data/client-000" "name: $1" "reconnect: {first: 50ms, longest: 200ms}" \
    "tls: {certificate: $2.pem, key: $2.key, ca: ca.pem}"
  sed -i '/^insecure:/d' "$1.yaml"
  run_client "$1"
}
client edge-1 edge-1
client edge-2 edge-2
wait_for "both clients" connected srv 2
shown() { openssl s_client -connect "$address" -alpn h2 </dev/null 2>/dev/null | openssl x509 -noout -serial; }
is_shown() { [ "$(shown)" = "$(openssl x509 -noout -serial -in "$1.pem")" ]; }
joins() { grep -c "joined federation" "$1.log"; }

### Another certificate of the server
check "the server shows its certificate" is_shown server
cp second.key now.key && cp second.pem now.certificate
kill -HUP "${pid_of[srv]}"
wait_for "the new one to be shown" is_shown second
cp server.key now.key && cp server.pem now.certificate
wait_for "the old one again, without a signal" is_shown server
equal "nobody had to come again" "1 1" "$(joins edge-1) $(joins edge-2)"

### One that is wrong
cp other.key now.key && chmod 600 now.key
wait_for "a key of another certificate to be named" in_log srv "now.key"
check "what was in force is shown" is_shown server
head -c 300 server.pem >now.certificate
wait_for "half a file to be named" in_log srv "now.certificate': line"
check "what was in force is still shown" is_shown server
cp server.key now.key && cp server.pem now.certificate

### A list with one of them
made pki_revoke ca edge-1
wait_for "the one on the list to hear of it" in_log edge-1 "is revoked by the list"
wait_for "it to be away" connected srv 1
has_line "the server names it with its peer" srv.log "the certificate of 'edge-1' is revoked by the list 'ca.crl'"
equal "the other one did not notice" 1 "$(joins edge-2)"
stop edge-1

### A certificate that ends while its session stands
made pki_leaf ca edge-3 clientAuth DNS:edge-3.edge.example.org "$(date -u -d '-1 hour' +%Y%m%d%H%M%SZ)" \
  "$(date -u -d '+12 seconds' +%Y%m%d%H%M%SZ)"
client edge-3 edge-3
wait_for "it to join, or to come too late on a slow machine" grep -qE "joined federation|was over at|ended|expired" edge-3.log
wait_for "it to be told that it is over" grep -qE "was over at|ended|expired" edge-3.log
wait_for "it to be away" connected srv 1
equal "the other one did not notice that either" 1 "$(joins edge-2)"
stop edge-3
stop edge-2
finish
