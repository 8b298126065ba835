#!/usr/bin/env bash
# A row of an option table that binds a field of another type does not compile (libfl/conf/options.h).
set -u
command -v "${CC:-cc}" >/dev/null 2>&1 || { echo "no compiler here"; exit 77; }
n=0 failed=0

# compiles TYPE FIELD: does a row of that type bind a field that is declared so?
compiles() {
  "${CC:-cc}" -std=c11 -fsyntax-only -I"$FL_SRCDIR" -x c - 2>/dev/null <<EOF
#include "libfl/conf/options.h"
struct s { $2; };
const struct fl_opt_spec specs[] = {{FL_OPT(struct s, $1, x), .help = "h"}, FL_OPT_END_OF(struct s)};
EOF
}

types=(BOOL INT FLOAT BYTES DURATION STRING ENUM STRING_LIST INT_LIST MAP)
fields=("_Bool x" "int64_t x" "double x" "uint64_t x" "uint64_t x_ms" "const char *x" "enum { A } x"
  "struct fl_opt_texts x" "struct fl_opt_ints x" "struct fl_opt_map x")
for i in "${!types[@]}"; do
  for j in "${!fields[@]}"; do
    n=$((n + 1))
    want=1
    [ "$i" = "$j" ] && want=0
    compiles "${types[i]}" "${fields[j]}"
    [ "$(($? != 0))" = "$want" ] && continue
    echo "a row of type ${types[i]} and the field '${fields[j]}': compiled the wrong way"
    failed=$((failed + 1))
  done
done
# Narrower ones would lose what the range allows.
for field in "int x" "uint32_t x" "float x" "char *x"; do
  for type in INT FLOAT STRING; do
    n=$((n + 1))
    compiles "$type" "$field" || continue
    echo "a row of type $type and the field '$field': compiled"
    failed=$((failed + 1))
  done
done
echo "$(((n - failed) * 100 / n))%: Checks: $n, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
