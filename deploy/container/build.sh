#!/usr/bin/env bash
# Images fl-server and fl-client from the packages of this tree.
#   deploy/container/build.sh [--packages DIR] [--base IMAGE] [--tag TAG] [--tool buildah|podman|docker] [-- OPTION...]
#     --packages DIR   what deploy/package.sh built; without it they are built now
#     --base IMAGE     another Debian 12 (default docker.io/library/debian:bookworm-slim)
#     --tag TAG        default latest
#     --tool TOOL      what builds; default: the first of these that is there
#     -- OPTION...     handed to its build command, as --isolation chroot
set -euo pipefail

die() { echo "build.sh: $*" >&2; exit 1; }
packages='' base='' tag=latest tool=''
while [ $# -gt 0 ]; do
  case "$1" in
    --packages|--base|--tag|--tool)
      [ $# -ge 2 ] || { echo "build.sh: $1 needs a value" >&2; exit 2; }
      case "$1" in
        --packages) packages=$2 ;;
        --base) base=$2 ;;
        --tag) tag=$2 ;;
        --tool) tool=$2 ;;
      esac
      shift 2 ;;
    --) shift; break ;;
    -h|--help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "build.sh: unknown argument '$1' (see --help)" >&2; exit 2 ;;
  esac
done
here=$(cd "$(dirname "$0")" && pwd)
for t in buildah podman docker; do
  [ -n "$tool" ] || ! command -v $t >/dev/null || tool=$t
done
[ -n "$tool" ] || die "needs buildah, podman or docker: apt-get install buildah"
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
if [ -z "$packages" ]; then
  packages=$context/built
  "$here/../package.sh" --output "$packages"
fi
cp "$packages"/fl-server_*.deb "$packages"/fl-client_*.deb "$packages"/fl-tools_*.deb "$here/connected" "$context/"
rm -rf "$context/built"
options=()
[ -z "$base" ] || options+=(--build-arg "BASE=$base")
# Podman and buildah keep health checks in this format only.
[ "$tool" = docker ] || options+=(--format docker)
for side in server client; do
  "$tool" build "${options[@]}" "$@" --tag "fl-$side:$tag" --file "$here/$side.Containerfile" "$context"
done
