/* The table of the paths of an HTTP port, for docs/http.md. Any thread; no I/O. */
#include "libfl/http/http.h"

static int http_reference_query(struct fl_buf *out, const char *const *query)
{
    size_t i;

    for (i = 0; query != NULL && query[i] != NULL; i++) {
        int rv = fl_buf_printf(out, "%s`%s`", i > 0 ? ", " : "", query[i]);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int http_reference_row(struct fl_buf *out, const struct fl_http_route *r)
{
    int rv = fl_buf_printf(out, "| `%s%s` | ", r->path, r->rest != NULL ? r->rest : "");

    if (rv != FL_OK) {
        return rv;
    }
    rv = http_reference_query(out, r->query);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_printf(out, " | %s%s |\n", r->help, r->open ? "; without the token" : "");
}

int fl_http_reference(struct fl_buf *out, const struct fl_http_route *routes)
{
    const struct fl_http_route *r;
    int rv = fl_buf_printf(out, "| path | query parameters | answer |\n| --- | --- | --- |\n");

    if (rv != FL_OK) {
        return rv;
    }
    for (r = routes; r->path != NULL; r++) {
        rv = http_reference_row(out, r);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}
