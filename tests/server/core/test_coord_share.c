/* round.share_cap: which clients' shares are lowered, their credit of layers, and what is recorded.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float most[] = {100, 100, 100};
static const float less[] = {1, 1, 1};

/* FedLDF: a, b and c, of which one sends each of the three layers; fair is one layer a round. */
static struct script *three(double cap)
{
    struct script *s = script_fedldf();

    s->conf.share_cap = cap;
    script_begin(s, 3);
    return s;
}

static const struct fl_client_rec *rec_of(const struct script *s, const char *name)
{
    return fl_coord_client(s->coord, script_id(s, name));
}

static unsigned layers_of(const struct script *s, const char *name)
{
    const struct fl_participant_rec *part = fl_coord_part(s->coord, script_id(s, name));

    return part->units[0] + (unsigned)part->units[1] + part->units[2];
}

static void reports(struct script *s)
{
    script_report(s, "a", most);
    script_report(s, "b", less);
    script_report(s, "c", less);
}

/* All that were asked send. Returns the layers of a. */
static unsigned round_of_three(struct script *s)
{
    static const char *const names[] = {"a", "b", "c"};
    uint64_t round = fl_coord_round(s->coord);
    unsigned layers;
    unsigned i;

    reports(s);
    layers = layers_of(s, "a");
    for (i = 0; i < 3 && fl_coord_round(s->coord) == round; i++) {
        if (script_state(s, names[i]) == FL_PARTICIPANT_PLANNED) {
            script_stored(s, names[i]);
        }
    }
    return layers;
}

static bool logged(struct script *s, const char *text)
{
    ck_assert_int_eq(fl_buf_add(&s->log, "", 1), FL_OK);
    s->log.len--;
    return strstr((const char *)s->log.data, text) != NULL;
}

TEST(a_client_that_reports_the_most_gets_its_capped_share_of_layers)
{
    struct script *s = three(1.5);
    unsigned layers = 0;
    unsigned i;

    for (i = 1; i <= 40; i++) {
        layers += round_of_three(s);
        ck_assert_uint_eq(fl_coord_committed(s->coord), i);
        ck_assert_uint_le(layers, (3 * i + 1) / 2);
        ck_assert_double_eq_tol(rec_of(s, "a")->layer_credit, 1.5 * i - layers, 1e-9);
    }
    ck_assert_uint_eq(layers, 60);
    script_free(s);
}

TEST(without_share_cap_it_gets_all_and_no_credit_is_kept)
{
    struct script *s = three(0);
    unsigned i;

    for (i = 0; i < 5; i++) {
        ck_assert_uint_eq(round_of_three(s), 3);
        ck_assert_uint_eq(s->record.n_share_capped, 0);
    }
    ck_assert_double_eq(rec_of(s, "a")->layer_credit, 0);
    ck_assert_uint_eq(rec_of(s, "a")->n_share_capped, 0);
    script_free(s);
}

TEST(the_record_the_log_the_client_and_why_say_that_the_cap_acted)
{
    struct script *s = three(1.5);

    (void)round_of_three(s);
    ck_assert_uint_eq(s->record.n_share_capped, 1);
    ck_assert(logged(s, "- round 1: fewer layers than by divergence, other clients send them "
                        "(round.share_cap): a\n"));
    ck_assert_uint_eq(rec_of(s, "a")->n_share_capped, 1);
    ck_assert_uint_eq(rec_of(s, "b")->n_share_capped, 0);
    script_why(s, "round 2 is TRAINING: 0 of 3 reports are in, waiting 1.0 s more for: a, b, c; in "
                  "round 1 round.share_cap lowered the share of: a");
    script_free(s);
}

/* The same layers before and after a restart at any time: the credit is that of the last commit. */
TEST_EACH(a_restarted_server_asks_for_the_same_layers, 6)
{
    struct fl_client_rec clients[3];
    struct fl_coord_resume resume = {.clients = clients, .n_clients = 3, .epoch = 1};
    struct script *s = three(1.5);
    struct script *other = three(1.5);
    unsigned round, i;

    for (round = 0; round < 6; round++) {
        if ((int)round == _i) {
            for (i = 0; i < 3; i++) {
                clients[i] =
                    s->clients[i].name[0] != '\0' ? s->clients[i] : *fl_coord_client(s->coord, i);
            }
            resume.committed = round;
            script_create(s, &resume);
            script_start(s);
            script_join(s, "a", 100);
            script_join(s, "b", 100);
            script_join(s, "c", 100);
        }
        ck_assert_uint_eq(round_of_three(s), round_of_three(other));
    }
    ck_assert_double_eq(rec_of(s, "a")->layer_credit, rec_of(other, "a")->layer_credit);
    ck_assert_double_eq(rec_of(s, "b")->layer_credit, rec_of(other, "b")->layer_credit);
    script_free(s);
    script_free(other);
}

