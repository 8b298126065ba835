#!/usr/bin/env bash
# A program evaluates in the server's place: the same figures as the built-in engine's, for models that this
# does not know too; one that dies costs its round the accuracy and nothing else.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
"$python" -c 'import numpy' 2>/dev/null || skip "$python has no numpy"
synthetic "$dir/data" 2 --seed 3
program=$srcdir/tests/system/evaluator.py
command() { # arguments…: a YAML list
  local list='' a
  for a in "$@"; do list+="${list:+, }\"$a\""; done
  echo "command: [$list]"
}
# server, evaluation:
federation() {
  write_server "$1" "rounds: 3" "model: {preset: dnn60}" "round: {start_clients: 2}" "when_finished: stay" \
    "evaluation: {$2}"
  start_server "$1"
  rm -rf "$dir/a.state" "$dir/b.state" # the same names draw the same
  start_client a "$dir/data/client-000"
  start_client b "$dir/data/client-001"
  wait_for "three rounds of $1" at_round "$1" 3
  stop a
  stop b
}
figures() { ctl "$1" rounds --last 0 --json | json '" ".join("-" if r["accuracy"] is None else "%.4f" % r["accuracy"] for r in d)'; }
losses() { ctl "$1" rounds --last 0 --json | json '" ".join("-" if r["loss"] is None else "%.4f" % r["loss"] for r in d)'; }

### The same figures from both
federation own "data: \"$dir/data/server\", metrics: [macro_f1, worst_class]"
federation other "$(command "$python" "$program" "$dir/data/server")"
equal "a program tells the accuracy that the built-in engine finds" "$(figures own)" "$(figures other)"
equal "and its loss" "$(losses own)" "$(losses other)"
lacks_line "in every round" <(figures other) "-"
metrics() { ctl "$1" rounds --last 0 --json | json '" ".join("macro_f1=%.9f worst_class=%.9f" % (r["metrics"]["macro_f1"], r["metrics"]["worst_class"]) for r in d)'; }
equal "and the metrics that the engine computes" "$(metrics own)" "$(metrics other)"
has_line "by their names" <(metrics own) "macro_f1=0."
metrics own >"$dir/before"
ctl own rounds --last 1 >"$dir/text"
has_line "flctl rounds prints them" "$dir/text" "metrics macro_f1=0."
stop own
start_server own
equal "a restart keeps them" "$(cat "$dir/before")" "$(metrics own)"
equal "it was started once" 1 "$(grep -c "software='evaluator.py'" "$dir/other.log")"
check "the model is exported" ctl own export --output "$dir/first.safetensors"
stop own
stop other
equal "the server ends well, and the program with it" 0 "$rc"
check "no program is left" test -z "$(pgrep -f "$program $dir/data/server\$")"

### Metrics that cannot be
write_server bad "rounds: 3" "model: {preset: dnn60}" "evaluation: {data: \"$dir/data/server\", metrics: [f1]}"
says "an unknown one" 3 "unknown metric 'f1'; expected macro_f1, class_accuracy, worst_class or auc" "$build/fl-serverd" --check-config "$dir/bad.yaml"
write_server bad "rounds: 3" "model: {preset: dnn60}" "evaluation: {data: \"$dir/data/server\", metrics: auc}"
says "one for two classes" 3 "metric 'auc' needs a model of 2 classes" "$build/fl-serverd" --check-config "$dir/bad.yaml"
write_server bad "rounds: 3" "model: {preset: dnn60}" "evaluation: {metrics: [macro_f1], $(command "$python" "$program" "$dir/data/server")}"
says "of a program" 3 "expected no metrics where a program evaluates" "$build/fl-serverd" --check-config "$dir/bad.yaml"

### A model from a file
write_server file "rounds: 0" "model: {file: \"$dir/first.safetensors\"}" "round: {start_clients: 1}" \
  "evaluation: {data: \"$dir/data/server\"}"
says "the built-in engine does not know it" 3 "set evaluation.command to an evaluating program" \
  "$build/fl-serverd" --check-config "$dir/file.yaml"
write_server file "rounds: 0" "model: {file: \"$dir/first.safetensors\"}" "round: {start_clients: 1}" \
  "evaluation: {$(command "$python" "$program" "$dir/data/server")}"
start_server file
stop file
equal "a program may" 0 "$rc"

### Programs that fail
federation forgetful "$(command "$python" "$program" "$dir/data/server" "$dir/mark")"
equal "a program that dies costs its round the accuracy" "-" "$(figures forgetful | cut -d' ' -f2)"
lacks_line "no other one" <(figures forgetful | cut -d' ' -f1,3) "-"
has_line "and its last words are read" "$dir/forgetful.log" "I have lost my notes"
stop forgetful
write_server broken "rounds: 3" "model: {preset: dnn60}" "evaluation: {$(command /bin/sh -c "echo cannot begin >&2; exit 3")}"
says "a start says what the program said" 5 "cannot begin" "$build/fl-serverd" "$dir/broken.yaml"
write_server missing "rounds: 3" "model: {preset: dnn60}" "evaluation: {command: [/nonexistent/program]}"
says "one that is not there is found by a check, with its line" 5 "missing.yaml:" \
  "$build/fl-serverd" --check-config "$dir/missing.yaml"
finish
