/* The end of a transfer: what is complete, what is fetched as a whole, what is tried again. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/work/transfer_end.h"
#include "tests/lib/suites.h"

#define BYTES 40

/* With `have` of BYTES received; `held`: it is what changed since a held model. */
static struct fl_input received(uint64_t have, bool held)
{
    struct fl_input in = {.name = "model", .bytes = BYTES, .have = have, .data = calloc(1, BYTES)};
    const uint8_t digest[FL_DIGEST_SIZE] = {7};

    ck_assert_ptr_nonnull(in.data);
    in.moves = held;
    fl_input_hold(&in, held ? digest : NULL);
    return in;
}

static const struct {
    enum fl_transfer how;
    uint64_t have;
    bool held;
    enum fl_transfer_next next;
    enum fl_fault fault;
} ends[] = {
    {FL_TRANSFER_DONE, BYTES, false, FL_TRANSFER_COMPLETE, 0},
    {FL_TRANSFER_DONE, BYTES - 1, false, FL_TRANSFER_FAILED, FL_FAULT_PASSING},
    {FL_TRANSFER_DONE, 0, false, FL_TRANSFER_FAILED, FL_FAULT_PASSING},
    {FL_TRANSFER_DONE, 3, true, FL_TRANSFER_COMPLETE, 0}, /* Its end is that of the call. */
    {FL_TRANSFER_DONE, BYTES, true, FL_TRANSFER_COMPLETE, 0},
    {FL_TRANSFER_NOT_HELD, 0, true, FL_TRANSFER_AGAIN, 0},
    {FL_TRANSFER_NOT_HELD, 3, true, FL_TRANSFER_AGAIN, 0},
    {FL_TRANSFER_NOT_HELD, 3, false, FL_TRANSFER_FAILED, FL_FAULT_PASSING},
    {FL_TRANSFER_PAST_END, 3, true, FL_TRANSFER_AGAIN, 0},
    {FL_TRANSFER_PAST_END, 3, false, FL_TRANSFER_FAILED, FL_FAULT_LASTING},
    {FL_TRANSFER_REMOVED, 3, true, FL_TRANSFER_FAILED, FL_FAULT_LASTING},
    {FL_TRANSFER_REMOVED, 3, false, FL_TRANSFER_FAILED, FL_FAULT_LASTING},
    {FL_TRANSFER_BAD, BYTES, true, FL_TRANSFER_AGAIN, 0},
    {FL_TRANSFER_BAD, 3, false, FL_TRANSFER_FAILED, FL_FAULT_PASSING},
    {FL_TRANSFER_BROKEN, 3, true, FL_TRANSFER_FAILED, FL_FAULT_PASSING},
    {FL_TRANSFER_BROKEN, 3, false, FL_TRANSFER_FAILED, FL_FAULT_PASSING},
    /* All bytes, and then no end: complete at the next look, but the call did not say so. */
    {FL_TRANSFER_BROKEN, BYTES, false, FL_TRANSFER_FAILED, FL_FAULT_PASSING},
};

TEST_EACH(each_end_of_a_transfer_has_its_consequence, ARRAY_LEN(ends))
{
    struct fl_input in = received(ends[_i].have, ends[_i].held);
    enum fl_fault fault = FL_FAULT_DIVERGED;
    const char *why = "unset";
    enum fl_transfer_next next = fl_transfer_ended(&in, ends[_i].how, &fault, &why);

    ck_assert_int_eq(next, ends[_i].next);
    if (next == FL_TRANSFER_FAILED) {
        ck_assert_int_eq(fault, ends[_i].fault);
        ck_assert(ends[_i].how == FL_TRANSFER_DONE ? why != NULL : why == NULL);
        ck_assert_uint_eq(in.have, ends[_i].have); /* A retry continues from here. */
    } else {
        ck_assert_int_eq(fault, FL_FAULT_DIVERGED);
        ck_assert_str_eq(why, "unset");
    }
    if (next == FL_TRANSFER_AGAIN) {
        ck_assert(!in.has_held && in.have == 0 && in.data == NULL);
    }
    fl_input_drop(&in);
}

TEST_EACH(the_whole_model_is_asked_for_once, 3)
{
    static const enum fl_transfer how[] = {FL_TRANSFER_NOT_HELD, FL_TRANSFER_PAST_END,
                                           FL_TRANSFER_BAD};
    struct fl_input in = received(3, true);
    enum fl_fault fault = FL_FAULT_PASSING;
    const char *why = NULL;

    ck_assert_int_eq(fl_transfer_ended(&in, how[_i], &fault, &why), FL_TRANSFER_AGAIN);
    ck_assert_int_eq(fl_transfer_ended(&in, how[_i], &fault, &why), FL_TRANSFER_FAILED);
    fl_input_drop(&in);
}
