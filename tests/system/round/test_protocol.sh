#!/usr/bin/env bash
# Every command of a server in every state of a client, against docs/clients.md: what has no
# place there ends the session, and does nothing else.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
bad=$build/tests/system/bad_server
[ -x "$bad" ] || skip "no $bad"
page=$srcdir/docs/clients.md
synthetic "$dir/data" 1 --seed 3

# table, row, column: what the page says
cell() {
  awk -F'|' -v table="$1" -v row="$2" -v column="$3" '
    { for (i = 1; i <= NF; i++) gsub(/^[ `]+|[ `]+$/, "", $i) }
    /^###* / { at = index($0, table) > 0; head = 0 }
    at && NF > 2 && !head { for (i = 2; i < NF; i++) name[i] = $i; head = 1; next }
    at && $2 == row { for (i = 3; i < NF; i++) if (name[i] == column) print $i }
  ' "$page"
}

### The client: each cell in a session of its own
"$bad" "unix:$dir/bad.sock" >"$dir/bad.out" 2>"$dir/bad.log" &
pid_of[bad]=$!
wait_for "bad_server to listen" grep -q listening "$dir/bad.out"
address=unix:$dir/bad.sock
start_client one "$dir/data/client-000" \
  "reconnect: {first: 10ms, longest: 50ms}" "log_level: debug" "exit_when_done: no"
all_cells() { [ "$(grep -cE ' (stays|ends)$|^ODD ' "$dir/bad.out")" -eq 96 ] || ended bad || ended one; }
wait_for "all cells" all_cells
check "the client lives" running one
stop one
equal "the client ends well" 0 "$rc"
lacks_line "nothing of another model was sent" "$dir/bad.out" leak
has_line "the server's words are in the log" "$dir/one.log" "update rejected by the server, dropping the result: so?there"
equal "no control character of its is" 0 "$(LC_ALL=C grep -c '[[:cntrl:]]' "$dir/one.log")"
n=0
while read -r state command outcome; do
  case $outcome in stays | ends) ;; *) continue ;; esac
  n=$((n + 1))
  expected=stays
  case $state in CODING | SENDING) row=PUSHING ;; *) row=$state ;; esac
  case "$(cell "Commands at the client" "$row" "$command") $command" in
  breach\ * | takes\ Refused | takes\ Drain) expected=ends ;;
  takes\ * | ignores\ *) ;;
  *) expected="a cell in the page" ;;
  esac
  equal "$command in state $state" "$expected" "$outcome"
  if [ "$(cell "Commands at the client" "$row" "$command")" = breach ]; then
    has_line "$command in state $state is told" "$dir/one.log" "protocol error of the server: unexpected $command in state $row"
  else
    lacks_line "$command in state $state is no breach" "$dir/one.log" "protocol error of the server: unexpected $command in state $row"
  fi
done <"$dir/bad.out"
equal "all cells were played" 90 "$n"
for state in FETCHING TRAINING; do
  has_line "an Evaluate beside $state is answered" "$dir/bad.out" "no evaluation in $state"
done

### Plans and tasks that are odd in themselves
odd() { sed -n "s/^ODD $1 //p" "$dir/bad.out"; }
equal "a task that grants what the model lacks ends the session" "ends 0" "$(odd past-task)"
equal "and so does such a plan" "ends 0" "$(odd past-plan)"
equal "and one for far more units" "ends 0" "$(odd far-plan)"
equal "with a line that says why" 3 \
  "$(grep -c 'bad command from the server: the upload mask has layers past the 2 of the model, reconnecting' "$dir/one.log")"
equal "bits that are 0 grant nothing" "stays 1" "$(odd padded-plan)"
equal "a plan for another attempt pushes nothing" "stays 0" "$(odd other-attempt)"
has_line "and is answered" "$dir/bad.out" "failed other-attempt attempt 2"
equal "a task that is changed stays as it was: all units" "stays 2" "$(odd changed-task)"
has_line "and was said while the client trained" "$dir/bad.out" "changed in training"
finish
