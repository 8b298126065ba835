#ifndef FL_BENCH_ROUND_SERVER_H
#define FL_BENCH_ROUND_SERVER_H

/* The real fl-serverd that bench/round measures, as a process. */

#include <stddef.h>
#include <sys/types.h>

/* Runs `program config` and waits for its "listening ADDRESS". -1: it did not come. */
pid_t round_server_start(const char *program, const char *config, char *address, size_t size);
/* Its peak resident memory in MB (10^6 bytes), and processor seconds since the start; below 0: not
 * known. */
double round_server_peak_mb(pid_t pid);
double round_server_cpu_s(pid_t pid);
void round_server_stop(pid_t pid);

#endif
