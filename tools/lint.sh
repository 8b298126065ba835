#!/usr/bin/env bash
# What a compiler does not check: formatting, the arrows between the rooms, libraries used outside
# their room, banned functions, purity of the cores, sizes. Exits 1 with one line per finding.
# Word splitting of file lists is meant here: no file of ours has a blank in its name.
# shellcheck disable=SC2046,SC2086
set -u
cd "$(dirname "$0")/.." || exit 2
fail=0
say() { printf '%s\n' "$*"; fail=1; }

files=$(git ls-files -co --exclude-standard '*.c' '*.h' | while read -r f; do [ -f "$f" ] && echo "$f"; done)

# 1 Formatting: clang-format 14 is what Debian 12 has; another version formats differently.
if command -v clang-format-14 >/dev/null 2>&1; then

  out=$(clang-format-14 --dry-run -Werror $files 2>&1 | grep -E 'error:' | head -20)
  [ -n "$out" ] && say "formatting (make format repairs it):
$out"
else
  echo "lint: clang-format-14 is not installed, formatting was not checked"
fi

# 2 Arrows: which rooms a room may include (besides itself). docs/architecture.md has the picture.
# shellcheck disable=SC2034
{
lower_conf="base"
lower_container="base"
lower_db="base"
lower_figures="base"
lower_num="base"
lower_model="figures num base"
lower_nn="model figures num base"
lower_program="model figures base"
lower_data="num base"
lower_import="data base"
lower_onnx="nn model num base"
lower_strategy="nn model conf num base"
lower_json="wire figures base"
lower_protobuf="base"
lower_wire="protobuf figures model num base"
lower_page="wire figures base"
lower_rpc="base"
lower_h2="rpc base"
lower_net="base"
lower_grpc="net h2 rpc protobuf base"
lower_http="net conf base"
lower_pki="base"
lower_tls="pki net base"
lower_sim="base"
}
# Read at once: a process for each file would take most of the time.
declare -A included
while read -r f inc; do
  included[$f]+=" $inc"
