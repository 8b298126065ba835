#include "libfl/base/owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY_BYTES 4096

static const struct passwd *look_up(uid_t id, struct passwd *entry, char room[ENTRY_BYTES])
{
    struct passwd *found = NULL;

    return getpwuid_r(id, entry, room, ENTRY_BYTES, &found) == 0 ? found : NULL;
}

const char *fl_owner_name(unsigned uid, char out[64])
{
    struct passwd entry;
    char room[ENTRY_BYTES];
    const struct passwd *found = look_up((uid_t)uid, &entry, room);

    if (found == NULL) {
        (void)snprintf(out, 64, "%u", uid);
    } else {
        (void)snprintf(out, 64, "%s", found->pw_name);
    }
    return out;
}

int fl_owner_become(const char *dir, const char *file, struct fl_findings *notes,
                    struct fl_err *err)
{
    struct stat st;
    struct passwd entry;
    char room[ENTRY_BYTES];
    const struct passwd *found;

    if (geteuid() != 0) {
        return FL_OK;
    }
    if (stat(dir, &st) != 0 || st.st_uid == 0) {
        fl_findings_note(notes,
                         "%s: checked as root, %s '%s': access by "
                         "another user was not checked",
                         file, stat(dir, &st) == 0 ? "to which belongs" : "as there is no folder",
                         dir);
        return FL_OK;
    }
    /*
     * Set the groups that a service manager would give the user; a uid without a name gets only
     * `group`.
     */
    found = look_up(st.st_uid, &entry, room);
    if (!(found != NULL ? initgroups(found->pw_name, st.st_gid) == 0 : setgroups(0, NULL) == 0) ||
        setgid(st.st_gid) != 0 || setuid(st.st_uid) != 0)
    {
        return fl_err_set(
            err, FL_EPERM,
            "cannot switch to user %u, the owner of folder '%s': %s; run this command as that user",
            (unsigned)st.st_uid, dir, strerror(errno));
    }
    if (notes != NULL) {
        char name[64];
        struct stat seen;

        (void)fl_owner_name(st.st_uid, name);
        fl_findings_note(notes, "%s: checked as user '%s', whose folder '%s' is", file, name, dir);
        if (stat(file, &seen) == 0 && S_ISREG(seen.st_mode) && access(file, R_OK) != 0) {
            fl_findings_note(
                notes,
                "%s: warning: user '%s' cannot read this file: %s; a start as that user fails",
                file, name, strerror(errno));
        }
    }
    return FL_OK;
}
