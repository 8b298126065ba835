/* The JSON documents about a federation, of decoded messages. No I/O. */

#include "libfl/json/admin_json.h"

#include "libfl/json/json.h"

json_t *fl_json_labels(const struct fl_pair *labels, size_t n)
{
    json_t *o = json_object();
    size_t i;

    for (i = 0; i < n; i++) {
        (void)json_object_set_new(o, labels[i].key, json_string(labels[i].value));
    }
    return o;
}

json_t *fl_json_status(const struct fl_wire_status *s)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "federation", json_string(s->federation));
    (void)json_object_set_new(o, "version", json_string(s->version));
    (void)json_object_set_new(o, "algorithm", json_string(s->algorithm));
    (void)json_object_set_new(o, "phase", json_string(s->phase));
    (void)json_object_set_new(o, "why", json_string(s->why));
    (void)json_object_set_new(o, "round", fl_json_whole(s->round));
    (void)json_object_set_new(o, "rounds_committed", fl_json_whole(s->rounds_committed));
    (void)json_object_set_new(o, "rounds_total", fl_json_whole(s->rounds_total));
    (void)json_object_set_new(o, "clients_known", fl_json_whole(s->clients_known));
    (void)json_object_set_new(o, "clients_connected", fl_json_whole(s->clients_connected));
    (void)json_object_set_new(o, "uptime_ms", fl_json_whole(s->uptime_ms));
    (void)json_object_set_new(o, "failed_attempts", fl_json_whole(s->failed_attempts));
    (void)json_object_set_new(o, "disk_free_bytes", fl_json_whole(s->disk_free_bytes));
    (void)json_object_set_new(o, "disk_bytes", fl_json_whole(s->disk_bytes));
    (void)json_object_set_new(o, "certificate_ends_ms", fl_json_whole(s->certificate_ends_ms));
    fl_json_figures(o, &fl_round_rows, &s->totals, /* totals= */ true);
    return o;
}

json_t *fl_json_round(const struct fl_wire_round *r)
{
    json_t *o = json_object();

    fl_json_figures(o, &fl_round_rows, &r->figures, /* totals= */ false);
    (void)json_object_set_new(o, "robust_clients", fl_json_robust_clients(r->robust_clients));
    (void)json_object_set_new(o, "metrics", fl_json_metrics(r->metrics));
    if (r->n_changes > 0) {
        json_t *changes = json_array();
        size_t i;

        for (i = 0; i < r->n_changes; i++) {
            (void)json_array_append_new(changes, json_string(r->changes[i]));
        }
        (void)json_object_set_new(o, "changes", changes);
    }
    if (r->abandoned_by[0] != '\0') {
        (void)json_object_set_new(o, "generation", fl_json_whole(r->generation));
        (void)json_object_set_new(o, "abandoned_ms", fl_json_whole(r->abandoned_ms));
        (void)json_object_set_new(o, "abandoned_by", json_string(r->abandoned_by));
    }
    return o;
}

json_t *fl_json_participation(const struct fl_wire_participation *p)
{
    json_t *o = json_object();
    size_t i;

    (void)json_object_set_new(o, "id", fl_json_whole(p->id));
    (void)json_object_set_new(o, "client", json_string(p->client));
    (void)json_object_set_new(o, "state", json_string(p->state));
    (void)json_object_set_new(o, "asked",
                              p->asked[0] != '\0' ? json_string(p->asked) : json_null());
    (void)json_object_set_new(o, "remark",
                              p->remark[0] != '\0' ? json_string(p->remark) : json_null());
    (void)json_object_set_new(o, "aborted",
                              p->aborted[0] != '\0' ? json_string(p->aborted) : json_null());
    fl_json_figures(o, &fl_part_rows, &p->figures, /* totals= */ false);
    (void)json_object_set_new(o, "metrics", fl_json_metrics(p->metrics));
    if (p->n_mixing > 0) {
        json_t *mixing = json_array();

        for (i = 0; i < p->n_mixing; i++) {
            (void)json_array_append_new(mixing,
                                        fl_json_real((double)p->mixing[i], /* known= */ true));
        }
        (void)json_object_set_new(o, "mixing", mixing);
    }
    return o;
}

json_t *fl_json_client(const struct fl_wire_client *c)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "name", json_string(c->name));
    (void)json_object_set_new(o, "connected", json_boolean(c->connected));
    (void)json_object_set_new(o, "state", json_string(c->state));
    fl_json_figures(o, &fl_client_rows, &c->figures, /* totals= */ false);
    (void)json_object_set_new(o, "agent", json_string(c->agent));
    (void)json_object_set_new(o, "last_error",
                              c->last_error[0] != '\0' ? json_string(c->last_error) : json_null());
    (void)json_object_set_new(o, "last_error_ms", fl_json_whole(c->last_error_ms));
    (void)json_object_set_new(o, "takeovers", fl_json_whole(c->takeovers));
    (void)json_object_set_new(o, "quarantine",
                              c->quarantine[0] != '\0' ? json_string(c->quarantine) : json_null());
    (void)json_object_set_new(o, "quarantined_ms", fl_json_whole(c->quarantined_ms));
    (void)json_object_set_new(o, "ineligible",
                              c->ineligible[0] != '\0' ? json_string(c->ineligible) : json_null());
    (void)json_object_set_new(o, "labels", fl_json_labels(c->labels, c->n_labels));
    (void)json_object_set_new(o, "central",
                              c->central[0] != '\0' ? json_string(c->central) : json_null());
    return o;
}
