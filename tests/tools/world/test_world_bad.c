
#include "tests/lib/suites.h"
#include "tests/lib/world_rig.h"

/* A world that is refused, and what the message says. Files it needs stand in `files`. */
static const struct bad {
    const char *yaml;
    const char *says[3]; /* all of them */
} bads[] = {
    {"ltee",
     {"x.yaml:1: key 'world'", "unknown network and device model 'ltee', did you mean 'lte'?"}},
    {"[lte]", {"expected a section"}},
    {"{base: [lte]}", {"expected the name of a network and device model"}},
    {"{upload: 1Mbit/s}", {"x.yaml:1", "unknown key 'upload', did you mean 'uplink'?"}},
    {"{uplink: 2}", {"key 'world.uplink'", "add a unit (bit/s, kbit/s"}},
    {"{latency: 40}", {"key 'world.latency'", "add a unit (us, ms"}},
    {"{memory: 4X}", {"key 'world.memory'", "units are B, K"}},
    {"{uplink: 2Mbps}", {"expected a rate such as 2Mbit/s or 500kB/s, found '2Mbps'"}},
    {"{uplink: 2ms}", {"expected a rate", "units are bit/s"}},
    {"{uplink: -2Mbit/s}", {"found '-2Mbit/s'"}},
    {"{uplink: 0Mbit/s}", {"is zero"}},
    {"{uplink: infMbit/s}", {"expected a rate"}},
    {"{uplink: nan}", {"expected a rate"}},
    {"{uplink: 1e400Mbit/s}", {"expected a rate"}},
    {"{uplink: 1e300Mbit/s}", {"is too large"}},
    {"{uplink: 0x10kB/s}", {"expected a rate"}},
    {"{uplink: 1bit/s}", {"is too small"}},
    {"{latency: unlimited}", {"expected a duration"}},
    {"{latency: [1ms]}", {"expected a duration"}},
    {"{latency: {uniform: [9ms, 1ms]}}", {"lowest is above the highest"}},
    {"{latency: {uniform: [1ms]}}", {"expected two values"}},
    {"{latency: {uniform: 1ms}}", {"expected two values"}},
    {"{latency: {uniform: [1, 2]}}", {"world.latency.uniform[0]", "add a unit"}},
    {"{latency: {normal: 1ms}}", {"unknown key 'normal'"}},
    {"{latency: {}}", {"expected one of uniform"}},
    {"{latency: {uniform: [1ms, 2ms], exponential: 1ms}}", {"expected one of uniform"}},
    {"{latency: {assign: drawn}}", {"expected one of uniform"}},
    {"{latency: {lognormal: {median: 1ms}}}", {"expected {median"}},
    {"{latency: {lognormal: {median: 1ms, sigma: 11}}}", {"0 to 10"}},
    {"{latency: {lognormal: {median: 1ms, sigma: -1}}}", {"is negative"}},
    {"{latency: {lognormal: 1ms}}", {"expected a section"}},
    {"{latency: {choice: []}}", {"expected a list of values"}},
    {"{latency: {choice: [1ms, 2ms], weights: [1]}}", {"one weight for each"}},
    {"{latency: {choice: [1ms], weights: [0]}}", {"all weights are zero"}},
    {"{latency: {choice: [1ms], weights: 1}}", {"one weight for each"}},
    {"{train: 3s}", {"expected a section"}},
    {"{train: {samples_per_s: 0}}", {"is zero"}},
    {"{train: {samples_per_s: 5ms}}", {"samples a second"}},
    {"{train: {fixd: 3s}}", {"did you mean 'fixed'?"}},
    {"{train: {jitter: 10%}}", {"expected a number"}},
    {"{drop: {chance: 120%}}", {"is more than 100 %"}},
    {"{drop: {chance: 1.2}}", {"is more than 100 %"}},
    {"{drop: sometimes}", {"expected never"}},
    {"{server: {uplink: {uniform: [1MB/s, 2MB/s]}}}", {"expected a rate"}},
    {"{server: 1Gbit/s}", {"expected a section"}},
    {"{availability: mostly}", {"expected always"}},
    {"{availability: {every: 24h}}", {"expected always"}},
    {"{availability: {every: 0s, up_for: 1h}}", {"of length 0"}},
    {"{availability: {every: 1d, up_for: 1h, chance: 5%}}", {"unknown key 'chance'"}},
    {"{bandwidth: 2Mbit/s}", {"expected steady"}},
    {"{bandwidth: {repeat: yes}}", {"expected a trace"}},
    {"{bandwidth: {trace: bw.csv, repeat: sometimes}}", {"expected yes or no"}},
    {"{bandwidth: {trace: bw.csv, assign: by_name}}", {"expected drawn or in_order"}},
    {"{uplink: {table: none.csv, column: uplink}}", {"x.yaml:1", "none.csv"}},
    {"{uplink: {table: '', column: uplink}}", {"expected the name of a file"}},
    {"{uplink: {table: t.csv}}", {"name of a column"}},
    {"{uplink: {table: t.csv, column: up}}", {"there is no column 'up'"}},
    {"{uplink: {table: t.csv, column: downlink}}", {"of the other direction"}},
    {"{uplink: {table: t.csv, column: latency}}", {"unit of column 'latency' does not fit"}},
    {"{latency: {table: t.csv, column: latency, assign: in_order}}", {"has 2 rows, too few for 5"}},
    {"{latency: {table: t.csv, column: latency, rows: 2}}", {"unknown key 'rows'"}},
    /* Tables. */
    {"{latency: {table: nothing.csv, column: a}}", {"nothing.csv:1: no rows", "without clients"}},
    {"{latency: {table: header.csv, column: a}}", {"header.csv:2: no rows", "without clients"}},
    {"{latency: {table: source.csv, column: a}}", {"source.csv:1: no source"}},
    {"{latency: {table: unit.csv, column: a}}", {"unit.csv:2", "'a' has no unit"}},
    {"{latency: {table: units.csv, column: a}}", {"units.csv:2", "unknown unit"}},
    {"{latency: {table: way.csv, column: a}}", {"way.csv:2", "a rate has a direction"}},
    {"{latency: {table: twice.csv, column: a}}", {"twice.csv:2", "duplicate name"}},
    {"{latency: {table: noname.csv, column: a}}", {"noname.csv:2", "expected a name"}},
    {"{latency: {table: negative.csv, column: a}}", {"negative.csv:4", "'-1' is negative"}},
    {"{latency: {table: nan.csv, column: a}}", {"nan.csv:3", "finite number, found 'nan'"}},
    {"{latency: {table: empty.csv, column: a}}", {"empty.csv:3", "finite number, found ''"}},
    {"{latency: {table: few.csv, column: a}}", {"few.csv:3", "no value in column 'b'"}},
    {"{latency: {table: more.csv, column: a}}", {"more.csv:3", "more values than the 1 columns"}},
    {"{latency: {table: half.csv, column: a}}", {"half.csv:3", "not a whole number"}},
    {"{latency: {table: zero.csv, column: a}}", {"zero.csv:3", "'0' is zero"}},
    {"{latency: {table: length.csv, column: a}}", {"length.csv:2", "length: expected a duration"}},
    /* Traces. */
    {"{availability: {trace: t.csv, repeat: yes}}", {"t.csv: column 'client' is missing"}},
    {"{bandwidth: {trace: up.csv, repeat: yes}}", {"up.csv: column 'from' is missing"}},
    {"{bandwidth: {trace: norate.csv, repeat: yes}}", {"norate.csv: column 'uplink' is missing"}},
    {"{availability: {trace: kind.csv, repeat: yes}}", {"kind.csv: column 'up_from'", "time"}},
    {"{availability: {trace: up.csv}}", {"up.csv: the trace may end early, after 50 s"}},
    {"{availability: {trace: up.csv, repeat: no}}", {"may end early"}},
    {"{availability: {trace: up.csv, repeat: yes, assign: in_order}}",
     {"client 2 has no row", "5 clients"}},
    {"{availability: {trace: many.csv, repeat: yes, assign: in_order}}",
     {"many.csv:3: unknown client 7", "the model has 5"}},
    {"{availability: {trace: back.csv, repeat: yes}}", {"back.csv:3", "ends before it begins"}},
    {"{availability: {trace: over.csv, repeat: yes}}",
     {"over.csv:3", "begins before the previous row"}},
    {"{availability: {trace: long.csv, repeat: yes}}", {"long.csv:4", "after the length"}},
    {"{bandwidth: {trace: gap.csv, repeat: yes}}",
     {"gap.csv:4", "the rate is not known for the time before"}},
    {"{bandwidth: {trace: late.csv, repeat: yes}}",
     {"late.csv:3", "the rate is not known for the time before"}},
    {"{bandwidth: {trace: short.csv, repeat: yes}}",
     {"short.csv:3", "the rate of this client is not known after it"}},
};

