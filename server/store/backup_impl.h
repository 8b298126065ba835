#ifndef FL_STORE_BACKUP_IMPL_H
#define FL_STORE_BACKUP_IMPL_H

/* Shared by backup.c, backup_files.c, backup_check.c, backup_restore.c. */

#include <sys/types.h>

#include "server/store/backup.h"
#include "server/store/store_impl.h"

#define FL__BACKUP_STATE    "state"
#define FL__BACKUP_IDENTITY "identity" /* of the state folder */
#define FL__BACKUP_INFO     "BACKUP"
#define FL__BACKUP_SUMS     "SHA256SUMS"
/* The first line of BACKUP. */
#define FL__BACKUP_FORM "fl backup 1"
/* Names of files in a backup, from its folder on. */
#define FL__BACKUP_NAME 512

struct fl__backup_file {
    char name[FL__BACKUP_NAME]; /* "state/models/round-000004.safetensors" */
    int fd;                     /* of the original; -1: not open (any more) */
    uint8_t sha256[32];
};

struct fl__backup_list {
    struct fl__backup_file *list;
    size_t n, cap;
};

FL_MUST_CHECK int fl__backup_add(struct fl__backup_list *files, const char *name,
                                 struct fl__backup_file **ret, struct fl_err *err);
void fl__backup_list_done(struct fl__backup_list *files);
/*
 * The bytes of `fd` from its beginning on into a new file, synced, with their SHA-256 and their
 * number.
 */
FL_MUST_CHECK int fl__backup_copy(int fd, const char *from, const char *to, mode_t mode,
                                  uint8_t sha256[32], uint64_t *ret_bytes, struct fl_err *err);
FL_MUST_CHECK int fl__backup_sum(const char *path, uint8_t sha256[32], uint64_t *ret_bytes,
                                 struct fl_err *err);
FL_MUST_CHECK int fl__backup_write_sums(const char *target, const struct fl__backup_list *files,
                                        struct fl_err *err);
/* FL_EFORMAT: no list, or one with names that do not stay in their folder. */
FL_MUST_CHECK int fl__backup_read_sums(const char *target, struct fl__backup_list *ret,
                                       struct fl_err *err);
/* Not there, or a folder that holds nothing but `but` (NULL: nothing). FL_EEXIST. */
FL_MUST_CHECK int fl__backup_check_empty(const char *dir, const char *but, struct fl_err *err);

/* What the records of a state folder need. */
struct fl__backup_needs {
    char federation[FL_NAME_MAX];
    char id[FL_STORE_ID_TEXT];
    uint64_t committed, open_round; /* 0: none is open */
    uint32_t open_attempt;
    uint64_t kept_since;           /* fl_generation.kept_since */
    char (*accepted)[FL_NAME_MAX]; /* owned: clients whose updates of the open attempt are here */
    size_t n_accepted;
};
/* In the transaction that runs, if one does. */
FL_MUST_CHECK int fl__backup_read_needs(struct fl_db *db, struct fl__backup_needs *ret,
                                        struct fl_err *err);
void fl__backup_needs_done(struct fl__backup_needs *needs);
/* Do they need the same? */
bool fl__backup_same_needs(const struct fl__backup_needs *a, const struct fl__backup_needs *b);
/*
 * Read what of it lies in `dir`: the checkpoint with its vectors and mixtures, accepted updates.
 * FL_ENOENT, or as fl_models_is_bad(): it is not whole.
 */
FL_MUST_CHECK int fl__backup_check(const char *dir, const struct fl__backup_needs *needs,
                                   struct fl_err *err);

/* A backup on its way. */
struct fl__making {
    struct fl_backup *b;
    char state[FL__STORE_PATH_MAX]; /* <target>/state */
    struct fl__backup_list files;
    struct fl__backup_needs needs;
};

FL_MUST_CHECK int fl__making_join(char out[FL__STORE_PATH_MAX], const char *a, const char *b,
                                  struct fl_err *err);
/* Mode 0700; one that is there is fine. */
FL_MUST_CHECK int fl__making_folder(const char *path, struct fl_err *err);
/* Add a file of the state folder to the list, open; one that is gone is left out. */
FL_MUST_CHECK int fl__making_open(struct fl__making *m, const char *folder, const char *name,
                                  struct fl_err *err);
/* Into the target; closes it. */
FL_MUST_CHECK int fl__making_copy(struct fl__making *m, struct fl__backup_file *f,
                                  struct fl_err *err);
/* The folder of a file in the target is made; its path. */
FL_MUST_CHECK int fl__making_place(const struct fl__making *m, const char *name,
                                   char path[FL__STORE_PATH_MAX], struct fl_err *err);
/* Add a file that was written into the target already. */
FL_MUST_CHECK int fl__making_add(struct fl__making *m, const char *name, struct fl_err *err);
/* For another try: remove what was copied, none of it is open, from that place of the list on. */
FL_MUST_CHECK int fl__making_forget(struct fl__making *m, size_t from, struct fl_err *err);
/* After the records, so that nobody is in them who is not known here. */
FL_MUST_CHECK int fl__backup_copy_keys(struct fl__making *m, struct fl_err *err);

#endif
