#include "tools/fl_sim/local_daemons.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/program/program.h"

#define LOCAL_LOOK_MS  20  /* between two looks at the processes */
#define LOCAL_TAIL     500 /* of a log in a message */
#define LOCAL_ROUNDS   "rounds.jsonl"
#define LOCAL_FOLLOWER "flctl"

struct local_process {
    struct fl_program *program; /* NULL: it has ended */
    char name[FL_NAME_MAX];     /* of its log; borrowed by messages */
};

struct local_daemons {
    const struct fl_local_conf *conf;
    struct local_process *processes; /* the server, the follower, the clients */
    size_t n;
    FILE *rounds; /* NULL: the follower has not started */
    char *line;   /* of getline() */
    size_t line_size;
    bool done; /* the follower has ended */
};

/* --- processes --- */

static int local_find(const char *name, char out[FL_LOCAL_PATH], struct fl_err *err)
{
    ssize_t n = readlink("/proc/self/exe", out, FL_LOCAL_PATH - 1);
    char *slash;

    if (n > 0) {
        out[n] = '\0';
        slash = strrchr(out, '/');
        if (slash != NULL &&
            (size_t)snprintf(slash + 1, FL_LOCAL_PATH - (size_t)(slash + 1 - out), "%s", name) <
                FL_LOCAL_PATH - (size_t)(slash + 1 - out) &&
            access(out, X_OK) == 0)
        {
            return FL_OK;
        }
    }
    return fl_program_find(name, out, FL_LOCAL_PATH, NULL) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ENOENT,
                            "--local needs '%s', which is neither beside fl-sim nor in PATH; "
                            "packages: fl-server, fl-client and fl-tools",
                            name);
}

