#!/usr/bin/env bash
# Wrong configuration: each slip with file, line and key, what was expected, and exit code 3; and what
# the daemons say about themselves.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
serverd=$build/fl-serverd
clientd=$build/fl-clientd
cd "$dir" || exit 99

server_ok='federation: x
state_dir: s
insecure: yes
listen: ["unix:/tmp/x.sock"]
'
client_ok='server: localhost:7800
name: a
state_dir: s
insecure: yes
'
m='model: {preset: mlp200}\n'

# name, lines after (or, with !, instead of) the good ones, the exact message after "s.yaml:"
server() {
  local good=$server_ok
  [[ $1 != !* ]] || good=''
  printf "%s$2" "$good" >s.yaml
  says "server: $1" 3 "fl-serverd: s.yaml:$3" "$serverd" --check-config s.yaml
  equal "server: $1: one line" 1 "$(wc -l <"$dir/says.out")"
}
client() {
  local good=$client_ok
  [[ $1 != !* ]] || good=''
  printf "%s$2" "$good" >c.yaml
  says "client: $1" 3 "fl-clientd: c.yaml:$3" "$clientd" --check-config c.yaml
  equal "client: $1: one line" 1 "$(wc -l <"$dir/says.out")"
}

### What is right
printf "%s$m" "$server_ok" >good.yaml
says "a good server" 0 "good.yaml: ok: federation 'x', algorithm fedavg, 3 layers, 199210 parameters" \
  "$serverd" --check-config good.yaml
mkdir d
printf '1,2,0\n3,4,1\n' >d/train.csv
printf '%sdata: {path: d}\n' "$client_ok" >goodc.yaml
says "a good client" 0 "goodc.yaml: ok: client 'a' of 'localhost:7800', trainer builtin" \
  "$clientd" -c goodc.yaml
check "--check-config makes nothing" test ! -e s
says "a relative state folder is one of the current folder" 0 ok "$serverd" --check-config good.yaml

### YAML itself
server "!empty file" '' ' the file is empty'
server "!a list" '- a\n' "1: expected 'key: value' lines at the top of the file"
server "!binary" '\377\376' '1: not UTF-8 text'
server "open bracket" 'model: {preset: mlp200\n' '6: bad YAML:'
server "a tab" "$m\tseed: 2\n" '6: a tab cannot indent in YAML; use spaces'
server "two documents" "$m---\nseed: 2\n" '6: a second document begins, one file holds only one'
server "an alias" 'model: &a {preset: *a}\n' '5: anchors and aliases are not supported'
server "a key twice" "${m}seed: 1\nseed: 2\n" "7: key 'seed': given twice, first on line 6"

### Keys and values
server "!a required key" 'state_dir: s\n' "1: the required key 'federation' is missing (a text)"
server "unknown key" "${m}algoritm: fedavg\n" "6: unknown key 'algoritm', did you mean 'algorithm'?"
server "unknown key in a section" 'model: {presett: mlp200}\n' \
  "5: key 'model': unknown key 'presett', did you mean 'preset'?"
server "a value for a section" "${m}round: 3\n" "6: key 'round': expected a section"
server "a list for a value" "${m}seed: [1]\n" "6: key 'seed': expected a whole number, 0 to 9e+15, found a list"
server "no number" "${m}training: {epochs: many}\n" \
  "6: key 'training.epochs': expected a whole number, 0 to 10000, found 'many'"
server "out of range" "${m}training: {epochs: -1}\n" \
  "6: key 'training.epochs': expected a whole number, 0 to 10000, found '-1'"
server "a duration without unit" "${m}round: {retry: 5}\n" \
  "6: key 'round.retry': expected a duration such as 10s, 10ms to 1h, found '5': add a unit (us, ms, s, m, h, d)"
server "no such unit" "${m}round: {retry: 5x}\n" \
  "6: key 'round.retry': expected a duration such as 10s, 10ms to 1h, found '5x': units are us, ms, s, m, h, d"
server "a choice" "${m}log_level: inf\n" \
  "6: key 'log_level': expected one of error, warning, notice, info, debug, found 'inf', did you mean 'info'?"
server "no work" "${m}training: {epochs: 0}\n" "6: key 'training.epochs': expected epochs or steps above 0, found 0 for both"
server "steps that the default of epochs would hide" "${m}training: {steps: 12}\n" \
  "6: key 'training.steps': expected epochs or steps, found 12 steps and 1 epochs (the default): set epochs: 0 to train in steps"
