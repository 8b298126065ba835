/*
 * Inodes are numbered as the kernel numbers them; each is held open, so that no number is used
 * twice. The disk is what each had when it was synced last.
 */

#include "tests/lib/power_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/folder.h"

#define POWER_PATH  512
#define POWER_NAMES 128
#define POWER_NODES 512
#define POWER_LOST  78 /* the status of a process whose power was lost */

struct power_name {
    char text[64];
    ino_t node;
};

/* A file or a folder as it is on the disk. */
struct power_node {
    ino_t number;
    int held;
    bool folder;
    uint8_t *data;
    size_t len;
    struct power_name *names;
    size_t n_names;
};

static struct power_node nodes[POWER_NODES];
static size_t n_nodes;
static const char *watched;
static ino_t root;
static bool recording;       /* what is synced is on the disk */
static long calls_left = -1; /* negative: no loss is due */
static enum power_loss loss;

static void need(bool is, const char *what)
{
    if (!is) {
        perror(what);
        _exit(99);
    }
}

static const char *path_of(char out[POWER_PATH], const char *a, const char *sep, const char *b)
{
    int n = snprintf(out, POWER_PATH, "%s%s%s", a, sep, b);

    need(n > 0 && n < POWER_PATH, a);
    return out;
}

static struct power_node *node_find(ino_t number)
{
    size_t i;

    for (i = 0; i < n_nodes; i++) {
        if (nodes[i].number == number) {
            return &nodes[i];
        }
    }
    return NULL;
}

static struct power_node *node_of(int fd, const struct stat *st)
{
    struct power_node *node = node_find(st->st_ino);
    char path[64];

    if (node == NULL) {
        need(n_nodes < POWER_NODES, "files that are watched");
        node = &nodes[n_nodes++];
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        *node = (struct power_node){.number = st->st_ino,
                                    .held = open(path, O_PATH | O_CLOEXEC),
                                    .folder = S_ISDIR(st->st_mode)};
        need(node->held >= 0, "holding a file");
    }
    return node;
}

static uint8_t *contents(const char *path, size_t *ret_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    uint8_t *data;

    need(fd >= 0 && fstat(fd, &st) == 0, path);
    data = malloc((size_t)st.st_size + 1);
    need(data != NULL && read(fd, data, (size_t)st.st_size) == st.st_size, path);
    (void)close(fd);
    *ret_len = (size_t)st.st_size;
    return data;
}

/* The names in a folder, sorted by nothing. */
static struct power_name *names_in(const char *path, size_t *ret_n)
{
    struct power_name *names = calloc(POWER_NAMES, sizeof(*names));
    DIR *d = opendir(path);
    struct dirent *e;
    struct stat st;
    size_t n = 0;

    need(d != NULL && names != NULL, path);
    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            need(n < POWER_NAMES && strlen(e->d_name) < sizeof(names->text), e->d_name);
            need(fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0, e->d_name);
            (void)memcpy(names[n].text, e->d_name, strlen(e->d_name));
            names[n++].node = st.st_ino;
        }
    }
    (void)closedir(d);
    *ret_n = n;
    return names;
}

static struct power_node *node_sync(int fd)
{
    struct power_node *node;
    struct stat st;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    need(fstat(fd, &st) == 0, path);
    node = node_of(fd, &st);
    if (node->folder) {
        free(node->names);
        node->names = names_in(path, &node->n_names);
    } else {
        free(node->data);
        node->data = contents(path, &node->len);
    }
    return node;
}

static ino_t sync_tree(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const struct power_node *node;
    char below[POWER_PATH];
    size_t i;

    need(fd >= 0, path);
    node = node_sync(fd);
    for (i = 0; node->folder && i < node->n_names; i++) {
        (void)sync_tree(path_of(below, path, "/", node->names[i].text));
    }
    (void)close(fd);
    return node->number;
}

void power_disk_watch(const char *dir)
{
    while (n_nodes > 0) {
        struct power_node *node = &nodes[--n_nodes];

        (void)close(node->held);
        free(node->data);
        free(node->names);
    }
    watched = dir;
    root = sync_tree(dir);
}

/* --- after the loss --- */

static void write_file(const char *path, const uint8_t *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

    need(fd >= 0 && write(fd, data, len) == (ssize_t)len, path);
    (void)close(fd);
}

