#ifndef FL_TESTS_PAGE_FEDERATION_H
#define FL_TESTS_PAGE_FEDERATION_H

/* A federation to show, of any size, with hostile texts wherever a peer could put them. */

#include "libfl/figures/share.h"
#include "tests/libfl/page/page_fixture.h"

#define ROUNDS  200
#define CLIENTS 10000
#define LAYERS  60
#define MIXED   64
#define PARTS   1000

/* A federation in trouble, all of whose texts are hostile. */
struct federation {
    struct fl_wire_status status;
    struct fl_wire_why why;
    struct fl_wire_round *rounds;
    struct fl_wire_client *clients;
    struct fl_page_overview o;
    char *missing[2], *changes[1];
    char (*names)[FL_NAME_MAX];
    double phases[2 * ROUNDS];
    float mixing[MIXED];
    const char *many_layers[LAYERS];
    char layer_names[LAYERS][24];
    struct fl_page_part many[PARTS]; /* of the last 20 rounds, with the clients' own names */
    const char *layers[3];
    struct fl_page_phases ph;
    struct fl_page_event event;
    struct fl_page_part parts[3];
    struct fl_page_detail detail;
    struct fl_pair label;
};

/* Not an assertion of a test: page_sample is none. */
static inline void federation_need(bool memory)
{
    if (!memory) {
        abort();
    }
}

static char evil[] = "x " EVIL;
static char none[] = "";

static inline void add_rounds(struct federation *f, size_t n)
{
    size_t i;

    f->rounds = calloc(n + 1, sizeof(*f->rounds));
    federation_need(f->rounds != NULL);
    for (i = 0; i < n; i++) {
        struct fl_round_rec *r = &f->rounds[i].figures;

        fl_figures_init(&fl_round_rows, r);
        r->round = i + 1;
        r->n_selected = 10;
        r->population = (uint32_t)(20 + i);
        r->selecting_ms = 20;
        r->training_ms = 30000 + i;
        r->uploading_ms = 9000;
        r->aggregating_ms = 900;
        r->previous_commit_ms = 70 + i;
        r->n_responders = 9;
        r->accuracy = i % 5 == 0 ? 1 - 1 / (double)(i + 2) : -1;
        r->loss = 1 / (double)(i + 1);
        r->train_loss = i == 7 ? (double)NAN : 2 / (double)(i + 1);
        r->uplink_bytes = 123456;
        r->uplink_bytes_full = 9999999;
        r->downlink_bytes = 11111111;
        r->started_ms = 1700000000000 + i * 60000;
        r->ended_ms = r->started_ms + 40000 + i;
        r->effective = 3.5;
        f->rounds[i].abandoned_by = none;
        f->rounds[i].robust_clients = none;
        f->rounds[i].metrics = none;
        f->rounds[i].changes = f->changes;
        f->rounds[i].n_changes = i % 10 == 0;
    }
}

static inline void add_clients(struct federation *f, size_t n)
{
    size_t i;

    f->clients = calloc(n + 1, sizeof(*f->clients));
    f->names = calloc(n + 1, sizeof(*f->names));
    federation_need(f->clients != NULL && f->names != NULL);
    for (i = 0; i < n; i++) {
        (void)snprintf(f->names[i], sizeof(f->names[i]), "client-%05zu%s", i,
                       i % 50 == 0 ? EVIL : "");
        f->clients[i] = (struct fl_wire_client){.name = f->names[i],
                                                .agent = evil,
                                                .state = evil,
                                                .connected = i % 7 != 0,
                                                .last_error = i % 9 == 0 ? evil : none,
                                                .last_error_ms = 1700000000000 + i,
                                                .quarantine = i == 5 ? evil : none,
                                                .quarantined_ms = 1700000000000,
                                                .ineligible = i % 2 == 0 ? evil : none,
                                                .central = i % 2 == 0 ? evil : none};
        f->clients[i].figures =
            (struct fl_client_figures){.samples = 600 + i,
                                       .score = 1 / (double)(i + 1),
                                       .n_selected = i * 7919 % 100,
                                       .n_accepted = i * 7919 % 90,
                                       .n_lost = i * 31 % 5,
                                       .last_loss = 0.1 * (double)(i % 37),
                                       .last_seen_ms = 1700000000000 + i * 1000};
    }
}