server "a step that the solver cannot make" "${m}algorithm: pfedme\ntraining: {learning_rate: 0.5}\n" \
  "7: key 'training.learning_rate': solver 'pfedme' needs training.learning_rate * lambda of at most 1, it is 0.5 * 15 = 7.5: lower one of them"
server "!a bad name" 'federation: "a b"\nstate_dir: s\ninsecure: yes\nmodel: {preset: dnn}\n' \
  "1: key 'federation': expected 1 to 127 characters of A-Z a-z 0-9 . _ -, the first a letter, a digit or _, found 'a b'"
server "!an option as federation" 'federation: "-a"\nstate_dir: s\ninsecure: yes\nmodel: {preset: dnn}\n' \
  "1: key 'federation': expected 1 to 127 characters of A-Z a-z 0-9 . _ -, the first a letter, a digit or _, found '-a'"
server "!a NUL in it" 'federation: "a\\0b"\nstate_dir: s\ninsecure: yes\nmodel: {preset: dnn}\n' \
  "1: a text must not have a NUL character"

### Algorithms, policies, networks: the nearest name is told
server "algorithm" "${m}algorithm: fedav\n" "6: key 'algorithm': no algorithm 'fedav'; did you mean 'fedavg'?"
server "component" "${m}strategy: {uploads: ldf}\n" "6: key 'strategy': unknown key 'uploads', did you mean 'upload'?"
server "policy" "${m}strategy: {upload: lfd}\n" \
  "6: key 'strategy.upload': no upload policy 'lfd'; did you mean 'ldf'?"
server "option of another policy" "${m}strategy: {upload: {share: 2}}\n" \
  "6: key 'strategy.upload.share': policy 'full' has no such option, 'ldf' has: add 'policy: ldf'"
server "option of the policy that is not named" "${m}strategy:\n  broadcast: lattice\n  space: {size: 100}\n" \
  "8: key 'strategy.space.size': policy 'full' has no such option, 'hashed' has: add 'policy: hashed'"
server "option of a policy" "${m}algorithm: fedldf\nstrategy: {upload: {shar: 0.2}}\n" \
  "7: key 'strategy.upload': unknown key 'shar', did you mean 'share'?"
server "option out of range" "${m}algorithm: fedldf\nstrategy: {upload: {share: 2}}\n" \
  "7: key 'strategy.upload.share': expected a number, 0 to 1, found '2'"
server "options at odds" "${m}strategy: {fraction: {policy: stepped, start: 0.6, end: 0.5}}\n" \
  "6: key 'strategy.fraction': fraction 'stepped': start (0.6) is above end (0.5)"
server "fractions and rounds at odds" "${m}strategy:\n  fraction: {policy: listed, fractions: [0.1, 0.5], rounds: [1, 1]}\n" \
  "7: key 'strategy.fraction': fraction 'listed': rounds: entry 2 is 1, expected more than the one before, 1"
server "a learning rate that ends before the rounds" "${m}rounds: 30\ntraining: {learning_rate_rounds: 20}\n" \
  "7: key 'training.learning_rate_rounds': with a learning rate of 0 after round 20 no client changes the model: expected 'rounds' of at most that, or a learning_rate_end above 0"
server "step off the grid" "${m}strategy:\n  broadcast: lattice\n  codec: {policy: steps, step: 0.1}\n" \
  "8: key 'strategy.codec': codec 'steps': 'step': 0.1 is not a multiple of 2^-20; the nearest one is 0.1000003814697265625, and a short one near it is 0.1015625"
server "network" 'model: {preset: mlp20}\n' \
  "5: key 'model.preset': no network preset 'mlp20', did you mean 'mlp200'?"
server "no network" '' '1: expected one of preset, layers (with input) or file'
server "two networks" 'model: {preset: mlp200, layers: [dense 10]}\n' \
  "5: key 'model': expected either preset or layers, found both"
server "no input" 'model: {layers: [dense 10]}\n' \
  "5: key 'model': expected 1 to 3 numbers beside layers, found 0"
server "layer" 'model: {input: [4], layers: [dens 10]}\n' \
  "5: key 'model.layers': layer 1 'dens 10': unknown layer, did you mean 'dense'?"
server "width" 'model: {input: [4], layers: [dense 0]}\n' \
  "5: key 'model.layers': layer 1 'dense 0': expected 'dense WIDTH'"
server "model file" 'model: {file: /nonexistent.st}\n' \
  "5: key 'model.file': cannot open '/nonexistent.st': No such file or directory"
