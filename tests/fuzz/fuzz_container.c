/*
 * Any bytes as a container file: the head is refused, or it is one that could have been written,
 * writes back the same bytes, and bounds what is read behind it. Its checksum is set right first,
 * so that what it guards is reached; so is the seal. Heads of uploads are also read as those of
 * spool files, whose manifest is in their fields.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/container/block_sums.h"
#include "libfl/container/container.h"
#include "server/store/spool_impl.h"
#include "tests/lib/container_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UPLOAD 7 /* what its name's hash is said to be */

static void set_right(struct fl_buf *file)
{
    const uint64_t upload = UPLOAD;
    uint32_t n = 0;
    size_t at = container_covered(file);

    if (at == 0) {
        return;
    }
    (void)memcpy(&n, file->data + 20, sizeof(n));
    if (memcmp(file->data + 8, "upload", 6) == 0 && at >= 32 + (size_t)16 * n + 8) {
        (void)memcpy(file->data + 32 + (size_t)16 * n, &upload, sizeof(upload));
    }
    container_set_hash(file);
}

/* --- spool files --- */

static void check_upload(int fd, const struct fl_buf *file)
{
    struct fl__spool_head head = {0};
    struct fl__spool_head again = {0};
    struct fl__ahead ahead = {.fd = fd, .cap = FL_CONTAINER_PAGE};
    uint64_t sum = 0;
    uint8_t byte;
    size_t i;

    if (fl__spool_head_read(fd, UPLOAD, &head) != FL_OK) {
        return;
    }
    for (i = 0; i < head.n_parts; i++) {
        FL_REQUIRE(i == 0 || head.parts[i].unit > head.parts[i - 1].unit ||
                   (head.parts[i].unit == head.parts[i - 1].unit &&
                    head.parts[i].payload > head.parts[i - 1].payload));
        sum += head.parts[i].bytes;
    }
    FL_REQUIRE(sum == head.bytes && head.file.received <= head.bytes);
    /* The file may be shorter than it says: then reading is an error, never a crash. */
    ahead.end = head.file.start + head.bytes;
    for (i = 0; i < 3; i++) {
        uint64_t at = head.file.start + i * 1000;
        int rv = fl__ahead_read(&ahead, at, &byte, 1);

        FL_REQUIRE(rv == FL_OK || rv == FL_EFORMAT);
        FL_REQUIRE(rv != FL_OK || byte == file->data[at]);
    }
    FL_REQUIRE(fl__ahead_read(&ahead, ahead.end, &byte, 1) == FL_EFORMAT);
    fl__ahead_done(&ahead);
    /* Made from its manifest it is written and read again as the same. */
    FL_REQUIRE(fl__spool_head_make(head.parts, head.n_parts, &again, NULL) == FL_OK);
    again.upload = head.upload;
    again.boot = head.boot;
    FL_REQUIRE(fl__spool_head_place(&again) == FL_OK);
    FL_REQUIRE(again.file.start == head.file.start && again.file.end == head.file.end);
    fl__spool_head_done(&again);
    fl__spool_head_done(&head);
}

/* --- all files --- */

static void check_head(struct fl_container_head *head, const struct fl_buf *file)
{
    uint64_t end = head->start;
    size_t blocks = 0;
    uint8_t *raw;
    size_t i;

    FL_REQUIRE(head->start <= file->len && head->kind[0] != '\0');
    for (i = 0; i < head->n; i++) {
        FL_REQUIRE(head->sections[i].start == end && head->sections[i].block == blocks);
        FL_REQUIRE(head->sections[i].name[0] != '\0');
        end += head->sections[i].bytes;
        blocks += fl_block_sums_count(head->sections[i].bytes);
    }
    FL_REQUIRE(end == head->end && blocks == head->n_blocks);
    FL_REQUIRE(head->received <= head->end - head->start);
    raw = fl_container_head_pack(head);
    FL_REQUIRE(raw != NULL);
    FL_REQUIRE(memcmp(raw, file->data, (size_t)head->start) == 0);
    free(raw);
}

/* Set the seal right where the file is long enough, and read the checksums. */
static void check_tail(int fd, const struct fl_container_head *head, const struct fl_buf *file)
{
    uint64_t *sums = NULL;
    uint64_t seal;
    int rv;

    rv = fl_container_tail_read(fd, "", head, &sums, NULL);
    FL_REQUIRE(rv == FL_OK || rv == FL_EFORMAT);
    free(sums);
    if ((head->flags & FL_CONTAINER_RECORDS) != 0 || fl_container_size(head) > file->len) {
        return;
    }
    seal = fl_checksum(file->data + head->end, head->n_blocks * sizeof(seal)) ^ head->hash;
    FL_REQUIRE(fl_fs_pwrite(fd, &seal, sizeof(seal), head->end + head->n_blocks * sizeof(seal)) ==
               FL_OK);
    FL_REQUIRE(fl_container_tail_read(fd, "", head, &sums, NULL) == FL_OK);
    FL_REQUIRE(memcmp(sums, file->data + head->end, head->n_blocks * sizeof(*sums)) == 0);
    free(sums);
}

/* Read as a whole file; each section is right or damaged. */
static void check_whole(int fd)
{
    struct fl_container c;
    char path[64];
    size_t i;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fl_container_open(path, NULL, &c, NULL) != FL_OK) {
        return;
    }
    for (i = 0; i < c.head.n; i++) {
        uint8_t *data = malloc((size_t)c.head.sections[i].bytes + 1);
        int rv;

        FL_REQUIRE(data != NULL);
        rv = fl_container_read(&c, i, data, NULL);
        FL_REQUIRE(rv == FL_OK || rv == FL_EFORMAT);
        free(data);
    }
    fl_container_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_container_head head = {.n = 0};
    struct fl_buf file;
    int fd;

    if (size > 200000) {
        return 0;
    }
    fl_buf_init(&file, SIZE_MAX);
    fd = memfd_create("container", MFD_CLOEXEC);
    FL_REQUIRE(fl_buf_add(&file, data, size) == FL_OK && fd >= 0);
    set_right(&file);
    FL_REQUIRE(fl_fs_pwrite(fd, file.data, file.len, 0) == FL_OK);
    if (fl_container_head_read(fd, "", NULL, &head, NULL) == FL_OK) {
        FL_REQUIRE(fl_container_is(fd, NULL));
        check_head(&head, &file);
        check_tail(fd, &head, &file);
        check_whole(fd);
        fl_container_head_done(&head);
        check_upload(fd, &file);
    }
    (void)close(fd);
    fl_buf_done(&file);
    return 0;
}
