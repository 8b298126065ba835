#!/usr/bin/env bash
# fl_trainer with nothing but Python: the conversation with the client, the other forms of being called,
# saving; and every module compiles, where pyflakes is without a word from it.
# shellcheck source=client/python/tests/run.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}/client/python/tests/run.sh"
if "$python" -c 'import pyflakes' 2>/dev/null; then
  "$python" -m pyflakes "$src"/client/python/fl_trainer "$src"/client/python/tests || exit 1
fi
for file in "$src"/client/python/fl_trainer/*.py; do
  "$python" -W error -c 'import sys; compile(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1], "exec")' \
    "$file" || exit 1
done
run_tests test_loop test_forms test_metrics
