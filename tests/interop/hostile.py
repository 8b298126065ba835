"""fl-serverd and fl-clientd beside a hostile client. Run by test_hostile.sh; arguments select some of the parts."""
import sys
import time

import claims
import crowding
import figures
import harness as h
import poison

PARTS = {"poison": poison.poisoned, "trusted": poison.trusted, "claims": claims.false_divergences,
         "figures": figures.false_figures, "crowding": crowding.crowding}


def main():
    folder = h.scratch()
    for name in sys.argv[1:] or PARTS:
        began = time.monotonic()
        PARTS[name](folder)
        print("%s: %.1f s" % (name, time.monotonic() - began), flush=True)


h.run(main)
