#include "libfl/base/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>
/*
 * Distributions build libxxhash for baseline x86-64. These names select the widest instruction set
 * of the machine at run time, several times as fast for data in pieces.
 */
#ifdef HAVE_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

/* The XXH3 state needs a special alignment, which its allocator provides. */
struct fl_summer;

static XXH3_state_t *state_of(struct fl_summer *summer)
{
    return (XXH3_state_t *)(void *)summer;
}

uint64_t fl_checksum(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}

int fl_summer_new(struct fl_summer **ret)
{
    XXH3_state_t *state = XXH3_createState();

    if (state == NULL) {
        return FL_ENOMEM;
    }
    *ret = (struct fl_summer *)(void *)state;
    fl_summer_reset(*ret);
    return FL_OK;
}

void fl_summer_free(struct fl_summer *summer)
{
    (void)XXH3_freeState(state_of(summer));
}

void fl_summer_reset(struct fl_summer *summer)
{
    (void)XXH3_64bits_reset(state_of(summer)); /* Fails only for a NULL state. */
}

void fl_summer_add(struct fl_summer *summer, const void *data, size_t len)
{
    if (len > 0) {
        (void)XXH3_64bits_update(state_of(summer), data, len);
    }
}

uint64_t fl_summer_value(const struct fl_summer *summer)
{
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)summer);
}

const char *fl_checksum_text(uint64_t value, char out[FL_CHECKSUM_TEXT])
{
    (void)snprintf(out, FL_CHECKSUM_TEXT, "%016" PRIx64, value);
    return out;
}
