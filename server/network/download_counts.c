#include "server/network/download_counts.h"

#include <string.h>

#include "server/work/payloads.h"

enum fl_download_kind fl_download_kind_of(const char *payload, bool difference)
{
    if (difference) {
        return FL_DOWNLOAD_DIFFERENCE;
    }
    if (strcmp(payload, FL_PAYLOAD_MODEL) == 0) {
        return FL_DOWNLOAD_MODEL;
    }
    if (strcmp(payload, FL_PAYLOAD_CANDIDATE) == 0) {
        return FL_DOWNLOAD_CANDIDATE;
    }
    return strcmp(payload, FL_PAYLOAD_PERSONAL_MODEL) == 0 ? FL_DOWNLOAD_PERSONAL_MODEL
                                                           : FL_DOWNLOAD_INPUT;
}

void fl_download_counted(struct fl_download_counts *counts, enum fl_download_kind kind,
                         uint64_t sent, uint64_t bytes, bool whole)
{
    bool coded = kind == FL_DOWNLOAD_MODEL || kind == FL_DOWNLOAD_DIFFERENCE ||
                 kind == FL_DOWNLOAD_CANDIDATE; /* The others are sent as float32. */

    if (counts == NULL) {
        return;
    }
    atomic_fetch_add(&counts->sent[kind], sent);
    if (whole) {
        atomic_fetch_add(&counts->full[kind], coded ? counts->model_bytes : bytes);
    }
}
