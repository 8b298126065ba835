#ifndef FL_SERVER_IDENTITY_INIT_IMPL_H
#define FL_SERVER_IDENTITY_INIT_IMPL_H

/* What creating (init.c) and renewing (renew_files.c) the certificates of an authority share. */

#include "libfl/pki/issue.h"
#include "server/identity/identity_files_impl.h"

/* A new certificate authority: its file, and what the log calls it. */
struct fl__init_put {
    const char *name, *what;
    int64_t now;
};

struct fl_cert_info fl__init_first(const struct fl_chain *chain);
/* A certificate with a new serial number, valid from now on for `span` seconds. */
FL_MUST_CHECK int fl__init_begin(const struct fl_authority_conf *conf, int64_t now, int64_t span,
                                 struct fl_issue *ret, struct fl_err *err);
/* The certificate of `key`, signed by the first of `root`: it goes into its file and `slot`. */
FL_MUST_CHECK int fl__init_intermediate(const struct fl_authority_conf *conf,
                                        const struct fl__init_put *put, const struct fl_chain *root,
                                        const struct fl_key *root_key, const struct fl_key *key,
                                        struct fl_chain **slot, struct fl_err *err);
/* The configured path of the root's key. */
FL_MUST_CHECK int fl__init_root_key_path(const struct fl_authority_conf *conf,
                                         char out[FL__PATH_MAX], struct fl_err *err);
/* Logs a created certificate, the first of `chain`. */
void fl__init_log(const struct fl_authority_conf *conf, const char *what,
                  const struct fl_chain *chain);

#endif
