#include "server/core/decision_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Size of the printed list of units, "..." included. */
#define UNITS_SHOWN 160

/* '1': in the upload mask; "-": the plan does not exist yet. */
static const char *units_text(const uint8_t *units, size_t n, char out[UNITS_SHOWN])
{
    bool all = n < UNITS_SHOWN;
    size_t shown = all ? n : UNITS_SHOWN - 4;
    size_t i;

    if (units == NULL) {
        return "-";
    }
    for (i = 0; i < shown; i++) {
        out[i] = units[i] != 0 ? '1' : '0';
    }
    (void)memcpy(out + shown, all ? "" : "...", all ? 1 : 4);
    return out;
}

static void decision_command(const char *what, const struct fl_effect *e, const char *name,
                             char out[FL_DECISION_LOG_SIZE])
{
    (void)snprintf(out, FL_DECISION_LOG_SIZE, "%s '%s' round=%" PRIu64 " attempt=%" PRIu32, what,
                   name, e->round, e->attempt);
}

const char *fl_decision_log(const struct fl_coord *coord, const struct fl_effect *e, size_t n_units,
                            char out[FL_DECISION_LOG_SIZE])
{
    const struct fl_client_rec *client = fl_coord_part_client(coord, e->client);
    char units[UNITS_SHOWN];
    size_t used;

    if (client == NULL) {
        return NULL;
    }
    switch (e->type) {
    case FL_EFF_TASK: /* Numbers in full precision, so that a difference in the last bit shows. */
        (void)snprintf(out, FL_DECISION_LOG_SIZE,
                       "task '%s' round=%" PRIu64 " attempt=%" PRIu32 " counted=%" PRIu64
                       "/%" PRIu32 " selected=%" PRIu32 " population=%" PRIu32 " members=%" PRIu32
                       " epoch=%" PRIu64 " draw=%" PRIu64 " units=%s rate=%.17g seed=%" PRIu64
                       " order=%" PRIu64 " personal_model=%s",
                       client->name, e->round, e->attempt, e->task.counted.round,
                       e->task.counted.attempt, e->size.selected, e->size.population,
                       e->size.members, e->size.epoch, e->task.draw,
                       units_text(e->units, n_units, units), e->task.learning_rate, e->task.seed,
                       e->task.order_seed, e->personal_model ? "yes" : "no");
        return out;
    case FL_EFF_PERSIST_UPDATE:
        (void)snprintf(out, FL_DECISION_LOG_SIZE,
                       "update '%s' round=%" PRIu64 " attempt=%" PRIu32 " units=%s bytes=%" PRIu64
                       " samples=%" PRIu64 " steps=%" PRIu64 " loss=%.17g",
                       client->name, e->round, e->attempt,
                       units_text(e->parts[0].units, n_units, units), e->parts[0].upload_bytes,
                       e->parts[0].samples, e->parts[0].steps, e->parts[0].train_loss);
        return out;
    case FL_EFF_PLAN:
        decision_command("plan", e, client->name, out);
        used = strlen(out);
        (void)snprintf(out + used, FL_DECISION_LOG_SIZE - used, " units=%s",
                       units_text(e->units, n_units, units));
        return out;
    case FL_EFF_ACCEPTED:
        decision_command("accepted", e, client->name, out);
        return out;
    case FL_EFF_REJECTED:
        decision_command("rejected", e, client->name, out);
        return out;
    case FL_EFF_DISMISSED:
        decision_command("dismissed", e, client->name, out);
        return out;
    case FL_EFF_EVALUATE_CLIENT:
        decision_command("evaluate", e, client->name, out);
        return out;
    default:
        return NULL;
    }
}
