#!/usr/bin/env bash
# What fl-sim makes of results: pictures when gnuplot is installed, comparisons, tables, and what it says
# of what is no result.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
sim=$build/fl-sim
cd "$dir" || exit 99
"$build/tests/system/results_fixture" run || exit 99
"$build/tests/system/results_fixture" still --still || exit 99

says "compare" 0 'B: lean, 2 "Mbit/s"' "$sim" compare run/fedavg run/lean
says "compare says what is noise" 0 'Within noise' "$sim" compare run/lean run/lean/
says "no figure is compared of which nothing was spent" 0 'bytes to' "$sim" compare still/fedavg still/lean
lacks_line "nor is time" "$dir/says.out" 'time to'
says "compare of one" 2 'expected two results, found 1' "$sim" compare run
says "table" 0 '| FedAvg | 3 | 60 |' "$sim" table run
says "table as CSV" 0 'FedAvg,3,60.0,0.0,3' "$sim" table --format csv run
says "table of two folders" 0 '| run/fedavg: FedAvg | 3 |' "$sim" table --columns trials run/fedavg run/fedavg
says "table of means" 0 '| FedAvg | 3 |' "$sim" table --mean-of 10 --columns trials,best run
says "means of nothing" 2 '--mean-of: expected 1 to 64' "$sim" table --mean-of 0 run

# The same run with other seeds, and with another round
cp -r run more && cp -r run other
for folder in more/*/seed-*; do mv "$folder" "${folder%/*}/seed-9${folder##*-}"; done
"$python" - <<'END'
import glob, json
with open("more/run.json") as file:
    run = json.load(file)
run["seeds"] = [int(f"9{seed}") for seed in run["seeds"]]
with open("more/run.json", "w") as file:
    json.dump(run, file)
path = sorted(glob.glob("other/fedavg/seed-*/rounds.jsonl"))[0]
with open(path) as file:
    lines = [json.loads(line) for line in file]
lines[-1]["uplink_bytes"] += 1
with open(path, "w") as file:
    file.writelines(json.dumps(line) + "\n" for line in lines)
END
says "points of two folders are apart" 0 '| more: FedAvg | 3 |' "$sim" table --columns trials run more
says "--merge: their seeds are together" 0 '| FedAvg | 6 |' "$sim" table --columns trials --merge run more
equal "in one line for each point" 4 "$(wc -l <"$dir/says.out")"
says "--merge: a seed with the same rounds counts once" 0 '| FedAvg | 6 |' "$sim" table --columns trials --merge run more run
says "--merge: points of one folder only stay" 0 '| FedAvg | 3 |' "$sim" table --columns trials --merge run/fedavg more/lean
says "--merge: a seed with other rounds is an error" 1 "is in 'run' and in 'other' with different rounds" "$sim" table --merge run other
says "unknown column" 2 "did you mean 'uplink'" "$sim" table --columns uplnk run
says "no results" 1 'has no results of fl-sim' "$sim" table /
says "no folder" 2 'expected the folder of a run' "$sim" plot
says "unknown figure" 2 "did you mean 'accuracy'" "$sim" plot --y acuracy run
says "unknown axis" 2 '--x: expected rounds' "$sim" plot --x miles run
says "even window" 2 '--smooth: expected an odd number' "$sim" plot --smooth 4 run
for range in 1 :1 0: 0.9:0.1 1:1 a:b 0:1:2 nan:1 0:inf; do
  says "no range: $range" 2 "--ylim: expected two numbers LO:HI" "$sim" plot --ylim "$range" run
done
says "no gnuplot" 1 "cannot find the program 'gnuplot' in PATH" env PATH=/nonexistent "$sim" plot run
says "results of nothing" 1 "'personal_accuracy' is unknown in all rounds" "$sim" plot --y personal_accuracy run

mkdir thesis && touch thesis/thesis.tex
printf '%s\n' 'server: {algorithm: fedavg, model: {preset: mlp200}, rounds: 1}' \
  'data: {set: mnist, method: shards, clients: 10}' >x.yaml
says "a folder with other files" 1 "it contains 'thesis.tex', and no run.json" "$sim" run x.yaml --out thesis
equal "nothing is made in it" thesis.tex "$(ls -A thesis)"

if command -v gnuplot >/dev/null; then
  check "four pictures" "$sim" plot run --title "it's 90 %" --smooth 3
  for axis in rounds uplink bytes time; do
    check "accuracy-$axis.svg is a picture with both curves" grep -q 'lean, 2 "Mbit/s"\|lean, 2 &quot;Mbit/s&quot;' accuracy-$axis.svg
    equal "accuracy-$axis.png is one" 89504e470d0a1a0a "$(head -c 8 accuracy-$axis.png | od -An -tx1 | tr -d ' ')"
  done
  check "one picture" "$sim" plot run/lean run/fedavg --x time --y loss --out 'a b' --band std --scale log
  check "by its name" test -s 'a b.svg' -a -s 'a b.png'
  check "a range of the axis and a PDF" "$sim" plot run --x rounds --ylim 0.42:0.43 --pdf --out ranged
  equal "the PDF is one" %PDF- "$(head -c 5 ranged.pdf)"
  has_line "the axis has the range, in percent" ranged.svg '> 42.4<'
  mkdir old && printf '#!/bin/sh\ncat >script; grep -q pdfcairo script && { echo "unknown or ambiguous terminal type" >&2; exit 1; }; exec %s -d script\n' \
    "$(command -v gnuplot)" >old/gnuplot && chmod +x old/gnuplot
  says "a gnuplot without PDF" 1 "no PDF, for which gnuplot needs its terminal pdfcairo (the SVG and the PNG are written): gnuplot failed: unknown" env PATH="$dir/old:$PATH" "$sim" plot run --x rounds --pdf --out no
  check "the others are there" test -s no.svg -a -s no.png -a ! -e no.pdf
  equal "nothing else is left" "" "$(find . -name '*.tmp')"
  says "nothing was spent" 1 "have no 'models'" "$sim" plot still --x models
  check "three pictures" "$sim" plot still --out still
  equal "none over time" "" "$(ls still-time* 2>/dev/null)"
  says "no place for it" 1 "nowhere" "$sim" plot run --out nowhere/x
else
  echo "gnuplot is not installed: no pictures"
fi
finish
