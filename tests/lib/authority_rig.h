#ifndef FL_LIB_AUTHORITY_RIG_H
#define FL_LIB_AUTHORITY_RIG_H

/* A seeded certificate authority in its own folder, and hosts that join. Failures end the test.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/rng.h"
#include "libfl/pki/invitation.h"
#include "server/identity/authority.h"
#include "server/identity/invitations.h"
#include "server/identity/joining.h"
#include "server/identity/revocations.h"
#include "tests/lib/folder.h"

/* 2026-11-22 18:15:00Z */
#define RIG_NOW_MS INT64_C(1795371300000)
#define RIG_DAY_MS (INT64_C(86400) * 1000)

struct rig {
    char dir[FOLDER_PATH];
    struct fl_authority_conf conf;
    struct fl_authority *a;
    struct fl_rng rng;
    int64_t now_ms;
    char said[65536]; /* all lines since the last rig_quiet(), each with its end */
    struct fl_err err;
    struct fl_joined joined; /* of the last join or renewal */
};

/* Create the folder and the configuration; no authority yet. */
void rig_begin(struct rig *r, uint64_t seed);
/* Run --init, then open; also after rig_close(). */
void authority_rig_init(struct rig *r);
void rig_open(struct rig *r);
void rig_close(struct rig *r);
void rig_end(struct rig *r);
void rig_quiet(struct rig *r);
/* Assert that the last error contains this text. */
void rig_says(const struct rig *r, const char *part);
void rig_said(const struct rig *r, const char *part);
const char *authority_rig_path(const struct rig *r, const char *name, char out[256]);

/* Create an invitation with the default validity; returns its line. */
void rig_invite(struct rig *r, const char *name, uint32_t uses, struct fl_invite *ret);
struct fl_key *rig_key(void);
/* Join; `address` NULL: 10.0.0.1:1000. The result stays in `joined`, or the error in `err`. */
int rig_join(struct rig *r, const struct fl_invite *invite, const struct fl_key *key,
             const char *name, const char *address);
/* The identity of the last certificate, as verified by the server's trust store. */
struct fl_identity rig_who(struct rig *r);
/* Renew with the last certificate, or that of `who`, for `key`. */
int rig_renew(struct rig *r, const struct fl_identity *who, const struct fl_key *key);
bool rig_revoked(struct rig *r, const struct fl_identity *who, char *why, size_t size);

#endif
