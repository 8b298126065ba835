#include "tests/fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* norm.npy for a sample of two channels of three values. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    struct fl_source src;
    size_t i;
    int rv;

    FL_REQUIRE(fl_dataset_create(FL_DATA_U8, 1, (const size_t[]){2, 1, 3}, 3, &ds, &err) == FL_OK);
    fl__source_mem(&src, "norm.npy", data, size);
    rv = fl__norm_read(&src, ds, &err);
    FL_REQUIRE((rv == FL_OK) == (ds->n_norm > 0));
    FL_REQUIRE(rv == FL_OK || (err.code == rv && err.msg[0] != '\0'));
    for (i = 0; i < ds->n_norm; i++) {
        FL_REQUIRE(isfinite(ds->mean[i]) && isfinite(ds->std[i]) && ds->std[i] > 0.0F);
    }
    fl_dataset_free(ds);
    return 0;
}
