#ifndef FL_SERVER_HTTP_PAGE_PARTS_H
#define FL_SERVER_HTTP_PAGE_PARTS_H

/*
 * Participations, as the coordinator answers them, in the form that pages show. HTTP thread.
 */

#include "libfl/page/page.h"
#include "server/admin/admin_request.h"

/* Of one round or client on a page; the overview has those of the newest rounds. */
#define FL_PAGE_PARTS        200
#define FL_PAGE_PARTS_NEWEST 1000
#define FL_PAGE_PARTS_ROUNDS 20

/* Zero-initialize it. */
struct fl_page_parts {
    struct fl_wire_participation *list; /* newest first; owned, with what the parts borrow */
    size_t n, cap;
    struct fl_page_part *parts; /* [n] */
};

/* Take the answer to a request for PARTICIPATIONS. FL_ENOMEM; the errors of decoding. Call
   fl_page_parts_done() in any case. */
FL_MUST_CHECK int fl_page_parts_take(struct fl_page_parts *parts, struct fl_admin_request *asked,
                                     struct fl_err *err);
/* Only whole rounds, of the newest FL_PAGE_PARTS_ROUNDS; `cut`: the answer ends within a round. */
void fl_page_parts_newest(struct fl_page_parts *parts, bool cut);
void fl_page_parts_done(struct fl_page_parts *parts);

#endif
