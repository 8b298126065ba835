/*
 * Any bytes as a configuration file: parsed, put into a table, and every value read back.
 * Checked besides memory: an error has a message, what stands in a field is in range, and a tree
 * that is written and parsed is the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/conf/edit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const modes[] = {"fast", "safe", NULL};
static const char *const others[] = {"section", NULL};

struct values {
    bool flag;
    int64_t count;
    double share;
    uint64_t size, wait_ms;
    const char *title;
    enum { FAST, SAFE } mode;
    struct fl_opt_texts names;
    struct fl_opt_ints layers;
    struct fl_opt_map labels;
};

static const struct fl_opt_spec specs[] = {
    {FL_OPT(struct values, BOOL, flag), .help = "h"},
    {FL_OPT(struct values, INT, count), .def = "5", .min = 1, .max = 10, .help = "h"},
    {FL_OPT(struct values, FLOAT, share), .def = "0", .min = 0, .max = 1, .help = "h"},
    {FL_OPT(struct values, BYTES, size), .def = "1K", .min = 1, .max = 1e12, .help = "h"},
    {FL_OPT(struct values, DURATION, wait), .def = "1s", .min = 1, .max = 1e9, .help = "h"},
    {FL_OPT(struct values, STRING, title), .help = "h"},
    {FL_OPT(struct values, ENUM, mode), .def = "fast", .choices = modes, .help = "h"},
    {FL_OPT(struct values, STRING_LIST, names), .help = "h"},
    {FL_OPT(struct values, INT_LIST, layers), .min = 1, .max = 100, .help = "h"},
    {FL_OPT(struct values, MAP, labels), .help = "h"},
    FL_OPT_END_OF(struct values),
};

/* Every value that was taken is in its range and survives its own text form. */
static void check(struct fl_options *o)
{
    static char text[1 << 16];
    const struct values *v = fl_options_values(o);
    size_t i;

    FL_REQUIRE(v->count >= 1 && v->count <= 10);
    FL_REQUIRE(v->share >= 0.0 && v->share <= 1.0);
    FL_REQUIRE(v->size >= 1 && v->wait_ms >= 1);
    FL_REQUIRE(v->title != NULL && (v->mode == FAST || v->mode == SAFE));
    FL_REQUIRE(v->names.n == 0 || v->names.list[v->names.n] == NULL);
    for (i = 0; i < v->layers.n; i++) {
        FL_REQUIRE(v->layers.list[i] >= 1);
    }
    for (i = 0; i < v->labels.n; i++) {
        FL_REQUIRE(v->labels.list[i].key[0] != '\0' && v->labels.list[i].value != NULL);
    }
    for (i = 0; i < 5; i++) {
        (void)fl_options_show(o, &specs[i], text, sizeof(text));
        FL_REQUIRE(fl_options_set(o, specs[i].name, text, NULL) == FL_OK);
    }
}

/* Text that was made of a tree makes that text again, of a copy too. */
static void check_written(const struct fl_conf_doc *doc)
{
    struct fl_buf buf[3];
    struct fl_conf_doc *again = NULL;
    struct fl_conf_doc *copy = NULL;
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < 3; i++) {
        fl_buf_init(&buf[i], 1u << 20);
    }
    if (fl_conf_write(fl_conf_root(doc), &buf[0]) == FL_OK) { /* else it has become too long */
        int rv = fl_conf_parse("again.yaml", buf[0].data, buf[0].len, &again, &err);

        FL_REQUIRE(rv == FL_OK && fl_conf_write(fl_conf_root(again), &buf[1]) == FL_OK);
        FL_REQUIRE(buf[1].len == buf[0].len && memcmp(buf[0].data, buf[1].data, buf[0].len) == 0);
        FL_REQUIRE(fl_conf_copy(doc, &copy) == FL_OK);
        FL_REQUIRE(fl_conf_write(fl_conf_root(copy), &buf[2]) == FL_OK);
        FL_REQUIRE(buf[2].len == buf[0].len && memcmp(buf[0].data, buf[2].data, buf[0].len) == 0);
    }
    for (i = 0; i < 3; i++) {
        fl_buf_done(&buf[i]);
    }
    fl_conf_free(copy);
    fl_conf_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_conf_doc *doc = NULL;
    struct fl_options *o = NULL;
    struct fl_err err = {0};
    int rv = fl_conf_parse("fuzz.yaml", data, size, &doc, &err);

    if (rv != FL_OK) {
        FL_REQUIRE(rv == FL_ECONF && strncmp(err.msg, "fuzz.yaml:", 10) == 0);
        return 0;
    }
    check_written(doc);
    if (fl_options_create(specs, &o) == FL_OK) {
        rv = fl_conf_apply(doc, fl_conf_root(doc), "", others, o, &err);
        FL_REQUIRE(rv == FL_OK || strncmp(err.msg, "fuzz.yaml:", 10) == 0);
        check(o);
    }
    fl_options_free(o);
    fl_conf_free(doc);
    return 0;
}
