#!/usr/bin/env bash
# Clients that upload nonsense. Each slip has its gRPC status; one that can be mended leaves the round
# open for the same client, a wrong shape or value costs it the round; the honest ones go on. With FL_SLOW_TESTS=no under
# sanitizers one value of each kind.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
bad=$build/tests/system/bad_client
[ -x "$bad" ] || skip "no $bad"
synthetic "$dir/data" 2 --seed 3
full=5720
model='{preset: dnn60}' steps='{epochs: 1}' codec=

# server, words…: two honest clients and a bad one that does what the words say
with_bad() {
  local name=$1 code=0
  shift
  write_server "$name" "rounds: 3" "model: $model" "training: $steps" "round: {start_clients: 3}" ${codec:+"$codec"}
  start_server "$name"
  # One name in all federations: what a client draws depends on it.
  start_client "$name-0" "$dir/data/client-000" "name: honest-0"
  start_client "$name-1" "$dir/data/client-001" "name: honest-1"
  timeout -k 5 "$patience" "$bad" "$address" bad "$@" >"$dir/$name.bad" 2>&1 || code=$?
  equal "$name: the bad client came through" 0 "$code"
  wait_for "the federation to go on" at_round "$name" 3
  ctl "$name" clients --json >"$dir/$name.json"
  check "$name: the model is exported" ctl "$name" export --output "$dir/$name.safetensors"
  check "$name: the model is finite" finite "$dir/$name.safetensors"
  equal "$name: the honest ones lost nothing" "3 0 3 0" \
    "$(json '" ".join("%d %d" % (c["accepted"], c["rejected"]) for c in d if c["name"] != "bad")' <"$dir/$name.json")"
}
answer() { # server, word, status [text]
  local line
  checks=$((checks + 1))
  line=$(grep "^$2 " "$dir/$1.bad")
  [[ $line == "$2 $3 "* && $line == *"${4:-}"* ]] && return 0
  note_failure "$1: $2: expected '$3 … ${4:-}', found '$line'"
}
of_bad() { json "next(c['$2'] for c in d if c['name'] == 'bad')" <"$dir/$1.json"; }
ends() {
  stop "$1"
  equal "$1: the server ends well" 0 "$rc"
  wait_end "$1-0"
  wait_end "$1-1"
}

### Slips that can be mended, all in one round
with_bad slips session round attempt zero chunk junk nothing twice gap many huge early restart good
answer slips session UNAUTHENTICATED "unknown session"
answer slips round FAILED_PRECONDITION "no upload expected for round 8 attempt 1 (expected: round 1 attempt 1)"
answer slips attempt FAILED_PRECONDITION "no upload expected for round 1 attempt 2"
answer slips zero INVALID_ARGUMENT "out of range"
answer slips chunk INVALID_ARGUMENT "expected one header first, then chunks"
answer slips junk INVALID_ARGUMENT
answer slips nothing INVALID_ARGUMENT "expected a header"
answer slips twice INVALID_ARGUMENT "expected one header first, then chunks"
answer slips gap OUT_OF_RANGE "upload continues at offset 0, not at 4"
answer slips many INVALID_ARGUMENT "more bytes than the header's $full"
answer slips huge INVALID_ARGUMENT
answer slips early OK "accepted=0 received=100"
answer slips restart OUT_OF_RANGE "upload continues at offset 100, not at 0"
answer slips good OK "accepted=1 received=$full"
has_line "the client that mended it is accepted" "$dir/slips.bad" "verdict accepted"
equal "it responded once and was never rejected" "1 0" "$(of_bad slips accepted) $(of_bad slips rejected)"
has_line "the operator reads who and why" "$dir/slips.log" \
  "upload of client 'bad' for round 1 ended: upload continues at offset 0, not at 4"
equal "all three are in the first round" 3 "$(ctl slips rounds --last 0 --json | json 'd[0]["responders"]')"
ends slips

