#ifndef FL_CLIENT_WORK_SETUP_H
#define FL_CLIENT_WORK_SETUP_H

/*
 * What a server described in Welcome, made usable: the layout, and the policies of this
 * client with their options. It never changes; whatever is fetched, trained, evaluated, coded or
 * pushed holds a reference to the one that it was begun with, and so cannot come to be read by
 * the layout of another.
 *
 * Threading: immutable; references may be taken and given back on any thread.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "client/store/result.h"
#include "libfl/strategy/strategy.h"
#include "libfl/wire/messages.h"

struct fl_setup {
    atomic_uint refs;
    /* As it came. What belongs to one session only (session, limits, heartbeat, wants_offer) is
       that of the first session with this description. */
    struct fl_wire_welcome welcome;
    const struct fl_layout *layout; /* welcome's; not NULL */
    const struct fl_solver_ops *solver;
    struct fl_options *solver_options;
    const struct fl_codec_ops *codec;
    struct fl_options *codec_options;
    const struct fl_upload_ops *upload;
    struct fl_options *upload_options;
    const struct fl_personal_ops *personal;
    struct fl_options *personal_options;
};

/*
 * Takes the contents of `welcome`, on error too. Errors: a slot that this client cannot fill, or
 * a network above our limits, in words for the operator; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_setup_create(struct fl_wire_welcome *welcome, struct fl_setup **ret,
                                  struct fl_err *err);
struct fl_setup *fl_setup_ref(struct fl_setup *setup);
void fl_setup_unref(struct fl_setup *setup); /* NULL is allowed. */

/* Does `welcome` describe the same? After a reconnect it nearly always does. */
bool fl_setup_is(const struct fl_setup *setup, const struct fl_wire_welcome *welcome);
/* Why `result` cannot be reported and sent under this setup; NULL: it can. */
const char *fl_setup_unfit(const struct fl_setup *setup, const struct fl_result *result);

#endif
