/* What a server described, made usable or refused in words; and which result goes with it. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/client_rig.h"
#include "tests/lib/option_shown.h"
#include "tests/lib/suites.h"

static void welcome_done(struct fl_wire_welcome *w)
{
    struct fl_wire_command c = {.type = FL_WIRE_WELCOME};

    c.u.welcome = *w;
    fl_wire_command_done(&c);
}

TEST_EACH(a_component_that_this_client_cannot_fill_is_named, 6)
{
    static const struct {
        struct rig_server server;
        const char *says;
    } rows[] = {
        {{.solver = "adagrad"},
         "the server's solver is 'adagrad', which this client does not support"},
        {{.solver = "prox mu=-1"},
         "the server's solver is 'prox', which this client does not support"},
        {{.codec = "morse"}, "the server's codec is 'morse', which this client does not support"},
        {{.upload = "half"}, "the server's upload is 'half', which this client does not support"},
        {{.personal = "mine"},
         "the server's personal is 'mine', which this client does not support"},
        {{.personal = "own gamma=1"},
         "the server's personal is 'own', which this client does not support"},
    };
    struct fl_wire_welcome w = rig_welcome(&rows[_i].server);
    struct fl_setup *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_ne(fl_setup_create(&w, &s, &err), FL_OK);
    ck_assert_msg(strncmp(err.msg, rows[_i].says, strlen(rows[_i].says)) == 0, "%s", err.msg);
    ck_assert_ptr_null(s);
    ck_assert_ptr_null(w.layout); /* Taken on error too. */
}

TEST(components_that_are_not_set_are_the_plain_ones)
{
    const struct rig_server server = {.solver = NULL};
    struct fl_setup *s = rig_setup(&server);

    ck_assert_str_eq(s->upload->policy.name, "full");
    ck_assert_str_eq(s->personal->policy.name, "none");
    fl_setup_unref(s);
    fl_setup_unref(NULL);
}

TEST(options_of_a_component_are_those_of_the_server)
{
    const struct rig_server server = {.solver = "prox mu=5 anchor=moving",
                                      .personal = "own beta=0.25"};
    struct fl_setup *s = rig_setup(&server);

    ck_assert_str_eq(option_shown(s->solver_options, "mu"), "5");
    ck_assert_str_eq(option_shown(s->solver_options, "anchor"), "moving");
    ck_assert_str_eq(option_shown(s->personal_options, "beta"), "0.25");
    fl_setup_unref(s);
}

TEST_EACH(a_network_above_our_limits_is_refused_with_its_size, 2)
{
    const struct rig_server server = {.solver = NULL};
    struct fl_wire_welcome w = rig_welcome(&server);
    struct fl_setup *s = NULL;
    struct fl_err err = {0};
    size_t i;

    if (_i == 0) {
        w.layers = realloc(w.layers, (FL_NET_MAX_LAYERS + 1) * sizeof(*w.layers));
        for (i = w.n_layers; i <= FL_NET_MAX_LAYERS; i++) {
            w.layers[i] = fl_str_dup("relu");
        }
        w.n_layers = i;
    } else {
        w.input = realloc(w.input, (FL_NET_MAX_INPUT_DIMS + 1) * sizeof(*w.input));
        for (i = w.n_input; i <= FL_NET_MAX_INPUT_DIMS; i++) {
            w.input[i] = 1;
        }
        w.n_input = i;
    }
    ck_assert_int_eq(fl_setup_create(&w, &s, &err), FL_ELIMIT);
    ck_assert_str_eq(
        err.msg,
        _i == 0 ? "a network of 257 layers and 1 input dimensions exceeds the limits of this client"
                : "a network of 3 layers and 4 input dimensions exceeds the limits of this client");
}

TEST(a_setup_lives_as_long_as_a_reference_to_it)
{
    const struct rig_server server = {.solver = NULL};
    struct fl_setup *s = rig_setup(&server);
    struct fl_setup *other = fl_setup_ref(s);

    ck_assert_ptr_eq(other, s);
    fl_setup_unref(s);
    ck_assert_uint_eq(fl_layout_units(other->layout), 2);
    fl_setup_unref(other);
}

/* --- is it the same? --- */

static void replace(char **text, const char *with)
{
    free(*text);
    *text = fl_str_dup(with);
}

enum { CHANGES = 18 };