#define SOURCE "# source: a test, 2024\n"

static const struct {
    const char *name, *text;
} files[] = {
    {"t.csv", SOURCE "uplink [Mbit/s], downlink [Mbit/s], latency [ms]\n1, 2, 3\n4, 5, 6\n"},
    {"nothing.csv", ""},
    {"header.csv", SOURCE "a [ms]"},
    {"source.csv", "a [ms]\n1\n"},
    {"unit.csv", SOURCE "a\n1\n"},
    {"units.csv", SOURCE "a [parsec]\n1\n"},
    {"way.csv", SOURCE "a [kB/s]\n1\n"},
    {"twice.csv", SOURCE "a [ms], a [s]\n1, 2\n"},
    {"noname.csv", SOURCE "[ms]\n1\n"},
    {"negative.csv", SOURCE "a [ms]\n1\n-1\n"},
    {"nan.csv", SOURCE "a [ms]\nnan\n"},
    {"empty.csv", SOURCE "a [ms], b [ms]\n,1\n"},
    {"few.csv", SOURCE "a [ms], b [ms]\n1\n"},
    {"more.csv", SOURCE "a [ms]\n1, 2\n"},
    {"half.csv", SOURCE "a [ms], client\n1, 2.5\n"},
    {"zero.csv", SOURCE "uplink [kB/s]\n0\n"},
    {"length.csv", SOURCE "# length: 5\na [ms]\n1\n"},
    {"bw.csv", SOURCE "client, from [s], until [s], uplink [kB/s]\n0, 0, 10, 1\n"},
    {"up.csv", SOURCE "client, up_from [s], up_until [s]\n0, 0, 10\n1, 20, 50\n"},
    {"many.csv", SOURCE "client, up_from [s], up_until [s]\n7, 0, 10\n"},
    {"kind.csv", SOURCE "client, up_from [ms], up_until [s]\n0, 0, 10\n"},
    {"back.csv", SOURCE "client, up_from [s], up_until [s]\n0, 10, 10\n"},
    {"over.csv", SOURCE "client, up_from [s], up_until [s]\n0, 5, 20\n0, 0, 10\n"},
    {"long.csv", SOURCE "# length: 15s\nclient, up_from [s], up_until [s]\n0, 5, 20\n"},
    {"norate.csv", SOURCE "client, from [s], until [s]\n0, 0, 10\n"},
    {"gap.csv", SOURCE "client, from [s], until [s], uplink [kB/s]\n0, 0, 10, 1\n0, 11, 20, 1\n"},
    {"late.csv", SOURCE "client, from [s], until [s], uplink [kB/s]\n0, 1, 10, 1\n"},
    {"short.csv", SOURCE "client, from [s], until [s], uplink [kB/s]\n0, 0, 10, 1\n1, 0, 20, 1\n"},
};

