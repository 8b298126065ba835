#!/usr/bin/env bash
# Writes docs/configuration.md from the option tables: docs/reference.sh BUILD_FOLDER > FILE.
# A test compares the committed page with what this prints.
set -euo pipefail
build=$1
cat <<'TEXT'
# Configuration

One YAML file per daemon. `--check-config FILE` checks it and all that a start needs (folders, sockets,
data, the first model, the program), changes nothing, and says what is wrong with file, line and key and
the exit code of such a start; unknown keys are refused with the nearest known one. Run it as the user of
the daemon: what it may write is part of the check. Relative paths start at the current folder. Sizes take K, M, G (powers of 1024),
durations ms, s, m, h. This page is printed by the daemons themselves (`make reference`).

## fl-serverd

TEXT
"$build/fl-serverd" --reference
printf '\n## fl-clientd\n\n'
"$build/fl-clientd" --reference