static void change(struct fl_wire_welcome *w, int which)
{
    switch (which) {
    case 0:
        replace(&w->federation, "other");
        break;
    case 1:
        w->input[0]++;
        break;
    case 2:
        replace(&w->layers[1], "dropout 0.1");
        break;
    case 3:
        free(w->layers[--w->n_layers]);
        break;
    case 4:
        replace(&w->solver.name, "sgd");
        break;
    case 5:
        replace(&w->solver.options[0].key, "nu");
        break;
    case 6:
        replace(&w->solver.options[0].value, "6");
        break;
    case 7:
        replace(&w->codec.name, "int8");
        break;
    case 8:
        replace(&w->upload.name, "full"); /* The same policy, but it was not told before. */
        break;
    case 9:
        replace(&w->personal.name, "trained");
        break;
    case 10:
        w->wants_previous_dot = true;
        break;
    case 11:
        w->generation[31] = 1;
        break;
    case 12:
        w->state_generation[31] = 1;
        break;
    case 13:
        w->training.epochs++;
        break;
    case 14:
        w->training.steps++;
        break;
    case 15:
        w->training.batch_size++;
        break;
    case 16:
        w->training.momentum = 0.5;
        break;
    default:
        w->training.weight_decay = 0.5;
        break;
    }
}

TEST_EACH(any_change_of_a_description_makes_it_another, CHANGES)
{
    const struct rig_server server = {.solver = "prox mu=5", .personal = "own"};
    struct fl_setup *s = rig_setup(&server);
    struct fl_wire_welcome w = rig_welcome(&server);

    ck_assert(fl_setup_is(s, &w));
    change(&w, _i);
    ck_assert_msg(!fl_setup_is(s, &w), "change %d", _i);
    welcome_done(&w);
    fl_setup_unref(s);
}

TEST(what_belongs_to_a_session_is_no_change)
{
    const struct rig_server server = {.solver = NULL};
    struct fl_setup *s = rig_setup(&server);
    struct fl_wire_welcome w = rig_welcome(&server);

    w.session.id[0] = 9;
    w.heartbeat_ms = 5;
    w.limits.streams = 3;
    w.wants_summary = true;
    ck_assert(fl_setup_is(s, &w));
    welcome_done(&w);
    fl_setup_unref(s);
}

/* --- which result goes with it --- */

/* Only what is compared; nothing of it is read. */
static struct fl_result *result_for(const struct fl_setup *s)
{
    struct fl_result *r = fl_result_new();

    ck_assert_ptr_nonnull(r);
    r->n_units = fl_layout_units(s->layout);
    r->n_floats = fl_layout_count(s->layout);
    (void)memcpy(r->digest, fl_layout_digest(s->layout), sizeof(r->digest));
    (void)memcpy(r->generation, s->welcome.generation, sizeof(r->generation));
    return r;
}

TEST(a_result_of_another_model_line_or_algorithm_is_unfit_and_says_why)
{
    const struct rig_server server = {.generation = 4};
    struct fl_setup *s = rig_setup(&server);
    struct fl_result *r = result_for(s);
    const char *why;

    ck_assert_ptr_null(fl_setup_unfit(s, r));
    r->digest[5] ^= 1;
    ck_assert_str_eq(fl_setup_unfit(s, r), "it is for another model");
    r->digest[5] ^= 1;
    r->n_units++;
    ck_assert_str_eq(fl_setup_unfit(s, r), "it is for another model");
    r->n_units--;
    r->n_floats++;
    ck_assert_str_eq(fl_setup_unfit(s, r), "it is for another model");
    r->n_floats--;
    r->generation[0] = 5;
    why = fl_setup_unfit(s, r);
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, "it was made with other settings of the federation"));
    r->generation[0] = 4;
    r->n_mask = 19; /* Masked, where all is sent. */
    ck_assert_str_eq(fl_setup_unfit(s, r), "it is for another algorithm");
    r->n_mask = 0;
    fl_result_unref(r);
    fl_setup_unref(s);
}

TEST_EACH(a_result_has_to_have_what_the_algorithm_sends, 4)
{
    static const struct {
        struct rig_server server;
        bool fits;
    } rows[] = {
        {{.solver = "scaffold"}, false},
        {{.solver = "scaffold rebuild_dc=yes"}, true}, /* The server makes it from the update. */
        {{.upload = "fedadp"}, false},
        {{.upload = "ldf"}, true},
    };
    struct fl_setup *s = rig_setup(&rows[_i].server);
    struct fl_result *r = result_for(s);

    if (rows[_i].fits) {
        ck_assert_ptr_null(fl_setup_unfit(s, r));
    } else {
        ck_assert_str_eq(fl_setup_unfit(s, r), "it is for another algorithm");
    }
    fl_result_unref(r);
    fl_setup_unref(s);
}
