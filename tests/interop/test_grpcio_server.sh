#!/usr/bin/env bash
# fl-clientd against a server that grpcio and protoc made from proto/: a round byte by byte, and
# servers that break off, send nonsense or refuse.
set -u
# shellcheck source=tests/interop/stubs.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/interop/stubs.sh"
run "$src/tests/interop/server.py"
