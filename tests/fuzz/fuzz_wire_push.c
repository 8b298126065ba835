/*
 * PushMessage and Chunk: the hand-made decoder against protobuf-c's. What ours takes, protobuf-c
 * must take and read the same; ours may refuse more (a field number 0, too long, bad headers).
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_chunk(const struct fl_wire_chunk *ours, const Fl__V1__Chunk *theirs)
{
    if (ours->offset != theirs->offset || ours->len != theirs->data.len ||
        (ours->len > 0 && memcmp(ours->data, theirs->data.data, ours->len) != 0))
    {
        abort();
    }
}

static void same_header(const struct fl_wire_push_header *ours, const Fl__V1__PushHeader *theirs)
{
    uint64_t sum = 0;
    size_t i;

    if (ours->round != theirs->round || ours->attempt != theirs->attempt ||
        ours->bytes != theirs->bytes || ours->n_parts != theirs->n_parts)
    {
        abort();
    }
    for (i = 0; i < ours->n_parts; i++) {
        sum += ours->parts[i].bytes;
        if (strcmp(ours->parts[i].payload, theirs->parts[i]->payload) != 0 ||
            !fl_name_valid(ours->parts[i].payload))
        {
            abort();
        }
    }
    if (sum != ours->bytes) {
        abort();
    }
}

static void push(const uint8_t *data, size_t size)
{
    struct fl_wire_push_header header = {0};
    struct fl_wire_chunk chunk = {0};
    struct fl_err err = {0};
    bool is_header = false;
    Fl__V1__PushMessage *theirs;
    int rv = fl_wire_push_decode(data, size, &is_header, &header, &chunk, &err);

    if (rv != FL_OK) {
        return;
    }
    theirs = fl__v1__push_message__unpack(NULL, size, data);
    if (theirs == NULL) {
        abort();
    }
    if (is_header != (theirs->message_case == FL__V1__PUSH_MESSAGE__MESSAGE_HEADER)) {
        abort();
    }
    if (is_header) {
        same_header(&header, theirs->header);
    } else {
        same_chunk(&chunk, theirs->chunk);
    }
    fl_wire_push_header_done(&header);
    fl__v1__push_message__free_unpacked(theirs, NULL);
}

static void alone(const uint8_t *data, size_t size)
{
    struct fl_wire_chunk chunk = {0};
    struct fl_err err = {0};
    Fl__V1__Chunk *theirs;

    if (fl_wire_chunk_decode(data, size, &chunk, &err) != FL_OK) {
        return;
    }
    theirs = fl__v1__chunk__unpack(NULL, size, data);
    if (theirs == NULL) {
        abort();
    }
    same_chunk(&chunk, theirs);
    fl__v1__chunk__free_unpacked(theirs, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    push(data, size);
    alone(data, size);
    return 0;
}