static void write_files(void)
{
    size_t i;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        world_file(files[i].name, files[i].text);
    }
    world_file("kind.csv", SOURCE "client, up_from [%], up_until [s]\n0, 0, 10\n");
}

TEST(what_makes_no_world_is_refused_with_file_line_and_reason)
{
    struct fl_world *world = NULL;
    struct fl_err err = {0};
    size_t i;
    size_t k;
    int rv;

    write_files();
    for (i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
        rv = world_try(bads[i].yaml, 1, 5, &world, &err);
        ck_assert_msg(rv != FL_OK && rv != FL_ENOMEM && world == NULL, "%s", bads[i].yaml);
        for (k = 0; k < 3 && bads[i].says[k] != NULL; k++) {
            ck_assert_msg(strstr(err.msg, bads[i].says[k]) != NULL, "%s: '%s' does not say '%s'",
                          bads[i].yaml, err.msg, bads[i].says[k]);
        }
    }
}

TEST(a_world_without_clients_is_refused)
{
    struct fl_world *world = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(world_try("lte", 1, 0, &world, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "without clients"));
}

TEST(a_trace_that_ends_before_the_experiment_may_is_refused)
{
    static const char *const yaml = "{availability: {trace: up.csv}}";
    struct fl_world *world = NULL;
    struct fl_err err = {0};

    write_files();
    world_horizon = 51000000;
    ck_assert_int_eq(world_try(yaml, 1, 5, &world, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "ends early, after 50 s"));
    ck_assert_ptr_nonnull(strstr(err.msg, "may take 51 s"));
    world_horizon = 50000000;
    fl_world_free(world_of(yaml, 1, 5));
    world_horizon = 51000000;
    fl_world_free(world_of("{availability: {trace: up.csv, repeat: yes}}", 1, 5));
    world_horizon = 0;
}
