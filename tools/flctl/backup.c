/* flctl backup and restore: no call to a server, but its state folder. */

#include <stdio.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/store/backup.h"
#include "tools/flctl/flctl.h"

static int failed(const char *what, const struct fl_err *err, int rv)
{
    (void)fprintf(stderr, "flctl: %s: %s%s\n", what, fl_err_text(err, rv),
                  rv == FL_ENOSPC ? ": make room there (df -h), remove what this began, and do it "
                                    "again: it is not whole"
                                  : "");
    return FL_CTL_FAILED;
}

static void say(const char *what, const struct fl_backup *b)
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

static int make(const struct fl_ctl_backup *o, const char *target)
{
    struct fl_backup b = {.dir = o->state_dir,
                          .target = target,
                          .program = "flctl " PACKAGE_VERSION,
                          .without_keys = o->without_keys,
                          .wall_ms = fl_clock_wall_ms()};
    struct fl_err err = {0};
    int rv = fl_backup_make(&b, &err);

    if (rv != FL_OK) {
        return failed("backup", &err, rv);
    }
    say(target, &b);
    if (b.keys) {
        (void)printf("it holds the keys of the federation: keep it as secret as the server\n");
    }
    return FL_CTL_OK;
}

static int restore(const struct fl_ctl_backup *o, const char *backup)
{
    struct fl_restore r = {.backup = backup, .dir = o->state_dir, .moved = o->moved};
    struct fl_err err = {0};
    int rv = fl_backup_restore(&r, &err);

    if (rv != FL_OK) {
        return failed("restore", &err, rv);
    }
    say(o->state_dir, &r.found);
    (void)printf("%s\n", o->moved
                             ? "it goes on as after a restart: never start the other server again"
                             : "clients make again what they had not delivered; never start the "
                               "other server again");
    return FL_CTL_OK;
}

int fl_ctl_backup(const struct fl_ctl_backup *o, int n, char **words)
{
    bool makes = strcmp(words[0], "backup") == 0;

    if (n != 2 || o->state_dir == NULL) {
        (void)fprintf(stderr, "flctl: expected 'flctl --state-dir DIR %s'\n",
                      makes ? "backup TARGET [--without-keys]" : "restore BACKUP [--moved]");
        return FL_CTL_USAGE;
    }
    if (makes ? o->moved : o->without_keys) {
        (void)fprintf(stderr, "flctl: %s: --%s is for %s\n", words[0],
                      makes ? "moved" : "without-keys", makes ? "restore" : "backup");
        return FL_CTL_USAGE;
    }
    return makes ? make(o, words[1]) : restore(o, words[1]);
}
