#!/bin/sh
# tegula-eval of a build folder, run by the Python that the build's module is for.
python=$(dirname "$(readlink -f "$0")")/../python
PYTHONPATH=$python${PYTHONPATH:+:$PYTHONPATH} exec "$(cat "$python/interpreter")" -m tegula_eval "$@"
