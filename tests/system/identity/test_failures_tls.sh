#!/usr/bin/env bash
# Each failure of docs/operating.md#failures has its message, and the page says it: here those of certificates and of TLS, with an
# operator's own PKI, where every certificate can be made wrong. Both sides say their part; what does not pass by itself is
# asked again after reconnect.longest or, when it is final, after_refusal; what may pass after the short pause.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/failures.sh
. "$(dirname "$0")/../failures.sh"
# shellcheck source=tests/system/pki.sh
. "$(dirname "$0")/../pki.sh"
command -v openssl >/dev/null || skip "openssl(1) is not there"
cd "$dir" || exit 99
serverd=$build/fl-serverd
clientd=$build/fl-clientd

made() { "$@" >pki.out 2>&1 || { cat pki.out; errors=1 finish; }; }
made pki_authority ca
made pki_authority other
here=DNS:localhost,IP:127.0.0.1
edge=DNS:edge-1.edge.example.org
long_ago="20200101000000Z 20210101000000Z"
made pki_leaf ca server serverAuth "$here"
made pki_leaf ca edge-1 clientAuth "$edge"
made pki_leaf ca edge-2 clientAuth DNS:edge-2.edge.example.org
made pki_leaf ca ops-1 clientAuth email:ops-1@ops.example.org
synthetic "$dir/data" 1 --seed 3
data=$dir/data/client-000

# certificate of the server [lines…]: started anew with it
serve() {
  local cert=$1
  shift
  ! running srv || stop srv
  : >srv.log
  write_server srv "listen: [\"127.0.0.1:0\"]" "listen_admin: [\"127.0.0.1:0\"]" "model: {preset: dnn60}" "round: {start_clients: 2}" \
    "tls: {certificate: $cert.pem, key: $cert.key, ca: ca.pem${crl:+, crl: $crl}, names: ['client dns:{name}.edge.example.org', 'admin email:{name}@ops.example.org']}" "$@"
  sed -i '/^insecure:/d' srv.yaml
  start_server srv || { cat srv.log; errors=1 finish; }
}

# certificate, roots [name]: c.yaml
write_edge() {
  write_client c "$data" "name: ${3:-edge-1}" "reconnect: {first: 50ms, longest: 20s, after_refusal: 20m}" \
    "tls: {certificate: $1.pem, key: $1.key, ca: $2.pem}"
  sed -i '/^insecure:/d' c.yaml
}
said() { # text: the server says it of the last try
  [ "$(tail -n "+$((before + 1))" srv.log | grep -cF -- "$1")" -gt 0 ]
}
# text that the server says [final]. What the client has said is in c.log then, what the server has in there.log. What an
# operator can cure is asked again within 20 s (`longest`), what is final within 20 to 24 minutes (`after_refusal`).
meets_refusal() {
  local wait='(1[6-9]|20) s'
  [ "${2:-}" != final ] || wait='1[234][0-9][0-9] s'

  before=$(wc -l <srv.log)
  : >c.log
  run_client c
  wait_for "a client that is refused" in_log c "reconnecting in "
  check "when it asks again ($1)" grep -qE "reconnecting in $wait" c.log
  check "that it goes on" running c
  stop c
  wait_for "the server to say '$1'" said "$1"
  tail -n "+$((before + 1))" srv.log >there.log
}
# what may pass by itself: text of the client, again and again
meets_trouble() {
  : >c.log
  run_client c
  tries() { [ "$(grep -cF -- "$1" c.log)" -ge 3 ]; }
  wait_for "a client that tries again" tries "$1"
  stop c
  lacks_line "nothing is said of a long wait" c.log "reconnecting in"
}
refused() { # certificate, roots, text of the server [name [final]]
  write_edge "$1" "$2" "${4:-}"
  meets_refusal "$3" "${5:-}"
}

