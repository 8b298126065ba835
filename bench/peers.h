#ifndef FL_BENCH_PEERS_H
#define FL_BENCH_PEERS_H

/* What benchmarks of connections share. Server and clients are processes of their own, which tell
   each other through pipes; what fails ends the process with a line. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libfl/base/err.h"
#include "libfl/rpc/call.h"

/* Of each benchmark: "bench/wire". */
extern const char bench_name[];

FL_NORETURN void die(const char *what);
void must(int rv, const char *what);
/* The same where the call says more than its code. */
void must_err(int rv, const struct fl_err *err);

/* As many descriptors as the system allows. */
void peers_open_files(void);

/* `run` in a process of its own, which ends with it. What it writes to `fd` can be read from
 *ret_fd, which the caller closes. */
pid_t peer_start(void (*run)(const void *ctx, int fd), const void *ctx, int *ret_fd);
void peer_send(int fd, const void *data, size_t len);
/* Waits for as many bytes as the peer tells at once; `what` if it ends without. */
void peer_receive(int fd, void *data, size_t len, const char *what);
void peer_kill(pid_t pid);

/* For tables of handlers: each message goes back; the end of a call is nobody's business. */
bool peer_echo(struct fl_call *call, void *ctx, const uint8_t *data, size_t len);
void peer_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status, const char *message);

#endif
