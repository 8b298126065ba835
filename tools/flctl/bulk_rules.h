#ifndef FL_FLCTL_BULK_RULES_H
#define FL_FLCTL_BULK_RULES_H

/* Which clients a verb with a pattern or labels is for. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"
#include "libfl/base/match.h"
#include "libfl/wire/verbs.h"

/* What the command line chooses. */
struct fl_bulk_choice {
    const char *pattern;          /* a name is a pattern of itself */
    const struct fl_pair *labels; /* as fl_labels_match() takes them */
    size_t n_labels;
};

/* A client as the server lists it; borrowed. */
struct fl_bulk_client {
    const char *name;
    const char *state; /* of ClientInfo, or of CertificateInfo */
    const char *role;  /* of CertificateInfo; NULL: not a certificate */
    const struct fl_pair *labels;
    size_t n_labels;
};

/*
 * True when the choice includes the client and the verb changes something for it: releasing is for
 * quarantined clients, enabling for disabled certificates. Certificates of admins are never
 * chosen: they are named one by one.
 */
bool fl_bulk_chosen(const struct fl_bulk_choice *choice, enum fl_verb verb,
                    const struct fl_bulk_client *client);

/* Sorts the names and removes repeated ones; returns how many are left. */
size_t fl_bulk_sort(const char **names, size_t n);
/* "a, b, c and 4 more", with up to `shown` names; returns `out`. */
const char *fl_bulk_text(const char *const *names, size_t n, size_t shown, char *out, size_t size);
/* Splits "KEY=VALUE" into an owned pair; FL_EINVAL, FL_ENOMEM. */
FL_MUST_CHECK int fl_bulk_label(const char *text, struct fl_pair *ret, struct fl_err *err);

#endif
