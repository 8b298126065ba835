#include "libfl/import/import_impl.h"
#include "tests/fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte is the window and the stride. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_schema schema = {.kind = FL_IMPORT_TEXT};
    struct fl_import_conf conf;
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    struct fl_source src;
    int rv;

    if (size < 1) {
        return 0;
    }
    fl_import_conf_init(&conf);
    conf.window = (size_t)(data[0] & 15) + 1;
    conf.stride = (size_t)(data[0] >> 4) + 1;
    fl__source_mem(&src, "x", data + 1, size - 1);
    rv = fl__next_char_read(&src, &conf, true, &schema, &ds, &err);
    FL_REQUIRE(rv != FL_OK || ds->classes == schema.labels.n);
    if (rv == FL_OK) {
        ds->classes = fl__dataset_count_classes(ds->y, ds->n); /* as check_set() expects */
    }
    check_set(rv, ds, &err);
    fl_schema_done(&schema);
    return 0;
}