server "a file that is no model" 'model: {file: s.yaml}\n' "5: key 'model.file': "

### TLS is what there is, with an identity that somebody made
plain='federation: x\nstate_dir: s\nmodel: {preset: dnn}\n'
printf "$plain" >s.yaml
says "no identity" 8 "/s/identity/server.pem' does not exist: the federation has no identity yet; create it with" \
  "$serverd" -c s.yaml
server "!half an own PKI" "${plain}tls: {key: k.pem}\n" \
  "4: key 'tls': expected certificate and key, found only key"
server "!the other half" "${plain}tls: {certificate: c.pem}\n" \
  "4: key 'tls': expected certificate and key, found only certificate"
server "!roots" "${plain}tls: {certificate: c.pem, key: k.pem}\n" \
  "4: key 'tls': expected the roots that issue the clients' certificates"
server "!roots for nothing" "${plain}tls: {ca: [r.pem]}\n" \
  "4: key 'tls.ca': without certificate and key only the federation's own authority is trusted"
server "!TLS for nothing" "${plain}insecure: yes\ntls: {certificate: c.pem, key: k.pem, ca: [r.pem]}\n" \
  "5: key 'tls.certificate': no address uses TLS: remove \`insecure\`, or this key"

### Plaintext is asked for, and stays on this machine
for a in 0.0.0.0:7800 '"*:7800"' 192.0.2.1:7800 example.org:7800 '"[2001:db8::1]:7800"'; do
  server "!remote $a" "${plain}insecure: yes\nlisten: [$a]\n" \
    "5: key 'listen': '${a//\"/}' is not a loopback address; plaintext there requires 'insecure_remote: yes' as well"
done
for a in 127.0.0.1:7800 localhost:7800 '"[::1]:7800"' "unix:$dir/x" 127.1.2.3:0; do
  printf "${plain}insecure: yes\nlisten: [%s]\n" "$a" >s.yaml
  says "loopback $a" 0 ok "$serverd" -c s.yaml
done
printf "${plain}insecure: yes\ninsecure_remote: yes\nlisten: [0.0.0.0:7800]\n" >s.yaml
says "remote when it is wanted" 0 ok "$serverd" -c s.yaml
server "!no port" "${plain}insecure: yes\nlisten: [nonsense]\n" \
  "5: key 'listen': address 'nonsense': the port is missing"
server "!an impossible port" "${plain}insecure: yes\nlisten: [\"127.0.0.1:99999\"]\n" \
  "5: key 'listen': address '127.0.0.1:99999': "
server "!nothing to listen on" "${plain}insecure: yes\nlisten: []\n" \
  "5: key 'listen': expected at least one address"

server "!an admin socket that is too long" "federation: x\nstate_dir: $(printf 'long%.0s' {1..30})\ninsecure: yes\n$m" \
  "2: key 'state_dir': address"
has_line "says what socket that is" says.out "this is the socket for flctl, set admin_socket to move it"
server "an admin socket that is too long" "${m}admin_socket: $(printf 'long%.0s' {1..30})\n" "6: key 'admin_socket': address"

### The client
client "no data" '' "1: trainer 'builtin' needs data.path"
client "no program" 'trainer: command\n' "1: trainer 'command' needs command.program"
client "trainer" 'trainer: comand\n' \
  "5: key 'trainer': expected one of builtin, command, found 'comand', did you mean 'command'?"
client "key of data" 'data: {pat: d}\n' "5: key 'data': unknown key 'pat', did you mean 'path'?"
client "section" 'reconect: {first: 1s}\n' "5: unknown key 'reconect', did you mean 'reconnect'?"
client "duration" 'reconnect: {first: 1}\n' \
  "5: key 'reconnect.first': expected a duration such as 10s, 10ms to 1h, found '1': add a unit"
client "share" 'data: {path: d, validation: 1}\n' \
  "5: key 'data.validation': expected a number, 0 to 0.9, found '1'"
client "augment" 'data: {path: d, augment: flip}\n' \
  "5: key 'data.augment': expected one of none, flip_crop, found 'flip'"
client "augment of a program" 'trainer: command\ncommand: {program: [x]}\ndata: {augment: flip_crop}\n' \
  "7: key 'data.augment': data.augment applies to the built-in trainer only"
