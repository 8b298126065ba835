#!/usr/bin/env bash
# Prints a page from the tables of the programs: docs/reference.sh BUILD_FOLDER PAGE.
# A test compares the committed pages with what this prints.
set -euo pipefail
build=$1
tables() { # program, option: stdin as it is, with new tables between the marks "<!-- program option … -->"
  local inside=no line what
  while IFS= read -r line; do
    case $line in
    "<!-- end of $1 $2"*) inside=no ;;
    esac
    [ "$inside" = yes ] || printf '%s\n' "$line"
    case $line in
    "<!-- $1 $2"*)
      inside=yes
      what=${line#"<!-- $1 $2"}
      what=${what%'-->'}
      # One word, or none.
      # shellcheck disable=SC2086
      "$build/$1" "$2" $what
      ;;
    esac
  done
}
page=$2
text=$(dirname "${BASH_SOURCE[0]}")/$page.md
case $page in
configuration)
  cat <<'TEXT'
# Configuration

One YAML file per daemon. `--check-config FILE` checks it and everything that a start needs (folders, addresses,
sockets, identity, data, the first model, the program) and changes nothing. It reports all errors at once, with file,
line and key, and ends with the exit code of such a start: first the errors of the file, and if there are none, those of its
environment. Values that are allowed but probably unintended (`training.learning_rate` above 10, `round.min_clients` above
`round.start_clients` or `round.population`) are warnings, which a start logs too; a learning rate of 0 is an error, as no client
would change the model. Root checks as the owner of the state folder, whose rights a start has. Before the first start the
folder of a socket below `/run` may be missing, as the unit creates it; an address that the running server of the same state
folder uses is no error. Unknown keys are refused with the nearest known one. Relative paths start at the current folder. Sizes take K, M, G (powers of 1024),
durations us, ms, s, m, h, d, rates kbit/s, Mbit/s, kB/s, MB/s and the like (powers of 1000).
The keys of each daemon stand in three tables. **Basic** ones, and `algorithm`, are what a first configuration sets. **Advanced** ones
have defaults that suit most federations. **Debug** ones are for tests and for the diagnosis of a fault.
The programs print this page themselves (`make reference`).

## fl-serverd

TEXT
  "$build/fl-serverd" --reference
  printf '\n## fl-clientd\n\n'
  "$build/fl-clientd" --reference
  cat <<'TEXT'

## Figures of rounds and clients

`flctl rounds --json` prints the figures of a round, `flctl clients --json` those of a client. The column
`status` says what `flctl status --json` shows of the figures of all rounds: their sum, or the newest known one.
An unknown figure is `null`. d is the number of trainable parameters of the model, s that of its batch-norm
statistics ([algorithms.md](algorithms.md)).

`uplink_bytes` and `downlink_bytes` are payloads. `wire_up_bytes` and `wire_down_bytes` are all bytes that the server read
from and wrote to the connections at the addresses of `listen` and `listen_insecure`: with control messages, joining, HTTP/2
and TLS, without the headers of TCP and IP and without the addresses for operators. A round has the bytes since the record
before it, those of aborted attempts included, so their sum is what the connections carried until the last record. A server
that starts counts from 0: what was carried between the last record before and the start is in no round.

TEXT
  "$build/flctl" --reference | sed 's/^## /### /'
  ;;
simulation) tables fl-sim --reference <"$text" ;;
operating) tables fl-serverd --hooks <"$text" ;;
security) tables flctl --access <"$text" ;;
http) tables fl-serverd --paths <"$text" | tables fl-clientd --paths | tables fl-serverd --metrics | tables fl-clientd --metrics | tables fl-clientd --tasks ;;
*)
  echo "docs/reference.sh: expected the page configuration, http, operating, security or simulation, found '$2'" >&2
  exit 2
  ;;
esac
