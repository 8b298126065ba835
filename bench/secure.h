#ifndef FL_BENCH_SECURE_H
#define FL_BENCH_SECURE_H

/* Both sides of TLS for a benchmark, with certificates as a federation makes them. Ends the process
   when they cannot be made. */

#include "libfl/tls/tls.h"

struct secure {
    struct fl_tls *server;
    struct fl_tls *client, *nameless; /* with a certificate, without */
    struct fl_stream_filter server_filter, client_filter;
};

void secure_make(struct secure *secure);
void secure_free(struct secure *secure);

#endif