/* A restart in the middle of a round that has its plan. */
TEST(a_plan_that_is_on_disk_is_charged_once)
{
    static uint8_t units[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    static float ones[] = {1, 1, 1};
    struct fl_client_rec clients[3] = {{.id = 0, .name = "a", .samples = 100, .layer_credit = 2},
                                       {.id = 1, .name = "b", .samples = 100},
                                       {.id = 2, .name = "c", .samples = 100}};
    struct fl_participant_rec parts[3];
    struct fl_coord_resume resume = {.clients = clients,
                                     .n_clients = 3,
                                     .epoch = 1,
                                     .open_round = 1,
                                     .open_attempt = 1,
                                     .planned = true,
                                     .size = {.selected = 3, .population = 3, .members = 3},
                                     .parts = parts,
                                     .n_parts = 3};
    struct script *s = script_fedldf();
    uint32_t i;

    for (i = 0; i < 3; i++) {
        parts[i] = (struct fl_participant_rec){.client = i,
                                               .state = FL_PARTICIPANT_PLANNED,
                                               .samples = 100,
                                               .units = units[i],
                                               .divergence = ones};
    }
    parts[0].capped = FL_SHARE_LAYERS;
    s->conf.share_cap = 1.5;
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 100);
    script_stored(s, "a");
    script_stored(s, "b");
    script_stored(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq(rec_of(s, "a")->layer_credit, 2.5);
    ck_assert_double_eq(rec_of(s, "b")->layer_credit, .5);
    ck_assert_uint_eq(s->record.n_share_capped, 1);
    ck_assert_uint_eq(rec_of(s, "a")->n_share_capped, 1);
    script_free(s);
}

TEST(an_aborted_attempt_charges_nothing)
{
    struct script *s = three(1.5);

    reports(s);
    script_wish(s, FL_EV_ABORT_ROUND, NULL);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 0);
    ck_assert_double_eq(rec_of(s, "a")->layer_credit, 0);
    script_free(s);
}

/* It was asked, so its share is used: dropping out of a round earns no layers of the next. */
TEST(layers_of_a_lost_upload_are_charged)
{
    struct script *s = script_fedldf();
    unsigned layers;

    s->conf.share_cap = 1.5;
    s->conf.min_responders = 1;
    script_begin(s, 3);
    reports(s);
    layers = layers_of(s, "a");
    ck_assert_uint_eq(layers, 2);
    script_failed(s, "a", "no");
    if (script_state(s, "b") == FL_PARTICIPANT_PLANNED) {
        script_stored(s, "b");
    }
    if (fl_coord_committed(s->coord) == 0 && script_state(s, "c") == FL_PARTICIPANT_PLANNED) {
        script_stored(s, "c");
    }
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_le(rec_of(s, "a")->layer_credit, 1.5 * 5 / 3. - 2 + 1e-9);
    script_free(s);
}

