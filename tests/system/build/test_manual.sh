#!/usr/bin/env bash
# The manual pages say what the programs say: every option, command, exit code and key is in its page, man
# has nothing to complain about, and the completion for bash offers what --help lists.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
pages=$build/docs/man
[ -e "$pages/fl-serverd.8" ] || skip "this build made no manual pages (a cross build without FL_RUN)"
plain() { # page: without what formats it, blanks and line ends alike
  sed -e 's/\\f[BIR]//g; s/\\-/-/g; s/\\&//g; s/,\\:/,/g; s/\\e/\\/g' "$pages/$1" | tr -s ' \n' ' '
}
# lines of what was looked for, one for each check: "has", or what fails
count_from() {
  local line
  while IFS= read -r line; do
    checks=$((checks + 1))
    [ "$line" = has ] || note_failure "$line"
  done
}

### Options, commands, exit codes
help_in_page() { # page, program, arguments…: every line of the help stands there
  local page=$1
  shift
  [ -e "$dir/$page.plain" ] || plain "$page" >"$dir/$page.plain"
  "$@" --help >"$dir/help.txt" 2>&1
  check "help of $*" test -s "$dir/help.txt"
  count_from < <("$python" - "$dir/$page.plain" "$dir/help.txt" "$*" <<'PY'
import re, sys
page = open(sys.argv[1]).read()
for line in open(sys.argv[2]):
    line = line.rstrip("\n")
    if re.match(r"   .* [0-9] .*, [0-9] ", line):
        continue  # the exit codes' second line
    if not line or re.match(r"[Ee]xit |[A-Za-z]*:$|[Uu]sage:", line):
        continue
    # "item   what it is": blanks in between are the list's.
    left = re.sub(r" {2,}.*", "", line.lstrip(" ")).split(": ")[0]
    right = re.sub(r"^.{1,40}[^ ] {2,}", "", line.lstrip(" "))
    for words in (left, right.split(": ", 1)[-1]):
        words = " ".join(words.split())
        print("has" if words in page else "%s: '%s' is not in %s" % (sys.argv[3], words, sys.argv[1]))
PY
)
}
help_in_page fl-serverd.8 "$build/fl-serverd"
help_in_page fl-clientd.8 "$build/fl-clientd"
help_in_page flctl.1 "$build/flctl"
help_in_page fl-data.1 "$build/fl-data"
for command in split synthetic inspect; do help_in_page fl-data.1 "$build/fl-data" $command; done
help_in_page fl-sim.1 "$build/fl-sim"
for command in new run plot compare table world; do help_in_page fl-sim.1 "$build/fl-sim" $command; done
for page in fl-serverd.8 fl-clientd.8 flctl.1; do
  name=${page%.*}
  codes=$("$build/$name" --help | sed -n '/^exit codes: /,$p' | tr -s ' \n' ' ' | sed 's/^exit codes: //; s/ $//; /^$/q')
  while read -r code what; do
    [[ $code =~ ^[0-9]$ ]] || continue
    check "$page: exit code $code" grep -qF "$what" "$dir/$page.plain"
  done < <(tr ',' '\n' <<<"${codes%%algorithms:*}")
done

### Keys
keys_in_page() { # page, command…
  local page=$1
  shift
  plain "$page" >"$dir/$page.plain"
  "$@" | sed -n 's/^| `\([^`]*\)`.*/\1/p' >"$dir/keys.txt"
  check "$* lists keys" test -s "$dir/keys.txt"
  count_from < <("$python" - "$dir/$page.plain" "$dir/keys.txt" <<'PY'
import sys
page = open(sys.argv[1]).read()
for key in open(sys.argv[2]).read().split():
    print("has" if ".TP %s (" % key in page else "%s has no %s" % (sys.argv[1], key))
PY
)
  equal "$page has no others" "$(wc -l <"$dir/keys.txt")" "$(grep -c '^\.TP' "$pages/$page")"
}
keys_in_page fl-server.yaml.5 "$build/fl-serverd" --reference
keys_in_page fl-client.yaml.5 "$build/fl-clientd" --reference
keys_in_page fl-sim.yaml.5 "$build/fl-sim" --reference experiment

### What man says to them
if command -v man >/dev/null; then
  for page in "$pages"/*.[158]; do
    [ "$(basename "$page")" != fl-sim-mpi.1 ] || continue
    LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
      >/dev/null 2>"$dir/man.err" </dev/null
    equal "man --warnings $(basename "$page")" "" "$(cat "$dir/man.err")"
  done
fi

### Completion
offered() { # words…: what is offered for the last one
  bash -c '. "$1" && PATH=$2:$PATH && shift 2 && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _fl_complete "$1" &&
    printf "%s\n" "${COMPREPLY[@]}"' - "$build/deploy/completions/$1" "$build" "$@" | sed '/^$/d' | sort | tr '\n' ' '
}
sorted() { tr ' ' '\n' | sed '/^$/d' | sort | tr '\n' ' '; }
for program in fl-serverd fl-clientd flctl fl-data fl-sim; do
  equal "$program: its long options" \
    "$("$build/$program" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sorted)" \
    "$(offered $program --)"
done
for program in flctl fl-data fl-sim; do
  equal "$program: its commands" \
    "$("$build/$program" --help | sed -n '/^[Cc]ommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' | sort -u | sorted)" \
    "$(offered $program '')"
done
equal "options of a command" "--method --min-samples --missing " "$(offered fl-data split --m)"
equal "nothing for a number" "" "$(offered flctl rounds --last '')"
mkdir -p "$dir/here/folder" && : >"$dir/here/file"
equal "folders for a folder" "$dir/here/folder " "$(offered fl-data split --input "$dir/here/f")"
equal "files for a file" "$dir/here/file $dir/here/folder " "$(offered flctl export --output "$dir/here/f")"
finish
