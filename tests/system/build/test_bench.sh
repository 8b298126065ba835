#!/usr/bin/env bash
# bench/all writes a line for each benchmark, whatever becomes of it; bench/compare says what changed beyond noise, and
# refuses what cannot be compared.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
all=("$python" "$srcdir/bench/all")
compare=("$python" "$srcdir/bench/compare")

# --- compare, on made files ---

machine='{"cpu": "X", "cores": 2, "caches": {"L3": "8M"}, "memory_mb": 10000, "kernel": "Linux 1"}'
record() { # file, benchmark, the rest of the object
  printf '{"benchmark": "%s", "arguments": ["--n", "1"], "run": 1, "when": "2026-01-01T00:00:00Z", "commit": "abc", "load": [0.5], "machine": %s, %s}\n' \
    "$2" "$machine" "$3" >>"$dir/$1"
}
values() { # "line" and its values
  printf '"figures": [{"line": "%s", "values": {%s}}]' "$1" "$2"
}
runs() { # file, line, key, values…: a run each
  local file=$1 line=$2 key=$3 value
  shift 3
  for value in "$@"; do record "$file" "$line" "$(values "$line" "\"$key\": $value")"; done
}
verdict() { # name, word, exit code, line, key, values before / values now
  local name=$1 word=$2 code=$3 line=$4 key=$5 words
  shift 5
  local before=()
  while [ "$1" != / ]; do
    before+=("$1")
    shift
  done
  rm -f "$dir/a.jsonl" "$dir/b.jsonl"
  runs a.jsonl "$line" "$key" "${before[@]}"
  runs b.jsonl "$line" "$key" "${@:2}"
  says "$name" "$code" "1 $word" "${compare[@]}" "$dir/a.jsonl" "$dir/b.jsonl"
  words=$(sed -n 's/^  \([a-z]*\) .*/\1/p' "$dir/says.out")
  equal "$name, of the figure" "$word" "$words"
}

verdict "more samples a second are faster" faster 0 train samples_per_s 100 101 99 100 / 120 121 119 120
verdict "fewer are slower" slower 1 train samples_per_s 100 101 99 100 / 80 81 79 80
verdict "more seconds are slower" slower 1 round seconds 1.00 1.02 0.98 1.00 / 1.30 1.28 1.32 1.30
verdict "fewer are faster" faster 0 round seconds 1.00 1.02 0.98 1.00 / 0.70 0.72 0.68 0.70
verdict "more bytes are larger" larger 1 idle bytes 1000 1001 1000 / 1200 1201 1200
verdict "more of what another thing does is better" better 0 wire upload_ratio 1.00 1.01 0.99 / 1.50 1.51 1.49
verdict "a round's times of the wire are worse when there are more" worse 1 round wire_ratio 2.00 2.01 1.99 / 3.00 3.01 2.99
verdict "what spreads is noise" same 0 round seconds 1.0 1.4 0.8 1.2 / 1.3 1.6 0.9 1.5
verdict "one odd run of five is no change" same 0 round seconds 1.00 1.02 0.98 1.01 0.99 / 1.01 0.99 5.00 1.00 1.02
verdict "less than a percent never counts" same 0 idle bytes 10000 10000 10000 / 10050 10050 10050
verdict "one in the last digit never counts" same 0 round seconds 0.03 0.03 0.03 / 0.04 0.04 0.04
verdict "nothing stays nothing" same 0 same different 0 0 / 0 0
verdict "something of nothing is worse" worse 1 same different 0 0 / 7 7
verdict "the machine's own figures are none of ours" machine 0 wire raw_tcp_mb_s 3000 3001 2999 / 2000 2001 1999
verdict "a text that changes is said" changed 0 train kernel '"avx2"' / '"avx512"'
verdict "one run beside several takes their spread" slower 1 round seconds 1.00 1.02 0.98 1.00 / 1.60

