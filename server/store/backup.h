#ifndef FL_STORE_BACKUP_H
#define FL_STORE_BACKUP_H

/*
 * A backup of a state folder, and a state folder made of one (docs/operating.md#backups).
 *
 *   <target>/BACKUP        what it is, for people; its first line says the version of this form
 *   <target>/state/…       the state folder, as a start takes it
 *   <target>/SHA256SUMS    of every other file, as 'sha256sum -c' takes it; written last
 *
 * It is made beside a server that runs, or in a folder that nobody uses, and changes neither: the
 * database is read in one transaction, and the files that go with it are opened before anybody can
 * remove them. They never change once they are published, so what is open is what the records
 * mean. Where a round was committed between the two, both are done again.
 *
 * Threading: blocking, one thread; not the server's process, whose locks on the database it would
 * give up. Errors: as store.h, and those of the disk.
 */

#include "server/store/store.h"

struct fl_backup {
    const char *dir;     /* the state folder */
    const char *target;  /* not there, or empty */
    const char *program; /* "flctl 0.1.0", for people */
    bool without_keys;   /* leave out the folder identity */
    uint64_t wall_ms;
    /* out */
    char federation[FL_NAME_MAX];
    uint64_t committed;  /* the last committed round */
    uint64_t open_round; /* 0: none is open */
    uint32_t open_attempt;
    uint64_t accepted; /* updates of it, all in the backup */
    uint64_t files, bytes;
    bool keys; /* the folder identity is in it */
};

/*
 * FL_EEXIST: the target is not empty. FL_ESTATE: the folder has no federation. FL_EFORMAT,
 * FL_ENOENT: what the records need is damaged or gone, and the message names it. FL_EVERSION: of a
 * newer program. On an error the target may hold files, but no SHA256SUMS: it is no backup.
 */
FL_MUST_CHECK int fl_backup_make(struct fl_backup *backup, struct fl_err *err);

struct fl_restore {
    const char *backup; /* what fl_backup_make() made */
    const char *dir;    /* the state folder: not there, or empty and nobody's */
    /* The server was stopped before the backup and never started since: nothing can have gone on
       elsewhere, so the federation goes on as after a restart (fl_store_note_restored()). */
    bool moved;
    /* out */
    struct fl_backup found; /* as it was made, but for the paths */
};

/*
 * Checks every byte against its checksum before the folder can be started from: the database comes
 * last. The files get the owner of the folder when root restores into one that is there. FL_EEXIST:
 * it is not empty; FL_EINUSE: somebody uses it; FL_EFORMAT: the backup is damaged or not whole.
 */
FL_MUST_CHECK int fl_backup_restore(struct fl_restore *restore, struct fl_err *err);

#endif
