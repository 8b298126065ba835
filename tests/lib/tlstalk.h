#ifndef FL_TESTS_TLSTALK_H
#define FL_TESTS_TLSTALK_H

/*
 * A client and a server of a tlsrig joined by a memlink, each with an end (ends.h) that records its
 * callbacks and checks the rules of tls_stream.h.
 */

#include "libfl/base/budget.h"
#include "tests/lib/ends.h"
#include "tests/lib/memlink.h"
#include "tests/lib/tlsrig.h"

struct tlstalk {
    struct world world;
    struct memlink link;
    struct end *client, *server;
};

/* Memory account of each side's stream (TLSRIG_CLIENT, TLSRIG_SERVER); NULL: none. */
extern struct fl_account *tlstalk_account[2];

/* An unwanted side is not started (a test plays it with memlink_inject()). */
void tlstalk_begin(struct tlstalk *talk, struct tlsrig *rig, bool client, bool server);
void tlstalk_send(struct end *end, const void *data, size_t len);
/* Buffer for received data, of at most `len` bytes. */
void tlstalk_expect(struct end *end, size_t len);
/* Until nothing moves. */
void tlstalk_run(struct tlstalk *talk);
/* Close what is open, and check that each side that was started ended once. */
void tlstalk_end(struct tlstalk *talk);
/* Assert that both completed the handshake with the expected identities. */
void tlstalk_check_up(const struct tlstalk *talk);
bool tlstalk_resumed(const struct end *end);

#endif
