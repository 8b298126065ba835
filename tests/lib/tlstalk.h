#ifndef FL_TESTS_TLSTALK_H
#define FL_TESTS_TLSTALK_H

/*
 * A client and a server of a tlsrig joined by a memlink, each with an end (ends.h) that records
 * what happens to it and checks the rules of tls_stream.h.
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

/* What the stream of a side is charged to (TLSRIG_CLIENT, TLSRIG_SERVER); NULL: nothing. */
extern struct fl_account *tlstalk_account[2];

/* A side that is not wanted (a test speaks for it with memlink_inject()) is not started. */
void tlstalk_begin(struct tlstalk *talk, struct tlsrig *rig, bool client, bool server);
void tlstalk_send(struct end *end, const void *data, size_t len);
/* Where what comes goes, of at most `len` bytes. */
void tlstalk_expect(struct end *end, size_t len);
/* Until nothing moves. */
void tlstalk_run(struct tlstalk *talk);
/* Close what is open, and check that each side that was started ended once. */
void tlstalk_end(struct tlstalk *talk);
/* Both shook hands, and are who they are. */
void tlstalk_check_up(const struct tlstalk *talk);
bool tlstalk_resumed(const struct end *end);

#endif
