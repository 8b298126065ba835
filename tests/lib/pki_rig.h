#ifndef FL_LIB_PKI_RIG_H
#define FL_LIB_PKI_RIG_H

/*
 * A federation's certificates for tests, made by libfl/pki itself: root, intermediate, a server's
 * for localhost, 127.0.0.1 and ::1, a client's and an admin's. Serial numbers are 1, 2, 3 … in the
 * order of issuing, or so: no two are alike within one process.
 */

#include <stdint.h>

#include "libfl/base/identity.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/issue.h"
#include "libfl/pki/key.h"
#include "libfl/pki/trust.h"

/* 2026-11-20 18:15:00Z; validities begin ten minutes before what is given as `now`. */
#define RIG_PKI_NOW INT64_C(1795198500)
#define RIG_DAY     INT64_C(86400)

struct rig_pki {
    struct fl_key *root_key, *intermediate_key, *server_key, *client_key, *admin_key;
    struct fl_chain *root;         /* 3650 days */
    struct fl_chain *intermediate; /* 730 days; with the root behind it */
    struct fl_chain *server;       /* 30 days; leaf, intermediate, root */
    struct fl_chain *client;       /* 30 days, "edge-001"; leaf, intermediate */
    struct fl_chain *admin;        /* 30 days, "jane"; leaf, intermediate */
    struct fl_trust *trust;        /* the root; no grace */
};

void rig_pki_make(struct rig_pki *pki, const char *federation, int64_t now);
void rig_pki_free(struct rig_pki *pki);
/* A certificate request valid for `days` from `now`; change it as needed. */
struct fl_issue rig_pki_issue(const char *federation, enum fl_role role, const char *name,
                              int64_t now, int64_t days);
/* A leaf of `pki` for `key`; ends the test when that fails. */
struct fl_chain *rig_pki_leaf(const struct rig_pki *pki, const struct fl_key *key,
                              const struct fl_issue *issue);
struct fl_key *rig_pki_key(void);

#endif
