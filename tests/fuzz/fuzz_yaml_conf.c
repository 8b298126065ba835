/*
 * Any bytes as a configuration file: parsed, put into a table, and every value read back.
 * Checked besides memory: an error has a message, and what a getter gives is in range.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/conf/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const modes[] = {"fast", "safe", NULL};
static const char *const others[] = {"section", NULL};

static const struct fl_opt_spec specs[] = {
    {.name = "flag", .type = FL_OPT_BOOL, .help = "h"},
    {.name = "count", .type = FL_OPT_INT, .def = "5", .min = 1, .max = 10, .help = "h"},
    {.name = "share", .type = FL_OPT_FLOAT, .def = "0", .min = 0, .max = 1, .help = "h"},
    {.name = "size", .type = FL_OPT_BYTES, .def = "1K", .min = 1, .max = 1e12, .help = "h"},
    {.name = "wait", .type = FL_OPT_DURATION, .def = "1s", .min = 1, .max = 1e9, .help = "h"},
    {.name = "title", .type = FL_OPT_STRING, .help = "h"},
    {.name = "mode", .type = FL_OPT_ENUM, .def = "fast", .choices = modes, .help = "h"},
    {.name = "names", .type = FL_OPT_STRING_LIST, .help = "h"},
    {.name = "layers", .type = FL_OPT_INT_LIST, .min = 1, .max = 100, .help = "h"},
    {.name = "labels", .type = FL_OPT_MAP, .help = "h"},
    FL_OPT_END,
};

/* Every value that was taken is in its range and survives its own text form. */
static void check(struct fl_options *o)
{
    static char text[1 << 16];
    size_t i;

    FL_REQUIRE(fl_options_int(o, "count") >= 1 && fl_options_int(o, "count") <= 10);
    FL_REQUIRE(fl_options_float(o, "share") >= 0.0 && fl_options_float(o, "share") <= 1.0);
    FL_REQUIRE(fl_options_bytes(o, "size") >= 1 && fl_options_ms(o, "wait") >= 1);
    for (i = 0; i < fl_options_count(o, "layers"); i++) {
        FL_REQUIRE(fl_options_int_item(o, "layers", i) >= 1);
    }
    for (i = 0; i < fl_options_count(o, "labels"); i++) {
        FL_REQUIRE(fl_options_key(o, "labels", i)[0] != '\0');
    }
    for (i = 0; i < 5; i++) {
        (void)fl_options_text(o, specs[i].name, text, sizeof(text));
        FL_REQUIRE(fl_options_set(o, specs[i].name, text, NULL) == FL_OK);
    }
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
    if (fl_options_create(specs, &o) == FL_OK) {
        rv = fl_conf_apply(doc, fl_conf_root(doc), "", others, o, &err);
        FL_REQUIRE(rv == FL_OK || strncmp(err.msg, "fuzz.yaml:", 10) == 0);
        check(o);
    }
    fl_options_free(o);
    fl_conf_free(doc);
    return 0;
}
