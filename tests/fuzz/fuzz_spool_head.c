/*
 * Any bytes as a spool file: the header is refused, or its manifest is one that could
 * have been written, writes back the same bytes, and bounds what is read behind it.
 * The hash is set right first, so that what it guards is reached.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/rng.h"
#include "server/store/spool_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIXED  24
#define PART   24
#define NAMED  16 /* behind the manifest */
#define UPLOAD 7  /* what its name's hash is said to be */

static void put_hash(uint8_t *file, size_t size)
{
    size_t n = (size_t)file[12] | (size_t)file[13] << 8;
    size_t at = FIXED + PART * n + NAMED;
    uint64_t hash;
    size_t i;

    if (at + 8 <= size) {
        (void)memset(file + at - NAMED, 0, 8);
        file[at - NAMED] = UPLOAD;
        hash = fl_hash64(file, at);
        for (i = 0; i < 8; i++) {
            file[at + i] = (uint8_t)(hash >> (8 * i));
        }
        for (i = 0; i < 8 && at + 16 <= size; i++) { /* the count is kept so */
            file[at + 8 + i] ^= file[at + i];
        }
    }
}

/* Written and read again it is the same. */
static void check_again(int fd, struct fl__spool_head *head)
{
    struct fl__spool_head again = {0};
    size_t i;

    FL_REQUIRE(fl__spool_head_write(fd, head) == FL_OK);
    FL_REQUIRE(fl__spool_head_read(fd, UPLOAD, &again) == FL_OK);
    FL_REQUIRE(again.n_parts == head->n_parts && again.start == head->start);
    FL_REQUIRE(again.bytes == head->bytes && again.received == head->received);
    FL_REQUIRE(again.boot == head->boot && again.upload == head->upload);
    for (i = 0; i < head->n_parts; i++) {
        const struct fl_spool_part *a = &again.parts[i];
        const struct fl_spool_part *b = &head->parts[i];

        FL_REQUIRE(a->unit == b->unit && a->payload == b->payload && a->codec == b->codec &&
                   a->masked == b->masked && a->bytes == b->bytes);
    }
    fl__spool_head_done(&again);
}

static void check(int fd, struct fl__spool_head *head, const uint8_t *file, size_t size)
{
    struct fl__ahead ahead = {.fd = fd, .end = head->start + head->bytes, .cap = 4096};
    uint8_t byte;
    uint64_t sum = 0;
    size_t i;

    FL_REQUIRE(head->start <= size && head->received <= head->bytes);
    for (i = 0; i < head->n_parts; i++) {
        FL_REQUIRE(i == 0 || head->parts[i].unit > head->parts[i - 1].unit ||
                   (head->parts[i].unit == head->parts[i - 1].unit &&
                    head->parts[i].payload > head->parts[i - 1].payload));
        sum += head->parts[i].bytes;
    }
    FL_REQUIRE(sum == head->bytes);
    /* The file may be shorter than it says: then reading is an error, never a crash. */
    for (i = 0; i < 3; i++) {
        int rv = fl__ahead_read(&ahead, head->start + i * 1000, &byte, 1);

        FL_REQUIRE(rv == FL_OK || rv == FL_EFORMAT);
        FL_REQUIRE(rv != FL_OK || byte == file[head->start + i * 1000]);
    }
    FL_REQUIRE(fl__ahead_read(&ahead, ahead.end, &byte, 1) == FL_EFORMAT);
    fl__ahead_done(&ahead);
    check_again(fd, head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl__spool_head head = {0};
    uint8_t *file;
    int fd;

    if (size < FIXED || size > 70000) {
        return 0;
    }
    file = malloc(size);
    fd = memfd_create("spool", MFD_CLOEXEC);
    FL_REQUIRE(file != NULL && fd >= 0);
    (void)memcpy(file, data, size);
    put_hash(file, size);
    FL_REQUIRE(fl_fs_pwrite(fd, file, size, 0) == FL_OK);
    if (fl__spool_head_read(fd, UPLOAD, &head) == FL_OK) {
        check(fd, &head, file, size);
        fl__spool_head_done(&head);
    }
    (void)close(fd);
    free(file);
    return 0;
}
