#ifndef FL_CONTAINER_CONTAINER_H
#define FL_CONTAINER_CONTAINER_H

/*
 * The one format of the project's own binary files (`fl-data inspect FILE` prints one).
 *
 *   offset  size  what (integers little-endian)
 *   0       8     "FL-FILE1"; the last character is the version of this format
 *   8       8     kind of the file: text, zero padded
 *   16      4     version of the kind: of its fields and sections
 *   20      4     n: number of sections
 *   24      4     flags: FL_CONTAINER_IN_PLACE, FL_CONTAINER_RECORDS
 *   28      4     f: bytes of the fields
 *   32      16 n  for each section its name (8 bytes of text, zero padded) and its bytes (8)
 *   …       f     fields of the kind
 *   …       8     checksum of everything before: of the head
 *   …       8     with FL_CONTAINER_IN_PLACE: bytes received, XOR that checksum; else 0
 *   …             zeros up to a multiple of 4096
 *   start         the sections, one after the other
 *   …       8 b   checksums of the blocks of 16 KiB of each section, its last block shorter
 *   …       8     seal: checksum of these checksums, XOR that of the head
 *
 * The checksum is 64-bit XXH3 (libfl/base/checksum.h), in blocks because files are read in pieces
 * and are large. It finds damage at the speed of memory; against manipulation no digest inside the
 * file would help. Every length is checked against the size of the file before memory is allocated
 * for it.
 *
 * With FL_CONTAINER_IN_PLACE the sections are written while their bytes arrive, perhaps over the
 * bytes of an older file: the count says how many are there, the checksums and the seal follow with
 * the last byte, and old bytes may remain behind. With FL_CONTAINER_RECORDS there are no sections:
 * records are appended behind the head, each with a checksum (struct fl_container_record).
 *
 * Threading: no globals; an object belongs to one thread at a time. Blocking.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written in host byte order");

#define FL_CONTAINER_NAME         8 /* most characters of a kind and of a section's name */
#define FL_CONTAINER_PAGE         4096
#define FL_CONTAINER_MAX_SECTIONS 131072u
#define FL_CONTAINER_MAX_FIELDS   (UINT32_C(16) << 20)

#define FL_CONTAINER_IN_PLACE 1u
#define FL_CONTAINER_RECORDS  2u

/* What a reader and a writer agree on. */
struct fl_container_kind {
    const char *name; /* 1 to FL_CONTAINER_NAME characters */
    uint32_t version;
    uint32_t flags;
    uint32_t max_sections, max_fields; /* at most the limits above */
};

struct fl_container_section {
    char name[FL_CONTAINER_NAME + 1];
    uint64_t bytes;
    uint64_t start; /* offset in the file */
    size_t block;   /* index of its first checksum */
};

struct fl_container_head {
    char kind[FL_CONTAINER_NAME + 1];
    uint32_t version, flags;
    uint8_t *fields; /* owned */
    size_t fields_len;
    struct fl_container_section *sections; /* [n], owned */
    size_t n;
    uint64_t start;    /* of the first section: length of the head */
    uint64_t end;      /* of the last section */
    size_t n_blocks;   /* of all sections */
    uint64_t hash;     /* checksum of the head, as written or read last */
    uint64_t received; /* FL_CONTAINER_IN_PLACE: bytes of the sections that are there */
};

/* A section to write; `data` is NULL where it is written later, in pieces. */
struct fl_container_part {
    const char *name;
    const void *data;
    uint64_t bytes;
};

/* The contents of a file, all borrowed. */
struct fl_container_content {
    const void *fields;
    size_t fields_len;
    const struct fl_container_part *parts;
    size_t n;
};

/* --- heads: for files that their owner opens, writes and reads itself --- */

/* A head in memory; its hash is 0 until it is written. FL_EINVAL: over a limit; FL_ENOMEM. */
FL_MUST_CHECK int fl_container_head_make(const struct fl_container_kind *kind,
                                         const struct fl_container_content *content,
                                         struct fl_container_head *ret);
void fl_container_head_done(struct fl_container_head *head);
/* The whole head as it is in the file: [head->start] bytes, owned; sets `hash`. NULL: no memory. */
uint8_t *fl_container_head_pack(struct fl_container_head *head);
/* Write the head at the start of `fd`, in one call; sets `hash`. */
FL_MUST_CHECK int fl_container_head_write(int fd, struct fl_container_head *head);
/* FL_CONTAINER_IN_PLACE: write only the count of received bytes; the head is written already. */
FL_MUST_CHECK int fl_container_count_write(int fd, const struct fl_container_head *head);
/*
 * Read and check the head of the file `path`, open as `fd`; `kind` NULL: of any kind. FL_EFORMAT:
 * damaged, of another kind, or of an older version; FL_EVERSION: of a later one; `err` says what
 * was expected and found.
 */
