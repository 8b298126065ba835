# shellcheck shell=bash disable=SC2034,SC2154
# For tests in headless Chromium, after tests/system/lib.sh: has_chromium is 0 or 1, and $axe the file of axe-core, or nothing.
has_chromium=0
for name in "${FL_CHROMIUM:-}" chromium chromium-browser google-chrome; do
  if [ -n "$name" ] && command -v "$name" >/dev/null; then has_chromium=1; fi
done

axe=${FL_AXE:-/usr/share/javascript/axe-core/axe.min.js}
if [ "$has_chromium" = 1 ] && [ ! -e "$axe" ] && command -v npm >/dev/null; then
  (mkdir "$dir/npm" && cd "$dir/npm" && timeout 120 npm install --silent --no-audit --no-fund axe-core) >/dev/null 2>&1
  axe=$dir/npm/node_modules/axe-core/axe.min.js
fi
if [ "$has_chromium" = 0 ] || [ ! -e "$axe" ]; then
  [ "$has_chromium" = 0 ] || echo "without axe-core (set FL_AXE to its axe.min.js, or let npm fetch it): accessibility rules are not checked"
  axe=''
fi

# The lines "ok RULE" and "FAILED RULE" of $dir/out as checks.
browser_rules() {
  local result rest
  cat "$dir/out"
  while read -r result rest; do
    case $result in
      ok) check "$rest" true ;;
      FAILED) check "$rest" false ;;
    esac
  done <"$dir/out"
  check "it checked something" grep -q '^ok' "$dir/out"
}
