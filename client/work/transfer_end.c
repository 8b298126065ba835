#include "client/work/transfer_end.h"

enum fl_transfer_next fl_transfer_ended(struct fl_input *input, enum fl_transfer how,
                                        enum fl_fault *ret_fault, const char **ret_why)
{
    if (how == FL_TRANSFER_DONE) {
        fl_input_end(input);
        if (fl_input_is_complete(input)) {
            return FL_TRANSFER_COMPLETE;
        }
    }
    if (input->has_held &&
        (how == FL_TRANSFER_NOT_HELD || how == FL_TRANSFER_PAST_END || how == FL_TRANSFER_BAD))
    {
        fl_input_want_whole(input);
        return FL_TRANSFER_AGAIN;
    }
    *ret_fault = how == FL_TRANSFER_REMOVED || how == FL_TRANSFER_PAST_END ? FL_FAULT_LASTING
                                                                           : FL_FAULT_PASSING;
    *ret_why = how == FL_TRANSFER_DONE ? "the server sent fewer bytes than it announced" : NULL;
    return FL_TRANSFER_FAILED;
}
