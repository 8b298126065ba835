#ifndef FL_BASE_CHECKSUM_H
#define FL_BASE_CHECKSUM_H

/*
 * Checksums of data on disk: 64-bit XXH3, the only user of libxxhash. They detect accidental
 * corruption, at memory speed; against deliberate manipulation use SHA-256 (libfl/model/digest.h).
 * The values do not depend on the machine.
 *
 * Threading: no state but the caller's.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* As text: 16 lower-case hex digits and NUL. */
#define FL_CHECKSUM_TEXT 17

uint64_t fl_checksum(const void *data, size_t len);

/* The same for data in pieces. */
struct fl_summer;
FL_MUST_CHECK int fl_summer_new(struct fl_summer **ret); /* FL_ENOMEM */
void fl_summer_free(struct fl_summer *summer);           /* NULL is allowed. */
/* Reset to the initial state. */
void fl_summer_reset(struct fl_summer *summer);
void fl_summer_add(struct fl_summer *summer, const void *data, size_t len);
/* The checksum of all data added so far; more may follow. */
uint64_t fl_summer_value(const struct fl_summer *summer);

/* Returns `out`. */
const char *fl_checksum_text(uint64_t value, char out[FL_CHECKSUM_TEXT]);

#endif
