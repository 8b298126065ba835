#include "client/daemon/init_trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon/clientd_exit.h"
#include "client/daemon/templates.h"
#include "libfl/base/fs.h"

#define FIRST_NAME "trainer.py"

static int write_lines(const char *const *lines, const char *path)
{
    /* O_EXCL also refuses an existing symbolic link. */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good = f != NULL;
    size_t i;

    if (fd >= 0 && f == NULL) {
        (void)close(fd);
    }
    if (!good) {
        return errno;
    }
    for (i = 0; good && lines[i] != NULL; i++) {
        good = fputs(lines[i], f) != EOF && fputc('\n', f) != EOF;
    }
    errno = 0;
    if (fclose(f) != 0 || !good) {
        int saved = errno != 0 ? errno : EIO;

        (void)unlink(path);
        return saved;
    }
    return 0;
}

/*
 * Python searches the script's folder first, so it would import this file instead of the package.
 */
static bool hides_package(const char *path)
{
    static const char *const names[] = {"numpy.py", "torch.py", "fl_trainer.py"};
    const char *slash = strrchr(path, '/');
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(slash != NULL ? slash + 1 : path, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void say_next(const char *path)
{
    char whole[4096];

    if (fl_fs_absolute(path, whole, sizeof(whole), NULL) != FL_OK) {
        (void)snprintf(whole, sizeof(whole), "%s", path);
    }
    (void)printf("wrote %s. Put your data and your model where it says CHANGE. Then:\n"
                 "\n"
                 "1. python3 %s     # trains once, alone\n"
                 "   python3 -m fl_trainer save %s first.safetensors\n"
                 "   # for the server, as  model: {file: first.safetensors}\n"
                 "2. in the client's configuration:\n"
                 "     trainer: command\n"
                 "     command: {program: [/usr/bin/python3, %s], persistent: yes}\n"
                 "3. fl-clientd --try-trainer CONFIG.yaml --model first.safetensors\n",
                 path, path, path, whole);
}

int fl_init_trainer(const char *kind, const char *path)
{
    const char *const *lines = NULL;
    int errnum;

    if (strcmp(kind, "pytorch") == 0) {
        lines = fl_template_pytorch;
    } else if (strcmp(kind, "numpy") == 0) {
        lines = fl_template_numpy;
    } else {
        (void)fprintf(stderr, "fl-clientd: --init-trainer: expected pytorch or numpy, found '%s'\n",
                      kind);
        return FL_EXIT_USAGE;
    }
    path = path != NULL ? path : FIRST_NAME;
    if (hides_package(path)) {
        (void)fprintf(stderr,
                      "fl-clientd: '%s' would hide the package of that name from the script: "
                      "choose another file name\n",
                      path);
        return FL_EXIT_USAGE;
    }
    errnum = write_lines(lines, path);
    if (errnum != 0) {
        (void)fprintf(stderr, "fl-clientd: cannot write '%s': %s%s\n", path, strerror(errnum),
                      errnum == EEXIST ? ": choose another file name" : "");
        return FL_EXIT_FAILURE;
    }
    say_next(path);
    return fflush(stdout) == 0 ? FL_EXIT_OK : FL_EXIT_FAILURE;
}
