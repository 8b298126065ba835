#include "libfl/import/import_impl.h"
#include "tests/fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte selects the options, then a table; read again by the schema that it made. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_schema schema = {.kind = FL_IMPORT_TABLE};
    struct fl_import_conf conf;
    struct fl_dataset *ds = NULL;
    struct fl_dataset *again = NULL;
    struct fl_err err = {0};
    struct fl_source src;
    size_t skipped = 0;
    size_t n;
    int rv;

    if (size < 1) {
        return 0;
    }
    fl_import_conf_init(&conf);
    conf.one_hot = (data[0] & 1) != 0;
    conf.regression = (data[0] & 2) != 0;
    conf.missing = (enum fl_missing)(data[0] / 4 % 3);
    fl__source_mem(&src, "x", data + 1, size - 1);
    rv = fl__table_import(&src, &conf, true, &schema, &skipped, &ds, &err);
    if (rv != FL_OK) {
        FL_REQUIRE(ds == NULL && err.code == rv && err.msg[0] != '\0');
        fl_schema_done(&schema);
        return 0;
    }
    n = ds->n;
    FL_REQUIRE(ds->n_targets == fl_schema_targets(&schema) &&
               ds->dim == fl_schema_features(&schema));
    fl_dataset_free(ds);
    fl__source_mem(&src, "x", data + 1, size - 1);
    rv = fl__table_import(&src, &conf, false, &schema, &skipped, &again, &err);
    FL_REQUIRE(rv == FL_OK && again->n == n);
    fl_dataset_free(again);
    fl_schema_done(&schema);
    return 0;
}
