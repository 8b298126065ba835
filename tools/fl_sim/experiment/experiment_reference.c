/* The keys of an experiment that are not those of the daemons, as Markdown. */

#include "tools/fl_sim/experiment/experiment_impl.h"

static const char *const sections =
    "| key | type | default | range | meaning |\n"
    "| --- | --- | --- | --- | --- |\n"
    "| `name` | text | the file's name |  | Name of the experiment: 1 to 127 of A-Z a-z 0-9 . _ - "
    "|\n"
    "| `server` | section | required |  | The keys of fl-serverd's file; keys for a daemon only "
    "(`state_dir`, `listen`, `tls` …) are allowed, and a warning says that they have no "
    "effect; "
    "`evaluation.command` is refused |\n"
    "| `client` | section |  |  | The keys of fl-clientd's file, for all clients, likewise; "
    "`trainer: "
    "command` needs `command.persistent: yes`; `data.path` is refused |\n"
    "| `data` | section | required |  | The clients' data |\n"
    "| `world` | name or section |  |  | Network and device model; not set: no delays "
    "between server and clients |\n"
    "| `attackers` | section |  |  | Clients that attack the federation; not set: none |\n";

static const char *const sweep =
    "| `sweep` | section or list |  |  | The compared settings: keys with lists of values (all "
    "combinations, the first key slowest), or a list of points with their values and an optional "
    "`label` |\n";

int fl_experiment_reference(struct fl_buf *out)
{
    struct fl_writer w = {.out = out};

    fl_writer_printf(&w, "%s", sections);
    fl_writer_note(&w, fl_conf_reference(fl__attackers_specs, "attackers", out));
    fl_writer_note(&w, fl_conf_reference(fl__stop_specs, "stop", out));
    fl_writer_note(&w, fl_conf_reference(fl__trials_specs, "trials", out));
    fl_writer_printf(&w, "%s", sweep);
    return w.code;
}