/* Of a and b, which send nothing yet, b claims more, but has had more than its share. */
TEST(backfill_asks_a_client_above_its_share_last)
{
    static const float divergence[4][3] = {{2, 2, 2}, {9, 9, 9}, {5, 5, 5}, {5, 5, 5}};
    static uint8_t units[4][3] = {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}};
    static const char *const names[] = {"a", "b", "c", "d"};
    struct fl_client_rec clients[4] = {0};
    struct fl_participant_rec parts[4];
    struct fl_coord_resume resume = {.clients = clients,
                                     .n_clients = 4,
                                     .epoch = 1,
                                     .open_round = 1,
                                     .open_attempt = 1,
                                     .planned = true,
                                     .size = {.selected = 4, .population = 4, .members = 4},
                                     .parts = parts,
                                     .n_parts = 4};
    struct script *s = script_fedldf();
    float d[4][3];
    uint32_t i;

    (void)memcpy(d, divergence, sizeof(d));
    for (i = 0; i < 4; i++) {
        clients[i].id = i;
        (void)snprintf(clients[i].name, sizeof(clients[i].name), "%s", names[i]);
        clients[i].samples = 100;
        clients[i].layer_credit = i == 1 ? -5 : 3;
        parts[i] = (struct fl_participant_rec){.client = i,
                                               .state = i < 2 ? FL_PARTICIPANT_EMPTY
                                                              : FL_PARTICIPANT_PLANNED,
                                               .samples = 100,
                                               .units = units[i],
                                               .divergence = d[i]};
    }
    s->conf.share_cap = 1.5;
    s->conf.backfill = true;
    s->conf.min_responders = 1;
    script_create(s, &resume);
    script_start(s);
    for (i = 0; i < 4; i++) {
        script_join(s, names[i], 100);
    }
    script_stored(s, "d");
    script_failed(s, "c", "no");
    ck_assert_uint_eq(layers_of(s, "a"), 3);
    ck_assert_uint_eq(layers_of(s, "b"), 0);
    script_free(s);
}

/* --- draws --- */

static struct script *by_attention(double cap)
{
    struct script *s = script_new("adafl");
    static const char *const names[] = {"a", "b", "c", "d"};
    unsigned i;

    script_option(s, FL_COMPONENT_FRACTION, "start", "0.25");
    s->conf.start_clients = 4;
    s->conf.share_cap = cap;
    script_create(s, NULL);
    script_start(s);
    for (i = 0; i < 4; i++) { /* The first scores are the samples. */
        script_join(s, names[i], i == 0 ? 1000000 : 1);
    }
    return s;
}

TEST(a_draw_that_the_cap_lowered_is_recorded_and_named)
{
    struct script *s = by_attention(1.5);
    const char *selected[] = {"a", "b", "c", "d"};
    unsigned i;

    ck_assert(
        logged(s, "- round 1: probability of a draw limited to 1.5 / 4 (round.share_cap): a\n"));
    for (i = 0; i < 4; i++) {
        if (fl_coord_part(s->coord, script_id(s, selected[i])) != NULL) {
            script_respond(s, selected[i]);
            break;
        }
    }
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_share_capped, 1);
    ck_assert_uint_eq(rec_of(s, "a")->n_share_capped, i == 0);
    script_free(s);
}

TEST(without_share_cap_no_draw_is_lowered)
{
    struct script *s = by_attention(0);

    ck_assert(!logged(s, "round.share_cap"));
    ck_assert_ptr_nonnull(fl_coord_part(s->coord, script_id(s, "a")));
    script_free(s);
}

/* --- weights --- */

TEST(weights_that_the_aggregation_lowered_are_recorded)
{
    struct script *s = script_fedavg();
    const double left[] = {1, .25, 1};
    struct fl_event ev = {.type = FL_EV_AGGREGATED};

    s->conf.share_cap = 1.5;
    script_begin(s, 3);
    s->manual = true;
    script_answer_all(s);
    script_respond(s, "a");
    script_answer_all(s);
    script_respond(s, "b");
    script_answer_all(s);
    script_respond(s, "c");
    while (s->works[0].type != FL_EFF_AGGREGATE) {
        script_answer(s);
    }
    ev.u.aggregated.seq = s->works[0].seq;
    ev.u.aggregated.influence = 1.5;
    ev.u.aggregated.left = left;
    s->n_works = 0;
    script_step(s, &ev);
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_share_capped, 1);
    ck_assert_double_eq(s->record.influence, 1.5);
    ck_assert_uint_eq(rec_of(s, "b")->n_share_capped, 1);
    ck_assert_uint_eq(rec_of(s, "a")->n_share_capped, 0);
    script_free(s);
}

TEST(a_cap_below_the_fair_share_is_refused)
{
    struct script *s = script_fedavg();
    struct fl_coord *c = NULL;
    struct fl_err err = {0};

    s->conf.share_cap = 0.5;
    ck_assert_int_eq(fl_coord_create(&s->conf, NULL, &c, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "round.share_cap: expected 0 or a number of at least 1, found 0.5");
    script_free(s);
}
