#!/usr/bin/env bash
# deploy/package.sh --wheel makes a wheel without a network, and what pip installs of it runs.
# shellcheck source=client/python/tests/run.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}/client/python/tests/run.sh"
"$python" -c 'import setuptools, wheel, pip' 2>/dev/null ||
  skip "pip, setuptools or wheel (packages python3-pip, python3-setuptools, python3-wheel) is not there for $python"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
FL_PYTHON=$python bash "$src/deploy/package.sh" --wheel --output "$dir/wheels" || exit 1
"$python" -m pip install --quiet --no-index --no-deps --disable-pip-version-check --root-user-action=ignore \
  --target "$dir/site" "$dir"/wheels/fl_trainer-*.whl || exit 1
cd "$dir" || exit 1
for file in "$src"/client/python/fl_trainer/*; do
  [ -d "$file" ] || cmp "$file" "$dir/site/fl_trainer/$(basename "$file")" || exit 1
done
cmp "$src/client/python/fl_sim.py" "$dir/site/fl_sim.py" || exit 1
cmp "$src/client/python/fl_strategy.py" "$dir/site/fl_strategy.py" || exit 1
PYTHONPATH=$dir/site "$python" -c 'import fl_sim, fl_trainer, sys; sys.exit(not fl_trainer.__file__.startswith(sys.argv[1]))' "$dir/site"
