#!/usr/bin/env bash
# Central settings: operators set labels, hours and limits of clients with flctl; a client carries out what its owner accepts, refuses
# the rest with a reason on both sides, keeps them over a restart; both sides log them, and the server knows the labels of
# disconnected clients after a restart.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 3
write_server srv "rounds: 2" "model: {preset: dnn60}" "http: {listen: [\"127.0.0.1:0\"]}" "listen: [\"unix:$dir/srv.sock\"]" "round: {eligible: {labels: {site: berlin}}}"
start_server srv || finish
f() { # name, exit code, text, arguments of flctl…
  says "$1" "$2" "$3" "$build/flctl" -d "$dir/srv.state" "${@:4}" </dev/null
}
of() { ctl srv clients --json | json "next(c['$2'] for c in d if c['name'] == '$1')"; } # client, key
label() { of "$1" labels | tr "'" '"' | json "d.get('$2')"; }
labelled() { [ "$(label "$1" "$2")" = "$3" ]; } # client, key, value
central() { case "$(of "$1" central)" in *"$2"*) ;; *) return 1 ;; esac } # client, part of the text
logged() { grep -qF -- "$1" "$dir/open.log"; } # text
shown() { # path: what the HTTP port says
  "$python" - "$(grep -oE 'http_port=[0-9]+' "$dir/srv.log" | tail -n 1 | cut -d= -f2)" "$1" <<'PY'
import sys, urllib.request
print(urllib.request.urlopen("http://127.0.0.1:%s%s" % tuple(sys.argv[1:]), timeout=600).read().decode())
PY
}
is() { [ "$(of "$1" "$2")" = "$3" ]; }
start_client open "$dir/data/client-000" "labels: {site: rome, floor: \"2\"}" "accept: [labels, schedule, limits]" \
  "limits: {rounds_per_day: 3}" "exit_when_done: no"
start_client shut "$dir/data/client-001" "labels: {site: rome}" "exit_when_done: no"
both() { ctl srv status | grep -qF "2 connected"; }
wait_for "both clients" both

### What a command line cannot say
f "no label" 2 "expected labels behind the name: KEY=VALUE, or KEY- to remove one" clients label open
f "a word that is none" 2 "expected KEY=VALUE such as site=lab-7, or KEY- to remove a label, found 'site'" clients label open site
f "the same twice" 2 "the label 'a' is set twice" clients label open a=1 a=2
f "no hours" 2 "--hours is required" clients schedule open
f "hours that are none" 2 "--hours: expected two times of the day" clients schedule open --hours nights
f "an unknown client" 1 "no client 'gone' is known" clients label gone a=1
f "labels that are too long" 1 "expected at most 2048 bytes of labels" clients label open "a=$(printf '%01000d' 1)" "b=$(printf '%01000d' 1)" "c=$(printf '%0100d' 1)"
equal "a pattern lists its clients" "open shut" "$(ctl srv clients label '*' site=berlin --dry-run | paste -sd ' ')"
f "several clients need a confirmation" 2 "that is 2 clients: open, shut" clients label '*' site=berlin

### Labels of a client that accepts them: it takes part with them
f "the answer" 0 "client 'open': labels site=berlin, rack=7 (sent, carried out when it takes part in no round)" clients label open site=berlin rack=7
wait_for "the client to have them" labelled open site berlin
wait_for "two rounds" at_round srv 2
wait_for "them in force" central open "labels site=berlin, rack=7 (in force)"
equal "its own stay, beside them" "2 7" "$(label open floor) $(label open rack)"
equal "the other one took no part" 0 "$(of shut selected)"
has_line "the client says so" "$dir/open.log" "central settings changed by an operator of the server: set by the server: labels site=berlin, rack=7"
has_line "the server says so" "$dir/srv.log" "client 'open' carries out its central settings"
shown /api/v1/clients/open >"$dir/shown.json"
equal "the API shows them" "labels site=berlin, rack=7 (in force)" "$(json 'd["central"]' <"$dir/shown.json")"
equal "and its labels" "berlin 2" "$(json 'd["labels"]["site"] + " " + d["labels"]["floor"]' <"$dir/shown.json")"
page_shows() { shown /clients/open >"$dir/shown.html" && grep -qF "<p>Set by operators: labels site=berlin, rack=7 (in force)</p>" "$dir/shown.html"; }
wait_for "the page of the client to show them" page_shows
has_line "and its labels" "$dir/shown.html" "<p>site: berlin</p>"
f "people read it" 0 "set by operators: labels site=berlin, rack=7 (in force)" clients

### Of one that accepts nothing
f "the answer is the same" 0 "client 'shut': labels site=berlin (sent" clients label shut site=berlin
wait_for "the refusal" central shut "not accepted: labels (the owner's 'accept' does not name them)"
equal "its labels stay" rome "$(label shut site)"
has_line "its owner reads why" "$dir/shut.log" "central settings of the server not accepted: labels (the owner's 'accept' does not name them); to accept them, name them in 'accept'"
has_line "the server's log too" "$dir/srv.log" "client 'shut' does not accept its central settings: labels"
f "and why" 0 "central settings not accepted: labels" why

