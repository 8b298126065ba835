#!/usr/bin/env bash
# A client that grpcio and protoc made from proto/, against fl-serverd: whole rounds beside
# fl-clientd, uploads that break and go on, and every misuse that the contract names a status for.
set -u
# shellcheck source=tests/interop/stubs.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/interop/stubs.sh"
run "$src/tests/interop/client.py"
