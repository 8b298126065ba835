/* The keys of an experiment that are not the daemons'. */

#include "tools/fl_sim/experiment/experiment_impl.h"

static const char *const sections =
    "| key | type | default | range | meaning |\n"
    "| --- | --- | --- | --- | --- |\n"
    "| `name` | text | the file's name |  | Of the experiment: 1 to 127 of A-Z a-z 0-9 . _ - |\n"
    "| `server` | section | required |  | The keys of fl-serverd's file; what only a daemon has "
    "(`state_dir`, `listen`, `tls` …) may stand there, and is named in a warning as without "
    "effect; "
    "`evaluation.command` is refused |\n"
    "| `client` | section |  |  | The keys of fl-clientd's file, for all clients, likewise; "
    "`trainer: "
    "command` and `data.path` are refused |\n"
    "| `data` | section | required |  | What the clients have |\n"
    "| `world` | name or section |  |  | What clients and links are like; not set: nothing is "
    "between server and clients |\n";

static const char *const sweep =
    "| `sweep` | section or list |  |  | What is compared: keys with lists of values (all "
    "combinations, the first key slowest), or a list of points with their values and, if wanted, a "
    "`label` |\n";

int fl_experiment_reference(struct fl_buf *out)
{
    int rv = fl_buf_printf(out, "%s", sections);

    rv = rv == FL_OK ? fl_conf_reference(fl__stop_specs, "stop", out) : rv;
    rv = rv == FL_OK ? fl_conf_reference(fl__trials_specs, "trials", out) : rv;
    return rv == FL_OK ? fl_buf_printf(out, "%s", sweep) : rv;
}