# One run each: noise is not known.
verdict "a change of 10 % of single runs is within what is assumed" same 0 round seconds 1.000 / 1.100
has_line "that noise was assumed" "$dir/says.out" "noise is not known where both sides have one run: 15 % was assumed"
says "another noise may be assumed" 1 "1 slower" "${compare[@]}" --noise 5 "$dir/a.jsonl" "$dir/b.jsonl"
verdict "one of 20 % is beyond it" slower 1 round seconds 1.000 / 1.200
says "--changes leaves out what is the same" 0 "1 same" "${compare[@]}" --changes "$dir/a.jsonl" "$dir/a.jsonl"
lacks_line "and its benchmark" "$dir/says.out" "round --n 1"

# What a benchmark repeats of its arguments tells its lines apart, in whatever order.
rm -f "$dir"/*.jsonl
record a.jsonl idle '"figures": [{"line": "idle", "values": {"tls": "no", "bytes": 10000}}, {"line": "idle", "values": {"tls": "yes", "bytes": 30000}}]'
record b.jsonl idle '"figures": [{"line": "idle", "values": {"tls": "yes", "bytes": 30000}}, {"line": "idle", "values": {"tls": "no", "bytes": 10000}}]'
says "lines of one name are told apart" 0 "2 same" "${compare[@]}" "$dir/a.jsonl" "$dir/b.jsonl"
record c.jsonl idle '"figures": [{"line": "idle", "values": {"tls": "no", "odd": 7, "bytes": 10000}}, {"line": "idle", "values": {"tls": "yes", "bytes": 90000}}]'
says "a line with an argument more is still found" 1 "idle[tls=no].odd  not in $dir/a.jsonl:1" "${compare[@]}" "$dir/a.jsonl" "$dir/c.jsonl"
has_line "a figure that no row knows is said" "$dir/says.out" "$dir/c.jsonl:1: idle --n 1: bench/recorded.py knows no 'odd' of 'idle'"
has_line "beside what changed" "$dir/says.out" "larger   idle[tls=yes].bytes  30000 -> 90000"

# Benchmarks that failed.
record failed.jsonl idle '"error": "exit code 1: no port"'
says "a benchmark that fails now is worse" 1 "fails    now  $dir/failed.jsonl:1: exit code 1: no port" "${compare[@]}" "$dir/a.jsonl" "$dir/failed.jsonl"
says "one that failed before is not" 0 "failed   before  $dir/failed.jsonl:1" "${compare[@]}" "$dir/failed.jsonl" "$dir/a.jsonl"

# Another machine.
machine=${machine/'"X"'/'"Y"'}
record other.jsonl idle "$(values idle '"bytes": 10000')"
says "another machine is refused" 2 "$dir/other.jsonl:1: another machine: cpu is Y, of $dir/a.jsonl:1 X" "${compare[@]}" "$dir/a.jsonl" "$dir/other.jsonl"
says "unless told" 0 "another machine: cpu: X, then Y" "${compare[@]}" --other-machine "$dir/a.jsonl" "$dir/other.jsonl"
cat "$dir/a.jsonl" "$dir/other.jsonl" >"$dir/both.jsonl"
says "also within a file" 2 "$dir/both.jsonl:2: another machine" "${compare[@]}" "$dir/both.jsonl" "$dir/both.jsonl"
sed 's/10000,/9990,/; s/Linux 1/Linux 2/' "$dir/other.jsonl" >"$dir/kernel.jsonl"
says "another kernel is the same machine, and said" 0 "kernel differs: Linux 1, then Linux 2" "${compare[@]}" "$dir/other.jsonl" "$dir/kernel.jsonl"

sed 's/"kernel": "Linux 2"/&, "environment": "OMP_NUM_THREADS=1"/' "$dir/kernel.jsonl" >"$dir/set.jsonl"
says "what was set too" 0 "environment differs: none, then OMP_NUM_THREADS=1" "${compare[@]}" "$dir/kernel.jsonl" "$dir/set.jsonl"

# What is no file of bench/all.
{ cat "$dir/a.jsonl" && echo '{"benchmark": '; } >"$dir/broken.jsonl"
says "a broken line" 2 "$dir/broken.jsonl:2: no JSON" "${compare[@]}" "$dir/a.jsonl" "$dir/broken.jsonl"
echo '[1]' >"$dir/list.jsonl"
says "a line that is no object" 2 "$dir/list.jsonl:1: expected a JSON object" "${compare[@]}" "$dir/list.jsonl" "$dir/a.jsonl"
echo '{"benchmark": "idle"}' >"$dir/short.jsonl"
says "a line without its keys" 2 "$dir/short.jsonl:1: key 'arguments' is missing" "${compare[@]}" "$dir/short.jsonl" "$dir/a.jsonl"
record none.jsonl idle '"figures": []'
says "a line without figures" 2 "$dir/none.jsonl:1: idle --n 1: key 'figures' is missing or empty" "${compare[@]}" "$dir/a.jsonl" "$dir/none.jsonl"
record odd.jsonl idle '"figures": [{"line": "idle", "values": {"bytes": null}}]'
says "figures that are none" 2 "$dir/odd.jsonl:1: idle --n 1: expected" "${compare[@]}" "$dir/a.jsonl" "$dir/odd.jsonl"
: >"$dir/empty.jsonl"
says "an empty file" 2 "$dir/empty.jsonl: holds no line" "${compare[@]}" "$dir/a.jsonl" "$dir/empty.jsonl"
says "no file" 2 "$dir/away.jsonl: No such file" "${compare[@]}" "$dir/a.jsonl" "$dir/away.jsonl"
head -c 100 /dev/urandom | sed 's/^/\xff/' >"$dir/binary.jsonl"
says "no text" 2 "$dir/binary.jsonl: " "${compare[@]}" "$dir/a.jsonl" "$dir/binary.jsonl"
sed 's/"--n"/"--m"/' "$dir/other.jsonl" >"$dir/apart.jsonl"
says "nothing in common" 2 "have no benchmark with the same arguments" "${compare[@]}" "$dir/other.jsonl" "$dir/apart.jsonl"

# --- the table of README.md ---

recorded=$srcdir/bench/results/readme.jsonl
has_rows() { "${compare[@]}" --table "$1" | grep -q '^| a round of 10 clients x 100 MB'; }
check "the recorded run makes a table" has_rows "$recorded"
grep -v '"benchmark": "idle"' "$recorded" >"$dir/less.jsonl"
says "a row without its line" 2 "$dir/less.jsonl: no line of 'idle', which the table needs" "${compare[@]}" --table "$dir/less.jsonl"
sed 's/"raw_tcp_mb_s"/"raw"/' "$recorded" >"$dir/renamed.jsonl"
says "a row without its figure" 2 "the table of $dir/renamed.jsonl needs {wire.raw_tcp_mb_s/1e3}" "${compare[@]}" --table "$dir/renamed.jsonl"
sed '2s/"commit": "[0-9a-z]*/&x/' "$recorded" >"$dir/two.jsonl"
says "a table of two commits" 2 "$dir/two.jsonl:2: of another machine or commit" "${compare[@]}" --table "$dir/two.jsonl"
echo "no marks" >"$dir/page.md"
says "a page without the table's place" 2 "$dir/page.md: has no place for the table" "${compare[@]}" --table "$recorded" --into "$dir/page.md"
"${compare[@]}" "$recorded" "$recorded" >"$dir/itself.txt"
lacks_line "every figure that benchmarks print is known" "$dir/itself.txt" "knows no"