/* Its output goes to files by the shell, so that it never waits for this process. */
static int local_start(struct local_daemons *d, const char *program, const char *name,
                       const char *output, const char *const *arguments, struct fl_err *err)
{
    static const char script[] =
        "out=$1; log=$2; shift 2; exec \"$@\" >\"$out\" 2>\"$log\" </dev/null";
    static const char *const additions[] = {"OPENBLAS_NUM_THREADS=1", NULL};
    struct local_process *process = &d->processes[d->n];
    char path[FL_LOCAL_PATH];
    char out_log[FL_LOCAL_PATH];
    const char *argv[16] = {"/bin/sh", "-c", script, name, output, out_log, path};
    const struct fl_program_conf conf = {.argv = argv, .additions = additions};
    size_t n = 7;
    int rv = local_find(program, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    if ((size_t)snprintf(out_log, sizeof(out_log), "%s/%s.log", d->conf->dir, name) >=
        sizeof(out_log)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", d->conf->dir);
    }
    for (; *arguments != NULL; arguments++) {
        FL_REQUIRE(n + 1 < sizeof(argv) / sizeof(argv[0]));
        argv[n++] = *arguments;
    }
    (void)snprintf(process->name, sizeof(process->name), "%s", name);
    rv = fl_program_start(&conf, &process->program, err);
    if (rv != FL_OK) {
        return rv;
    }
    d->n++;
    return FL_OK;
}

static int local_start_daemon(struct local_daemons *d, const char *program, const char *name,
                              struct fl_err *err)
{
    char file[FL_LOCAL_PATH];
    const char *arguments[] = {file, NULL};

    if ((size_t)snprintf(file, sizeof(file), "%s/%s.yaml", d->conf->dir, name) >= sizeof(file)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", d->conf->dir);
    }
    return local_start(d, program, name, "/dev/null", arguments, err);
}

/* --- ends --- */

/* The end of a log, on one line, behind the message. */
static void local_add_log(const struct local_daemons *d, const char *name, struct fl_err *err)
{
    char path[FL_LOCAL_PATH + FL_NAME_MAX + 8];
    char tail[LOCAL_TAIL + 1];
    struct fl_err own = *err;
    size_t n;
    FILE *log;

    (void)snprintf(path, sizeof(path), "%s/%s.log", d->conf->dir, name);
    log = fopen(path, "re");
    if (log == NULL) {
        return;
    }
    (void)fseek(log, -LOCAL_TAIL, SEEK_END); /* A shorter one is read from its beginning. */
    n = fread(tail, 1, LOCAL_TAIL, log);
    (void)fclose(log);
    while (n > 0 && tail[n - 1] == '\n') {
        n--;
    }
    tail[n] = '\0';
    (void)fl_err_set(err, own.code, "%s; the end of %s: %s", own.msg, path,
                     strrchr(tail, '\n') != NULL ? strrchr(tail, '\n') + 1 : tail);
}

/* A process that has ended: an error, or the follower, after the last round. */
static int local_ended(struct local_daemons *d, struct local_process *process, struct fl_err *err)
{
    struct fl_err why = {0};
    int rv = fl_program_reap(process->program, &why);

    fl_program_free(process->program);
    process->program = NULL;
    if (rv != FL_OK) {
        (void)fl_err_set(err, FL_EIO, "%s: %s", process->name, why.msg);
        local_add_log(d, process->name, err);
        return FL_EIO;
    }
    d->done = d->done || strcmp(process->name, LOCAL_FOLLOWER) == 0;
    if (process == &d->processes[0] && !d->done) {
        (void)fl_err_set(err, FL_EIO, "server: it ended before the last round");
        local_add_log(d, process->name, err);
        return FL_EIO;
    }
    return FL_OK;
}

static int local_look(struct local_daemons *d, struct fl_err *err)
{
    const struct timespec pause = {.tv_nsec = LOCAL_LOOK_MS * 1000000L};
    size_t i;

    for (i = 0; i < d->n; i++) {
        struct local_process *process = &d->processes[i];

        if (process->program != NULL && fl_program_look(process->program, fl_clock_ms())) {
            int rv = local_ended(d, process, err);

            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    (void)nanosleep(&pause, NULL);
    return FL_OK;
}

/* --- start --- */

/* A socket of the server is there, so that flctl and clients find it at once. */
static int local_wait_for(struct local_daemons *d, const char *socket, struct fl_err *err)
{
    while (!fl_fs_exists(socket)) {
        int rv;

        if (d->processes[0].program == NULL) {
            (void)fl_err_set(err, FL_EIO, "server: it ended before it was ready");
            local_add_log(d, d->processes[0].name, err);
            return FL_EIO;
        }
        if (atomic_load(&run_interrupted)) {
            return fl_err_set(err, FL_ECANCELED, "interrupted");
        }
        rv = local_look(d, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int local_start_follower(struct local_daemons *d, struct fl_err *err)
{
    char admin[FL_LOCAL_PATH];
    char path[FL_LOCAL_PATH];
    const char *arguments[] = {"--socket", admin,      "rounds", "--last", "0",
                               "--follow", "--format", "jsonl",  NULL};
    int rv;

    fl_local_admin(d->conf, admin);
    rv = local_wait_for(d, admin, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(path, sizeof(path), "%s/" LOCAL_ROUNDS, d->conf->dir);
    rv = fl_fs_replace(path, "", 0, /* sync= */ false, err);
    if (rv != FL_OK) {
        return rv;
    }
    d->rounds = fopen(path, "re");
    if (d->rounds == NULL) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot read '%s'", path);
    }
    return local_start(d, "flctl", LOCAL_FOLLOWER, path, arguments, err);
}

int local_daemons_start(const struct fl_local_conf *conf, struct local_daemons **ret,
                        struct fl_err *err)
{
    struct local_daemons *d = calloc(1, sizeof(*d));
    char listen[FL_LOCAL_PATH];
    size_t k;
    int rv;

    if (d == NULL) {
        return FL_ENOMEM;
    }
    d->conf = conf;
    d->processes = calloc(conf->clients + 2, sizeof(*d->processes));
    if (d->processes == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    rv = local_start_daemon(d, "fl-serverd", "server", err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = local_start_follower(d, err);
    if (rv != FL_OK) {
        goto fail;
    }
    fl_local_listen(conf, listen);
    rv = local_wait_for(d, listen, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (k = 0; k < conf->clients; k++) {
        rv = local_start_daemon(d, "fl-clientd", fl_sim_data_name(conf->setting->data, k), err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = d;
    return FL_OK;
fail:
    local_daemons_free(d);
    return rv;
}

/* --- rounds --- */

/* True: a whole line is in d->line. */
static bool local_read_line(struct local_daemons *d)
{
    ssize_t n;

    clearerr(d->rounds);
    n = getline(&d->line, &d->line_size, d->rounds);
    if (n > 0 && d->line[n - 1] == '\n') {
        return true;
    }
    if (n > 0) { /* Its end is not written yet: read it again. */
        (void)fseek(d->rounds, -n, SEEK_CUR);
    }
    return false;
}

int local_daemons_round(struct local_daemons *d, const atomic_bool *cancel, const char **ret,
                        struct fl_err *err)
{
    for (;;) {
        bool done = d->done; /* before the file is read: it has all lines then */
        int rv;

        if (local_read_line(d)) {
            *ret = d->line;
            return FL_OK;
        }
        if (done) {
            *ret = NULL;
            return FL_OK;
        }
        if (atomic_load(cancel)) {
            return fl_err_set(err, FL_ECANCELED, "interrupted");
        }
        rv = local_look(d, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
}

void local_daemons_free(struct local_daemons *d)
{
    size_t i;

    if (d == NULL) {
        return;
    }
    for (i = 0; i < d->n; i++) {
        if (d->processes[i].program != NULL) {
            fl_program_end(d->processes[i].program, fl_clock_ms());
        }
    }
    for (i = 0; i < d->n; i++) {
        struct fl_program *program = d->processes[i].program;

        if (program != NULL) {
            const struct timespec pause = {.tv_nsec = LOCAL_LOOK_MS * 1000000L};

            while (!fl_program_look(program, fl_clock_ms())) {
                (void)nanosleep(&pause, NULL);
            }
            fl_program_free(program);
        }
    }
    if (d->rounds != NULL) {
        (void)fclose(d->rounds);
    }
    free(d->line);
    free(d->processes);
    free(d);
}