### Files: of a client, and the same of a server
head -c 200 edge-1.pem >half.pem
(umask 077 && head -c 80 edge-1.key >half.key && openssl ec -in edge-1.key -aes128 -passout pass:x -out locked.key 2>/dev/null)
cp edge-1.key open.key && chmod 644 open.key
: >empty.pem
files() { # certificate, key, roots: c.yaml
  address=127.0.0.1:1
  write_edge edge-1 ca
  sed -i "s|^tls:.*|tls: {certificate: $1, key: $2, ca: $3}|" c.yaml
}
server_files() { # s.yaml
  write_server s "model: {preset: dnn60}" "listen: [\"127.0.0.1:0\"]" \
    "tls: {certificate: $1, key: $2, ca: $3, names: ['client dns:{name}.edge.example.org']}"
  sed -i '/^insecure:/d' s.yaml
}
files none.pem edge-1.key ca.pem && documented certificate-missing "$clientd" c.yaml
files half.pem edge-1.key ca.pem && documented certificate-half "$clientd" c.yaml
documented certificate-half "$clientd" --check-config c.yaml
files empty.pem edge-1.key ca.pem && documented certificate-empty "$clientd" c.yaml
files edge-1.pem edge-1.key half.pem && documented roots-half "$clientd" c.yaml
files edge-1.pem half.key ca.pem && documented key-half "$clientd" c.yaml
files edge-1.pem locked.key ca.pem && documented key-locked "$clientd" c.yaml
files edge-1.pem open.key ca.pem && documented key-open "$clientd" c.yaml
documented key-open "$clientd" --check-config c.yaml
files edge-1.pem edge-2.key ca.pem && documented key-other "$clientd" c.yaml
files edge-1.key edge-1.key ca.pem && documented files-swapped "$clientd" c.yaml
server_files half.pem edge-1.key ca.pem && documented server-certificate-half "$serverd" s.yaml
server_files server.pem half.key ca.pem && documented server-key-half "$serverd" s.yaml
server_files server.pem open.key ca.pem && documented server-key-open "$serverd" s.yaml
server_files server.pem edge-2.key ca.pem && documented server-key-other "$serverd" s.yaml

### Certificates of clients that a server refuses
made pki_leaf other stranger clientAuth "$edge"
# shellcheck disable=SC2086
made pki_leaf ca past clientAuth "$edge" $long_ago
made pki_leaf ca future clientAuth "$edge" 20900101000000Z 20910101000000Z
made pki_leaf ca asserver serverAuth "$edge"
made pki_leaf ca nameless clientAuth DNS:edge-1.example.org
made pki_leaf ca exchange clientAuth "$edge"
sed -i 's/^keyUsage=.*/keyUsage=critical,keyAgreement/' exchange.ext
made openssl ca -batch -notext -config ca.d/ca.cnf -in exchange.csr -extfile exchange.ext -out exchange.pem
serve server
refused edge-1 other "unknown CA"
documented_log roots-other c.log
documented_log roots-other-there there.log
refused stranger ca "certificate 'CN=stranger'"
documented_log federation-other c.log
documented_log federation-other-there there.log
refused past ca "certificate 'CN=past'"
documented_log certificate-over c.log
documented_log certificate-over-file c.log
documented_log certificate-over-there there.log
refused asserver ca "certificate 'CN=asserver'"
documented_log usage-server c.log
documented_log usage-server-there there.log
refused exchange ca "certificate 'CN=exchange'"
documented_log usage-key-there there.log
refused nameless ca "certificate 'CN=nameless'"
documented_log name-no-rule c.log
documented_log name-no-rule-there there.log
refused edge-2 ca "client 'edge-1' at" edge-1 final
documented_log name-other c.log
documented_log name-other-there there.log
refused ops-1 ca "permission denied" ops-1
documented_log admin-at-clients c.log
documented_log admin-at-clients-there there.log
clients=$address
address=$(sed -n 's/^admin \(127.*\)/\1/p' srv.out)
refused edge-1 ca "unknown method" '' final
documented_log client-at-admins c.log
documented_log client-at-admins-there there.log
address=$clients
# Whether the certificate or the clock is wrong it cannot know: it waits for the clock, and bothers nobody.
write_edge future ca
: >c.log
run_client c
wait_for "a client with a certificate that is not valid yet" in_log c "waiting for the time service"
documented_log certificate-early c.log
stop c
made pki_revoke ca edge-2
crl=ca.crl
serve server
refused edge-2 ca "revoked on" edge-2
documented_log certificate-revoked c.log
documented_log certificate-revoked-there there.log
crl=''

