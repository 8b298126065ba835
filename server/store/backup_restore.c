/* Restoring a state folder from a backup: checks every file and publishes the database last. One
 * thread of flctl, blocking; holds the lock of the folder. What the first start does with the
 * folder is in restored_folder.c. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "server/store/backup_impl.h"

#define DATABASE FL__BACKUP_STATE "/federation.db"
#define KEYS     FL__BACKUP_STATE "/identity/"
#define LOCK     ".lock"

struct restoring {
    struct fl_restore *r;
    struct fl__backup_list files;
    bool owned;  /* hand every file to `owner` and `group` */
    uid_t owner; /* with `owned` */
    gid_t group;
};

/* Files created by root must be writable by the server's user. */
static int restore_set_owner(const struct restoring *s, const char *path, struct fl_err *err)
{
    return !s->owned || chown(path, s->owner, s->group) == 0
               ? FL_OK
               : fl__store_fail(err, "cannot set the owner of", path);
}

/* --- checking --- */

static int check_file(const struct restoring *s, const struct fl__backup_file *f,
                      const uint8_t found[32], struct fl_err *err)
{
    return memcmp(found, f->sha256, sizeof(f->sha256)) == 0
               ? FL_OK
               : fl_err_set(err, FL_EFORMAT,
                            "'%s/%s' is not what the backup's " FL__BACKUP_SUMS " says: it is "
                            "damaged, use another backup",
                            s->r->backup, f->name);
}

static const struct fl__backup_file *find_backup_file(const struct restoring *s, const char *name)
{
    size_t i;

    for (i = 0; i < s->files.n; i++) {
        if (strcmp(s->files.list[i].name, name) == 0) {
            return &s->files.list[i];
        }
    }
    return NULL;
}