# --- all, of a made folder ---

mkdir -p "$dir/made/bench"
mkfifo "$dir/made/never" # whoever opens it waits
program() { # name; its text on stdin
  { echo '#!/bin/sh' && cat; } >"$dir/made/bench/$1"
  chmod +x "$dir/made/bench/$1"
}
program good <<<'echo "begins"; echo "good: n=$# first=$1 took_ms=1.50"; echo "other part: kernel=x b=2"; echo good >>"$FL_BUILDDIR/order"'
program next <<<'echo "next: took_ms=2"; echo next >>"$FL_BUILDDIR/order"'
program bad <<<'echo "bad: took_ms=1"; echo "no port is free" >&2; exit 3'
program killed <<<'kill -SEGV $$'
program silent <<<'echo "nothing here"'
program hangs <<<'echo $$ >"$FL_BUILDDIR/pids"; cat "$FL_BUILDDIR/never" & echo $! >>"$FL_BUILDDIR/pids"; wait'
plan() { printf '%s\n' "$@" >"$dir/plan"; }
of_line() { # line number, Python expression of r
  "$python" -c 'import json, sys; r = json.loads(open(sys.argv[1]).read().splitlines()[int(sys.argv[2]) - 1]); print(eval(sys.argv[3]))' \
    "$dir/out.jsonl" "$@"
}
gone() { # processes of the file, zombies without a parent included
  local pid
  while read -r pid; do grep -q '^State:.[^Z]' "/proc/$pid/status" 2>/dev/null && return 1; done <"$dir/made/pids"
  return 0
}

