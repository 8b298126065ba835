#ifndef FL_STORE_SPOOL_IMPL_H
#define FL_STORE_SPOOL_IMPL_H

/* Spool files from the inside, for the files of this room only. The format stands in spool_head.c.
 */

#include "server/store/recycled_files.h"
#include "server/store/server_vectors.h"
#include "server/store/store.h"
#include "server/store/store_impl.h"

struct fl__spool_head {
    struct fl_spool_part *parts; /* owned */
    size_t n_parts;
    uint64_t start;    /* first coded byte: length of the header */
    uint64_t bytes;    /* all coded bytes */
    uint64_t upload;   /* which one it is, fl__spool_upload() */
    uint64_t boot;     /* the run of this machine in which it was begun, fl__spool_boot() */
    uint64_t received; /* coded bytes that are there */
    uint64_t hash;     /* of the head, since it was written or read */
};

#define FL__SPOOL_SUFFIX  ".upload"
#define FL__SPOOL_BAD     ".bad" /* behind the name of a quarantined one */
#define FL__SPOOL_BAD_MAX 16

/* As fl_spool_open(); a file that has to be made is one of `spares`, where there is one. */
FL_MUST_CHECK int fl__spool_open(const char *dir, struct fl_recycled *spares, uint64_t round,
                                 uint32_t attempt, const char *client,
                                 const struct fl_spool_part *parts, size_t n_parts,
                                 struct fl_spool **ret, uint64_t *ret_received, struct fl_err *err);
/*
 * After an error of the disk: rename the file, so that no upload is written into it and its blocks
 * are not used again. Its readers find it there (fl__spool_find()). One of a client is kept, and
 * FL__SPOOL_BAD_MAX from one round to the next. Returns `code`; `err`, which holds the error, says
 * so.
 */
int fl__spool_quarantine(const char *path, int code, struct fl_err *err);
/* The descriptor of one, which has the name `path` now; -1: there is none. */
int fl__recycled_take(struct fl_recycled *spares, const char *path);
/* `path` is written by its own client. */
void fl__recycled_keep(struct fl_recycled *spares, const char *path);
/* Path of a client's spool file. FL_EINVAL: not a valid client name. */
FL_MUST_CHECK int fl__spool_path(const char *dir, const char *client, char *out, size_t size,
                                 struct fl_err *err);
/* For reading what may be quarantined. */
FL_MUST_CHECK int fl__spool_find(const char *dir, const char *client, char *out, size_t size,
                                 struct fl_err *err);
/* Copies `parts` and checks them: rising, at least one, sane sizes. */
FL_MUST_CHECK int fl__spool_head_make(const struct fl_spool_part *parts, size_t n,
                                      struct fl__spool_head *ret, struct fl_err *err);
/* Of a valid name. */
uint64_t fl__spool_upload(uint64_t round, uint32_t attempt, const char *client);
/* This run of the machine; 0 where the kernel does not say. */
uint64_t fl__spool_boot(void);
/* Write at the start of `fd`, in one call. */
FL_MUST_CHECK int fl__spool_head_write(int fd, struct fl__spool_head *head);
/* Only how much was received: the rest of the head is there. */
FL_MUST_CHECK int fl__spool_count_write(int fd, const struct fl__spool_head *head);
/* FL_EFORMAT when it is not complete, not ours or of another upload. */
FL_MUST_CHECK int fl__spool_head_read(int fd, uint64_t upload, struct fl__spool_head *ret);
void fl__spool_head_done(struct fl__spool_head *head);
/* All coded bytes are there and what follows them has room in a file of `size` bytes. */
bool fl__spool_whole(const struct fl__spool_head *head, uint64_t size);
/* Length of what follows the coded bytes of a finished file. */
uint64_t fl__spool_tail_size(const struct fl__spool_head *head);
/* The checksums of all coded bytes. */
FL_MUST_CHECK int fl__spool_tail_write(int fd, const struct fl__spool_head *head,
                                       const struct fl__sums *sums);
/* Into `*ret`, owned by the caller. FL_EFORMAT when they are not there, or damaged. */
FL_MUST_CHECK int fl__spool_tail_read(int fd, const struct fl__spool_head *head, uint64_t **ret);

/* Bytes of a file from one descriptor or path, read ahead into a buffer. */
struct fl__ahead {
    const char *path; /* opened for each filling when fd < 0 */
    int fd;
    uint64_t end;         /* nothing is read at or behind it */
    uint64_t base;        /* of the checksums; a block begins there */
    const uint64_t *sums; /* of all from base to end; NULL: not checked */
    bool damaged;         /* bytes were found that are not those that were written */
    int errnum;           /* why the file could not be opened or read; 0: it could */
    bool lent;            /* `data` is all there is, and another's */
    uint8_t *data;        /* owned; taken at the first use */
    size_t cap;
    uint64_t from; /* offset of data[0] in the file */
    size_t len;
};

/*
 * Exactly `len` bytes at `offset` of the file. FL_EFORMAT with `damaged`: they are not what their
 * checksum says, or gone.
 */
FL_MUST_CHECK int fl__ahead_read(struct fl__ahead *a, uint64_t offset, void *out, size_t len);
void fl__ahead_done(struct fl__ahead *a);
/* Over bytes that lie in memory, from offset 0 on; borrows them. */
struct fl__ahead fl__ahead_memory(const void *data, uint64_t len);

/*
 * Decode all parts of an upload once, block by block; nothing of it is kept but its norms, in
 * place of those in `*ret`, which owns them: fl__norms_done(). FL_EFORMAT, FL_ENUMERIC, FL_ERANGE
 * (a norm over `norm_bound`; 0: none) with the unit's name; FL_ENOMEM.
 */
FL_MUST_CHECK int fl__spool_validate(const struct fl__spool_head *head, struct fl__ahead *ahead,
                                     const struct fl_layout *layout, double norm_bound,
                                     struct fl_norms *ret, struct fl_err *err);
void fl__norms_done(struct fl_norms *norms);
/* A reader of what `client` sent, which is `data` and outlives it. */
FL_MUST_CHECK int fl__spool_reader_memory(const char *client, const struct fl__spool_head *head,
                                          const void *data, const struct fl_layout *layout,
                                          struct fl_spool_reader **ret, struct fl_err *err);

/* One coded unit of a file: the context of its fl_codec_reader. */
struct fl__spool_unit {
    struct fl__ahead *ahead;
    uint64_t start;
    uint64_t bytes;
};

/* Bytes that a part can have at most; 0 for an unknown codec. */
uint64_t fl__spool_max_size(const struct fl_layout *layout, const struct fl_spool_part *part);
/* Open a decoder; `unit` must live as long as it is used. FL_EFORMAT: unknown codec. */
FL_MUST_CHECK int fl__spool_unit_open(struct fl__spool_unit *unit, const struct fl_layout *layout,
                                      const struct fl_spool_part *part,
                                      struct fl_codec_decoder *ret);

#endif
