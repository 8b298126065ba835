/* Whole pages: complete, escaped, small, and with nothing that comes from elsewhere. */
#include <zlib.h>

#include "libfl/page/page_assets.h"
#include "tests/libfl/page/page_fixture.h"

#define ROUNDS  200
#define CLIENTS 10000

/* A federation in trouble, all of whose texts are hostile. */
struct federation {
    struct fl_wire_status status;
    struct fl_wire_why why;
    struct fl_wire_round *rounds;
    struct fl_wire_client *clients;
    struct fl_page_overview o;
    char *missing[2], *changes[1];
    char (*names)[FL_NAME_MAX];
    double mixing[4], sent[6], phases[2 * ROUNDS];
    const char *layers[3];
    struct fl_page_grid grid;
    struct fl_page_mixing mix;
    struct fl_page_phases ph;
    struct fl_page_event event;
};

static char evil[] = "x " EVIL;
static char none[] = "";

static void add_rounds(struct federation *f, size_t n)
{
    size_t i;

    f->rounds = calloc(n + 1, sizeof(*f->rounds));
    ck_assert_ptr_nonnull(f->rounds);
    for (i = 0; i < n; i++) {
        struct fl_round_rec *r = &f->rounds[i].figures;

        fl_figures_init(&fl_round_rows, r);
        r->round = i + 1;
        r->n_selected = 10;
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
        f->rounds[i].changes = f->changes;
        f->rounds[i].n_changes = i % 10 == 0;
    }
}

static void add_clients(struct federation *f, size_t n)
{
    size_t i;

    f->clients = calloc(n + 1, sizeof(*f->clients));
    f->names = calloc(n + 1, sizeof(*f->names));
    ck_assert(f->clients != NULL && f->names != NULL);
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
                                                .quarantined_ms = 1700000000000};
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

static struct federation *federation(size_t n_rounds, size_t n_clients)
{
    struct federation *f = calloc(1, sizeof(*f));
    size_t i;

    ck_assert_ptr_nonnull(f);
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
    f->grid = (struct fl_page_grid){.layers = f->layers,
                                    .n_layers = 3,
                                    .clients = f->layers,
                                    .n_clients = 2,
                                    .sent = f->sent,
                                    .round = 1};
    f->mix =
        (struct fl_page_mixing){.clients = f->layers, .n = 2, .weights = f->mixing, .round = 1};
    f->ph = (struct fl_page_phases){.names = f->layers, .n = 2, .us = f->phases};
    f->event = (struct fl_page_event){1, evil};
    f->o = (struct fl_page_overview){.status = &f->status,
                                     .why = &f->why,
                                     .rounds = f->rounds,
                                     .n_rounds = n_rounds,
                                     .clients = f->clients,
                                     .n_clients = n_clients,
                                     .phases = n_rounds == ROUNDS ? &f->ph : NULL,
                                     .grid = &f->grid,
                                     .mixing = &f->mix,
                                     .events = &f->event,
                                     .n_events = 1,
                                     .now_ms = 1700099999000};
    return f;
}

static void done(struct federation *f)
{
    free(f->rounds);
    free(f->clients);
    free(f->names);
    free(f);
}

/* Well-formed, and every text that is not of this program is text. */
static void check_document(const char *text)
{
    page_check(text);
    ck_assert_uint_eq(page_count(text, "<script>"), 1);
    ck_assert_uint_eq(page_count(text, "alert('1')"), 0);
    ck_assert_ptr_null(strstr(text, "http://"));
    ck_assert_ptr_null(strstr(text, "https://"));
    ck_assert_ptr_null(strstr(text, " src="));
    ck_assert_ptr_nonnull(strstr(text, "<html lang=\"en\">"));
    ck_assert_uint_eq(page_count(text, "<h1>"), 1);
}

static size_t compressed(const struct fl_buf *page)
{
    uLongf len = compressBound(page->len);
    Bytef *out = malloc(len);

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(compress(out, &len, page->data, page->len), Z_OK);
    free(out);
    return len;
}

static const struct {
    size_t rounds, clients;
} sizes[] = {{0, 0}, {1, 1}, {3, 2}, {ROUNDS, 30}};

