#!/usr/bin/env bash
# A version takes over what an earlier one left, on both sides, and nothing accepted is lost; an earlier one
# refuses what a later one left, and changes nothing. tests/integ/stored/ says what is opened here.
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/integ/stored/stored.sh
. "$(dirname "$0")/stored/stored.sh"
serverd=$build/fl-serverd
clientd=$build/fl-clientd
stored_data

sql() { # database, statement
  "$python" -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(" ".join(str(v) for row in db.execute(sys.argv[2]) for v in row))
db.commit()' "$@"
}
schema_of() { sql "$dir/fed.state/federation.db" "SELECT MAX(version) FROM migration"; }
stored_server 1
start_server fed
stop fed
newest=$(schema_of)
take() { # archive, finished or open
  rm -rf "$dir/was" "$dir"/*.state
  mkdir "$dir/was"
  tar -C "$dir/was" -xJf "$1"
  mv "$dir/was/$2/fed" "$dir/fed.state"
  for c in a b; do mv "$dir/was/$2/$c" "$dir/$c.state"; done
}
clients() { for c in a b; do start_client "$c" "$dir/data/$c" "$(stored_client)"; done; }
# file file: the values differ by the last bits at most
close() {
  "$python" - "$@" <<'PY'
import array, json, struct, sys
def values(path):
    raw = open(path, "rb").read()
    (n,) = struct.unpack("<Q", raw[:8])
    return array.array("f", raw[8 + n :])
a, b = map(values, sys.argv[1:])
assert len(a) == len(b) > 0
worst = max(abs(x - y) for x, y in zip(a, b))
print("largest difference", worst)
assert worst < 1e-4
PY
}

shopt -s nullglob
archives=("$(dirname "$0")"/stored/schema-*.tar.xz)
check "there are stored states" test ${#archives[@]} -gt 0
for archive in "${archives[@]}"; do
  was=$(basename "$archive" .tar.xz)
  number=${was#schema-}

  ### A federation that was finished goes on
  rm -f "$dir"/*.log
  take "$archive" finished
  cp "$dir/fed.state/models/round-000002.safetensors" "$dir/was/finished/model"
  equal "$was: it is of that schema" "$number" "$(schema_of)"
  stored_server 2
  start_server fed
  equal "$was: its rounds are known" 2 "$(status_of fed rounds_committed)"
  equal "$was: it is of this version now" "$newest" "$(schema_of)"
  lacks_line "$was: no setting is another" "$dir/fed.log" "configuration changed"
  check "$was: its model is there" ctl fed export --output "$dir/model.safetensors"
  equal "$was: as it was" "$(tensors "$dir/was/finished/model")" "$(tensors "$dir/model.safetensors")"
  stop fed
  stored_server 4
  start_server fed
  clients
  wait_for "$was: two more rounds" at_round fed 4
  equal "$was: both clients are in each of them" "2 2" \
    "$(ctl fed rounds --json | json '" ".join(str(r["responders"]) for r in d[-2:])')"
  for c in a b; do
    wait_end "$c"
    equal "$was: exit code of $c" 0 "$rc"
    lacks_line "$was: what $c keeps is its still" "$dir/$c.log" "what was kept"
    lacks_line "$was: and none of it is lost" "$dir/$c.log" " is lost"
  done
  stop fed

  ### One that was killed in a round
  rm -f "$dir"/*.log
  take "$archive" open
  stored_server 4
  start_server fed
  clients
  wait_for "$was: four rounds" at_round fed 4
  ctl fed export --output "$dir/model.safetensors" >/dev/null
  for c in a b; do wait_end "$c"; done
  lacks_line "$was: the accepted update counts" "$dir/fed.log" "task 'a' round=3 "
  has_line "$was: the other one is asked for" "$dir/fed.log" "task 'b' round=3 attempt=1 "
  has_line "$was: and delivered as it was kept" "$dir/b.log" "the result is kept of 3/1"
  lacks_line "$was: without training again" "$dir/b.log" "trained round 3"
  check "$was: the model is what it would have come to" close "$dir/was/expected.safetensors" "$dir/model.safetensors"
  stop fed
done

### What a later version left: refused, with both versions, and not touched
sql "$dir/fed.state/federation.db" "INSERT INTO migration (version, applied_ms) VALUES (99, 0)" >/dev/null
sum() { cd "$dir/fed.state" && find . -type f ! -name .lock ! -name '*-shm' ! -name '*-wal' -exec sha256sum {} + | sort; }
before=$(sum)
says "a database of a later version" 4 \
  "'$dir/fed.state/federation.db' has schema version 99, this program knows up to $newest: use the newer program" \
  "$serverd" "$dir/fed.yaml"
says "no backup is made of it" 1 "has schema version 99" "$build/flctl" --state-dir "$dir/fed.state" backup "$dir/later"
equal "nothing was changed" "$before" "$(sum)"

later() { # file, offset of its version
  printf '\11\0\0\0' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
take "${archives[0]}" open
address=unix:$dir/nobody.sock
write_client b "$dir/data/b"
cp "$dir/b.state/result.bin" "$dir/result"
later "$dir/b.state/result.bin" 8
says "a result of a later version" 4 \
  "'$dir/b.state/result.bin' is in version 9 of the format, this program knows up to 4: use the newer program" \
  "$clientd" "$dir/b.yaml"
check "it is still there" cmp -s -n 8 "$dir/result" "$dir/b.state/result.bin"
cp "$dir/result" "$dir/b.state/result.bin"
later "$dir/b.state/keep/index" 8
says "an index of a later version" 4 \
  "'$dir/b.state/keep/index' is in version 9 of the format, this program knows up to 2: use the newer program" \
  "$clientd" "$dir/b.yaml"
equal "what is kept is still there" 2 "$(find "$dir/b.state/keep" -name '*.keep' | wc -l)"
finish