### Hanging up while the server judges: it has the whole upload, and comes to no harm
# Wide enough that reading it takes longer than asking how far it is, under sanitizers a fourth of it; nothing to train on.
wide=100000
! sanitized || wide=25000
model="{input: [60], layers: [dense $wide, relu, dense 10]}" steps='{epochs: 0, steps: 1}'
# On a busy machine it may hear the verdict first: then that was another test, and it is tried again.
leaves=leaves
with_bad "$leaves" leave round
until=$((SECONDS + patience))
while grep -q '^leave OK accepted=1 ' "$dir/$leaves.bad" && [ "$SECONDS" -lt "$until" ]; do
  ends "$leaves"
  leaves=$leaves-
  with_bad "$leaves" leave round
done
answer "$leaves" leave CANCELLED
has_line "the upload counts although its client hung up" "$dir/$leaves.bad" "verdict accepted"
equal "it counts once" "1 0" "$(of_bad "$leaves" accepted) $(of_bad "$leaves" rejected)"
ends "$leaves"
model='{preset: dnn60}' steps='{epochs: 1}'

### Beginning anew what the server has judged and not recorded yet: that upload is the one that counts
codec='strategy: {codec: ternary}'
with_bad over stored over mended
codec=
answer over over OK "accepted=1"
has_line "the upload counts" "$dir/over.bad" "verdict accepted"
equal "as it was judged" "1 0" "$(of_bad over accepted) $(of_bad over rejected)"
equal "all three are in that round" 3 "$(ctl over rounds --last 0 --json | json 'd[0]["responders"]')"
ends over

### What never becomes right: the client is out of the round and told why
costs() { # word, reason
  with_bad "$1" "$1" good
  answer "$1" "$1" INVALID_ARGUMENT "$2"
  answer "$1" good FAILED_PRECONDITION "no upload expected for round 1 attempt 1"
  has_line "$1: rejected" "$dir/$1.bad" "verdict rejected"
  has_line "$1: the reason comes with it" "$dir/$1.bad" "reason $2"
  equal "$1: counted" "0 1" "$(of_bad "$1" accepted) $(of_bad "$1" rejected)"
  equal "$1: the round went on with the others" "3 2" \
    "$(ctl "$1" rounds --last 0 --json | json '"%d %d" % (d[0]["selected"], d[0]["responders"])')"
  has_line "$1: the operator reads it" "$dir/$1.log" "client 'bad' rejected"
  ends "$1"
}
costs shape "unit 'fc1'"
costs missing "unit 'fc2' was asked for and is not in its place"
costs codec "unit 'fc1' comes in codec 7, not float32"
costs payload "upload: section 0 has payload 'model', which was not requested"
costs nan "unit 'fc1' of the upload holds a value that is not finite"
if ! everyday || ! sanitized; then costs inf "unit 'fc1' of the upload holds a value that is not finite"; fi

tensors() { # server: a digest of its model behind the header, which names the federation
  "$python" - "$dir/$1.safetensors" <<'PY'
import hashlib, struct, sys
raw = open(sys.argv[1], "rb").read()
print(hashlib.sha256(raw[8 + struct.unpack("<Q", raw[:8])[0]:]).hexdigest())
PY
}
### Finite, accepted, and far larger than the others': it is left out when all are in, as if it were not there
for word in large largest; do
  [ "$word" = large ] || ! everyday || ! sanitized || continue
  with_bad $word $word
  answer $word $word OK "accepted=1"
  has_line "$word: the log names the client and the norm" "$dir/$word.log" \
    "round 1: updates left out, norm above 100 times the median (round.norm_cap): bad; largest 'bad': update, RMS norm "
  equal "$word: counted as rejected" "0 1" "$(of_bad $word accepted) $(of_bad $word rejected)"
  equal "$word: the record tells" "3 2 1" \
    "$(ctl $word rounds --last 0 --json | json '"%d %d %d" % (d[0]["selected"], d[0]["responders"], d[0]["left_out"])')"
  equal "$word: the model is that of the federation without it, bit for bit" \
    "$(tensors nan)" "$(tensors $word)"
  ends $word
done
finish
