# shellcheck shell=bash
# An operator's own PKI by openssl, as docs/security.md#a-pki-of-your-own has it, for tests. All files are
# below the current folder.
#
#   pki_authority ca                     ca.pem, ca.key
#   pki_leaf ca edge clientAuth DNS:…    edge.pem, edge.key; signed by ca
#   pki_leaf ca old clientAuth DNS:… 20200101000000Z 20210101000000Z
#   pki_revoke ca edge                   ca.crl, with edge in it; pki_list ca: without

pki_authority() { # name
  local ca=$1
  mkdir -p "$ca.d"
  : >"$ca.d/index.txt"
  echo 1000 >"$ca.d/serial"
  echo 1000 >"$ca.d/crlnumber"
  cat >"$ca.d/ca.cnf" <<CNF
[ca]
default_ca = this
[this]
database = $ca.d/index.txt
serial = $ca.d/serial
crlnumber = $ca.d/crlnumber
new_certs_dir = $ca.d
certificate = $ca.pem
private_key = $ca.key
default_md = sha256
default_days = 30
default_crl_days = 30
policy = any
unique_subject = no
[any]
commonName = supplied
CNF
  openssl ecparam -name prime256v1 -genkey -noout -out "$ca.key" &&
    openssl req -x509 -new -key "$ca.key" -days 3650 -subj "/CN=$ca of a test" \
      -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" -out "$ca.pem"
}

pki_leaf() { # authority, name, extended key usage, subject alternative name [begin, end]
  local ca=$1 name=$2 begin=${5:-} end=${6:-}
  openssl ecparam -name prime256v1 -genkey -noout -out "$name.key" &&
    openssl req -new -key "$name.key" -subj "/CN=$name" -out "$name.csr" || return
  printf '%s\n' "subjectAltName=$4" "extendedKeyUsage=$3" "basicConstraints=critical,CA:FALSE" \
    "keyUsage=critical,digitalSignature" "subjectKeyIdentifier=hash" "authorityKeyIdentifier=keyid" >"$name.ext"
  openssl ca -batch -notext -config "$ca.d/ca.cnf" -in "$name.csr" -extfile "$name.ext" -out "$name.pem" \
    ${begin:+-startdate "$begin" -enddate "$end"} && chmod 600 "$name.key"
}

pki_list() { openssl ca -config "$1.d/ca.cnf" -gencrl -out "$1.crl"; }
pki_revoke() { openssl ca -config "$1.d/ca.cnf" -revoke "$2.pem" && pki_list "$1"; }