/* BACKUP states the format version; a later version may have another layout. */
static int check_form(struct restoring *s, struct fl_err *err)
{
    const struct fl__backup_file *f = find_backup_file(s, FL__BACKUP_INFO);
    char path[FL__STORE_PATH_MAX];
    uint8_t sha256[32];
    uint64_t bytes;
    struct fl_buf buf;
    size_t n = strlen(FL__BACKUP_FORM "\n");
    int rv;

    if (f == NULL || find_backup_file(s, DATABASE) == NULL) {
        return fl_err_set(err, FL_EFORMAT, "'%s/" FL__BACKUP_SUMS "' does not name '%s'",
                          s->r->backup, f == NULL ? FL__BACKUP_INFO : DATABASE);
    }
    rv = fl__store_join(path, s->r->backup, FL__BACKUP_INFO, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__backup_sum(path, sha256, &bytes, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_file(s, f, sha256, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_read(path, 4096, &buf, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (buf.len < n || memcmp(buf.data, FL__BACKUP_FORM "\n", n) != 0) {
        rv = fl_err_set(err, FL_EVERSION,
                        "'%s' is a backup of another version: its first line is not '%s'; use the "
                        "program that made it",
                        path, FL__BACKUP_FORM);
    }
    fl_buf_done(&buf);
    return rv;
}

/* --- copying --- */

/* The database is copied under a temporary name first: no server can start from the folder without
 * it. */
static int copy_file(struct restoring *s, const struct fl__backup_file *f, const char *as,
                     struct fl_err *err)
{
    bool key = strncmp(f->name, KEYS, strlen(KEYS)) == 0;
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    uint8_t sha256[32];
    uint64_t bytes = 0;
    char *slash;
    int fd;
    int rv = fl__store_join(from, s->r->backup, f->name, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_join(to, s->r->dir, as, err);
    if (rv != FL_OK) {
        return rv;
    }
    slash = strrchr(to, '/');
    if (slash != to + strlen(s->r->dir)) {
        *slash = '\0';
        rv = mkdir(to, key ? 0700 : 0750) == 0 ? restore_set_owner(s, to, err)
             : errno == EEXIST                 ? FL_OK
                                               : fl__store_fail(err, "cannot create folder", to);
        *slash = '/';
        if (rv != FL_OK) {
            return rv;
        }
    }
    fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fl__store_fail(err, "cannot open", from);
    }
    rv = fl__backup_copy(fd, from, to, key ? 0600 : 0640, sha256, &bytes, err);
    (void)close(fd);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_file(s, f, sha256, err);
    if (rv != FL_OK) {
        return rv;
    }
    s->r->found.files++;
    s->r->found.bytes += bytes;
    s->r->found.keys = s->r->found.keys || key;
    return restore_set_owner(s, to, err);
}

/* --- the database --- */

static int check_restored_db(struct restoring *s, const char *path, struct fl_err *err)
{
    struct fl_backup *found = &s->r->found;
    struct fl__backup_needs needs = {.committed = 0};
    struct fl_db db;
    int rv = fl_db_open_as_is(&db, &fl__store_db, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_verify(&db, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__backup_read_needs(&db, &needs, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__backup_check(s->r->dir, &needs, err);
    if (rv != FL_OK) {
        goto done;
    }
    (void)memcpy(found->federation, needs.federation, sizeof(found->federation));
    found->committed = needs.committed;
    found->open_round = needs.open_round;
    found->open_attempt = needs.open_attempt;
    found->accepted = needs.n_accepted;
done:
    fl_db_close(&db);
    fl__backup_needs_done(&needs);
    return rv;
}

/* The first start carries out the note: clients may know the coming round numbers from the original
 * folder. */
static int write_restored_note(struct restoring *s, struct fl_err *err)
{
    uint8_t random[FL__RESTORED_NAME / 2];
    char name[FL__RESTORED_NAME + 1];
    char text[96 + FL__RESTORED_NAME];
    char path[FL__STORE_PATH_MAX];
    int rv = fl_random_bytes(random, sizeof(random));

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "no random bytes: %s", fl_strerror(rv));
    }
    (void)snprintf(text, sizeof(text), "restored from a backup of round %" PRIu64 "\n%s\n",
                   s->r->found.committed, fl_hex(name, random, sizeof(random)));
    rv = fl__store_join(path, s->r->dir, FL__RESTORED_NOTE, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_replace(path, text, strlen(text), /* sync= */ true, err);
    if (rv != FL_OK) {
        return rv;
    }
    return restore_set_owner(s, path, err);
}

static int restore_files(struct restoring *s, struct fl_err *err)
{
    static const char fresh[] = "federation.db.new";
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    size_t i;
    int rv;

    for (i = 0; i < s->files.n; i++) {
        const struct fl__backup_file *f = &s->files.list[i];

        if (strncmp(f->name, FL__BACKUP_STATE "/", strlen(FL__BACKUP_STATE "/")) != 0 ||
            strcmp(f->name, DATABASE) == 0)
        {
            continue;
        }
        rv = copy_file(s, f, f->name + strlen(FL__BACKUP_STATE "/"), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = copy_file(s, find_backup_file(s, DATABASE), fresh, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_join(from, s->r->dir, fresh, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_join(to, s->r->dir, "federation.db", err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_restored_db(s, from, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = s->r->moved ? FL_OK : write_restored_note(s, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_publish(from, to, /* sync= */ true, err);
}

/* --- the folder --- */

static int take_folder(struct restoring *s, int *ret_lock, struct fl_err *err)
{
    const char *dir = s->r->dir;
    struct stat st;
    char path[FL__STORE_PATH_MAX];
    bool there = stat(dir, &st) == 0;
    int rv;

    if (there && geteuid() == 0) {
        s->owned = st.st_uid != 0 || st.st_gid != 0;
        s->owner = st.st_uid;
        s->group = st.st_gid;
    }
    rv = there ? FL_OK : fl_fs_mkdirs(dir, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_lock_dir(dir, ret_lock, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__backup_check_empty(dir, LOCK, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_join(path, dir, LOCK, err);
    if (rv != FL_OK) {
        return rv;
    }
    return restore_set_owner(s, path, err);
}

int fl_backup_restore(struct fl_restore *r, struct fl_err *err)
{
    struct restoring s = {.r = r};
    struct fl_err inner = {0};
    int lock = -1;
    int rv = fl__backup_read_sums(r->backup, &s.files, err);

    r->found = (struct fl_backup){.dir = r->dir, .target = r->backup};
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_form(&s, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = take_folder(&s, &lock, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = restore_files(&s, &inner);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "%.300s; '%s' is half restored: remove what is in it",
                         fl_err_text(&inner, rv), r->dir);
    }
done:
    if (lock >= 0) {
        (void)close(lock);
    }
    fl__backup_list_done(&s.files);
    return rv;
}
