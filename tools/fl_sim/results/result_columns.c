#include "tools/fl_sim/results/result_columns.h"

#include <string.h>

static const struct fl_figure round_rows[] = {
#define X(t, name, ...)                             \
    {.member = #name,                               \
     .type = FL_FIGURE_##t,                         \
     .offset = offsetof(struct fl_sim_round, name), \
     __VA_ARGS__},
    FL_SIM_ROUND_FIGURES(X)
#undef X
};

static const struct fl_figure client_rows[] = {
#define X(t, name, ...)                                    \
    {.member = #name,                                      \
     .type = FL_FIGURE_##t,                                \
     .offset = offsetof(struct fl_sim_client_round, name), \
     __VA_ARGS__},
    FL_SIM_CLIENT_FIGURES(X)
#undef X
};

const struct fl_figures fl_sim_round_rows = {round_rows, FL_SIM_ROUND_N,
                                             offsetof(struct fl_sim_round, waiting_for)};
const struct fl_figures fl_sim_client_rows = {client_rows, FL_SIM_CLIENT_N,
                                              offsetof(struct fl_sim_client_round, fate)};

void fl_sim_round_init(struct fl_sim_round *sim)
{
    fl_figures_init(&fl_sim_round_rows, sim);
    (void)memset(sim->waiting_for, 0, sizeof(sim->waiting_for));
}

uint64_t fl_sim_round_parts(const struct fl_sim_round *sim)
{
    return sim->wait_clients_us + sim->download_us + sim->training_us + sim->upload_us +
           sim->message_us + sim->late_us + sim->retry_us + sim->evaluation_us;
}

uint64_t fl_sim_round_up(const struct fl_sim_round *sim)
{
    return sim->up_update_bytes + sim->up_report_bytes + sim->up_summary_bytes +
           sim->up_control_bytes + sim->up_wasted_bytes;
}

uint64_t fl_sim_round_down(const struct fl_sim_round *sim)
{
    return sim->down_model_bytes + sim->down_state_bytes + sim->down_personal_model_bytes +
           sim->down_summary_bytes + sim->down_evaluation_bytes + sim->down_control_bytes;
}

void fl_sim_client_init(struct fl_sim_client_round *client)
{
    fl_figures_init(&fl_sim_client_rows, client);
    client->fate = FL_SIM_FATE_FAILED;
    client->name = "";
    client->asked = NULL;
    client->metrics = "";
    client->attacker = false;
}

const char *fl_sim_fate_text(enum fl_sim_fate fate)
{
    switch (fate) {
#define X(name, text)        \
    case FL_SIM_FATE_##name: \
        return #text;
        FL_SIM_FATE_MAP(X)
#undef X
    }
    return "unknown";
}