TEST_EACH(an_overview_of_any_size_is_well_formed_and_escaped, ARRAY_LEN(sizes))
{
    struct federation *f = federation(sizes[_i].rounds, sizes[_i].clients);
    struct fl_buf out;

    fl_buf_init(&out, 1 << 22);
    ck_assert_int_eq(fl_page_overview(&f->o, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_ptr_nonnull(strstr(page_text(&out), "id=\"why\""));
    fl_buf_done(&out);
    done(f);
}

TEST(an_overview_without_anything_optional_is_a_page)
{
    struct federation *f = federation(2, 2);
    struct fl_buf out;

    f->o.why = NULL;
    f->o.grid = NULL;
    f->o.mixing = NULL;
    f->o.n_events = 0;
    fl_buf_init(&out, 1 << 22);
    ck_assert_int_eq(fl_page_overview(&f->o, &out), FL_OK);
    check_document(page_text(&out));
    fl_buf_done(&out);
    done(f);
}

TEST(an_overview_of_ten_thousand_clients_has_less_than_60_kb_compressed)
{
    struct federation *f = federation(ROUNDS, CLIENTS);
    struct fl_buf out;

    fl_buf_init(&out, 1 << 22);
    ck_assert_int_eq(fl_page_overview(&f->o, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_uint_lt(compressed(&out), 60000);
    ck_assert_ptr_nonnull(strstr(page_text(&out), "25 of 10000 clients"));
    fl_buf_done(&out);
    done(f);
}

TEST(a_quarantined_client_and_disconnected_ones_come_first)
{
    struct federation *f = federation(1, 24);
    const char *text;
    struct fl_buf out;

    fl_buf_init(&out, 1 << 22);
    ck_assert_int_eq(fl_page_overview(&f->o, &out), FL_OK);
    text = strstr(page_text(&out), "<table id=\"clients\"");
    ck_assert_ptr_nonnull(text);
    ck_assert(strstr(text, "client-00005<") < strstr(text, "client-00007<"));
    ck_assert(strstr(text, "client-00007<") < strstr(text, "client-00001<"));
    fl_buf_done(&out);
    done(f);
}

TEST(what_does_not_fit_the_buffer_is_an_error)
{
    struct federation *f = federation(3, 3);
    struct fl_buf out;

    fl_buf_init(&out, 20000);
    ck_assert_int_eq(fl_page_overview(&f->o, &out), FL_ELIMIT);
    fl_buf_done(&out);
    done(f);
}

TEST(the_policy_names_the_hashes_of_what_is_in_the_page)
{
    struct federation *f = federation(0, 0);
    char policy[FL_PAGE_POLICY];
    struct fl_buf out;

    fl_buf_init(&out, 1 << 20);
    ck_assert_int_eq(fl_page_overview(&f->o, &out), FL_OK);
    ck_assert_ptr_nonnull(strstr(fl_page_policy(policy), fl_page_css_hash));
    ck_assert_ptr_nonnull(strstr(policy, fl_page_js_hash));
    ck_assert_uint_eq(strlen(fl_page_js_hash), strlen("sha256-") + 44);
    ck_assert_ptr_nonnull(strstr(policy, "default-src 'none'"));
    ck_assert_ptr_nonnull(strstr(page_text(&out), fl_page_js_hash));
    ck_assert_uint_le(fl_page_js_len, 10 * 1024);
    fl_buf_done(&out);
    done(f);
}

TEST(a_report_has_its_points_and_at_most_twelve_of_them_in_detail)
{
    struct federation *f = federation(3, 4);
    const uint64_t rounds[] = {1, 2, 3};
    const double curve[] = {0.1, NAN, 0.3};
    struct fl_page_point points[20];
    struct fl_page_report report = {.name = evil,
                                    .sentence = evil,
                                    .quality = evil,
                                    .version = evil,
                                    .points = points,
                                    .n_points = ARRAY_LEN(points),
                                    .rounds = rounds,
                                    .n = 3};
    struct fl_buf out;
    size_t i;

    f->o.simulated = true;
    for (i = 0; i < ARRAY_LEN(points); i++) {
        points[i] = (struct fl_page_point){.label = evil,
                                           .end = evil,
                                           .accuracies = curve,
                                           .losses = curve,
                                           .accuracy = NAN,
                                           .view = i != 1 ? &f->o : NULL};
    }
    fl_buf_init(&out, 1 << 23);
    ck_assert_int_eq(fl_page_report(&report, &out), FL_OK);
    check_document(page_text(&out));
    ck_assert_uint_eq(page_count(page_text(&out), "<h2 id=\"p"), FL_PAGE_REPORT_POINTS - 1);
    ck_assert_ptr_null(strstr(page_text(&out), "href=\"/")); /* A file has no other pages. */
    ck_assert_ptr_null(strstr(page_text(&out), "data-live"));
    fl_buf_clear(&out);
    report.n_points = report.n = 0;
    ck_assert_int_eq(fl_page_report(&report, &out), FL_OK);
    check_document(page_text(&out));
    fl_buf_done(&out);
    done(f);
}
