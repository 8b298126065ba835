/*
 * What a program says: messages cut in two anywhere are those of the whole, and each is parsed as
 * an answer to every kind of task. The first byte says where the cut is, in 256ths.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/program/message.h"
#include "libfl/program/program_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void parse(const uint8_t *text, size_t len)
{
    struct fl_answer answer;
    struct fl_err err = {0};
    unsigned kind;

    for (kind = 0; kind < FL_PERSISTENT_KINDS; kind++) {
        if (fl_answer_parse((const char *)text, len, (enum fl_persistent_kind)kind, &answer,
                            &err) != FL_OK) {
            expect(err.msg[0] != '\0');
            continue;
        }
        expect(answer.type < FL_ANSWER_TYPES);
        expect(memchr(answer.error, '\0', sizeof(answer.error)) != NULL);
        expect(answer.ready.n_parts <= FL_PERSISTENT_PARTS);
        expect(answer.figures.received.correct <= answer.figures.received.samples);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t cut;
    size_t at = 0;

    if (size < 1) {
        return 0;
    }
    cut = (size - 1) * data[0] / 256;
    data++;
    size--;
    for (;;) {
        size_t whole = 0;
        size_t part = 0;
        int rv = fl_framed_parse(data + at, size - at, &whole, NULL);
        int before = cut >= at ? fl_framed_parse(data + at, cut - at, &part, NULL) : rv;

        /* Less than all of it is not yet, or the same. */
        expect(cut < at || before == FL_EAGAIN || (before == rv && part == whole));
        if (rv != FL_OK) {
            expect(rv == FL_EAGAIN || rv == FL_EPROTO);
            return 0;
        }
        expect(whole > 0 && whole <= size - at - FL_FRAMED_HEAD);
        parse(data + at + FL_FRAMED_HEAD, whole);
        at += FL_FRAMED_HEAD + whole;
    }
}
