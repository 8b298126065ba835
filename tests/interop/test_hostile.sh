#!/usr/bin/env bash
# A hostile client made from proto/ beside honest fl-clientd at one fl-serverd: poisoned updates, false claims, and
# calls and connections that are meant to keep others out. The honest ones finish and lose nothing.
set -u
# shellcheck source=tests/interop/stubs.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/interop/stubs.sh"
"$python" -c 'import numpy' 2>/dev/null || skip "python3-numpy is not there for $python"
run "$src/tests/interop/hostile.py" "$@"
