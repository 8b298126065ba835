
#include "libfl/sim/flow.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"
#include "tests/lib/world_rig.h"

static const char yaml[] =
    "{base: lte, uplink: {table: t.csv, column: uplink}, latency: {choice: [1ms, 2ms]},\n"
    "        availability: {trace: up.csv, repeat: yes},\n"
    "        bandwidth: {trace: bw.csv, repeat: yes, assign: in_order}}";

/* With allocation number `fail_at` failing; how many there were otherwise. */
static size_t load(const struct fl_world_ask *ask, size_t fail_at)
{
    struct fl_world *world = NULL;
    struct fl_err err = {0};
    size_t n;
    int rv;

    failmalloc_start(fail_at, false);
    rv = fl_world_load(ask, &world, &err);
    n = failmalloc_stop();
    if (fail_at == SIZE_MAX) {
        ck_assert_msg(rv == FL_OK, "%s", err.msg);
    } else {
        ck_assert_msg(rv == FL_ENOMEM && world == NULL && err.msg[0] != '\0',
                      "allocation %zu: %d, %s", fail_at, rv, err.msg);
    }
    fl_world_free(world);
    return n;
}

TEST(a_world_that_finds_no_memory_is_none)
{
    struct fl_world_ask ask = {.dir = world_dir, .seed = 1, .n = 2};
    struct fl_conf_doc *doc = NULL;
    char text[1024];
    size_t n;
    size_t i;

    world_file("t.csv", "# source: a test\nuplink [kB/s]\n1\n2\n");
    world_file("up.csv", "# source: a test\nclient, up_from [s], up_until [s]\n0, 0, 5\n1, 2, 9\n");
    world_file("bw.csv", "# source: a test\nclient, from [s], until [s], downlink [kB/s]\n"
                         "0, 0, 5, 1\n1, 0, 5, 9\n");
    (void)snprintf(text, sizeof(text), "world: %s\n", yaml);
    ck_assert_int_eq(fl_conf_parse("x.yaml", text, strlen(text), &doc, NULL), FL_OK);
    ask.node = fl_conf_get(fl_conf_root(doc), "world");
    n = load(&ask, SIZE_MAX);
    ck_assert_uint_gt(n, 20);
    for (i = 0; i < n; i++) {
        (void)load(&ask, i);
    }
    fl_conf_free(doc);
}

/* 40 flows of as many spokes, tried again where there was no memory: all end as they do without. */
static size_t run_flows(size_t fail_at, uint64_t ends[40])
{
    struct fl_flows *flows = NULL;
    uint64_t at;
    uint64_t tag;
    uint64_t id;
    uint64_t i;
    size_t n;
    int rv;

    failmalloc_start(fail_at, false);
    rv = fl_flows_create(1000, &flows);
    rv = rv == FL_ENOMEM ? fl_flows_create(1000, &flows) : rv;
    for (i = 0; rv == FL_OK && i < 40; i++) {
        rv = fl_flows_add(flows, i, 1000 + i, 10.0 + (double)i, i, &id);
        rv = rv == FL_ENOMEM ? fl_flows_add(flows, i, 1000 + i, 10.0 + (double)i, i, &id) : rv;
    }
    rv = rv == FL_OK ? fl_flows_set_cap(flows, 40, id, 5000) : rv;
    rv = rv == FL_ENOMEM ? fl_flows_set_cap(flows, 40, id, 5000) : rv;
    while (rv == FL_OK && fl_flows_next(flows, &at) && fl_flows_pop(flows, at, &tag)) {
        ends[tag] = at;
    }
    fl_flows_free(flows);
    n = failmalloc_stop();
    ck_assert_int_eq(rv, FL_OK);
    return n;
}

TEST(a_flow_that_finds_no_memory_has_not_begun)
{
    uint64_t want[40] = {0};
    uint64_t ends[40] = {0};
    size_t n = run_flows(SIZE_MAX, want);
    size_t i;

    ck_assert_uint_gt(n, 40);
    for (i = 0; i < n; i++) {
        (void)run_flows(i, ends);
        ck_assert_mem_eq(ends, want, sizeof(want));
    }
}
