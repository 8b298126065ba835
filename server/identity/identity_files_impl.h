#ifndef FL_SERVER_IDENTITY_FILES_IMPL_H
#define FL_SERVER_IDENTITY_FILES_IMPL_H

/* The files of an authority (authority.h): what there is, and what has to be made anew. */

#include "server/identity/authority.h"

#define FL__PATH_MAX 4096

struct fl__files {
    /* NULL: not there. */
    struct fl_chain *root; /* the first signs, the others are believed */
    struct fl_key *root_key;
    struct fl_chain *next_root, *next_intermediate;
    struct fl_key *next_root_key;
    struct fl_chain *intermediate, *server;
    struct fl_key *intermediate_key, *server_key;
};

/* STATE_DIR/identity, and a file in it. */
FL_MUST_CHECK int fl__files_path(char out[FL__PATH_MAX], const struct fl_authority_conf *conf,
                                 const char *name, struct fl_err *err);
/* FL_ENOENT: no folder; FL_EPERM: somebody else's, or others may look into it. */
FL_MUST_CHECK int fl__files_check_folder(const struct fl_authority_conf *conf, struct fl_err *err);
/* Make it, in a folder that has to be ours. */
FL_MUST_CHECK int fl__files_make_folder(const struct fl_authority_conf *conf, struct fl_err *err);
/* Read what there is. A root's key that is not that of the root is not there. */
FL_MUST_CHECK int fl__files_load(const struct fl_authority_conf *conf, struct fl__files *ret,
                                 struct fl_err *err);
void fl__files_done(struct fl__files *files);
/* Free, and so wipe, the keys of roots: they are read again when something has to be signed. */
void fl__files_drop_root_keys(struct fl__files *files);
/* Save, and keep a reference in `*slot` instead of what is there. */
FL_MUST_CHECK int fl__files_put_chain(const struct fl_authority_conf *conf, const char *name,
                                      struct fl_chain *chain, struct fl_chain **slot,
                                      struct fl_err *err);
/* A new key, which must not be there. */
FL_MUST_CHECK int fl__files_make_key(const struct fl_authority_conf *conf, const char *name,
                                     struct fl_key **slot, struct fl_err *err);

/* init.c */

/* Roots and intermediate from nothing, where they are missing. */
FL_MUST_CHECK int fl__files_begin(const struct fl_authority_conf *conf, struct fl__files *files,
                                  int64_t now, struct fl_err *err);
/* Renew what is due; with `init` what has not begun, too. `*ret_due`: when the next thing is, s. */
FL_MUST_CHECK int fl__files_renew(const struct fl_authority_conf *conf, struct fl__files *files,
                                  int64_t now, bool init, int64_t *ret_due, struct fl_err *err);
/*
 * Does an operator have to bring the root's key, and by when? A text for the log, or "". `out` has
 * FL_ERR_BUF_SIZE bytes.
 */
void fl__files_wanted(const struct fl_authority_conf *conf, const struct fl__files *files,
                      int64_t now, char *out);
/* The last moment for invitations with the present pin, s; INT64_MAX: no change is coming. */
int64_t fl__files_switch(const struct fl_authority_conf *conf, const struct fl__files *files);
FL_MUST_CHECK int fl__random(const struct fl_authority_conf *conf, void *out, size_t len,
                             struct fl_err *err);
FL_PRINTF(3, 4)
void fl__say(const struct fl_authority_conf *conf, enum fl_log_level level, const char *fmt, ...);

#endif
