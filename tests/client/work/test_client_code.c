/* A result is coded by the description it was made under, or not at all. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/work/code.h"
#include "tests/lib/suites.h"

static char dir[64];
static struct fl_client_state *keeps;

static void setup(void)
{
    struct fl_err err = {0};

    (void)snprintf(dir, sizeof(dir), "/tmp/fl-code-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(fl_client_state_open(dir, NULL, &keeps, &err), FL_OK);
}

static void teardown(void)
{
    fl_client_state_free(keeps);
    ck_assert_int_eq(rmdir(dir), 0);
}

static struct fl_wire_welcome welcome_of(size_t width, const char *codec)
{
    struct fl_wire_welcome w = {.federation = fl_str_dup("test"), .heartbeat_ms = 1000};
    const size_t dims[] = {width, 4};

    ck_assert_int_eq(fl_layout_create(&w.layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(w.layout, "fc1", "fc1.weight", dims, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(w.layout, "fc2", "fc2.weight", dims, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(w.layout, NULL), FL_OK);
    w.solver.name = fl_str_dup("sgd");
    w.codec.name = fl_str_dup(codec);
    return w;
}

static struct fl_setup *setup_of(size_t width)
{
    struct fl_wire_welcome w = welcome_of(width, "float32");
    struct fl_setup *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_setup_create(&w, &s, &err), FL_OK);
    return s;
}

static struct fl_result *result_of(const struct fl_setup *s)
{
    struct fl_result *r = fl_result_new();

    ck_assert_ptr_nonnull(r);
    r->key = (struct fl_round_key){7, 1};
    r->n_units = fl_layout_units(s->layout);
    r->n_floats = fl_layout_count(s->layout);
    r->delta = calloc(r->n_floats, sizeof(float));
    r->divergence = calloc(r->n_units, sizeof(float));
    (void)memcpy(r->digest, fl_layout_digest(s->layout), sizeof(r->digest));
    return r;
}

static struct fl_code code_of(struct fl_setup *s, struct fl_result *r)
{
    struct fl_code code = {.setup = fl_setup_ref(s), .keeps = keeps, .result = fl_result_ref(r)};

    code.units = malloc(2);
    ck_assert_ptr_nonnull(code.units);
    (void)memset(code.units, 1, 2);
    return code;
}

TEST_CASE("cli_code", setup, teardown);

TEST(a_result_is_coded_by_its_own_layout)
{
    struct fl_setup *s = setup_of(3);
    struct fl_result *r = result_of(s);
    struct fl_code code = code_of(s, r);
    struct fl_err err = {0};

    fl_setup_unref(s); /* The code holds its own. */
    fl_result_unref(r);
    ck_assert_int_eq(fl_code_run(&code, &err), FL_OK);
    ck_assert_uint_eq(code.n_parts, 2);
    ck_assert_uint_eq(fl_blob_len(code.bytes), 2 * 12 * sizeof(float));
    fl_code_done(&code);
}

TEST(a_result_of_another_layout_is_never_coded)
{
    const size_t widths[] = {1, 2, 4, 100000};
    struct fl_setup *own = setup_of(3);
    struct fl_result *r = result_of(own);
    size_t i;

    for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        struct fl_setup *other = setup_of(widths[i]);
        struct fl_code code = code_of(other, r);
        struct fl_err err = {0};

        ck_assert_int_eq(fl_code_run(&code, &err), FL_ESTATE);
        ck_assert_ptr_nonnull(strstr(err.msg, "it is for another model"));
        ck_assert_ptr_null(code.bytes);
        fl_code_done(&code);
        fl_setup_unref(other);
    }
    fl_result_unref(r);
    fl_setup_unref(own);
}

TEST(a_description_is_the_same_only_when_all_of_it_is)
{
    struct fl_setup *s = setup_of(3);
    struct fl_wire_command c = {.type = FL_WIRE_WELCOME};

    c.u.welcome = welcome_of(3, "float32");
    ck_assert(fl_setup_is(s, &c.u.welcome));
    c.u.welcome.training.steps = 5;
    ck_assert(!fl_setup_is(s, &c.u.welcome));
    fl_wire_command_done(&c);
    c = (struct fl_wire_command){.type = FL_WIRE_WELCOME};
    c.u.welcome = welcome_of(3, "float32");
    c.u.welcome.training.client_momentum = 0.5;
    ck_assert(!fl_setup_is(s, &c.u.welcome));
    fl_wire_command_done(&c);
    c = (struct fl_wire_command){.type = FL_WIRE_WELCOME};
    c.u.welcome = welcome_of(4, "float32");
    ck_assert(!fl_setup_is(s, &c.u.welcome));
    fl_wire_command_done(&c);
    c = (struct fl_wire_command){.type = FL_WIRE_WELCOME};
    c.u.welcome = welcome_of(3, "int8");
    ck_assert(!fl_setup_is(s, &c.u.welcome));
    fl_wire_command_done(&c);
    fl_setup_unref(s);
}

TEST(a_component_that_this_client_lacks_is_named)
{
    struct fl_wire_welcome w = welcome_of(3, "morse");
    struct fl_setup *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_ne(fl_setup_create(&w, &s, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "the server's codec is 'morse'"));
    ck_assert_ptr_null(w.layout); /* It was taken, and freed. */
}
