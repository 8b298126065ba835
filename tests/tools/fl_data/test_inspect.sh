#!/usr/bin/env bash
# fl-data inspect FILE: the binary files of a server, of its clients and of fl-sim are printed; damage is found, with its
# place, and ends with exit code 1.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
fl_data=$build/fl-data
synthetic "$dir/data" 3 --seed 3
# rule, kind, file [version]: it is printed, and undamaged
whole() {
  check "$1: undamaged" "$fl_data" inspect "$3"
  has_line "$1: its kind" "$dir/check.out" ": kind $2, version ${4:-1}, $(stat -c %s "$3") bytes"
  lacks_line "$1: no damage" "$dir/check.out" "damaged"
}
# rule, file: one bit at a byte is flipped; text
damage() { # rule, file, byte, text
  cp "$2" "$dir/damaged"
  "$python" - "$dir/damaged" "$3" <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    at = int(sys.argv[2])
    f.seek(at)
    b = f.read(1)[0]
    f.seek(at)
    f.write(bytes([b ^ 1]))
PY
  "$fl_data" inspect "$dir/damaged" >"$dir/found" 2>&1
  equal "$1: exit code" 1 $?
  has_line "$1: where" "$dir/found" "$4"
}

### A server and its clients: uploads, data summaries, their collection, what clients keep
write_server a "rounds: 1000000" "seed: 4" "model: {preset: dnn60}" "strategy: {solver: fedmix, fraction: {fraction: 1}}" \
  "round: {start_clients: 3, min_clients: 3, min_responders: 3}"
start_server a || finish
for i in 0 1 2; do start_client "a$i" "$dir/data/client-00$i"; done
wait_for "two rounds" at_round a 2
kill -STOP "${pid_of[a0]}" # so that the round waits for it, and the uploads of the others stay
# A copy: the next upload is written over the file.
upload=$dir/an.upload
is_uploaded() { cp "$dir/a.state/spool/a1.upload" "$upload" && "$fl_data" inspect "$upload" | grep -q 'coded .* right$'; }
wait_for "an upload" is_uploaded
kill_hard a
for i in 0 1 2; do kill_hard "a$i"; done
whole "an upload" upload "$upload"
has_line "how much of it is there" "$dir/check.out" "received "
whole "a data summary" summary "$dir/a.state/summaries/a0.summary"
whole "the collection" fixed "$dir/a.state/summaries/fixed"
whole "its copy on a client" fetched "$dir/a0.state/summaries.bin"
whole "the summary that a client sent" sent-sum "$dir/a0.state/summary.bin"
damage "a head" "$dir/a0.state/summary.bin" 50 "is damaged: its head"
damage "a section" "$dir/a.state/summaries/fixed" 4100 "damaged: bytes 4096 to"
damage "its checksums" "$dir/a.state/summaries/fixed" $(($(stat -c %s "$dir/a.state/summaries/fixed") - 9)) \
  "the checksums at byte"
damage "an upload" "$upload" 4096 "(coded) have checksum"
head -c 5000 "$upload" >"$dir/cut"
"$fl_data" inspect "$dir/cut" >"$dir/found" 2>&1
equal "an upload that is cut: exit code" 1 $?
has_line "an upload that is cut" "$dir/found" "has 5000 bytes, its head says"
printf 'FL-FILE2%04088d' 0 >"$dir/later"
"$fl_data" inspect "$dir/later" >"$dir/found" 2>&1
equal "a file of a later program: exit code" 1 $?
has_line "a file of a later program" "$dir/found" "has version 2 of its format"
"$fl_data" inspect "$dir/a.state/federation.db" >"$dir/found" 2>&1
equal "another file: exit code" 1 $?
has_line "another file" "$dir/found" "it begins with other bytes than"
check "as JSON" "$fl_data" inspect --json "$upload"
equal "its sections" "coded 0" "$(json "'%s %d' % (d['sections'][0]['name'], d['sections'][0]['wrong'])" <"$dir/check.out")"
equal "its damage" "[]" "$(json "d['damage']" <"$dir/check.out")"

### fl-sim: personalized models, client state, results, journals, partitions
cat >"$dir/e.yaml" <<E
server:
  seed: 5
  model: {preset: dnn60}
  strategy: {personal: own, aggregate: mcsa, upload: {policy: hdfl, n: 2}, fraction: {fraction: 1}}
  round: {start_clients: 3, min_responders: 3}
data: {path: "$dir/data"}
stop: {rounds: 2}
E
check "a run with its state" "$build/fl-sim" run "$dir/e.yaml" --quiet --keep-state --out "$dir/out"
state=$dir/out/base/seed-5/state
for file in "$state"/server/personal_models/*.mix; do whole "$(basename "$file")" personal "$file"; done
for file in "$state"/clients/client-000/keep/*.keep; do whole "$(basename "$file")" block "$file"; done
whole "the index of client state" index "$state/clients/client-000/keep/index"
whole "a journal" journal "$state/journal" 5
has_line "its records are counted" "$dir/check.out" "records with right checksums"
damage "a record" "$state/journal" 4120 "the record of kind"
says "a file of another format" 1 "models, the database and data sets have formats of their own" "$fl_data" inspect "$state/server/federation.db"
finish
