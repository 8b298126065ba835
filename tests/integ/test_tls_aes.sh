#!/usr/bin/env bash
# Who encrypts with AES-GCM: libipsec-mb where it is installed and fast, or OpenSSL, as the log of each side says at its
# start. Both understand each other.
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/integ/pki.sh
. "$(dirname "$0")/pki.sh"
command -v openssl >/dev/null || skip "openssl(1) is not there"
cd "$dir" || exit 99
library=libIPSec_MB.so.1
is_built_in() { grep -q '^#define HAVE_IPSEC_MB 1$' "$build/config.h"; }
is_fast() {
  local flag
  for flag in vaes vpclmulqdq gfni sha_ni avx512f avx512dq avx512cd avx512bw avx512vl avx512ifma; do
    grep -qw "$flag" /proc/cpuinfo || return 1
  done
}
is_built_in || skip "built without libipsec-mb"
{ PATH=$PATH:/sbin ldconfig -p | grep -qF "$library "; } || skip "$library is not installed"
is_fast || skip "this processor has no VAES with AVX-512"

made() { "$@" >pki.out 2>&1 || { cat pki.out; errors=1 finish; }; }
made pki_authority ca
made pki_leaf ca server serverAuth DNS:localhost,IP:127.0.0.1
for k in 1 2; do made pki_leaf ca "edge-$k" clientAuth "DNS:edge-$k.edge.example.org"; done
synthetic "$dir/data" 2 --seed 3
mkdir hidden
echo "no library" >"hidden/$library"

serve() { # name, ipsec_mb
  write_server "$1" "listen: [\"127.0.0.1:0\"]" "rounds: 2" "model: {preset: dnn60}" \
    "round: {start_clients: 2, min_responders: 2, retry: 20ms}" \
    "tls: {certificate: server.pem, key: server.key, ca: ca.pem, names: ['client dns:{name}.edge.example.org'], ipsec_mb: $2}"
  sed -i '/^insecure:/d' "$1.yaml"
  start_server "$1" || { cat "$1.log"; errors=1 finish; }
}
client() { # number, server's name
  write_client "$2-$1" "$dir/data/client-00$(($1 - 1))" "name: edge-$1" \
    "tls: {certificate: edge-$1.pem, key: edge-$1.key, ca: ca.pem}"
  sed -i '/^insecure:/d' "$2-$1.yaml"
  run_client "$2-$1"
}
said() { sed -n 's/.*AES-GCM is of //p' "$1.log"; }
has_it() { grep -q "${library%.so*}" "/proc/${pid_of[$1]}/maps" && echo yes || echo no; } # name

for wish in yes no; do
  serve "srv-$wish" "$wish"
  client 1 "srv-$wish"
  # Hidden by a file of its name that is no library, which the loader finds first.
  export LD_LIBRARY_PATH=$dir/hidden${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  client 2 "srv-$wish"
  unset LD_LIBRARY_PATH
  for k in 1 2; do
    wait_end "srv-$wish-$k"
    equal "client $k of a server that was told $wish takes part to the end" 0 "$rc"
  done
  wait_for "2 rounds" at_round "srv-$wish" 2
  equal "ipsec_mb: $wish loads it" "$wish" "$(has_it "srv-$wish")"
done
check "a server with it says so" grep -q '^libipsec-mb 1\.' <<<"$(said srv-yes)"
check "one that was told not to says who else" grep -qx 'OpenSSL [0-9.]*' <<<"$(said srv-no)"
check "a client with it says so" grep -q '^libipsec-mb 1\.' <<<"$(said srv-yes-1)"
check "a client that cannot load it says why" \
  grep -q "^OpenSSL [0-9.]*, libipsec-mb is not used: $dir/hidden/$library: " <<<"$(said srv-yes-2)"
finish