done < <(grep -oE '^#include "[^"]+"' $files /dev/null | sed -E 's/^([^:]+):#include "(.*)"$/\1 \2/')
for f in $files; do
  case "$f" in
    libfl/*) room=${f#libfl/}; room=${room%%/*}; var="lower_$room"; allowed="${!var-}"
      for inc in ${included[$f]-}; do
        case "$inc" in
          libfl/*) to=${inc#libfl/}; to=${to%%/*}
            [ "$to" = "$room" ] && continue
            case " $allowed " in *" $to "*) ;; *) say "$f: room $room must not include $inc" ;; esac ;;
          server/*|client/*|tools/*|tests/*|bench/*) say "$f: a libfl room must not include $inc" ;;
          onnx/*) [ "$room" = onnx ] || say "$f: the messages of ONNX belong to libfl/onnx" ;;
          fl/v1/*) [ "$room" = wire ] || say "$f: generated messages belong to libfl/wire" ;;
          grpc/*|proto/*) [ "$room" = grpc ] || say "$f: messages and descriptors for gRPC's own services belong to libfl/grpc" ;;
        esac
      done ;;
    server/*|client/*)
      side=${f%%/*}; room=${f#*/}; room=${room%%/*}
      for inc in ${included[$f]-}; do
        case "$inc" in
          "$side"/*) to=${inc#*/}; to=${to%%/*}
            case "$side/$room:$to" in
              */core:core|*/shell:shell|*/conf:conf|server/conf:core|server/conf:store|*/identity:identity|server/store:store|server/store:core|server/work:core|server/work:store|server/work:work|server/shell:core|server/shell:store|server/shell:work|server/auth:auth|server/auth:conf|server/auth:identity|server/network:network|server/network:auth|server/network:conf|server/network:identity|server/network:store|server/network:work|server/admin:admin|server/admin:auth|server/admin:conf|server/admin:identity|server/admin:network|server/admin:store|server/http:http|server/http:admin|server/http:auth|server/http:conf|server/http:core|server/http:network|server/http:store|server/runtime:http|server/runtime:runtime|server/runtime:admin|server/runtime:auth|server/runtime:conf|server/runtime:core|server/runtime:network|server/runtime:shell|server/runtime:store|server/runtime:work|server/daemon:*|client/store:store|client/store:core|client/train:train|client/work:core|client/work:store|client/work:train|client/work:work|client/shell:core|client/shell:work|client/shell:store|client/http:core|client/http:http|client/daemon:*) ;;
              *) say "$f: room $side/$room must not include $inc" ;;
            esac ;;
          server/*|client/*|tools/*|tests/*|bench/*) say "$f: $side must not include $inc" ;;
          libfl/*) to=${inc#libfl/}; to=${to%%/*}
            case "$room:$to" in
              core:base|core:conf|core:figures|core:num|core:model|core:nn|core:strategy) ;;
              core:*) say "$f: the core must not include $inc" ;;
              store:base|store:conf|store:container|store:db|store:figures|store:num|store:model|store:nn|store:strategy) ;;
              store:*) say "$f: the store must not include $inc" ;;
              conf:base|conf:conf|conf:figures|conf:num|conf:model|conf:nn|conf:strategy|conf:data|conf:program|conf:wire) ;;
              conf:*) say "$f: reading a configuration must not include $inc" ;;
              train:base|train:conf|train:num|train:model|train:nn|train:strategy|train:data|train:program) ;;
              train:*) say "$f: the trainer must not include $inc" ;;
              identity:base|identity:conf|identity:db|identity:model|identity:pki|identity:wire) ;;
              identity:*) say "$f: the room of an identity must not include $inc" ;;
              work:base|work:conf|work:figures|work:num|work:model|work:nn|work:strategy|work:data|work:wire|work:program) ;;
              work:*) say "$f: the work room must not include $inc" ;;
              shell:base|shell:figures|shell:num|shell:model|shell:nn|shell:strategy|shell:data|shell:wire) ;;
              shell:*) say "$f: a shell is carried out by its operations; it must not include $inc" ;;
              auth:base|auth:conf|auth:net|auth:pki|auth:rpc|auth:tls) ;;
              auth:*) say "$f: authentication must not include $inc" ;;
              network:base|network:conf|network:grpc|network:model|network:net|network:rpc|network:wire) ;;
              network:*) say "$f: the network front end must not include $inc" ;;
              admin:base|admin:model|admin:net|admin:pki|admin:rpc|admin:wire) ;;
              admin:*) say "$f: calls of operators must not include $inc" ;;
              http:base|http:conf|http:figures|http:http|http:json|http:net|http:page|http:wire) ;;
              http:*) say "$f: the HTTP port of a daemon must not include $inc" ;;
              runtime:base|runtime:figures|runtime:http|runtime:model|runtime:net|runtime:strategy|runtime:wire) ;;
              runtime:*) say "$f: the coordinator thread must not include $inc" ;;
              daemon:base|daemon:conf|daemon:figures|daemon:http|daemon:json|daemon:num|daemon:model|daemon:nn|daemon:data|daemon:program|daemon:strategy|daemon:wire|daemon:rpc|daemon:net|daemon:grpc|daemon:pki|daemon:tls) ;;
              daemon:*) say "$f: a daemon schedules, moves bytes and translates; it must not include $inc" ;;
            esac ;;
          fl/v1/*|grpc/*) say "$f: generated messages belong to libfl/wire" ;;
        esac
      done ;;
    tools/fl_sim/*)
      room=${f#tools/fl_sim/}; room=${room%%/*}
      for inc in ${included[$f]-}; do
        case "$inc" in
          */daemon/*|libfl/net/*|libfl/grpc/*|libfl/h2/*|libfl/rpc/*|tests/*|bench/*)
            say "$f: a federation in one process has no daemon and no network: $inc" ;;
        esac
        case "$room:$inc" in
          attack:tools/fl_sim/attack/*|engine:tools/fl_sim/attack/*|engine:tools/fl_sim/engine/*|engine:tools/fl_sim/world/*|engine:tools/fl_sim/results/result_columns.h|world:tools/fl_sim/world/*) ;;
          experiment:tools/fl_sim/attack/attack.h|experiment:tools/fl_sim/experiment/*|experiment:tools/fl_sim/world/*|experiment:tools/fl_sim/data/sim_data.h|data:tools/fl_sim/data/*|results:tools/fl_sim/results/*) ;;
          attack:tools/*|engine:tools/*|world:tools/*|experiment:tools/*|data:tools/*|results:tools/*) say "$f: room tools/fl_sim/$room must not include $inc" ;;
          attack:libfl/base/*|attack:libfl/num/*|attack:libfl/strategy/robust/robust.h) ;;
          world:libfl/base/*|world:libfl/conf/*|world:libfl/sim/*) ;;
          results:libfl/base/*|results:libfl/figures/*|results:libfl/json/*|results:libfl/page/*) ;;
          data:libfl/base/*|data:libfl/conf/*|data:libfl/container/*|data:libfl/data/*|data:libfl/import/*|data:libfl/json/*|data:libfl/model/*|data:client/train/*) ;;
          attack:*|world:*|data:*|results:*) say "$f: room tools/fl_sim/$room must not include $inc" ;;
          experiment:server/conf/*|experiment:client/conf/*) ;;
          experiment:server/*|experiment:client/*|engine:*/conf/conf*) say "$f: room tools/fl_sim/$room must not include $inc" ;;
        esac
      done ;;
  esac
