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

types=(BOOL INT FLOAT BYTES DURATION RATE STRING ENUM STRING_LIST INT_LIST MAP)
fields=("_Bool x" "int64_t x" "double x" "uint64_t x" "uint64_t x_ms" "uint64_t x_per_s" "const char *x" "enum { A } x"
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

# rows WANT WHAT ROW: whether such a row of a table, or of a list of sections, compiles; WANT 0: it does
rows() {
  n=$((n + 1))
  "${CC:-cc}" -std=c11 -fsyntax-only -I"$FL_SRCDIR" -x c - 2>/dev/null <<EOF
#include "libfl/conf/sections.h"
struct part { double a; };
struct s { struct part first; struct part second; int64_t x; _Bool x_given; int64_t y, y_given; };
struct conf { const struct s *s; const struct part *part; };
extern const struct fl_opt_spec specs[];
$3;
EOF
  [ "$(($? != 0))" = "$1" ] && return
  echo "$2: compiled the wrong way"
  failed=$((failed + 1))
}
row='const struct fl_opt_spec row ='
section='const struct fl_conf_section section ='
rows 0 "a bool for what was given" "$row {FL_OPT(struct s, INT, x), FL_OPT_GIVEN(struct s, x)}"
rows 1 "a number for what was given" "$row {FL_OPT(struct s, INT, y), FL_OPT_GIVEN(struct s, y)}"
rows 0 "a part that comes first" "$row {FL_OPT_IN(struct s, FLOAT, first, a)}"
rows 1 "a part that comes second" "$row {FL_OPT_IN(struct s, FLOAT, second, a)}"
rows 0 "a section's own struct" "$section {FL_CONF_SECTION(\"\", specs, struct conf, s, struct s)}"
rows 1 "another section's struct" "$section {FL_CONF_SECTION(\"\", specs, struct conf, part, struct s)}"
echo "$(((n - failed) * 100 / n))%: Checks: $n, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
