#ifndef FL_STORE_BACKUP_IMPL_H
#define FL_STORE_BACKUP_IMPL_H

/* Shared by the backup_*.c files. */

#include <sys/types.h>

#include "server/store/backup.h"
#include "server/store/store_impl.h"

#define FL__BACKUP_STATE    "state"
#define FL__BACKUP_IDENTITY "identity" /* of the state folder */
#define FL__BACKUP_INFO     "BACKUP"
#define FL__BACKUP_SUMS     "SHA256SUMS"
/* The first line of BACKUP. */
#define FL__BACKUP_FORM "fl backup 1"
/* Longest name of a file, relative to the backup folder. */
#define FL__BACKUP_NAME 512

struct fl__backup_file {
    char name[FL__BACKUP_NAME]; /* "state/models/round-000004.safetensors" */
    int fd;                     /* of the original; -1: not open */
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
 * Copy all bytes of `fd` into a new file and sync it; returns their SHA-256 and number.
 */
FL_MUST_CHECK int fl__backup_copy(int fd, const char *from, const char *to, mode_t mode,
                                  uint8_t sha256[32], uint64_t *ret_bytes, struct fl_err *err);
FL_MUST_CHECK int fl__backup_sum(const char *path, uint8_t sha256[32], uint64_t *ret_bytes,
                                 struct fl_err *err);
FL_MUST_CHECK int fl__backup_write_sums(const char *target, const struct fl__backup_list *files,
                                        struct fl_err *err);
/* FL_EFORMAT: no list, or one with names that lead out of the folder. */
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
/* Read inside the current transaction, if there is one. */
FL_MUST_CHECK int fl__backup_read_needs(struct fl_db *db, struct fl__backup_needs *ret,
                                        struct fl_err *err);
void fl__backup_needs_done(struct fl__backup_needs *needs);
/* Are both equal? */
bool fl__backup_same_needs(const struct fl__backup_needs *a, const struct fl__backup_needs *b);
/*
 * Read and verify the files in `dir`: the checkpoint with its state vectors and personalized
 * models, the accepted updates. FL_ENOENT or an error of fl_models_is_bad(): a file is missing or
 * damaged.
 */
FL_MUST_CHECK int fl__backup_check(const char *dir, const struct fl__backup_needs *needs,
                                   struct fl_err *err);

/* A backup in progress. */
struct fl__making {
    struct fl_backup *b;
    char state[FL__STORE_PATH_MAX]; /* <target>/state */
    struct fl__backup_list files;
    struct fl__backup_needs needs;
};

/* Create with mode 0700; an existing folder is fine. */
FL_MUST_CHECK int fl__making_folder(const char *path, struct fl_err *err);
/* Open a file of the state folder and add it to the list; a missing file is skipped. */
FL_MUST_CHECK int fl__making_open(struct fl__making *m, const char *folder, const char *name,
                                  struct fl_err *err);
/* Copy `f` into the target and close it. */
FL_MUST_CHECK int fl__making_copy(struct fl__making *m, struct fl__backup_file *f,
                                  struct fl_err *err);
/* Create the folder of a file in the target and return the path of the file. */
FL_MUST_CHECK int fl__making_place(const struct fl__making *m, const char *name,
                                   char path[FL__STORE_PATH_MAX], struct fl_err *err);
/* Add a file that is in the target already. */
FL_MUST_CHECK int fl__making_add(struct fl__making *m, const char *name, struct fl_err *err);
/* For a retry: remove the copied files from index `from` of the list on; none of them is open. */
FL_MUST_CHECK int fl__making_forget(struct fl__making *m, size_t from, struct fl_err *err);
/* Copy the folder of keys and certificates, after the records: every client in the records is then
 * known in the copied identities. */
FL_MUST_CHECK int fl__backup_copy_keys(struct fl__making *m, struct fl_err *err);

#endif