done

# What is built without tests does not need them; a tool needs no benchmark.
for f in $(printf '%s\n' $files | grep -E '^(bench|tools)/'); do
  for inc in ${included[$f]-}; do
    case "$f:$inc" in
      *:tests/*|tools/*:bench/*) say "$f: must not include $inc" ;;
    esac
  done
done

# 3 Libraries only in their room.
only() { # pattern, allowed path regex, name
  out=$(grep -nE "^#include <($1)" $files /dev/null | grep -vE "^($2)" | head -5)
  [ -n "$out" ] && say "$3 outside its room:
$out"
}
only 'uv\.h' 'libfl/net/|tests/' libuv
only 'microhttpd\.h' 'libfl/http/|tests/' libmicrohttpd
only 'nghttp2/' 'libfl/h2/|tests/' nghttp2
only 'openssl/' 'libfl/pki/|libfl/tls/|libfl/model/digest|bench/sealed|tests/' OpenSSL
only 'openssl/ssl' 'libfl/tls/|bench/sealed|tests/' libssl
only 'sqlite3\.h' 'libfl/db/|tests/' SQLite
only 'cblas\.h|openblas' 'libfl/num/blas\.h' BLAS
only 'yaml\.h' 'libfl/conf/' libyaml
only 'protobuf-c/' 'libfl/protobuf/|tests/' protobuf-c
only 'jansson\.h' 'libfl/model/|libfl/json/|libfl/program/|client/train/|tools/fl_data/|tests/' jansson
only 'xxhash\.h' 'libfl/base/checksum' xxHash
only 'png\.h' 'libfl/import/|tests/' libpng
only 'turbojpeg\.h' 'libfl/import/|tests/' libjpeg-turbo
only 'zlib\.h' 'libfl/data/|tests/' zlib
only 'systemd/' 'libfl/net/' libsystemd

# 4 Pure rooms: no clock, no I/O, no threads, no globals that change.
# But for loading a library, and the lock around one that has such globals itself; jobs in server/shell call server/work.
pure=$(printf '%s\n' $files | grep -E '^(server/core|server/shell|client/core|client/shell|libfl/figures|libfl/page|libfl/strategy|libfl/nn|libfl/num|libfl/onnx|tools/fl_sim/attack)/' |
  grep -vxE 'libfl/num/(blas|gemm)\.c')
out=$(grep -nE '^#include <(time\.h|sys/(socket|stat|time|file)\.h|pthread\.h|uv\.h|unistd\.h|fcntl\.h|threads\.h)>' $pure /dev/null | head -5)
[ -n "$out" ] && say "a pure room includes a clock, I/O or threads:
$out"
out=$(grep -nE '\b(fopen|fprintf|printf|getenv|clock_gettime|gettimeofday|fl_clock_[a-z_]+)\(' $pure /dev/null | head -5)
[ -n "$out" ] && say "a pure room does I/O or reads a clock:
$out"
out=$(grep -nE '^static [^(=]*[a-z_]+(\[[^]]*\])?( = [^;{]*)?;' $pure /dev/null | grep -vE 'const ' | head -5)
[ -n "$out" ] && say "a pure room has a global that can change:
$out"

# 5 Banned functions.
code=$(printf '%s\n' $files | grep -vE '^tests/fuzz/replay\.c$')
out=$(grep -nE '(^|[^a-zA-Z0-9_>.])(strcpy|strcat|sprintf|vsprintf|gets|strtok|strncpy|strncat|atoi|atol|atof|sscanf|alloca|rand|srand|signal|localtime|gmtime|system|setjmp|longjmp|getopt|getopt_long)\(' $code /dev/null | head -10)
[ -n "$out" ] && say "banned function:
$out"
out=$(grep -nE '(^|[^a-zA-Z0-9_])assert\(' $(printf '%s\n' $code | grep -v '^tests/') /dev/null | head -5)
[ -n "$out" ] && say "assert outside tests (FL_REQUIRE stays on in releases):
$out"
out=$(grep -nE '\b(TODO|FIXME|XXX|HACK)\b' $code /dev/null | head -5)
[ -n "$out" ] && say "mark of unfinished work:
$out"

out=$(grep -nE 'fl_options_[a-z_]+\([^;"]*"' $(printf '%s\n' $code | grep -vE '^(libfl/conf|tests)/') /dev/null | head -5)
[ -n "$out" ] && say "an option asked for by its name (its row binds a field, libfl/conf/options.h):
$out"

# One idiom for errors: a call is tested where it is made and the function leaves, by return or to its one label. An error
# of cleaning up may take the place of none: if (rv == FL_OK) { rv = late; }.
out=$(awk '
  function report(line) { printf "%s:%d: %s\n", FILENAME, FNR - 1, line }
  FNR == 1 { held = "" }
  held != "" { if ($0 !~ /^ *r[vc] = [a-z_]+;$/) report(held); held = "" }
  /\<r[vc] = r[vc] [=!]= FL_OK \?/ || /return r[vc] [=!]= FL_OK \? [a-z_]+\(/ || /return r[vc] != FL_OK \? r[vc] :/ || /for \(.*r[vc] == FL_OK &&/ {
    printf "%s:%d: %s\n", FILENAME, FNR, $0 }
  /if \(r[vc] == FL_OK\) \{$/ { held = $0; next }
  /if \(r[vc] == FL_OK &&/ { printf "%s:%d: %s\n", FILENAME, FNR, $0 }
' $(printf '%s\n' $code | grep -E '^(libfl|server|client|tools)/') | head -10)
[ -n "$out" ] && say "an error that is carried on instead of left with (CONTRIBUTING.md, errors):
$out"

# 6 Sizes: aim at 500 lines and 60 a function; over 800 and 100 needs a split.
out=$(wc -l $files | awk '$2 != "total" && $1 > 800 { print $2 ": " $1 " lines, more than 800" }')
[ -n "$out" ] && say "$out"
out=$(awk 'FNR==1{open=0} /^\{/{open=FNR} /^\}/{if(open&&FNR-open>100)printf "%s:%d: function of %d lines\n",FILENAME,open,FNR-open;open=0}' $files)
[ -n "$out" ] && say "$out"

# Names: base names, external names, tags and static names of the product.
out=$(python3 tools/lint_names.py)
[ -n "$out" ] && say "$out"

# 7 Headers: a guard named after the path's last folder and file.
for f in $(grep -LE '^#ifndef FL_[A-Z0-9_]+_H$' $(printf '%s\n' $files | grep '\.h$')); do
  say "$f: include guard FL_…_H is missing"
done

# What a room keeps to itself stands in headers of one kind of name.
for f in $(printf '%s\n' $files | grep -E '(_p|_private|_priv|_?internal|_int)\.h$'); do
  say "$f: a room's private header ends in _impl.h"
done

# 8 Shell.
if command -v shellcheck >/dev/null 2>&1; then
  sh=$(git ls-files -co --exclude-standard '*.sh' '.ci/run' | while read -r f; do [ -f "$f" ] && echo "$f"; done)

  # What most scripts source is checked once, by itself: beside them stands a file with its variables, all set and read.
  scripts=$(mktemp -d)
  tar -c $sh | tar -x -C "$scripts"
  { echo '# shellcheck shell=bash disable=SC2034,SC2128,SC2154,SC2178'
    grep '^declare ' tests/system/lib.sh
    grep -oE '\b[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=' tests/system/lib.sh | sed -E 's/[^A-Za-z0-9_].*//; s/$/=x/' | sort -u
    grep -oE '\$\{?[#!]?[A-Za-z_][A-Za-z0-9_]*' tests/system/lib.sh | sed -E 's/^[^A-Za-z_]+//; s/.*/: "$&"/' | sort -u
  } >"$scripts/tests/system/lib.sh"
  out=$(shellcheck -x -S warning tests/system/lib.sh 2>&1
    cd "$scripts" && printf '%s\n' $sh | xargs -n 8 -P "$(nproc)" shellcheck -x -S warning 2>&1 | head -20)
  rm -rf "$scripts"
  [ -n "$out" ] && say "shellcheck:
