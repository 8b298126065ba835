#ifndef FL_STORE_BACKUP_H
#define FL_STORE_BACKUP_H

/*
 * Backing up a state folder, and restoring one (docs/operating.md#backups).
 *
 *   <target>/BACKUP        description for operators; its first line is the format version
 *   <target>/state/…       the state folder, ready for a start
 *   <target>/SHA256SUMS    checksums of all other files, for 'sha256sum -c'; written last
 *
 * A backup can be made while the server runs or is stopped, and changes nothing in the state folder
 * but the note of fl_backup_note(): the database is read in one transaction, and the files that it
 * refers to are opened inside it. Published files never change, so an open file is the one that the
 * records refer to. When a round was committed in between and a file is missing, both steps are
 * repeated.
 *
 * Threading: blocking, one thread; not inside the server process, as closing the database would
 * release the server's locks on it. Errors: as store.h, and those of the disk.
 */

#include "server/store/store.h"

struct fl_backup {
    const char *dir;     /* the state folder */
    const char *target;  /* missing or empty */
    const char *program; /* "flctl 0.1.0", for people */
    bool without_keys;   /* leave out the folder identity */
    uint64_t wall_ms;
    /* out */
    char federation[FL_NAME_MAX];
    uint64_t committed;  /* the last committed round */
    uint64_t open_round; /* 0: none is open */
    uint32_t open_attempt;
    uint64_t accepted; /* accepted updates of the open round, all in the backup */
    uint64_t files, bytes;
    bool keys; /* the folder identity is in it */
};

/*
 * FL_EEXIST: the target is not empty. FL_ESTATE: the folder has no federation. FL_EFORMAT,
 * FL_ENOENT: a file that the records need is damaged or missing, and the message names it.
 * FL_EVERSION: written by a newer program. On an error the target may hold files, but no
 * SHA256SUMS: it is not a valid backup.
 */
FL_MUST_CHECK int fl_backup_make(struct fl_backup *backup, struct fl_err *err);

/*
 * Note in the state folder, in the file backup.made, that a backup is complete; its time is for
 * monitoring and nothing depends on it.
 */
FL_MUST_CHECK int fl_backup_note(const char *dir, struct fl_err *err);
/* When that was last done, ms since 1970; 0: never. */
uint64_t fl_backup_last_ms(const char *dir);

struct fl_restore {
    const char *backup; /* folder written by fl_backup_make() */
    const char *dir;    /* the state folder: missing, or empty and not in use */
    /* The server was stopped before the backup and never started since, so the federation continues
     * as after a restart, without a restore note (fl_store_carry_restored()). */
    bool moved;
    /* out */
    struct fl_backup found; /* the values of the backup, except the paths */
};

/*
 * Checks every byte against its checksum before a server can start from the folder: the database is
 * published last. When root restores into an existing folder, the files get the owner of that
 * folder. FL_EEXIST: it is not empty; FL_EINUSE: it is in use; FL_EFORMAT: the backup is damaged or
 * incomplete.
 */
FL_MUST_CHECK int fl_backup_restore(struct fl_restore *restore, struct fl_err *err);

#endif
