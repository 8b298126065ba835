#ifndef FL_STORE_SPOOL_IMPL_H
#define FL_STORE_SPOOL_IMPL_H

/* Internals of spool files, private to server/store. The file is described in spool_head.c.
 */

#include "libfl/container/block_sums.h"
#include "libfl/container/container.h"
#include "server/store/recycled_files.h"
#include "server/store/store.h"
#include "server/store/store_impl.h"

struct fl__spool_head {
    struct fl_spool_part *parts; /* owned */
    size_t n_parts;
    uint64_t bytes;  /* all coded bytes */
    uint64_t upload; /* id of the upload, fl__spool_upload() */
    uint64_t boot;   /* boot id when it started, fl__spool_boot() */
    /* As in the file, owned: where the coded bytes start (`start`), and how many of them are
     * received (`received`). */
    struct fl_container_head file;
};

#define FL__SPOOL_SUFFIX  ".upload"
#define FL__SPOOL_BAD     ".bad" /* appended to the name of a quarantined file */
#define FL__SPOOL_BAD_MAX 16

/*
 * spool_read.c: after a disk error: rename the file, so that no upload is written into it and its
 * blocks are not reused. Readers still find it (fl__spool_find()). One file for each client is
 * kept, and FL__SPOOL_BAD_MAX from one round to the next. Returns `code`; appends the new name to
 * the message in `err`.
 */
int fl__spool_quarantine(const char *path, int code, struct fl_err *err);
/* Rename a recycled file to `path` and return its descriptor; -1: none available. */
int fl__recycled_take(struct fl_recycled *recycled, const char *path);
/* Remove `path` from the recycled files: its own client writes it. */
void fl__recycled_keep(struct fl_recycled *recycled, const char *path);
/* Path of a client's spool file. FL_EINVAL: not a valid client name. */
FL_MUST_CHECK int fl__spool_path(const char *dir, const char *client, char *out, size_t size,
                                 struct fl_err *err);
/* The same for reading: the quarantined file when there is no other. */
FL_MUST_CHECK int fl__spool_find(const char *dir, const char *client, char *out, size_t size,
                                 struct fl_err *err);
/* Copies `parts` and checks them: ascending, at least one, plausible sizes. */
FL_MUST_CHECK int fl__spool_head_make(const struct fl_spool_part *parts, size_t n,
                                      struct fl__spool_head *ret, struct fl_err *err);
/* The id of an upload; `client` is a valid name. */
uint64_t fl__spool_upload(uint64_t round, uint32_t attempt, const char *client);
/* Hash of the boot id; 0 when the kernel does not provide one. */
uint64_t fl__spool_boot(void);
/* Make `file` from the other members, with nothing received; after a change of one of them. */
FL_MUST_CHECK int fl__spool_head_place(struct fl__spool_head *head);
/* FL_EFORMAT: the header is incomplete, not of this format or of another upload. */
FL_MUST_CHECK int fl__spool_head_read(int fd, uint64_t upload, struct fl__spool_head *ret);
void fl__spool_head_done(struct fl__spool_head *head);
/* Are all coded bytes received, and is a file of `size` bytes long enough for the checksums too? */
bool fl__spool_whole(const struct fl__spool_head *head, uint64_t size);
/* Read-ahead buffer over a descriptor, a path or memory. */
struct fl__ahead {
    const char *path; /* opened for each filling when fd < 0 */
    int fd;
    uint64_t end;         /* end of the readable range */
    uint64_t base;        /* offset of the first checksummed block */
    const uint64_t *sums; /* checksums of base to end; NULL: not checked */
    bool damaged;         /* a read found bytes that differ from their checksum, or are missing */
    int errnum;           /* errno of a failed open or read; 0: none */
    bool lent;            /* `data` is the whole content, borrowed */
    uint8_t *data;        /* owned unless lent; allocated at the first use */
    size_t cap;
    uint64_t from; /* offset of data[0] in the file */
    size_t len;
};

/*
 * Exactly `len` bytes at `offset` of the file. FL_EFORMAT with `damaged`: the bytes do not match
 * their checksum, or are missing.
 */
FL_MUST_CHECK int fl__ahead_read(struct fl__ahead *a, uint64_t offset, void *out, size_t len);
void fl__ahead_done(struct fl__ahead *a);
/* Over bytes in memory, from offset 0; borrows them. */
struct fl__ahead fl__ahead_memory(const void *data, uint64_t len);

/*
 * Decode all sections of an upload once, block by block. Replaces the norms in `*ret`, which owns
 * them: fl__norms_done(). FL_EFORMAT, FL_ENUMERIC, FL_ERANGE (a norm over `norm_bound`; 0: none)
 * with the unit's name; FL_ENOMEM.
 */
FL_MUST_CHECK int fl__spool_validate(const struct fl__spool_head *head, struct fl__ahead *ahead,
                                     const struct fl_layout *layout, double norm_bound,
                                     struct fl_norms *ret, struct fl_err *err);
void fl__norms_done(struct fl_norms *norms);
/* A reader of an upload in memory. Borrows `data`, which must outlive the reader. */
FL_MUST_CHECK int fl__spool_reader_memory(const char *client, const struct fl__spool_head *head,
                                          const void *data, const struct fl_layout *layout,
                                          struct fl_spool_reader **ret, struct fl_err *err);

/* One section of a file: the context of its fl_codec_reader. */
struct fl__spool_unit {
    struct fl__ahead *ahead;
    uint64_t start;
    uint64_t bytes;
};

/* Most bytes of a section; 0 for an unknown codec. */
uint64_t fl__spool_max_size(const struct fl_layout *layout, const struct fl_spool_part *part);
/* Open a decoder; `unit` must outlive it. FL_EFORMAT: unknown codec. */
FL_MUST_CHECK int fl__spool_unit_open(struct fl__spool_unit *unit, const struct fl_layout *layout,
                                      const struct fl_spool_part *part,
                                      struct fl_codec_decoder *ret);

#endif
