#!/usr/bin/env bash
# The pages in headless Chromium: no console error, axe without violations, the keyboard alone reaches any client, the
# script sorts, filters and updates. Skipped without chromium; without axe-core ($FL_AXE, or npm that can fetch it)
# only that part.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
for name in "${FL_CHROMIUM:-}" chromium chromium-browser google-chrome; do
  [ -n "$name" ] && command -v "$name" >/dev/null && break
  name=''
done
[ -n "$name" ] || skip "chromium (package chromium) is not there"

axe=${FL_AXE:-/usr/share/javascript/axe-core/axe.min.js}
if [ ! -e "$axe" ] && command -v npm >/dev/null; then
  (mkdir "$dir/npm" && cd "$dir/npm" && timeout 120 npm install --silent --no-audit --no-fund axe-core) >/dev/null 2>&1
  axe=$dir/npm/node_modules/axe-core/axe.min.js
fi
if [ ! -e "$axe" ]; then
  echo "without axe-core (set FL_AXE to its axe.min.js, or let npm fetch it): accessibility rules are not checked"
  axe=''
fi
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$srcdir/tools" "$python" "$srcdir/tests/libfl/page/page_browser.py" \
  "$build/tests/libfl/page/page_sample" "$axe" >"$dir/out" 2>&1
equal "the program ends" "$?" 0
cat "$dir/out"
while read -r result rest; do
  case $result in
    ok) check "$rest" true ;;
    FAILED) check "$rest" false ;;
  esac
done <"$dir/out"
check "it checked something" grep -q '^ok' "$dir/out"
finish
