#!/usr/bin/env bash
# fl-sim new: the experiments that it writes run as they are, each with its trainer; it replaces no file.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
sim=$build/fl-sim
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1
cd "$dir" || exit 99
mkdir bin && ln -s "$(command -v "$python")" bin/python3
export PATH=$dir/bin:$build:$PATH FL_DATA_DIR=$srcdir/deploy/data # digits

### Every command that "fl-sim new" prints is run, except plot without gnuplot
runs() { # kind, points, trials
  local commands line
  says "$1: it is written" 0 "fl-sim run my-$1.yaml" "$sim" new "my-$1" --trainer "$1"
  mapfile -t commands < <(sed -n 's/^  //p' says.out)
  equal "$1: commands that come next" "$([ "$1" = builtin ] && echo 3 || echo 4)" "${#commands[@]}"
  for line in "${commands[@]}"; do
    [[ $line != *plot* ]] || command -v gnuplot >/dev/null || continue
    check "$1: $line" bash -c "$line"
  done
  equal "$1: all trials are done" "$(($2 * $3))" "$(find "my-$1.results" -name summary.json -exec grep -l '"ended": "done"' {} + | wc -l)"
  equal "$1: the clients learn" True "$(json 'd["accuracy"]["last"] > 0.6' <"$(find "my-$1.results" -name summary.json | sort | head -n 1)")"
}
runs builtin 2 3
for kind in numpy pytorch; do
  if "$python" -c "import numpy, ${kind#py}" 2>/dev/null; then
    runs "$kind" 2 2
  else
    echo "not run: $kind is not there for $python"
  fi
done

### No file is replaced
echo mine >kept.yaml
says "an experiment of that name" 1 "cannot write 'kept.yaml': File exists: choose another name" "$sim" new kept --trainer numpy
equal "the file stays" mine "$(cat kept.yaml)"
check "and no script is written" test ! -e kept.py
echo mine >script.py
says "a script of that name" 1 "cannot write 'script.py': File exists" "$sim" new script --trainer numpy
equal "the script stays" mine "$(cat script.py)"
check "and no experiment is written" test ! -e script.yaml
ln -s nowhere.yaml link.yaml
says "a symbolic link to nothing" 1 "File exists" "$sim" new link
check "nothing is written through it" test ! -e nowhere.yaml

### Wrong usage
says "no name" 2 "expected the name of the experiment" "$sim" new
says "a file name" 2 "without .yaml" "$sim" new x.yaml
says "a path" 2 "expected a name of 1 to 127" "$sim" new a/b
says "an unknown kind" 2 "expected builtin, numpy or pytorch, found 'java'" "$sim" new x --trainer java
says "a name of a package" 2 "would hide the package" "$sim" new numpy --trainer numpy
check "the built-in engine imports nothing" "$sim" new numpy
finish
