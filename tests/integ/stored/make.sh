#!/usr/bin/env bash
# Makes a stored state for test_upgrade.sh with the programs of FL_BUILDDIR: README.md says when and how.
# Usage: FL_BUILDDIR=… bash make.sh OUTPUT.tar.xz
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/integ/stored/stored.sh
. "$(dirname "$0")/stored.sh"
output=$(realpath -m "${1:?the file to make}")
make="$dir/make"
mkdir "$make"
stored_data
keep() { # name of what is kept: the three state folders, without sockets and locks
  local s
  mkdir "$make/$1"
  for s in fed a b; do
    cp -r "$dir/$s.state" "$make/$1/$s"
    find "$make/$1/$s" \( -type s -o -name '.lock' \) -delete
  done
}

### Two rounds, and done
stored_server 2
start_server fed
start_client a "$dir/data/a" "$(stored_client)"
start_client b "$dir/data/b" "$(stored_client)"
for s in a b; do wait_end "$s"; done
stop fed
keep finished

### The third is open: a's update is accepted, b's result is made and on its way
stored_server 4
start_server fed
start_client b "$dir/data/b" "$(stored_client)" "limits: {upload_rate: 100B/s}"
start_client a "$dir/data/a" "$(stored_client)"
has_result() { [ -s "$dir/b.state/result.bin" ]; }
wait_for "a's update" in_log fed "accepted 'a' round=3"
forgotten() { [ ! -e "$dir/a.state/result.bin" ]; }
wait_for "a has heard of it" forgotten
wait_for "b's result" has_result
for s in fed a b; do kill_hard "$s"; done
keep open

### What comes of it
stored_server 4
start_server fed
for s in a b; do start_client "$s" "$dir/data/$s" "$(stored_client)"; done
wait_for "four rounds" at_round fed 4
ctl fed export --output "$make/expected.safetensors"
kernel >"$make/kernel"
tar -C "$make" --sort=name --owner=0 --group=0 --mtime=@0 -cJf "$output" .
ls -l "$output"
