# shellcheck shell=bash disable=SC2154 # dir, srcdir, python, checks: of lib.sh
# What docs/operating.md#failures says is what the programs say.
#
#   documented NAME COMMAND…          it ends with the exit code of the row and says what the row says
#   documented_log NAME LOG           the row is of a program that goes on: its log says it

# name, exit code, file with what was said
compare_with_page() {
  "$python" - "$srcdir/docs/operating.md" "$@" <<'PY'
import re, sys
page, name, code, said = sys.argv[1:]
for line in open(page):
    cells = [c.strip() for c in line.strip().strip("|").split(" | ")]
    if len(cells) == 6 and cells[0] == name:
        break
else:
    sys.exit(f"{page} has no row '{name}'")
if cells[3] != code:
    sys.exit(f"exit: the page says {cells[3]}, found {code}")
pattern = ".*".join(re.escape(p) for p in cells[4].strip("`").split("…"))
text = open(said, errors="replace").read()
if not any(re.search(pattern, l) for l in text.splitlines()):
    sys.exit(f"the page says {cells[4]}\nfound: {text[-2000:]}")
PY
}

documented() {
  local name=$1 code=0
  shift
  timeout -k 5 "$patience" "$@" >"$dir/documented.out" 2>&1 || code=$?
  check "documented: $name" compare_with_page "$name" "$code" "$dir/documented.out"
}

documented_log() {
  check "documented: $1" compare_with_page "$1" "goes on" "$2"
}
