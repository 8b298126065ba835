#include "tests/lib/identity_rig.h"

#include <check.h>
#include <string.h>

#include "libfl/pki/request.h"

#define FEDERATION "demo"

int64_t rig_identity_now;

void rig_identity_invite(struct rig_identity *rig)
{
    rig->invite.token[FL_TOKEN_SIZE - 1]++;
    rig->bound = false;
}

void rig_identity_setup(struct rig_identity *rig)
{
    struct fl_cert_info info;
    size_t i;

    (void)memset(rig, 0, sizeof(*rig));
    rig_pki_make(&rig->pki, FEDERATION, rig_identity_now != 0 ? rig_identity_now : RIG_PKI_NOW);
    ck_assert(folder_make("identity", rig->state));
    (void)snprintf(rig->dir, sizeof(rig->dir), "%s/identity", rig->state);
    rig->files =
        (struct fl_client_identity_files){.dir = rig->dir, .certificate = "", .key = "", .ca = ""};
    (void)snprintf(rig->invite.addresses[0].host, sizeof(rig->invite.addresses[0].host),
                   "localhost");
    rig->invite.addresses[0].port = 7800;
    rig->invite.n_addresses = 1;
    (void)snprintf(rig->invite.federation, sizeof(rig->invite.federation), FEDERATION);
    fl_chain_info(rig->pki.root, 0, &info);
    (void)memcpy(rig->invite.pin, info.key, sizeof(info.key));
    for (i = 0; i < FL_TOKEN_SIZE; i++) {
        rig->invite.token[i] = (uint8_t)(0xa0 + i);
    }
}

void rig_identity_teardown(struct rig_identity *rig)
{
    fl_wire_chain_done(&rig->chain);
    fl_wire_chain_done(&rig->roots);
    fl_chain_unref(rig->told);
    folder_remove(rig->state);
    rig_pki_free(&rig->pki);
}

const char *rig_identity_path(const struct rig_identity *rig, const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    return path;
}

/* --- the server --- */

static const struct fl_chain *roots_of(const struct rig_identity *rig)
{
    return rig->told != NULL ? rig->told : rig->pki.root;
}

void rig_identity_wire(const struct fl_chain *chain, struct fl_wire_chain *ret)
{
    size_t n = fl_chain_len(chain);
    size_t i;

    fl_wire_chain_done(ret);
    ret->list = calloc(n, sizeof(*ret->list));
    ck_assert_ptr_nonnull(ret->list);
    for (i = 0; i < n; i++) {
        struct fl_buf der;

        fl_buf_init(&der, FL_CERT_MAX);
        ck_assert_int_eq(fl_chain_der(chain, i, &der), FL_OK);
        ck_assert_int_eq(fl_wire_bytes_copy(der.data, der.len, &ret->list[i]), FL_OK);
        fl_buf_done(&der);
    }
    ret->n = n;
}

struct fl_issue rig_identity_issue(const struct rig_identity *rig)
{
    (void)rig;
    return rig_pki_issue(FEDERATION, FL_ROLE_CLIENT, "edge-001", RIG_PKI_NOW, 30);
}

static struct fl_key *key_of(const struct fl_enrolling *enrolling)
{
    struct fl_key *key = NULL;
    struct fl_err err = {0};
    size_t len;
    const uint8_t *der = fl_enrolling_request(enrolling, &len);

    ck_assert_msg(fl_csr_check(der, len, &key, &err) == FL_OK, "%s", err.msg);
    return key;
}

void rig_identity_answer(struct rig_identity *rig, const struct fl_enrolling *enrolling,
                         const struct fl_issue *issue, const struct fl_chain *roots)
{
    struct fl_key *key = key_of(enrolling);
    struct fl_chain *chain = rig_pki_leaf(&rig->pki, key, issue);

    rig_identity_wire(chain, &rig->chain);
    rig_identity_wire(roots, &rig->roots);
    rig->issued++;
    fl_chain_unref(chain);
    fl_key_unref(key);
}

bool rig_identity_answer_join(struct rig_identity *rig, const struct fl_enrolling *enrolling)
{
    struct fl_issue issue = rig_identity_issue(rig);
    struct fl_key *key = key_of(enrolling);
    uint8_t hash[FL_KEY_HASH];
    bool again;

    fl_key_hash(key, hash);
    fl_key_unref(key);
    again = rig->bound && memcmp(hash, rig->bound_key, sizeof(hash)) == 0;
    if (rig->bound && !again) {
        return false;
    }
    if (!again) { /* Else the reply that was lost is given again. */
        rig_identity_answer(rig, enrolling, &issue, roots_of(rig));
    }
    rig->bound = true;
    (void)memcpy(rig->bound_key, hash, sizeof(hash));
    return true;
}

/* --- the whole --- */

int rig_identity_join(struct rig_identity *rig, struct fl_err *err)
{
    struct fl_enrolling *enrolling = NULL;
    int rv = fl_enrolling_join(rig->dir, &rig->invite, "", &enrolling, err);

    if (rv == FL_OK && !rig_identity_answer_join(rig, enrolling)) {
        rv = fl_err_set(err, FL_EREFUSED, "the invitation is bound to another key");
    }
    rv = rv == FL_OK ? fl_enrolling_done(enrolling,
                                         &(struct fl_enrolling_reply){&rig->chain, &rig->roots, 0},
                                         RIG_PKI_NOW, NULL, err)
                     : rv;
    fl_enrolling_free(enrolling);
    return rv;
}

int rig_identity_renew(struct rig_identity *rig, struct fl_err *err)
{
    struct fl_issue issue = rig_identity_issue(rig);
    struct fl_client_identity identity = {.chain = NULL};
    struct fl_enrolling *enrolling = NULL;
    int rv = fl_client_identity_load(&rig->files, &identity, err);

    rv = rv == FL_OK ? fl_enrolling_renew(rig->dir, &identity, &enrolling, err) : rv;
    if (rv == FL_OK) {
        rig_identity_answer(rig, enrolling, &issue, roots_of(rig));
        rv = fl_enrolling_done(enrolling, &(struct fl_enrolling_reply){&rig->chain, &rig->roots, 0},
                               RIG_PKI_NOW, NULL, err);
    }
    fl_enrolling_free(enrolling);
    fl_client_identity_done(&identity);
    return rv;
}
