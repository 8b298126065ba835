/*
 * Checks a command before it is started: the program, and the script that an interpreter would
 * open, whose absence it would report with a message of its own, much later. Reads the file system;
 * no state.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "libfl/program/program.h"

/* Is it one whose first argument without a dash is a script? "python3.11" is python. */
static bool command_is_interpreter(const char *program)
{
    static const char *const names[] = {"python", "bash", "sh", "dash", "perl", "ruby", "Rscript"};
    const char *base = strrchr(program, '/');
    size_t len;
    size_t i;

    base = base != NULL ? base + 1 : program;
    len = strlen(base);
    while (len > 0 && strchr("0123456789.", base[len - 1]) != NULL) {
        len--;
    }
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == len && strncmp(base, names[i], len) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * The script of an interpreter's command; NULL: there is none, or options that may have a value, or
 * name a module (-m) or a text (-c), come before it.
 */
static const char *command_script(const char *const *argv)
{
    static const char plain[] = "BEIOSbdqsuvx"; /* of python and perl, without a value */
    size_t i;

    if (!command_is_interpreter(argv[0])) {
        return NULL;
    }
    for (i = 1; argv[i] != NULL && argv[i][0] == '-'; i++) {
        if (argv[i][1] == '\0' || argv[i][1 + strspn(argv[i] + 1, plain)] != '\0') {
            return NULL;
        }
    }
    return argv[i] != NULL && strchr(argv[i], '{') == NULL ? argv[i] : NULL;
}

int fl_program_check(const char *const *argv, struct fl_err *err)
{
    char found[PATH_MAX];
    const char *script;
    int why;
    int rv = fl_program_find(argv[0], found, sizeof(found), err);

    if (rv != FL_OK) {
        return rv;
    }
    script = command_script(argv);
    if (script == NULL || access(script, R_OK) == 0) {
        return FL_OK;
    }
    why = errno;
    return fl_err_set(
        err, fl_err_from_errno(why), "cannot read '%.200s', the script of '%.100s': %s%s", script,
        argv[0], strerror(why),
        script[0] != '/' ? " (from the current folder; name it by its full path)" : "");
}