plan "# comment" "1 bad | bad short" "1 killed" "1 silent" "1 away" "1 hangs" "1 good --key 'a b' | good quick" "1 next | -"
says "a benchmark that fails is no end" 1 "[7/7] next" "${all[@]}" --build "$dir/made" --plan "$dir/plan" --limit 2 --output "$dir/out.jsonl"
equal "each has a line" 7 "$(wc -l <"$dir/out.jsonl")"
equal "an exit code, and what was said last" "exit code 3: no port is free" "$(of_line 1 'r["error"]')"
equal "a signal" "signal 11" "$(of_line 2 'r["error"][:9]')"
equal "no figures" "no figure in what it printed: nothing here" "$(of_line 3 'r["error"]')"
equal "no program" "there is no $dir/made/bench/away: run make there, or name another folder with --build" "$(of_line 4 'r["error"]')"
equal "a time that has passed" "took longer than 2 s (--limit) and was ended" "$(of_line 5 'r["error"]')"
wait_for "what hung to be ended with its children" gone
equal "figures by the names that were printed" \
  "[{'line': 'good', 'values': {'n': 2, 'first': '--key', 'took_ms': 1.5}}, {'line': 'other part', 'values': {'kernel': 'x', 'b': 2}}]" \
  "$(of_line 6 'r["figures"]')"
equal "the arguments" "['--key', 'a b']" "$(of_line 6 'r["arguments"]')"
equal "the machine is described" "[]" "$(of_line 6 '[k for k in ("cpu", "cores", "caches", "memory_mb", "kernel", "distribution", "compiler", "flags", "openblas", "openssl", "sqlite", "scratch") if k not in r["machine"]]')"
equal "and how busy it was" 3 "$(of_line 6 'len(r["load"])')"
says "a file that is there is not written over" 2 "out.jsonl is there already" "${all[@]}" --build "$dir/made" --plan "$dir/plan" --only next --output "$dir/out.jsonl"
says "what is set is said" 0 "OPENBLAS_CORETYPE=Haswell" \
  env OPENBLAS_CORETYPE=Haswell "${all[@]}" --build "$dir/made" --plan "$dir/plan" --only next --append --output "$dir/set-too.jsonl"
check "and written down" grep -q '"environment": "[^"]*OPENBLAS_CORETYPE=Haswell' "$dir/set-too.jsonl"
rm "$dir/made/order"
plan "1 good" "1 next"
check "runs are added" "${all[@]}" --build "$dir/made" --plan "$dir/plan" --runs 2 --append --output "$dir/out.jsonl"
equal "to what is there" 11 "$(wc -l <"$dir/out.jsonl")"
equal "a run goes through the whole list" "good next good next" "$(paste -sd ' ' "$dir/made/order")"
plan "1 good | good short" "1 next | -"
equal "--list says what --quick would run" "short  good short" "$("${all[@]}" --build "$dir/made" --plan "$dir/plan" --quick --list)"
says "an unknown benchmark" 2 "--only nxt: no such benchmark, there are good, next" "${all[@]}" --build "$dir/made" --plan "$dir/plan" --only nxt
says "nothing left" 2 "--quick leaves out what was asked for" "${all[@]}" --build "$dir/made" --plan "$dir/plan" --quick --only next
says "a folder that is not there" 2 "no such folder" "${all[@]}" --build "$dir/nowhere"
plan "1 good" "soon next"
says "a list that is none" 2 "$dir/plan:2: could not convert" "${all[@]}" --build "$dir/made" --plan "$dir/plan"
says "no list" 2 "$dir/none: No such file" "${all[@]}" --build "$dir/made" --plan "$dir/none"