### Hours, far from now in any case
hour=$(date +%H)
hours=$(printf '%02d:00-%02d:00' $(((10#$hour + 6) % 24)) $(((10#$hour + 8) % 24)))
f "the answer" 0 "client 'open': labels site=berlin, rack=7; hours $hours (sent" clients schedule open --hours "$hours"
wait_for "the client not to be available" is open state unavailable
case "$(of open last_error)" in *"outside its hours $hours, which an operator of the server set") ok=yes ;; *) ok=$(of open last_error) ;; esac
equal "with the reason" yes "$ok"
has_line "its owner reads it" "$dir/open.log" "not available (central settings): it is "

### Limits: the lower one of owner and server holds, the other one accepts none
f "no limit" 2 "expected limits behind the name: KEY=VALUE, or KEY- to remove one" clients limit open
f "another limit" 2 "expected upload_rate, download_rate or rounds_per_day, found 'memory'" clients limit open memory=1G
f "a value that is none" 1 "'upload_rate': " clients limit open upload_rate=fast
f "the answer" 0 "limits upload_rate=2 Mbit/s, rounds_per_day=5 (sent" clients limit open "upload_rate=2 Mbit/s" rounds_per_day=5
wait_for "them in force" central open "limits upload_rate=2 Mbit/s, rounds_per_day=5 (in force)"
owner() { "$build/fl-clientd" --status --format json "$dir/open.yaml" | json 'd["limits"]["limits.rounds_per_day"] + " " + d["limits"]["limits.upload_rate"]'; }
equal "the owner's own limit of 3 is lower and holds, that of the server is new" "3 250.0 kB a second" "$(owner)"
has_line "the client's log has them" "$dir/open.log" "; limits upload_rate=2 Mbit/s, rounds_per_day=5"
has_line "the audit of the server too" "$dir/srv.log" "audit: limit open: upload_rate=2 Mbit/s rounds_per_day=5"
f "the other answer" 0 "limits rounds_per_day=1 (sent" clients limit shut rounds_per_day=1
wait_for "the refusal" central shut "limits (the owner's 'accept' does not name them)"

### Both restart: nothing of that is lost, and labels of disconnected clients are known
stop open
stop shut
stop srv
start_server srv || finish
equal "the labels of a disconnected client" "berlin 7 2" "$(label open site) $(label open rack) $(label open floor)"
equal "a verb finds it by its label" open "$(ctl srv clients quarantine --label rack=7 --dry-run)"
wait_for "its settings" central open "hours $hours; limits upload_rate=2 Mbit/s, rounds_per_day=5 (sent when it connects)"
run_client open
wait_for "the client to have them still" logged "central settings from before the start: set by the server: labels site=berlin, rack=7; hours $hours"
wait_for "them in force again" central open "hours $hours; limits upload_rate=2 Mbit/s, rounds_per_day=5 (in force)"
run_client shut
wait_for "the refusal again" central shut "not accepted: labels"

### Taken back, one after the other
f "no limits" 0 "client 'open': labels site=berlin, rack=7; hours $hours (sent" clients limit open upload_rate- rounds_per_day-
f "no hours" 0 "client 'open': labels site=berlin, rack=7 (sent" clients schedule open --hours none
wait_for "it is available" is open state idle
f "a label less" 0 "client 'open': labels site=berlin (sent" clients label open rack-
f "none" 0 "client 'open': no central settings" clients label open site- other-
wait_for "its own label is back" labelled open site rome
equal "nothing is set" None "$(of open central)"
has_line "its owner reads that" "$dir/open.log" "central settings changed by an operator of the server: none, the configuration of this client alone holds"
f "several clients at once" 0 "shut: client 'shut': labels site=paris" clients label '*' site=paris --yes
wait_for "the label" labelled open site paris
f "a client is forgotten with them" 0 "" clients forget open
wait_for "its own label is back" labelled open site rome

### A file that is damaged: the server sends them again
f "the label once more" 0 "client 'open': labels site=oslo" clients label open site=oslo
wait_for "the label" labelled open site oslo
stop open
printf x >>"$dir/open.state/central.bin"
run_client open
wait_for "a warning" logged "the stored central settings cannot be read, the server sends them again"
wait_for "the label again" labelled open site oslo

### What an owner may write
{ cat "$dir/open.yaml"; echo "accept: [labels, memory]"; } | grep -v 'accept: \[labels, schedule' >"$dir/bad.yaml"
says "a word that is none" 3 "key 'accept': expected labels, schedule or limits, found 'memory'" "$build/fl-clientd" --check-config "$dir/bad.yaml"
finish
