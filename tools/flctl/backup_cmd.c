/* flctl backup, restore and unmove: work on the server's state folder, without a call to the
 * server. */

#include <stdio.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/store/moved.h"
#include "tools/flctl/flctl.h"

static int backup_failed(const char *what, const struct fl_err *err, int rv)
{
    (void)fprintf(stderr, "flctl: %s: %s%s\n", what, fl_err_text(err, rv),
                  rv == FL_ENOSPC
                      ? ": disk full: free some space (df -h), remove the incomplete target, and "
                        "try again"
                      : "");
    return FL_CTL_FAILED;
}

static void backup_print(const char *what, const struct fl_backup *b)
{
    (void)printf("%s: federation '%s' after round %llu: %llu files, %llu bytes\n", what,
                 b->federation, (unsigned long long)b->committed, (unsigned long long)b->files,
                 (unsigned long long)b->bytes);
    if (b->open_round != 0) {
        (void)printf("round %llu, attempt %u is open, with %llu accepted updates\n",
                     (unsigned long long)b->open_round, b->open_attempt,
                     (unsigned long long)b->accepted);
    }
}

static int backup_make(const struct fl_ctl_backup *o, const char *target)
{
    struct fl_backup b = {.dir = o->state_dir,
                          .target = target,
                          .program = "flctl " PACKAGE_VERSION,
                          .without_keys = o->without_keys,
                          .wall_ms = fl_clock_wall_ms()};
    struct fl_err err = {0};
    int rv = o->moved ? fl_moved_make(&b, &err) : fl_backup_make(&b, &err);

    if (rv != FL_OK) {
        return backup_failed("backup", &err, rv);
    }
    backup_print(target, &b);
    rv = fl_backup_note(o->state_dir, &err);
    if (rv != FL_OK) { /* Of a state folder that is mounted read-only, for example. */
        (void)fprintf(stderr,
                      "flctl: backup: complete, but its time is not noted for monitoring: %s\n",
                      fl_err_text(&err, rv));
    }
    if (o->moved) {
        (void)printf(
            "servers refuse to start from %s now; next, on the other host: flctl --state-dir DIR "
            "restore %s --moved\n",
            o->state_dir, target);
    }
    if (b.keys) {
        (void)printf(
            "the backup contains the keys of the federation: keep it as secret as the server\n");
    }
    return FL_CTL_OK;
}

static int backup_restore(const struct fl_ctl_backup *o, const char *backup)
{
    struct fl_restore r = {.backup = backup, .dir = o->state_dir, .moved = o->moved};
    struct fl_err err = {0};
    int rv = fl_backup_restore(&r, &err);

    if (rv != FL_OK) {
        return backup_failed("restore", &err, rv);
    }
    backup_print(o->state_dir, &r.found);
    (void)printf(
        "%s\n",
        o->moved ? "the federation continues as after a restart: never start the other server again"
                 : "clients repeat the work that they had not delivered; never start the "
                   "other server again");
    return FL_CTL_OK;
}

int fl_ctl_backup(struct fl_ctl_args *args, int n, char **words)
{
    const struct fl_ctl_backup *o = &args->backup;
    struct fl_err err = {0};
    int rv;
    bool makes = strcmp(words[0], "backup") == 0;
    bool undoes = strcmp(words[0], "unmove") == 0;

    if (n != (undoes ? 1 : 2) || o->state_dir == NULL || (undoes && o->moved)) {
        (void)fprintf(stderr, "flctl: expected 'flctl --state-dir DIR %s'\n",
                      strcmp(words[0], "backup") == 0 ? "backup TARGET [--without-keys | --moved]"
                      : strcmp(words[0], "restore") == 0 ? "restore BACKUP [--moved]"
                                                         : "unmove");
        return FL_CTL_USAGE;
    }
    if (o->without_keys && (!makes || o->moved)) {
        (void)fprintf(stderr,
                      "flctl: %s: --without-keys is for backup without --moved: a server "
                      "that moves needs its keys\n",
                      words[0]);
        return FL_CTL_USAGE;
    }
    if (undoes) {
        rv = fl_moved_undo(o->state_dir, &err);
        if (rv != FL_OK) {
            return backup_failed("unmove", &err, rv);
        }
        (void)printf(
            "a server may start from %s again: never start one from the backup it was moved "
            "with\n",
            o->state_dir);
        return FL_CTL_OK;
    }
    return makes ? backup_make(o, words[1]) : backup_restore(o, words[1]);
}
