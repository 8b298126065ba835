/*
 * Prints the answers of the commands about rounds, clients and models, as text or as JSON. Main
 * thread; it makes no request.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/base/utc.h"
#include "libfl/figures/figures_text.h"
#include "libfl/figures/share.h"
#include "libfl/json/admin_json.h"
#include "libfl/json/json.h"
#include "tools/flctl/flctl.h"

const char *fl_ctl_when(char *out, size_t size, uint64_t ms)
{
    char text[FL_UTC_TEXT];

    if (ms == 0 || !fl_utc_text((int64_t)(ms / 1000), text)) {
        return "-";
    }
    (void)snprintf(out, size, "%s", text);
    return out;
}

void fl_ctl_print_labels(const struct fl_pair *labels, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        (void)printf("%s%s", i == 0 ? "  labels " : " ", fl_str_clean(labels[i].key));
        (void)printf("=%s", fl_str_clean(labels[i].value));
    }
    if (n > 0) {
        (void)printf("\n");
    }
}

/* Prints accuracies on the clients' own test data, if they are known; clients 0: their number is
   not known. */
static void print_local(const char *name, double accuracy, double mean, uint32_t clients)
{
    if (!(accuracy >= 0.0)) {
        return;
    }
    (void)printf("%-11s %.4f on all samples, %.4f ", name, accuracy, mean);
    if (clients == 0) {
        (void)printf("on average of the clients\n");
    } else {
        (void)printf("over %u client%s\n", clients, clients == 1 ? "" : "s");
    }
}

