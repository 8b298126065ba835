#!/usr/bin/env bash
# The pages in headless Chromium: no console error, axe without violations, the keyboard alone reaches any client, the
# script sorts, filters and updates. Skipped without chromium; without axe-core ($FL_AXE, or npm that can fetch it)
# only that part.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
# shellcheck source=tests/lib/chromium.sh
. "$srcdir/tests/lib/chromium.sh"
[ "$has_chromium" = 1 ] || skip "chromium (package chromium) is not there"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$srcdir/tools" "$python" "$srcdir/tests/libfl/page/page_browser.py" \
  "$build/tests/libfl/page/page_sample" "$axe" >"$dir/out" 2>&1
equal "the program ends" "$?" 0
browser_rules
finish
