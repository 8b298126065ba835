#!/usr/bin/env bash
# How the house stands, in figures: `make lint` bounds some of them, the others are to go down.
#   tools/house.sh [REVISION…]    of the working tree, or of these revisions beside each other
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in -h | --help) sed -n '2,3s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
if [ $# -eq 0 ]; then
  exec python3 tools/house.py .
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
dirs=()
for revision in "$@"; do
  dir=$tmp/$(git rev-parse --short "$revision")
  mkdir -p "$dir"
  git archive "$revision" | tar -x -C "$dir"
  dirs+=("$dir")
done
python3 tools/house.py "${dirs[@]}"
