# shellcheck shell=bash
# Sourced: checks that the Python side is there (exit 77 when not), makes $dir and the stubs in it.
python=${FL_PYTHON:-/usr/bin/python3}
protoc=${FL_PROTOC:-protoc}
src=${FL_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
export FL_SRCDIR=$src FL_BUILDDIR=${FL_BUILDDIR:-$PWD}

skip() { echo "skipped: $*"; exit 77; }
plugin=$(command -v grpc_python_plugin) || skip "grpc_python_plugin (package protobuf-compiler-grpc) is not there"
command -v "$protoc" >/dev/null || skip "protoc (package protobuf-compiler) is not there"
"$python" -c 'import grpc, google.protobuf' 2>/dev/null || skip "python3-grpcio is not there for $python"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# grpc/ of proto/ must not hide the package grpc: its stubs go to a folder of their own name.
mkdir "$dir/stubs" "$dir/proto" "$dir/proto/flgrpc"
cp -r "$src/proto/fl" "$dir/proto/fl"
cp "$src"/proto/grpc/*.proto "$dir/proto/flgrpc/"
(cd "$dir/proto" && "$protoc" -I. --plugin=protoc-gen-grpc_python="$plugin" \
  --python_out="$dir/stubs" --grpc_python_out="$dir/stubs" fl/v1/*.proto flgrpc/*.proto) || exit 1

run() { # script, arguments…
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$dir/stubs:$src/tests/interop:$src/docs" GRPC_VERBOSITY=NONE \
    http_proxy='' https_proxy='' "$python" "$@"
}