$out"
fi

# 9 Citations: the page and the heading in docs/ that a comment, a test or a document names are there.
# A heading is cited as GitHub links it: docs/algorithms.md#partial-uploads.
texts=$(git ls-files -co --exclude-standard '*.c' '*.h' '*.sh' '*.py' '*.inc' '*.md' '*.proto' '*.yaml' '*.am' '*.ac' \
  'tools/*' | sort -u | while read -r f; do [ -f "$f" ] && echo "$f"; done)
pages=$(printf '%s\n' $texts | grep '\.md$')
headings=$(LC_ALL=C awk '
  FNR == 1 { fenced = 0; print FILENAME }
  /^ *```/ { fenced = !fenced }
  !fenced && /^#+ / {
    name = tolower($0); sub(/^#+ +/, "", name); gsub(/[^a-z0-9 _-]/, "", name); gsub(/ /, "-", name)
    print FILENAME "#" name
  }' $pages)
cited() { # one "file:line:target" for each citation; links of pages are relative to their folder
  grep -noE '\bdocs/[a-z-]+\.md(#[A-Za-z0-9_-]*)?' $texts /dev/null
  grep -noE '\]\(([A-Za-z-]+\.md)?(#[A-Za-z0-9_-]*)?\)' $pages /dev/null | sed -nE \
    -e 's|^((([a-z]+/)*)[^/:]+\.md):([0-9]+):\]\(([^#)]+\.md[^)]*)\)$|\1:\4:\2\5|p' \
    -e 's|^([^:]+):([0-9]+):\]\((#[^)]*)\)$|\1:\2:\1\3|p'
}
out=$(cited | awk -F: 'NR == FNR { known[$0] = 1; next } !($3 in known) { print $1 ":" $2 ": " $3 " is not there" }' \
  <(printf '%s\n' "$headings") - | head -20)
[ -n "$out" ] && say "citation of a page or heading that is not there:
$out"
out=$(grep -nE '\b(ALGORITHMS|KERNELS|BYTES|DOWNLINK|DESIGN|PEERS|HOSTS|STYLE)(\.md)?,? §?[0-9]|[Ii]dentity [0-9]+ of|design page' \
  $(printf '%s\n' $texts | grep -vx tools/lint.sh) /dev/null | grep -vE '#define' | head -20)
[ -n "$out" ] && say "citation of a page outside the repository (docs/algorithms.md has what was needed of them):
$out"

[ "$fail" -eq 0 ] && echo "lint: clean"
exit "$fail"
