/*
 * The streaming parser of gRPC messages against one that sees the whole input: the same
 * messages, whatever the cuts. The first byte is the length of the list of cuts that
 * follows; each byte of it is the length of a run.
 */
#include <stdint.h>
#include <stdlib.h>

#include "libfl/rpc/frame.h"

#define MAX_MESSAGES 64

struct message {
    uint8_t flags;
    uint32_t len;
    uint64_t hash;
};

struct result {
    struct message messages[MAX_MESSAGES];
    size_t n;
    bool at_boundary;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

static uint64_t hash(uint64_t h, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        h = (h ^ data[i]) * UINT64_C(1099511628211);
    }
    return h;
}

static void add(struct result *r, struct message m)
{
    if (r->n < MAX_MESSAGES) {
        r->messages[r->n] = m;
    }
    r->n++;
}

static void parse_whole(const uint8_t *data, size_t size, struct result *ret)
{
    size_t at = 0;

    while (size - at >= 5) {
        struct message m = {.flags = data[at]};

        for (int i = 1; i < 5; i++) {
            m.len = m.len << 8 | data[at + (size_t)i];
        }
        if (size - at - 5 < m.len) {
            break;
        }
        m.hash = hash(1, data + at + 5, m.len);
        at += 5 + (size_t)m.len;
        add(ret, m);
    }
    ret->at_boundary = at == size;
}

static void feed(struct fl_frame *frame, struct message *m, const uint8_t *data, size_t len,
                 struct result *ret)
{
    size_t at = 0;

    for (;;) {
        size_t used = 0;
        enum fl_frame_event event = fl_frame_next(frame, data + at, len - at, &used);

        expect(used <= len - at);
        switch (event) {
        case FL_FRAME_MORE:
            expect(at + used == len);
            return;
        case FL_FRAME_HEAD:
            *m = (struct message){.flags = frame->flags, .len = frame->len, .hash = 1};
            break;
        case FL_FRAME_BODY:
            expect(used > 0);
            m->hash = hash(m->hash, data + at, used);
            break;
        case FL_FRAME_END:
            expect(used == 0);
            add(ret, *m);
            break;
        }
        at += used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result whole = {.n = 0};
    struct result parts = {.n = 0};
    struct fl_frame frame = {0};
    struct message m = {0};
    size_t n_cuts;
    const uint8_t *cuts;
    size_t at = 0;

    if (size < 1 || size - 1 < data[0]) {
        return 0;
    }
    n_cuts = data[0];
    cuts = data + 1;
    data += 1 + n_cuts;
    size -= 1 + n_cuts;
    parse_whole(data, size, &whole);
    for (size_t i = 0; at < size; i++) {
        size_t len = i < n_cuts ? cuts[i] : size - at;

        len = len < size - at ? len : size - at;
        feed(&frame, &m, data + at, len, &parts);
        at += len;
    }
    expect(parts.n == whole.n);
    expect(fl_frame_at_boundary(&frame) == whole.at_boundary);
    for (size_t i = 0; i < whole.n && i < MAX_MESSAGES; i++) {
        expect(parts.messages[i].flags == whole.messages[i].flags);
        expect(parts.messages[i].len == whole.messages[i].len);
        expect(parts.messages[i].hash == whole.messages[i].hash);
    }
    return 0;
}