labels() { # number, value: a section of so many lines
  printf 'data: {path: d}\\nlabels:\\n'
  printf "  label%s: $2\\\\n" $(seq "$1")
}
client "65 labels" "$(labels 65 x)" "6: key 'labels': expected at most 64 labels, found 65"
client "long labels" "$(labels 64 "$(printf 'x%.0s' {1..30})")" \
  "6: key 'labels': expected at most 2048 bytes of labels, each key and value counted with one byte more, found 2487"
client "a long label" "$(labels 1 "$(printf 'x%.0s' {1..1025})")" \
  "6: key 'labels': expected at most 1024 bytes of a label, found 1025"
printf "$client_ok$(labels 64 x)" >c.yaml
says "64 labels" 0 "c.yaml: ok" "$clientd" -c c.yaml
client "!name" 'server: localhost:1\nname: a/b\nstate_dir: s\ninsecure: yes\ndata: {path: x}\n' \
  "2: key 'name': expected 1 to 127 characters of A-Z a-z 0-9 . _ -, the first a letter, a digit or _, found 'a/b'"
client "!an option as name" 'server: localhost:1\nname: "-a"\nstate_dir: s\ninsecure: yes\ndata: {path: x}\n' \
  "2: key 'name': expected 1 to 127 characters of A-Z a-z 0-9 . _ -, the first a letter, a digit or _, found '-a'"
client "!no server" 'name: a\nstate_dir: s\n' "1: the required key 'server' is missing (a list of texts)"
client "!no name" 'server: localhost:1\nstate_dir: s\ninsecure: yes\ndata: {path: x}\n' \
  "1: a client without a certificate ('insecure: yes') needs a 'name'"
tls='server: localhost:7800\nstate_dir: s\n'
client "!a certificate alone" "${tls}tls: {certificate: c.pem}\ndata: {path: x}\n" \
  "3: key 'tls': expected tls.certificate and tls.key, found one without the other"
client "!no roots" "${tls}tls: {certificate: c.pem, key: c.key}\ndata: {path: x}\n" \
  "3: key 'tls': a certificate of your own needs tls.ca: the trusted roots of the server"
client "certificates in plaintext" 'tls: {ca: c.pem}\ndata: {path: x}\n' \
  "5: key 'tls': 'insecure: yes' is plaintext, which has no certificates: expected one of the two"
client "!remote" 'server: 10.1.1.1:7800\nname: a\nstate_dir: s\ninsecure: yes\ndata: {path: x}\n' \
  "1: key 'server': '10.1.1.1:7800' is not a loopback address; plaintext there requires 'insecure_remote: yes' as well"
client "!no port" 'server: localhost\nname: a\nstate_dir: s\ninsecure: yes\ndata: {path: x}\n' \
  "1: key 'server': address 'localhost': the port is missing"

### A start refuses the same, and the command line is checked
says "a start refuses it too" 3 "c.yaml:1: key 'server'" "$clientd" c.yaml
for d in serverd clientd; do
  p=$build/fl-$d
  says "$d: missing file" 3 "fl-$d: the configuration 'none.yaml' does not exist: " "$p" none.yaml
  says "$d: a folder" 3 "fl-$d: cannot read '.': Is a directory" "$p" .
  says "$d: no file named" 2 "fl-$d: expected one configuration file, found 0 arguments" "$p"
  says "$d: two files" 2 "found 2 arguments" "$p" a b
  says "$d: unknown option" 2 "try fl-$d --help" "$p" --nonsense
  says "$d: help" 0 "exit codes: 0 done" "$p" --help
  says "$d: version" 0 "fl-$d " "$p" --version
  says "$d: reference" 0 '| key | type | default | range | meaning |' "$p" --reference
  equal "$d: every row of the reference has five columns" 0 \
    "$("$p" --reference | grep -c '^| `[a-z_.]*` |.*|.*|.*|.*|$' | awk '{print ($1 < 15)}')"
done
"$serverd" --reference >reference.md
for preset in $("$serverd" --help | sed -n '/^algorithms:/,/^networks:/s/^  \([^ ]*\) .*/\1/p'); do
  printf "%s${m}algorithm: %s\n" "$server_ok" "$preset" >s.yaml
  says "algorithm $preset" 0 "algorithm $preset" "$serverd" -c s.yaml
  has_line "the reference has $preset" reference.md "\`$preset\`"
done
for network in $("$serverd" --help | sed -n '/^networks:/{n;p}'); do
  printf '%smodel: {preset: %s}\n' "$server_ok" "$network" >s.yaml
  says "network $network" 0 "ok" "$serverd" -c s.yaml
done
finish
