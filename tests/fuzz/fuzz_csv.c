#include "tests/fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    struct fl_source src;
    int rv;

    fl__source_mem(&src, "x", data, size);
    rv = fl__csv_read(&src, &ds, &err);
    check_set(rv, ds, &err);
    return 0;
}
