#ifndef FL_SERVER_IDENTITY_FILES_IMPL_H
#define FL_SERVER_IDENTITY_FILES_IMPL_H

/*
 * The files of an authority (authority.h): loading, checking, and creating what is missing or due.
 */

#include "server/identity/authority.h"

#define FL__PATH_MAX 4096

struct fl__files {
    /* NULL: absent. */
    struct fl_chain *root; /* the first signs, the others are trusted */
    struct fl_key *root_key;
    struct fl_chain *next_root, *next_intermediate;
    struct fl_key *next_root_key;
    struct fl_chain *intermediate, *server;
    struct fl_key *intermediate_key, *server_key;
};

/* STATE_DIR/identity, and a file in it. */
FL_MUST_CHECK int fl__files_path(char out[FL__PATH_MAX], const struct fl_authority_conf *conf,
                                 const char *name, struct fl_err *err);
/* FL_ENOENT: no folder; FL_EPERM: it belongs to another user, or other users can access it. */
FL_MUST_CHECK int fl__files_check_folder(const struct fl_authority_conf *conf, struct fl_err *err);
/* Create it, in a folder that must be ours. */
FL_MUST_CHECK int fl__files_make_folder(const struct fl_authority_conf *conf, struct fl_err *err);
/* Read the existing files. A root's key that does not match the root is ignored. */
FL_MUST_CHECK int fl__files_load(const struct fl_authority_conf *conf, struct fl__files *ret,
                                 struct fl_err *err);
void fl__files_done(struct fl__files *files);
/* Free, and so wipe, the root keys: they are read again when something has to be signed. */
void fl__files_drop_root_keys(struct fl__files *files);
/* Save the chain, and replace the one in `*slot` by a reference to it. */
FL_MUST_CHECK int fl__files_put_chain(const struct fl_authority_conf *conf, const char *name,
                                      struct fl_chain *chain, struct fl_chain **slot,
                                      struct fl_err *err);
/* Create a key; its file must not exist. */
FL_MUST_CHECK int fl__files_make_key(const struct fl_authority_conf *conf, const char *name,
                                     struct fl_key **slot, struct fl_err *err);

/* init.c and renew_files.c */

/* Create roots and intermediate where they are missing. */
FL_MUST_CHECK int fl__files_begin(const struct fl_authority_conf *conf, struct fl__files *files,
                                  int64_t now, struct fl_err *err);
/* Create the next root and the intermediate below it, for --renew-root. Idempotent. */
FL_MUST_CHECK int fl__files_begin_root(const struct fl_authority_conf *conf,
                                       struct fl__files *files, int64_t now, struct fl_err *err);
/*
 * Renew what is due; with `init` also certificates that are not valid yet. `*ret_due`: when the
 * next renewal is due, s.
 */
FL_MUST_CHECK int fl__files_renew(const struct fl_authority_conf *conf, struct fl__files *files,
                                  int64_t now, bool init, int64_t *ret_due, struct fl_err *err);
/*
 * A log text when an operator has to provide the root's key, with the date, or "". `out` has
 * FL_ERR_BUF_SIZE bytes.
 */
void fl__files_root_key_warning(const struct fl_authority_conf *conf, const struct fl__files *files,
                                int64_t now, char *out);
/* Until when invitations may use the present pin, s; INT64_MAX: no change of root is planned. */
int64_t fl__files_switch(const struct fl_authority_conf *conf, const struct fl__files *files);
FL_MUST_CHECK int fl__random(const struct fl_authority_conf *conf, void *out, size_t len,
                             struct fl_err *err);
FL_PRINTF(3, 4)
void fl__authority_log(const struct fl_authority_conf *conf, enum fl_log_level level,
                       const char *fmt, ...);

#endif
