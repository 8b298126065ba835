#ifndef FL_TESTS_TLSRIG_H
#define FL_TESTS_TLSRIG_H

/*
 * Keys and certificates of a federation, and the credentials and trust of a server and a client.
 * The clock stands still until a test sets it. Everything derives from a seed except keys and
 * random numbers of TLS.
 */

#include "libfl/pki/cert.h"
#include "libfl/pki/issue.h"
#include "libfl/pki/key.h"
#include "libfl/pki/trust.h"
#include "libfl/tls/tls.h"

/* 2027-01-15. */
#define TLSRIG_NOW  INT64_C(1800000000)
#define TLSRIG_DAY  INT64_C(86400)
#define TLSRIG_HOST "server.example.org"

enum { TLSRIG_CLIENT, TLSRIG_SERVER };

struct tlsrig_ca {
    struct fl_key *root_key, *key;
    struct fl_chain *root;  /* of one */
    struct fl_chain *chain; /* intermediate, root */
    struct fl_trust *trust;
};

struct tlsrig {
    struct tlsrig_ca ca;
    struct fl_key *key[2];
    struct fl_chain *chain[2];
    struct fl_tls *tls[2];
    struct fl_stream_filter filter[2];
    int64_t now;
    unsigned notices[2];
    const char *reason[2];
    char notice[2][700];
    char notice_peer[2][64];
};

struct tlsrig_leaf {
    enum fl_role role;
    const char *name;
    const char *host; /* of a server */
    int64_t not_before, not_after;
    const char *federation; /* NULL: "fed" */
};

void tlsrig_begin(struct tlsrig *rig);
void tlsrig_end(struct tlsrig *rig);
/* A root and its intermediate, valid for ten years around the rig's time. */
void tlsrig_make_ca(struct tlsrig_ca *ca, const char *federation);
void tlsrig_free_ca(struct tlsrig_ca *ca);
struct fl_trust *tlsrig_trust(const struct fl_chain *root, int64_t grace_s);
struct fl_chain *tlsrig_leaf(const struct tlsrig_ca *ca, const struct fl_key *key,
                             const struct tlsrig_leaf *leaf);
/* Replace the credentials (NULL: unchanged) and the trust of one side. */
void tlsrig_renew(struct tlsrig *rig, int side, struct fl_chain *chain, struct fl_trust *trust);
/* The setup of one side, as a template for another. */
struct fl_tls_setup tlsrig_setup(struct tlsrig *rig, int side);
void tlsrig_replace(struct tlsrig *rig, int side, const struct fl_tls_setup *setup);

#endif
