#include "tests/lib/memlink.h"

#include <stdlib.h>
#include <string.h>

#define RUNS 64

void (*memlink_theirs)(bool theirs);

static void theirs(bool now)
{
    if (memlink_theirs != NULL) {
        memlink_theirs(now);
    }
}

static struct memend *other(struct memend *end)
{
    return &end->link->end[end == &end->link->end[0]];
}

static void put(struct memend *end, const void *data, size_t len)
{
    if (end->len + len > end->cap) {
        end->cap = 2 * (end->len + len);
        end->wire = realloc(end->wire, end->cap);
        ck_assert_ptr_nonnull(end->wire);
    }
    (void)memcpy(end->wire + end->len, data, len);
    end->len += len;
}

static bool is_open(const struct memend *end)
{
    return end->cbs != NULL && end->opened && !end->closing;
}

/* Pull until there is nothing, or the write takes no more in this turn. */
static void send_output(struct memend *end)
{
    while (is_open(end)) {
        struct iovec iov[RUNS];
        size_t total = 0;
        int n;
        int i;

        theirs(true);
        n = end->cbs->output(end->ctx, iov, RUNS);
        theirs(false);
        if (!is_open(end)) {
            return;
        }
        if (n < 0) {
            end->code = n;
            end->closing = true;
            return;
        }
        if (n == 0) {
            end->finished = end->finished || end->flushing;
            return;
        }
        for (i = 0; i < n; i++) {
            size_t len = iov[i].iov_len;

            if (end->take > 0 && len > end->take - total) {
                len = end->take - total;
            }
            put(end, iov[i].iov_base, len);
            total += len;
        }
        end->sent += total;
        theirs(true);
        end->cbs->sent(end->ctx, total);
        theirs(false);
        if (end->take > 0) {
            end->due = true;
            return;
        }
    }
}

static bool step_due(struct memend *end)
{
    if (!end->its_turn || end->cbs == NULL) {
        return false;
    }
    end->its_turn = false;
    if (!end->opened && !end->closing) {
        end->opened = true; /* Its first turn: it stands. */
        if (end == &end->link->end[MEMLINK_CLIENT]) {
            theirs(true);
            end->cbs->on_open(end->ctx);
            theirs(false);
        }
    }
    if (is_open(end) && end->cbs->on_wake != NULL) {
        theirs(true);
        end->cbs->on_wake(end->ctx);
        theirs(false);
    }
    send_output(end);
    end->turns++;
    return true;
}

/* What is on its way to `end`. */
static bool deliver(struct memend *end)
{
    struct memend *from = other(end);
    size_t len = from->len - from->start;
    uint8_t *data;

    if (!end->opened || end->cbs == NULL || end->paused || end->closing || from->held) {
        return false;
    }
    if (len > from->cut - from->arrived) {
        len = from->cut - from->arrived;
    }
    if (from->first > 0 && from->arrived == 0) {
        len = len < from->first ? len : from->first;
    } else if (from->step > 0 && len > from->step) {
        len = from->step;
    }
    if (len == 0) {
        bool over = from->finished || from->closing || from->arrived == from->cut;

        /* The peer's end: one that flushes goes on until it has none of its own. */
        if (!over || (end->flushing && !end->finished)) {
            return false;
        }
        end->closing = true;
        return true;
    }
    data = malloc(len); /* of its own, so that reading past it is seen */
    ck_assert_ptr_nonnull(data);
    (void)memcpy(data, from->wire + from->start, len);
    if (from->damage >= from->arrived && from->damage < from->arrived + len) {
        data[from->damage - from->arrived] ^= 0x10;
    }
    from->start += len;
    from->arrived += len;
    if (from->start == from->len) {
        from->start = from->len = 0;
    }
    if (!end->flushing) {
        theirs(true);
        end->cbs->on_data(end->ctx, data, len);
        theirs(false);
    }
    free(data);
    return true;
}

static bool finish(struct memend *end)
{
    if (!end->closing || end->closed || end->cbs == NULL) {
        return false;
    }
    end->closed = true;
    theirs(true);
    end->cbs->on_close(end->ctx, end->code, end->code == FL_OK ? "closed" : "mem: failed");
    theirs(false);
    return true;
}

bool memlink_turn_all(struct memlink *const *links, size_t n)
{
    bool moved = false;
    size_t i;

    for (i = 0; i < 2 * n; i++) {
        struct memend *end = &links[i / 2]->end[i % 2];

        end->its_turn = end->due;
        end->due = false;
        end->link->inside = true;
    }
    for (i = 0; i < 2 * n; i++) {
        moved = step_due(&links[i / 2]->end[i % 2]) || moved;
    }
    for (i = 0; i < 2 * n; i++) {
        moved = deliver(&links[i / 2]->end[i % 2]) || moved;
    }
    for (i = 0; i < 2 * n; i++) {
        moved = finish(&links[i / 2]->end[i % 2]) || moved;
        links[i / 2]->inside = false;
    }
    return moved;
}

bool memlink_turn(struct memlink *link)
{
    return memlink_turn_all(&link, 1);
}

void memlink_run(struct memlink *link)
{
    while (memlink_turn(link)) {
    }
}

void memlink_inject(struct memlink *link, int end, const void *data, size_t len)
{
    struct memend *from = other(&link->end[end]);

    put(from, data, len);
    from->sent += len;
}

/* --- the table --- */

static struct memend *of(struct fl_stream *stream)
{
    return (struct memend *)stream;
}

static void mem_start(struct fl_stream *stream, const struct fl_stream_cbs *cbs, void *ctx)
{
    struct memend *end = of(stream);

    ck_assert_ptr_null(end->cbs);
    end->cbs = cbs;
    end->ctx = ctx;
    end->due = true;
}

static void mem_wake(struct fl_stream *stream)
{
    of(stream)->due = true;
}

static void mem_pause(struct fl_stream *stream, bool paused)
{
    of(stream)->paused = paused && !of(stream)->flushing;
}

static void mem_close(struct fl_stream *stream)
{
    of(stream)->closing = true;
}

static void mem_close_flushed(struct fl_stream *stream, uint32_t timeout_ms)
{
    struct memend *end = of(stream);

    (void)timeout_ms;
    end->closing = end->closing || !end->opened;
    end->flushing = true;
    end->paused = false;
    end->due = true;
}

static const char *mem_peer(const struct fl_stream *stream)
{
    const struct memend *end = (const struct memend *)stream;

    return end == &end->link->end[MEMLINK_CLIENT] ? "10.0.0.1:7443" : "10.0.0.2:41234";
}

static const struct fl_stream_ops ops = {.start = mem_start,
                                         .wake = mem_wake,
                                         .pause = mem_pause,
                                         .close = mem_close,
                                         .close_flushed = mem_close_flushed,
                                         .peer = mem_peer};

void memlink_init(struct memlink *link)
{
    int i;

    *link = (struct memlink){0};
    for (i = 0; i < 2; i++) {
        link->end[i] = (struct memend){
            .stream = {.ops = &ops}, .link = link, .damage = SIZE_MAX, .cut = SIZE_MAX};
    }
}

void memlink_done(struct memlink *link)
{
    int i;

    for (i = 0; i < 2; i++) {
        ck_assert(link->end[i].cbs == NULL || link->end[i].closed);
        free(link->end[i].wire);
    }
}
