#!/usr/bin/env bash
# Which lines of each room the unit tests and the simulation run, from what they left in a build
# with --enable-coverage: `make coverage` there runs them and then this. Only .c files count, and
# one that no test ran counts with all its lines. Exits 1 when a room that is listed below is under
# its bound.
set -u
GCOV=${GCOV:-gcov}
bounds="client/store 90
client/work 90
server/work 90"

command -v "$GCOV" >/dev/null 2>&1 || { echo "coverage: '$GCOV' is not installed, set GCOV"; exit 2; }
list=$(find libfl server client -name '*.gcno' 2>/dev/null | sort)
[ -n "$list" ] || {
  echo "coverage: no .gcno file in $PWD: run it in a build configured with --enable-coverage"
  exit 2
}

# "File 'PATH'", then "Lines executed:P% of N", for every source that an object was made of.
printf '%s\n' "$list" | xargs "$GCOV" -n 2>/dev/null | awk -v bounds="$bounds" '
  /^File / {
    file = ""
    if (match($0, /(libfl|server|client)\/[a-z0-9_]+\/[a-z0-9_]+\.c\047$/))
      file = substr($0, RSTART, RLENGTH - 1)
  }
  /^Lines executed:/ && file != "" {
    split($0, part, /[:% ]+/)   # Lines executed P of N
    n = part[5]
    ran = int(part[3] * n / 100 + 0.5)
    # A source can be in several objects: the one that was run.
    if (!(file in lines) || ran > covered[file]) covered[file] = ran
    lines[file] = n
    file = ""
  }
  END {
    for (file in lines) {
      room = file
      sub(/\/[^\/]*$/, "", room)
      files[room]++
      room_lines[room] += lines[file]
      room_covered[room] += covered[file]
    }
    n_bounds = split(bounds, row, "\n")
    for (i = 1; i <= n_bounds; i++) { split(row[i], part, " "); bound[part[1]] = part[2] }
    printf "%-16s %6s %7s %8s %8s %6s\n", "room", "files", "lines", "covered", "percent", "bound"
    sort = "sort"
    for (room in files) {
      percent = 100 * room_covered[room] / room_lines[room]
      printf "%-16s %6d %7d %8d %8.1f %6s\n", room, files[room], room_lines[room],
             room_covered[room], percent, room in bound ? bound[room] : "-" | sort
      if (room in bound && percent < bound[room])
        low = low sprintf("coverage: %s has %.1f %% of its lines run, expected %s %% at least\n",
                          room, percent, bound[room])
    }
    close(sort)
    for (room in bound) if (!(room in files))
      low = low sprintf("coverage: %s has a bound, but nothing of it was built\n", room)
    printf "%s", low
    exit low != ""
  }'