static int print_on_status(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                           struct fl_err *err)
{
    struct fl_wire_status s;
    char up[32];
    char full[32];
    int rv = fl_wire_status_decode(data, len, &s, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        fl_json_print(fl_json_status(&s), stdout);
    } else {
        (void)printf("federation  %s (fl %s), %s\n", fl_str_clean(s.federation),
                     fl_str_clean(s.version), fl_str_clean(s.algorithm));
        if (s.rounds_total != 0 && s.rounds_committed >= s.rounds_total) {
            (void)printf("phase       %s, all %" PRIu64 " rounds are done\n", fl_str_clean(s.phase),
                         s.rounds_total);
        } else {
            (void)printf("phase       %s, round %" PRIu64 "\n", fl_str_clean(s.phase), s.round);
        }
        (void)printf("why         %s\n", fl_str_clean(s.why));
        (void)printf("rounds      %" PRIu64 " done", s.rounds_committed);
        if (s.rounds_total != 0) {
            (void)printf(" of %" PRIu64, s.rounds_total);
        }
        (void)printf("\nclients     %u connected, %u known\n", s.clients_connected,
                     s.clients_known);
        /* Prints known figures only: most algorithms have none of these. */
        if (s.totals.accuracy >= 0.0) {
            (void)printf("accuracy    %.4f (loss %.4f)\n", s.totals.accuracy, s.totals.loss);
        } else if (fl_share_is_none(s.totals.accuracy)) {
            (void)printf("loss        %.4f\n", s.totals.loss);
        }
        print_local("personal", s.totals.personal_accuracy, s.totals.personal_mean,
                    s.totals.n_personal);
        print_local("received", s.totals.received_accuracy, s.totals.received_mean,
                    /* clients= */ 0);
        if (s.totals.client_accuracy_mean >= 0.0) {
            (void)printf("of clients  %.4f on average (standard deviation %.4f), %.4f in the worst "
                         "tenth\n",
                         s.totals.client_accuracy_mean, s.totals.client_accuracy_std,
                         s.totals.client_accuracy_worst_tenth);
        }
        if (s.totals.effective > 0.0) {
            (void)printf("attention   as over %.2f clients, %.3f on themselves\n",
                         s.totals.effective, s.totals.self_weight);
        }
        (void)printf("uplink      %s of the %s that full uploads would have been\n",
                     fl_str_bytes(up, sizeof(up), s.totals.uplink_bytes),
                     fl_str_bytes(full, sizeof(full), s.totals.uplink_bytes_full));
        (void)printf("uptime      %" PRIu64 " s\n", s.uptime_ms / 1000);
    }
    fl_wire_status_done(&s);
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_status = {print_on_status, NULL};

static int print_on_why(struct fl_ctl_out *out, const uint8_t *data, size_t len, struct fl_err *err)
{
    struct fl_wire_why w;
    size_t i;
    int rv = fl_wire_why_decode(data, len, &w, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();
        json_t *missing = json_array();

        for (i = 0; i < w.n_missing; i++) {
            (void)json_array_append_new(missing, json_string(w.missing[i]));
        }
        (void)json_object_set_new(o, "why", json_string(w.text));
        (void)json_object_set_new(o, "missing", missing);
        fl_json_print(o, stdout);
    } else {
        (void)printf("%s\n", fl_str_clean(w.text));
    }
    fl_wire_why_done(&w);
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_why = {print_on_why, NULL};

static void print_round(const struct fl_wire_round *round, bool first)
{
    const struct fl_round_rec *r = &round->figures;
    char line[FL_FIGURES_LINE];
    char behind[FL_FIGURES_LINE];
    size_t i;

    if (first) {
        (void)printf("%s %8s\n", fl_figures_columns(&fl_round_rows, NULL, line, sizeof(line)),
                     "seconds");
    }
    for (i = 0; i < round->n_changes; i++) {
        (void)printf("%6s from round %" PRIu64 " on: %s\n", "*", r->round, round->changes[i]);
    }
    (void)printf("%s %8.2f%s\n", fl_figures_columns(&fl_round_rows, r, line, sizeof(line)),
                 r->ended_ms > r->started_ms ? (double)(r->ended_ms - r->started_ms) / 1e3 : 0.0,
                 fl_figures_behind(&fl_round_rows, r, behind, sizeof(behind)));
    if (round->metrics[0] != '\0') {
        (void)printf("%6s %s\n", "metrics", fl_str_clean(round->metrics));
    }
    if (round->robust_clients[0] != '\0') {
        (void)printf("%6s by the robust rule (client, share used, score): %s\n", "left out",
                     fl_str_clean(round->robust_clients));
    }
}

static void print_abandoned(const struct fl_wire_round *round, bool first)
{
    const struct fl_round_rec *r = &round->figures;
    char accuracy[16] = "-";
    char ended[32];
    char abandoned[32];

    if (first) {
        (void)printf("%10s %6s %8s %9s %-20s  %-20s  %s\n", "generation", "round", "attempt",
                     "accuracy", "ended", "abandoned", "by");
    }
    if (r->accuracy >= 0.0) {
        (void)snprintf(accuracy, sizeof(accuracy), "%.4f", r->accuracy);
    }
    (void)printf("%10" PRIu64 " %6" PRIu64 " %8u %9s %-20s  %-20s  %s\n", round->generation,
                 r->round, r->attempt, accuracy, fl_ctl_when(ended, sizeof(ended), r->ended_ms),
                 fl_ctl_when(abandoned, sizeof(abandoned), round->abandoned_ms),
                 fl_str_clean(round->abandoned_by));
}

void fl_ctl_print_round(struct fl_ctl_out *out, const struct fl_wire_round *r)
{
    if (out->rounds == FL_CTL_CSV) {
        fl_ctl_rounds_csv(out, r);
    } else if (out->rounds == FL_CTL_JSONL) {
        fl_json_print_line(fl_json_round(r), stdout);
    } else if (out->json) {
        (void)json_array_append_new(out->array, fl_json_round(r));
    } else if (out->abandoned) {
        print_abandoned(r, out->n == 0);
    } else {
        print_round(r, out->n == 0);
    }
    out->n++;
}

static int print_on_round(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                          struct fl_err *err)
{
    struct fl_wire_round r;
    int rv = fl_wire_round_decode(data, len, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->abandoned && r.abandoned_by[0] == '\0') {
        fl_wire_round_done(&r);
        return fl_err_set(err, FL_EPROTO,
                          "rounds --abandoned: the server sent committed rounds: it is "
                          "older than this flctl, upgrade the server");
    }
    fl_ctl_print_round(out, &r);
    fl_wire_round_done(&r);
    return FL_OK;
}

static int print_on_participation(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                                  struct fl_err *err)
{
    struct fl_wire_participation p;
    char line[FL_FIGURES_LINE];
    char behind[FL_FIGURES_LINE];
    int rv = fl_wire_participation_decode(data, len, &p, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        (void)json_array_append_new(out->array, fl_json_participation(&p));
    } else {
        if (out->n == 0) {
            (void)printf("%s  %-20s %-9s %s\n",
                         fl_figures_columns(&fl_part_rows, NULL, line, sizeof(line)), "client",
                         "outcome", "asked layers");
        }
        (void)printf("%s  %-20s %-9s %s%s\n",
                     fl_figures_columns(&fl_part_rows, &p.figures, line, sizeof(line)),
                     fl_str_clean(p.client), fl_str_clean(p.state),
                     p.asked[0] != '\0' ? fl_str_clean(p.asked) : "-",
                     fl_figures_behind(&fl_part_rows, &p.figures, behind, sizeof(behind)));
        if (p.metrics[0] != '\0') {
            (void)printf("%6s metrics %s\n", "", fl_str_clean(p.metrics));
        }
        if (p.remark[0] != '\0') {
            (void)printf("%6s left out: %s\n", "", fl_str_clean(p.remark));
        }
        if (p.aborted[0] != '\0') {
            (void)printf("%6s attempt aborted: %s\n", "", fl_str_clean(p.aborted));
        }
    }
    out->n++;
    fl_wire_participation_done(&p);
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_participations = {print_on_participation,
                                                           fl_ctl_finish_list};

static int print_on_client(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                           struct fl_err *err)
{
    struct fl_wire_client c;
    char line[FL_FIGURES_LINE];
    char seen[32];
    int rv = fl_wire_client_decode(data, len, &c, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        (void)json_array_append_new(out->array, fl_json_client(&c));
    } else {
        if (out->n == 0) {
            (void)printf("%-20s %-9s %-11s %s  %-20s  %s\n", "name", "connected", "state",
                         fl_figures_columns(&fl_client_rows, NULL, line, sizeof(line)), "last seen",
                         "agent");
        }
        (void)printf("%-20s %-9s %-11s %s  %-20s  %s\n", fl_str_clean(c.name),
                     c.connected ? "yes" : "no", fl_str_clean(c.state),
                     fl_figures_columns(&fl_client_rows, &c.figures, line, sizeof(line)),
                     fl_ctl_when(seen, sizeof(seen), c.figures.last_seen_ms),
                     c.agent[0] != '\0' ? fl_str_clean(c.agent) : "-");
        fl_ctl_print_labels(c.labels, c.n_labels);
        if (c.takeovers > 0) {
            (void)printf("  %llu sessions were taken over by a newer one of the same name\n",
                         (unsigned long long)c.takeovers);
        }
        if (c.quarantine[0] != '\0') {
            (void)printf("  quarantined since %s: %s\n",
                         fl_ctl_when(seen, sizeof(seen), c.quarantined_ms),
                         fl_str_clean(c.quarantine));
        }
        if (c.ineligible[0] != '\0') {
            (void)printf("  not selected now: %s\n", fl_str_clean(c.ineligible));
        }
        if (c.central[0] != '\0') {
            (void)printf("  set by operators: %s\n", fl_str_clean(c.central));
        }
        if (c.last_error[0] != '\0') {
            (void)printf("  last error %s: %s\n", fl_ctl_when(seen, sizeof(seen), c.last_error_ms),
                         fl_str_clean(c.last_error));
        }
    }
    out->n++;
    fl_wire_client_done(&c);
    return FL_OK;
}

void fl_ctl_print_object(struct fl_ctl_out *out, json_t *object)
{
    if (!out->keeps_answer) {
        fl_json_print(object, stdout);
        return;
    }
    json_decref(out->answer);
    out->answer = object;
}

void fl_ctl_finish_list(struct fl_ctl_out *out)
{
    if (out->json) {
        fl_json_print(out->array, stdout);
        out->array = NULL;
    }
}

const struct fl_ctl_answer fl_ctl_answer_clients = {print_on_client, fl_ctl_finish_list};

static void print_finish_rounds(struct fl_ctl_out *out)
{
    if (out->rounds != FL_CTL_LIST) {
        return;
    }
    if (out->abandoned && !out->json && out->n == 0) {
        (void)printf("no round was abandoned\n");
    }
    fl_ctl_finish_list(out);
}

const struct fl_ctl_answer fl_ctl_answer_rounds = {print_on_round, print_finish_rounds};

static int print_on_checkpoint(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                               struct fl_err *err)
{
    struct fl_wire_checkpoint c;
    char accuracy[16] = "-";
    char made[32];
    int rv = fl_wire_checkpoint_decode(data, len, &c, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "round", fl_json_whole(c.round));
        (void)json_object_set_new(o, "made_ms", fl_json_whole(c.made_ms));
        (void)json_object_set_new(o, "accuracy", fl_json_real(c.accuracy, c.accuracy >= 0.0));
        (void)json_object_set_new(o, "why", json_string(c.why));
        (void)json_array_append_new(out->array, o);
    } else {
        if (out->n == 0) {
            (void)printf("%6s %9s %-20s  %s\n", "round", "accuracy", "made", "kept as");
        }
        if (c.accuracy >= 0.0) {
            (void)snprintf(accuracy, sizeof(accuracy), "%.4f", c.accuracy);
        }
        (void)printf("%6" PRIu64 " %9s %-20s  %s\n", c.round, accuracy,
                     fl_ctl_when(made, sizeof(made), c.made_ms), c.why);
    }
    out->n++;
    fl_wire_checkpoint_done(&c);
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_checkpoints = {print_on_checkpoint, fl_ctl_finish_list};

static int print_on_summary(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                            struct fl_err *err)
{
    struct fl_wire_summary s;
    char largest[24] = "-";
    char bound[24] = "-";
    int rv = fl_wire_summary_decode(data, len, &s, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "client", json_string(s.client));
        (void)json_object_set_new(o, "bytes", fl_json_whole(s.bytes));
        (void)json_object_set_new(o, "largest", fl_json_real(s.largest, s.bytes > 0));
        (void)json_object_set_new(o, "bound", fl_json_real(s.bound, s.bound > 0.0));
        (void)json_object_set_new(o, "state", json_string(s.state));
        (void)json_array_append_new(out->array, o);
    } else {
        if (out->n == 0) {
            (void)printf("%-20s %10s %12s %12s  %s\n", "client", "bytes", "largest", "bound",
                         "state");
        }
        if (s.bytes > 0) {
            (void)snprintf(largest, sizeof(largest), "%.4g", s.largest);
        }
        if (s.bound > 0.0) {
            (void)snprintf(bound, sizeof(bound), "%.4g", s.bound);
        }
        (void)printf("%-20s %10" PRIu64 " %12s %12s  %s\n", s.client, s.bytes, largest, bound,
                     s.state);
    }
    out->n++;
    fl_wire_summary_done(&s);
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_summaries = {print_on_summary, fl_ctl_finish_list};

/* An empty message: the command is done. */
static int print_on_done(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                         struct fl_err *err)
{
    (void)data;
    (void)len;
    (void)err;
    out->n++;
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_done = {print_on_done, NULL};

static int print_on_controlled(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                               struct fl_err *err)
{
    struct fl_wire_controlled r;
    int rv = fl_wire_controlled_decode(data, len, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "phase", json_string(r.phase));
        (void)json_object_set_new(o, "round", fl_json_whole(r.round));
        (void)json_object_set_new(o, "text", json_string(r.text));
        fl_ctl_print_object(out, o);
    } else {
        (void)printf("%s\n", r.text);
    }
    fl_wire_controlled_done(&r);
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_controlled = {print_on_controlled, NULL};

static int print_on_forgotten(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                              struct fl_err *err)
{
    struct fl_wire_forgotten r;
    int rv = fl_wire_forgotten_decode(data, len, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "forgotten", fl_json_whole(r.forgotten));
        (void)json_object_set_new(o, "in_round", fl_json_whole(r.in_round));
        fl_ctl_print_object(out, o);
        return FL_OK;
    }
    (void)printf("%" PRIu64 " client%s forgotten\n", r.forgotten, r.forgotten == 1 ? "" : "s");
    if (r.in_round > 0) {
        (void)printf("%" PRIu64
                     " of them participate in the open round: an accepted update is still "
                     "aggregated, the record is deleted when the round has ended\n",
                     r.in_round);
    }
    if (r.forgotten > 0) {
        (void)printf("the deletion is durable, also if the server is killed now\n");
    }
    return FL_OK;
}

const struct fl_ctl_answer fl_ctl_answer_forgotten = {print_on_forgotten, NULL};

static int print_on_export(struct fl_ctl_out *out, const uint8_t *data, size_t len,
                           struct fl_err *err)
{
    struct fl_wire_export_chunk chunk;
    int rv = fl_wire_export_decode(data, len, &chunk, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fwrite(chunk.data, 1, chunk.len, out->export) != chunk.len) {
        return fl_err_set(err, FL_EIO, "cannot write '%s'", out->file);
    }
    out->export_bytes += chunk.len;
    out->export_round = chunk.round;
    return FL_OK;
}

static void print_finish_export(struct fl_ctl_out *out)
{
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "file", json_string(out->file));
        (void)json_object_set_new(o, "round", fl_json_whole(out->export_round));
        (void)json_object_set_new(o, "bytes", fl_json_whole(out->export_bytes));
        fl_json_print(o, stdout);
    } else {
        (void)printf("%s: model after round %" PRIu64 ", %" PRIu64 " bytes\n", out->file,
                     out->export_round, out->export_bytes);
    }
}

const struct fl_ctl_answer fl_ctl_answer_export = {print_on_export, print_finish_export};

static void print_finish_rollback(struct fl_ctl_out *out)
{
    if (out->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "round", fl_json_whole(out->round));
        fl_json_print(o, stdout);
    } else {
        (void)printf("the server restarts and continues after round %" PRIu64
                     "; the rounds after it are abandoned\n",
                     out->round);
    }
}

const struct fl_ctl_answer fl_ctl_answer_rollback = {print_on_done, print_finish_rollback};