/* Fifty clients in each of the last twenty rounds, with masks of sixty layers. */
static inline void add_parts(struct federation *f, size_t n_clients)
{
    static char masks[7][LAYERS + 1];
    size_t i;
    size_t k;

    for (i = 0; i < MIXED; i++) {
        f->mixing[i] = 1 / (float)(i + 2);
    }
    for (i = 0; i < LAYERS; i++) {
        (void)snprintf(f->layer_names[i], sizeof(f->layer_names[i]), "layer4.%zu.conv2", i);
        f->many_layers[i] = f->layer_names[i];
        for (k = 0; k < ARRAY_LEN(masks); k++) {
            masks[k][i] = (i * 7919 + k * 31) % 5 < 2 ? '1' : '0';
        }
    }
    for (i = 0; i < PARTS; i++) {
        f->many[i] = (struct fl_page_part){.client = f->names[i % 50 * 13 % n_clients],
                                           .round = ROUNDS - i / 50,
                                           .attempt = 1,
                                           .state = i % 11 == 3 ? "lost" : "accepted",
                                           .asked = masks[i % ARRAY_LEN(masks)],
                                           .bytes_up = 1000 + i,
                                           .bytes_down = 20000,
                                           .train_loss = 0.5,
                                           .remark = i % 11 == 3 ? evil : none,
                                           .mixing = i < 50 ? f->mixing : NULL,
                                           .attention = i < 50 ? 0.02 : 0,
                                           .n_mixing = i < 50 && i % 11 != 3 ? 40 : 0};
    }
    f->o.parts = f->many;
    f->o.n_parts = PARTS;
    f->o.layers = f->many_layers;
    f->o.n_layers = LAYERS;
}

static inline struct federation *federation(size_t n_rounds, size_t n_clients)
{
    struct federation *f = calloc(1, sizeof(*f));
    size_t i;

    federation_need(f != NULL);
    f->changes[0] = f->missing[0] = f->missing[1] = evil;
    f->layers[0] = f->layers[1] = f->layers[2] = evil;
    f->status = (struct fl_wire_status){.federation = evil,
                                        .phase = evil,
                                        .algorithm = evil,
                                        .version = evil,
                                        .round = n_rounds + 1,
                                        .rounds_committed = n_rounds,
                                        .clients_known = (uint32_t)n_clients,
                                        .why = evil};
    fl_figures_init(&fl_round_rows, &f->status.totals);
    f->why = (struct fl_wire_why){.text = evil, .missing = f->missing, .n_missing = 2};
    add_rounds(f, n_rounds);
    add_clients(f, n_clients);
    for (i = 0; i < ARRAY_LEN(f->phases); i++) {
        f->phases[i] = 1000.0 * (double)(i % 11);
    }
    f->ph = (struct fl_page_phases){.names = f->layers, .n = 2, .us = f->phases};
    f->event = (struct fl_page_event){1, evil};
    f->o = (struct fl_page_overview){.status = &f->status,
                                     .why = &f->why,
                                     .rounds = f->rounds,
                                     .n_rounds = n_rounds,
                                     .clients = f->clients,
                                     .n_clients = n_clients,
                                     .phases = n_rounds == ROUNDS ? &f->ph : NULL,
                                     .parts = f->parts,
                                     .n_parts = 3,
                                     .layers = f->layers,
                                     .n_layers = 3,
                                     .events = &f->event,
                                     .n_events = 1,
                                     .now_ms = 1700099999000};
    for (i = 0; i < 3; i++) {
        f->parts[i] =
            (struct fl_page_part){.client = evil,
                                  .round = 3 - i,
                                  .attempt = 1,
                                  .state = evil,
                                  .asked = i == 0   ? NULL
                                           : i == 1 ? "101"
                                                    : "01011",
                                  .bytes_up = 1000 * i,
                                  .train_loss = i == 2 ? (double)NAN : 0.5,
                                  .received = {i == 0 ? 0.875 : FL_SHARE_UNKNOWN, 0.5},
                                  .personal = {i == 1 ? FL_SHARE_NONE : FL_SHARE_UNKNOWN, 0.25},
                                  .metrics = i == 0 ? evil : NULL,
                                  .remark = evil};
    }
    if (n_clients == CLIENTS) {
        add_parts(f, n_clients);
    }
    f->label = (struct fl_pair){evil, evil};
    f->detail = (struct fl_page_detail){.status = &f->status,
                                        .parts = f->parts,
                                        .n_parts = 3,
                                        .layers = f->layers,
                                        .n_layers = 3,
                                        .now_ms = 1700099999000};
    return f;
}

static inline void federation_done(struct federation *f)
{
    free(f->rounds);
    free(f->clients);
    free(f->names);
    free(f);
}

#endif
