/* Units coded as topk: see fuzz_codec.h. */
#include "tests/fuzz/fuzz_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(&fl_codec_topk, data, size);
    return 0;
}
