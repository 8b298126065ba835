#!/usr/bin/env bash
# Prints a manual page from what the programs say themselves: docs/man.sh BUILD_FOLDER PAGE, such as
# docs/man.sh build fl-serverd.8. A build for another processor names in $FL_RUN what runs its programs here.
set -euo pipefail
build=$1 page=$2
here=$(dirname "${BASH_SOURCE[0]}")
name=${page%.*} section=${page##*.}

run() { # program, arguments…
  local program=$1
  shift
  # A command and its arguments, or nothing.
  # shellcheck disable=SC2086
  ${FL_RUN:-} "$build/$program" "$@"
}
title() { # what it is
  local version
  version=$(run "$program" --version)
  printf '.\\" Made by docs/man.sh from what %s prints.\n' "$program"
  printf '.TH "%s" %s "" "fl %s" "fl"\n.nh\n.SH NAME\n%s \\- %s\n' "${name^^}" "$section" "${version##* }" \
    "$name" "$1"
}
help() { run "$program" --help | awk -f "$here/man/help.awk"; }
commands() { # those that have a --help of their own
  local command
  echo '.SH "THE COMMANDS"'
  for command in "$@"; do
    run "$program" "$command" --help | awk -v part=1 -v command="$program $command" -f "$here/man/help.awk"
  done
}
file() { # path, text
  printf '.TP\n\\fI%s\\fR\n%s\n' "$1" "$2"
}
see() { # pages…
  local other text=''
  for other in "$@"; do text+="${text:+, }\\fB${other%(*}\\fR(${other##*(}"; done
  printf '.SH "SEE ALSO"\n%s\n.PP\nThe documents in \\fI/usr/share/doc/fl\\fR, among them \\fIdocs/operating.md\\fR.\n' "$text"
}
keys() { # arguments of the program
  cat <<'TEXT'
.SH DESCRIPTION
One YAML file. An unknown key is refused with its line and the nearest known one; \fB\-\-check\-config\fR checks a
file without starting anything. Relative paths start at the current folder. Sizes take K, M, G (powers of 1024), durations us, ms, s, m,
h, d, rates kbit/s, Mbit/s, kB/s, MB/s and the like (powers of 1000). A key \fBa.b\fR is \fBb\fR in the section \fBa\fR.
TEXT
  echo '.SH KEYS'
  run "$program" --reference "$@" | awk -f "$here/man/keys.awk"
}
example() {
  printf '.SH EXAMPLE\n.EX\n'
  cat
  printf '.EE\n'
}

case $page in
fl-serverd.8)
  program=fl-serverd
  title "coordinate a federation of machines that learn together"
  help
  echo '.SH FILES'
  file /etc/fl/server.yaml "What the unit \\fBfl\\-serverd.service\\fR reads: \\fBfl\\-server.yaml\\fR(5)."
  file /var/lib/fl-serverd "The state of the federation: database, checkpoints, uploads on their way, and what the server is known by."
  file /run/fl-serverd/admin.sock "Where \\fBflctl\\fR(1) asks."
  see 'fl-server.yaml(5)' 'flctl(1)' 'fl-clientd(8)' 'fl-sim(1)' 'systemctl(1)'
  ;;
fl-clientd.8)
  program=fl-clientd
  title "take part in a federation with data that stay here"
  help
  echo '.SH FILES'
  file /etc/fl/client.yaml "What the unit \\fBfl\\-clientd.service\\fR reads: \\fBfl\\-client.yaml\\fR(5)."
  file /var/lib/fl-clientd "A finished and unsent result, what is kept between rounds, and what this client is known by."
  see 'fl-client.yaml(5)' 'fl-serverd(8)' 'fl-data(1)' 'systemctl(1)'
  ;;
flctl.1)
  program=flctl
  title "look at a federation's server and act on it"
  help
  printf '.SH ENVIRONMENT\n.TP\n\\fBFL_ADMIN_SOCKET\\fR\nThe admin socket, where no option names one.\n'
  see 'fl-serverd(8)' 'fl-server.yaml(5)'
  ;;
fl-data.1)
  program=fl-data
  title "make, split and look at data sets"
  help
  commands split synthetic inspect
  see 'fl-clientd(8)' 'fl-sim(1)'
  ;;
fl-sim.1)
  program=fl-sim
  title "simulate federations in one process and in virtual time"
  help
  commands new run plot compare table world
  cat <<'TEXT'
.SH "SEVERAL PROCESSES"
\fBfl\-sim\-mpi\fR is the same program for \fBmpirun\fR(1): the trials of an experiment are shared out among its
processes, and the results are the same bytes.
TEXT
  see 'fl-sim.yaml(5)' 'fl-data(1)' 'fl-serverd(8)'
  ;;
fl-sim-mpi.1) echo '.so man1/fl-sim.1' ;;
fl-server.yaml.5)
  program=fl-serverd
  title "configuration of fl-serverd"
  keys
  example <<'YAML'
federation: digits
state_dir: /var/lib/fl\-serverd
admin_socket: /run/fl\-serverd/admin.sock
rounds: 100
algorithm: adafl+fedldf
model: {preset: mlp200}
YAML
  see 'fl-serverd(8)' 'flctl(1)'
  ;;
fl-client.yaml.5)
  program=fl-clientd
  title "configuration of fl-clientd"
  keys
  example <<'YAML'
server: "federation.example:7800"
name: edge\-001
state_dir: /var/lib/fl\-clientd
data: {path: /var/lib/fl\-data/client}
YAML
  see 'fl-clientd(8)'
  ;;
fl-sim.yaml.5)
  program=fl-sim
  title "an experiment of fl-sim"
  keys experiment
  see 'fl-sim(1)'
  ;;
*)
  echo "docs/man.sh: no page '$page'" >&2
  exit 2
  ;;
esac