/* A file whose name stays. `current` is where it is now; NULL: it was removed. */
static void write_rest(const char *path, const struct power_node *node, const char *current)
{
    uint8_t *data = NULL;
    size_t len = 0;

    if (loss != POWER_KEEPS_ALL && node != NULL && node->data != NULL) {
        write_file(path, node->data, node->len);
        return;
    }
    if (current != NULL) {
        data = contents(current, &len);
    }
    if (loss != POWER_KEEPS_ALL && data != NULL) {
        (void)memset(data, 0, len);
    }
    write_file(path, data, len);
    free(data);
}

/* `from` is the folder as it is now; NULL: it is not there any more. */
static void write_tree(const char *path, const struct power_node *node, const char *from)
{
    bool by_name = loss != POWER_KEEPS_SYNCED && from != NULL;
    char to[POWER_PATH];
    char current[POWER_PATH];
    struct power_name *names = NULL;
    size_t n = node != NULL ? node->n_names : 0;
    struct stat st;
    size_t i;

    need(mkdir(path, 0750) == 0, path);
    if (by_name) {
        names = names_in(from, &n);
    }
    for (i = 0; i < n; i++) {
        const struct power_name *name = by_name ? &names[i] : &node->names[i];
        const struct power_node *at = node_find(name->node);
        bool there;

        (void)path_of(to, path, "/", name->text);
        (void)path_of(current, from != NULL ? from : "", "/", name->text);
        there = from != NULL && stat(current, &st) == 0 && st.st_ino == name->node;
        if (at != NULL ? at->folder : there && S_ISDIR(st.st_mode)) {
            write_tree(to, at, there ? current : NULL);
        } else {
            write_rest(to, at, there ? current : NULL);
        }
    }
    free(names);
}

/* As empty as it was made, and with its own number. */
static void take_contents(const char *from)
{
    size_t n = 0;
    struct power_name *names = names_in(watched, &n);
    char a[POWER_PATH];
    char b[POWER_PATH];
    size_t i;

    for (i = 0; i < n; i++) {
        folder_remove(path_of(a, watched, "/", names[i].text));
    }
    free(names);
    names = names_in(from, &n);
    for (i = 0; i < n; i++) {
        (void)path_of(a, from, "/", names[i].text);
        (void)path_of(b, watched, "/", names[i].text);
        need(rename(a, b) == 0, b);
    }
    free(names);
    need(rmdir(from) == 0, from);
}

static void write_disk(void)
{
    char beside[POWER_PATH];

    (void)path_of(beside, watched, "-", "disk");
    calls_left = -1;
    write_tree(beside, node_find(root), watched);
    take_contents(beside);
}

static _Noreturn void power_lose(void)
{
    write_disk();
    _exit(POWER_LOST);
}

void power_disk_restore(void)
{
    loss = POWER_KEEPS_SYNCED;
    write_disk();
    power_disk_watch(watched);
}

bool power_disk_loses(long n, enum power_loss how, void (*run)(void))
{
    pid_t pid = fork();
    int status = 0;

    need(pid >= 0, "fork");
    if (pid == 0) {
        recording = true;
        loss = how;
        calls_left = n;
        run();
        _exit(0);
    }
    need(waitpid(pid, &status, 0) == pid, "waitpid");
    need(WIFEXITED(status) && (WEXITSTATUS(status) == POWER_LOST || WEXITSTATUS(status) == 0),
         "the process ended otherwise");
    return WEXITSTATUS(status) == POWER_LOST;
}

/* --- in place of libc's --- */

/* Is this the call before which the power is lost? */
static bool is_last(void)
{
    return calls_left >= 0 && calls_left-- == 0;
}

static void call(void)
{
    if (is_last()) {
        power_lose();
    }
}

static ssize_t write_at(int fd, const void *data, size_t len, off_t offset)
{
    bool last = is_last();
    ssize_t n = (ssize_t)syscall(SYS_pwrite64, fd, data, last ? len / 2 : len, offset);

    if (last) {
        power_lose();
    }
    return n;
}

int fsync(int fd)
{
    call();
    if (recording) {
        (void)node_sync(fd);
    }
    return 0;
}

int fdatasync(int fd)
{
    return fsync(fd);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
    return write_at(fd, data, len, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off_t offset);
ssize_t pwrite64(int fd, const void *data, size_t len, off_t offset)
{
    return write_at(fd, data, len, offset);
}

int ftruncate(int fd, off_t len)
{
    call();
    return (int)syscall(SYS_ftruncate, fd, len);
}

int ftruncate64(int fd, off_t len);
int ftruncate64(int fd, off_t len)
{
    return ftruncate(fd, len);
}

int rename(const char *from, const char *to)
{
    call();
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    call();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
