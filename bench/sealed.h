#ifndef FL_BENCH_SEALED_H
#define FL_BENCH_SEALED_H

/*
 * The sending side of a TLS connection whose records are made and dropped: the least processor time
 * that a server spends on bytes that it sends. TLS 1.3, TLS_AES_128_GCM_SHA256, as fl-serverd
 * prefers it. Ends the process when the connection cannot be made.
 */

#include <stddef.h>

struct sealed;

struct sealed *sealed_open(void);
/* In records of 16 KB. */
void sealed_write(struct sealed *s, const void *data, size_t len);
void sealed_close(struct sealed *s);

#endif
