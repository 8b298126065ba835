#!/usr/bin/env bash
# Prints a page from the tables of the programs: docs/reference.sh BUILD_FOLDER PAGE > docs/PAGE.md.
# A test compares the committed pages with what this prints.
set -euo pipefail
build=$1
case $2 in
configuration)
  cat <<'TEXT'
# Configuration

One YAML file per daemon. `--check-config FILE` checks it and all that a start needs (folders, sockets,
data, the first model, the program), changes nothing, and says what is wrong with file, line and key and
the exit code of such a start; unknown keys are refused with the nearest known one. Run it as the user of
the daemon: what it may write is part of the check. Relative paths start at the current folder. Sizes take K, M, G (powers of 1024),
durations ms, s, m, h, rates kbit/s, Mbit/s, kB/s, MB/s and the like (powers of 1000).
This page is printed by the daemons themselves (`make reference`).

## fl-serverd

TEXT
  "$build/fl-serverd" --reference
  printf '\n## fl-clientd\n\n'
  "$build/fl-clientd" --reference
  ;;
records)
  cat <<'TEXT'
# Rounds and clients in figures

What `flctl rounds --json` tells of a round and `flctl clients --json` of a client, and in the column
`status` what `flctl status --json` makes of those of all rounds: their sum, or the newest that is known.
What is not known is `null`. d are the trainable numbers of the model, s its batch-norm
statistics ([algorithms.md](algorithms.md)). This page is printed by `flctl --reference` (`make reference`).

TEXT
  "$build/flctl" --reference
  ;;
simulation)
  # The page as it is, with the tables between the marks "<!-- fl-sim --reference … -->" made anew.
  inside=no
  while IFS= read -r line; do
    case $line in
    '<!-- end of fl-sim --reference'*) inside=no ;;
    esac
    [ "$inside" = yes ] || printf '%s\n' "$line"
    case $line in
    '<!-- fl-sim --reference'*)
      inside=yes
      what=${line#'<!-- fl-sim --reference'}
      what=${what%'-->'}
      # One word, or none.
      # shellcheck disable=SC2086
      "$build/fl-sim" --reference $what
      ;;
    esac
  done <"$(dirname "${BASH_SOURCE[0]}")/simulation.md"
  ;;
*)
  echo "docs/reference.sh: expected the page configuration, records or simulation, found '$2'" >&2
  exit 2
  ;;
esac
