#!/usr/bin/env bash
# What a server takes whose clients all push at once: what lies in its windows, and not a chunk more of each that waits for
# credit. That is a bound, which a busy machine only reaches later. A build with sanitizers takes several times as much and
# leaves this test out.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

stays_below() { # MB, arguments of bench/round…
  local limit=$1
  shift
  "$build/bench/round" --dir "$dir" --server "$build/fl-serverd" "$@" >"$dir/round.out" || return 1
  cat "$dir/round.out"
  awk -v limit="$limit" 'match($0, / server_peak_rss_mb=[0-9.]+/) {
    peak = substr($0, RSTART + 20, RLENGTH - 20) + 0 } END { exit !(peak > 0 && peak < limit) }' "$dir/round.out"
}

# 200 x 2 chunks of 48 KiB in their windows are 20 MB, program and libraries 17, 200 connections 7; with the third chunk of
# each it is 60.
check "200 clients that push 0.8 MB each at once stay well under 60 MB" \
  stays_below 52 --clients 200 --model-mb 0.8 --rounds 5
finish
