#ifndef FL_BENCH_RAW_H
#define FL_BENCH_RAW_H

/* The raw stream that calls and rounds are measured beside. */

#include <stddef.h>
#include <stdint.h>

struct raw_cost {
    double seconds;
    double cpu_s; /* of both processes */
};

/*
 * What `bytes` take over one TCP connection on loopback, to a process that only reads:
 * blocking sockets, 256 KiB a write, out of the `len` bytes at `data`, again and again. What fails
 * ends the process (peers.h).
 */
struct raw_cost raw_tcp(const uint8_t *data, size_t len, uint64_t bytes);

#endif