FL_MUST_CHECK int fl_container_head_read(int fd, const char *path,
                                         const struct fl_container_kind *kind,
                                         struct fl_container_head *ret, struct fl_err *err);
/* Does the file begin as one of this kind? Nothing else of it is checked. NULL: of any kind. */
bool fl_container_is(int fd, const struct fl_container_kind *kind);
/* Copy the fields; FL_EFORMAT unless they have exactly `size` bytes. */
FL_MUST_CHECK int fl_container_fields(const struct fl_container_head *head, void *out, size_t size);
/* Size of the complete file. */
uint64_t fl_container_size(const struct fl_container_head *head);

/* --- checksums behind the sections --- */

/* Write the checksums [n_blocks] and the seal. */
FL_MUST_CHECK int fl_container_tail_write(int fd, const struct fl_container_head *head,
                                          const uint64_t *sums);
/*
 * Read the checksums and check them by the seal; `*ret` [n_blocks + 1], the last is the seal, is
 * owned, free(). FL_EFORMAT: missing, or damaged.
 */
FL_MUST_CHECK int fl_container_tail_read(int fd, const char *path,
                                         const struct fl_container_head *head, uint64_t **ret,
                                         struct fl_err *err);
/* Only the seal, unchecked: it stands for head and contents. */
FL_MUST_CHECK int fl_container_seal_read(int fd, const struct fl_container_head *head,
                                         uint64_t *ret);

/* --- whole files --- */

/*
 * Replace `path` so that after any crash it holds the old or the new contents (fl_fs_replace()).
 * Nothing is copied together first.
 */
FL_MUST_CHECK int fl_container_replace(const char *path, const struct fl_container_kind *kind,
                                       const struct fl_container_content *content, bool sync,
                                       struct fl_err *err);

/* A file whose sections are written in pieces, published when complete. */
struct fl_container_writer;

/* Create `path`.tmp. Copies what it needs; `data` of the parts is not used. */
FL_MUST_CHECK int fl_container_writer_create(const char *path, const struct fl_container_kind *kind,
                                             const struct fl_container_content *content,
                                             struct fl_container_writer **ret, struct fl_err *err);
/* Append to a section. FL_ERANGE: more than its bytes. */
FL_MUST_CHECK int fl_container_writer_add(struct fl_container_writer *w, size_t section,
                                          const void *data, size_t len, struct fl_err *err);
/* Bytes of a section that are written. */
uint64_t fl_container_writer_at(const struct fl_container_writer *w, size_t section);
/*
 * Write checksums and head, sync when `sync`, and rename. FL_ESTATE: a section is incomplete. Frees
 * the writer; on an error `path` is as before.
 */
FL_MUST_CHECK int fl_container_writer_publish(struct fl_container_writer *w, bool sync,
                                              struct fl_err *err);
/* Remove the temporary file and free the writer; NULL is allowed. */
void fl_container_writer_abandon(struct fl_container_writer *w);

/* A complete file that is open for reading; its head is checked. */
struct fl_container {
    const char *path; /* borrowed */
    int fd;
    struct fl_container_head head;
    uint64_t *sums; /* [head.n_blocks + 1], the last is the seal; owned */
};

/*
 * Opens the file and checks its head, its size and its checksums' seal; no section is read yet.
 * FL_ENOENT, FL_EFORMAT, FL_EVERSION, FL_ENOMEM and errors of the disk. Borrows `path`.
 */
FL_MUST_CHECK int fl_container_open(const char *path, const struct fl_container_kind *kind,
                                    struct fl_container *ret, struct fl_err *err);
/* Read a whole section into `out` and check it; FL_EFORMAT: damaged. */
FL_MUST_CHECK int fl_container_read(const struct fl_container *c, size_t section, void *out,
                                    struct fl_err *err);
void fl_container_close(struct fl_container *c); /* All zero is allowed, after a failed open too. */

/* --- records --- */

/* Head of a record; `len` bytes follow. */
struct fl_container_record {
    uint32_t kind, len;
    uint64_t sum; /* checksum of these bytes, XOR `kind` << 32 */
};

uint64_t fl_container_record_sum(uint32_t kind, const void *data, size_t len);

#endif