### Certificates of servers that a client refuses
made pki_leaf other root2 serverAuth "$here"
made pki_leaf ca elsewhere serverAuth DNS:fl.example.org,IP:192.0.2.1
# shellcheck disable=SC2086
made pki_leaf ca pastserver serverAuth "$here" $long_ago
made pki_leaf ca early serverAuth "$here" 20900101000000Z 20910101000000Z
made pki_leaf ca asclient clientAuth "$here"
serve root2
refused edge-1 ca "unknown CA"
documented_log server-other c.log
serve elsewhere
refused edge-1 ca "bad certificate"
documented_log server-name c.log
documented_log server-name-there there.log
serve pastserver
documented_log own-over srv.log
says "a server whose certificate is over: --check-config says it" 0 "the certificate ended 2021-01-01 00:00:00Z" \
  "$serverd" --check-config srv.yaml
refused edge-1 ca "certificate expired"
documented_log server-over c.log
documented_log server-over-there there.log
serve early
refused edge-1 ca "certificate expired"
documented_log server-early c.log
serve asclient
refused edge-1 ca "unsupported certificate"
documented_log server-usage c.log
documented_log server-usage-there there.log

### TLS on one side only
serve server
write_client c "$data" "name: edge-1" "reconnect: {first: 50ms, longest: 20s, after_refusal: 20m}"
meets_refusal "without TLS"
documented_log plain-at-tls c.log
documented_log plain-at-tls-there there.log
stop srv
: >srv.log
write_server srv "listen: [\"127.0.0.1:0\"]" "model: {preset: dnn60}"
start_server srv
write_edge edge-1 ca
meets_refusal "the peer speaks TLS"
documented_log tls-at-plain c.log
documented_log tls-at-plain-there there.log
stop srv

### The server's own certificate ends soon: it says so, before its clients do
soon=$(date -u -d '+5 days' +%Y%m%d%H%M%SZ)
made pki_leaf ca soonserver serverAuth "$here" "$(date -u -d '-55 days' +%Y%m%d%H%M%SZ)" "$soon"
serve soonserver
documented_log own-soon srv.log
says "--check-config says it" 0 "before that, ask its issuer for a new one" "$serverd" --check-config srv.yaml
soon_said() { [ "$(grep -c "'soonserver.pem': .* in [45] days; before that" srv.log)" -eq "$1" ]; }
check "once at the start" soon_said 1
kill -HUP "${pid_of[srv]}"
wait_for "it to be said at a reload again" soon_said 2
cp server.key soonserver.key.new && chmod 600 soonserver.key.new
mv soonserver.key.new soonserver.key && cp server.pem soonserver.pem
wait_for "the new one to be taken up" in_log srv "certificates reloaded for new connections"
says "then there is nothing to say" 0 "ok: federation" "$serverd" --check-config srv.yaml
lacks_line "no word of dates" says.out "before that"

### An admin's certificate is renewed by nobody: flctl says when it is time, and does what was asked
made pki_leaf ca soonops clientAuth email:ops-1@ops.example.org "$(date -u -d '-25 days' +%Y%m%d%H%M%SZ)" "$soon"
# shellcheck disable=SC2086
made pki_leaf ca pastops clientAuth email:ops-1@ops.example.org $long_ago
admin() { # certificate
  echo "$build/flctl" --server "localhost:$(sed -n 's/^admin 127.0.0.1://p' srv.out)" \
    --certificate "$1.pem" --key "$1.key" --ca ca.pem status
}
# shellcheck disable=SC2046
{
  documented admin-soon $(admin soonops)
  has_line "and the answer comes" documented.out "federation  integ"
  documented admin-over $(admin pastops)
  says "a young one" 0 "federation  integ" $(admin ops-1)
  lacks_line "is not spoken of" says.out "before that"
}
stop srv

### Nobody there: it may come
address=127.0.0.1:1
write_edge edge-1 ca
meets_trouble "connection refused"
documented_log port-wrong c.log
address=$(printf 'n%.0s' {1..70}).invalid:7100 # longer than a name can be: no DNS is asked
write_edge edge-1 ca
meets_trouble "cannot look up"
documented_log host-wrong c.log
finish