# Stopped half-way.
rm -f "$dir/made/pids" "$dir/out.jsonl"
plan "1 good" "1 hangs" "1 next"
both_there() { [ "$(wc -l <"$dir/made/pids")" -eq 2 ]; } 2>/dev/null
"${all[@]}" --build "$dir/made" --plan "$dir/plan" --output "$dir/out.jsonl" 2>"$dir/stopped.log" &
stopped=$!
wait_for "the benchmark that hangs" both_there
kill -TERM "$stopped"
wait "$stopped"
equal "a signal ends it" 143 $?
equal "and what was measured is written" "good" "$(of_line 1 'r["benchmark"]')"
equal "that alone" 1 "$(wc -l <"$dir/out.jsonl")"
wait_for "the benchmark to be ended too" gone

# SIGTERM while a benchmark is being started: sent from inside Popen, when its process is there and nothing has its number yet.
cat >"$dir/signalled.py" <<'EOF'
import os, runpy, signal, subprocess, sys
class Signalled(subprocess.Popen):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if kwargs.get("start_new_session"):
            os.kill(os.getpid(), signal.SIGTERM)
subprocess.Popen = Signalled
sys.path.insert(0, os.path.dirname(sys.argv[1]))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
EOF
rm -f "$dir/made/pids" "$dir/out.jsonl"
plan "1 hangs"
program hangs <<<'echo $$ >"$FL_BUILDDIR/pids"; exec cat "$FL_BUILDDIR/never"'
"$python" "$dir/signalled.py" "$srcdir/bench/all" --build "$dir/made" --plan "$dir/plan" --output "$dir/out.jsonl" 2>"$dir/stopped.log"
equal "SIGTERM inside Popen ends the run" 143 $?
none_runs() { ! pgrep -f "$dir/made/bench/hangs|$dir/made/never" >/dev/null; }
wait_for "the benchmark that was being started to be ended" none_runs

# A second SIGTERM: sent after the first one was raised, where the run begins to defer signals to end the benchmark.
cat >"$dir/twice.py" <<'EOF'
import contextlib, os, runpy, signal, subprocess, sys
ending = False
class Signalled(subprocess.Popen):
    def communicate(self, *args, **kwargs):
        global ending
        if self.args[-1].endswith("/hangs"):
            ending = True
            os.kill(os.getpid(), signal.SIGTERM)
        return super().communicate(*args, **kwargs)
def enter(self, real=contextlib._GeneratorContextManager.__enter__):
    if ending:
        os.kill(os.getpid(), signal.SIGTERM)
    return real(self)
subprocess.Popen = Signalled
contextlib._GeneratorContextManager.__enter__ = enter
sys.path.insert(0, os.path.dirname(sys.argv[1]))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
EOF
rm -f "$dir/made/pids" "$dir/out.jsonl"
"$python" "$dir/twice.py" "$srcdir/bench/all" --build "$dir/made" --plan "$dir/plan" --output "$dir/out.jsonl" 2>"$dir/stopped.log"
equal "two of them end the run once" 143 $?
has_line "and with its line" "$dir/stopped.log" "bench/all: ended; what was measured is written"
wait_for "the benchmark to be ended in spite of the second" none_runs

# A real one.
check "the short rounds run" "${all[@]}" --quick --only round --build "$build" --output "$dir/round.jsonl"
says "and compare with themselves" 0 "round[clients=" "${compare[@]}" "$dir/round.jsonl" "$dir/round.jsonl"
lacks_line "without a failure" "$dir/says.out" "failed"
finish
