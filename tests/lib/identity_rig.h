#ifndef FL_LIB_IDENTITY_RIG_H
#define FL_LIB_IDENTITY_RIG_H

/*
 * The folder of a client's identity and the server that gives it certificates, without a network:
 * invitations that are bound to the first key that used them, replies as messages carry them.
 */

#include "client/identity/client_identity.h"
#include "client/identity/enrolling.h"
#include "libfl/wire/wire_identity.h"
#include "tests/lib/folder.h"
#include "tests/lib/pki_rig.h"

struct rig_identity {
    struct rig_pki pki;
    char state[FOLDER_PATH];
    char dir[FOLDER_PATH + 16]; /* state/identity */
    struct fl_client_identity_files files;
    struct fl_invite invite;
    struct fl_wire_chain chain, roots; /* the last reply, freed with the next */
    /* The key that the invitation is bound to, once it was used. */
    bool bound;
    uint8_t bound_key[FL_KEY_HASH];
    unsigned issued;       /* certificates */
    struct fl_chain *told; /* the roots of replies; NULL: that of `pki` */
};

/* Authorities begin ten minutes before it; 0: RIG_PKI_NOW. */
extern int64_t rig_identity_now;

void rig_identity_setup(struct rig_identity *rig);
void rig_identity_teardown(struct rig_identity *rig);

/* Another token. */
void rig_identity_invite(struct rig_identity *rig);
/* As the server's Join: false when the invitation is bound to another key. */
bool rig_identity_answer_join(struct rig_identity *rig, const struct fl_enrolling *enrolling);
/* A certificate as `issue` has it (its dates too) for the key of the request, and these roots. */
void rig_identity_answer(struct rig_identity *rig, const struct fl_enrolling *enrolling,
                         const struct fl_issue *issue, const struct fl_chain *roots);
/* As a message carries it; what `ret` held is freed. */
void rig_identity_wire(const struct fl_chain *chain, struct fl_wire_chain *ret);
/* What `issue` is like for the client edge-001. */
struct fl_issue rig_identity_issue(const struct rig_identity *rig);

/* Begin, answer, done; what went wrong. */
int rig_identity_join(struct rig_identity *rig, struct fl_err *err);
int rig_identity_renew(struct rig_identity *rig, struct fl_err *err);

/* A file of the folder, as a path that the next call overwrites. */
const char *rig_identity_path(const struct rig_identity *rig, const char *name);

#endif
