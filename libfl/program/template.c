#include "libfl/program/template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPLATE_NAME "@NAME@"

static bool template_put_line(const char *line, const char *name, FILE *f)
{
    const char *mark;

    while (name != NULL && (mark = strstr(line, TEMPLATE_NAME)) != NULL) {
        if (fwrite(line, 1, (size_t)(mark - line), f) != (size_t)(mark - line) ||
            fputs(name, f) == EOF) {
            return false;
        }
        line = mark + strlen(TEMPLATE_NAME);
    }
    return fputs(line, f) != EOF && fputc('\n', f) != EOF;
}

/* 0, or an errno. */
static int template_put(const char *const *lines, const char *path, const char *name)
{
    /* O_EXCL also refuses an existing symbolic link. */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good = true;
    size_t i;

    if (f == NULL) {
        int saved = errno;

        if (fd >= 0) {
            (void)close(fd);
            (void)unlink(path);
        }
        return saved;
    }
    for (i = 0; good && lines[i] != NULL; i++) {
        good = template_put_line(lines[i], name, f);
    }
    errno = 0;
    if (fclose(f) != 0 || !good) {
        int saved = errno != 0 ? errno : EIO;

        (void)unlink(path);
        return saved;
    }
    return 0;
}

int fl_template_write(const char *const *lines, const char *path, const char *name,
                      struct fl_err *err)
{
    int errnum = template_put(lines, path, name);

    return errnum == 0
               ? FL_OK
               : fl_err_set(err, fl_err_from_errno(errnum), "cannot write '%s': %s%s", path,
                            strerror(errnum), errnum == EEXIST ? ": choose another file name" : "");
}

bool fl_template_hides_package(const char *path)
{
    static const char *const names[] = {"numpy.py", "torch.py", "fl_trainer.py", "fl_sim.py"};
    const char *slash = strrchr(path, '/');
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(slash != NULL ? slash + 1 : path, names[i]) == 0) {
            return true;
        }
    }
    return false;
}
