#!/usr/bin/env bash
# Every header of the product compiles alone, with the flags of this build: it includes what it uses. The build has proven
# it for each that the .c file of its name includes before all others. The code that libfl/num compiles once per instruction
# set (its *_impl.h but those of tables and shapes) has no meaning of its own; fl-sim's MPI is optional.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
trap end_all EXIT
# shellcheck disable=SC2016 # make expands it
read -ra compile < <(MAKEFLAGS='' make -s --no-print-directory -C "$build" -f - print <<'MK'
include Makefile
print:
	@echo $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS)
MK
)
templates='tools/fl_sim/mpi/|libfl/num/(act|dense|first|lanes|panel|pixel|pool|rows|softmax|vec|wino[a-z_]*)_impl\.h$'
headers=$(cd "$srcdir" && find server client libfl tools -name '*.h' | sort | grep -vE "$templates")
equal "there are many" yes "$([ "$(wc -l <<<"$headers")" -gt 300 ] && echo yes)"
# Those that are no first include of their .c file
headers=$(cd "$srcdir" && awk '
  { c = $0; sub(/h$/, "c", c); first = ""
    while (first == "" && (getline line < c) > 0) if (line ~ /^#include/) first = line
    close(c)
    if (first != "#include \"" $0 "\"") print }' <<<"$headers")
compiles() { # header
  (cd "$build" && echo "#include \"$1\"" | "${compile[@]}" -I"$srcdir" -fsyntax-only -Werror -x c -) 2>"$dir/errors"
}
equal "some have no .c file" yes "$([ "$(wc -l <<<"$headers")" -gt 50 ] && echo yes)"
for header in $headers; do
  check "$header" compiles "$header" || cat "$dir/errors"
done
finish
