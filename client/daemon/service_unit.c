#include "client/daemon/service_unit.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"

#define CONFIG_DIR "/etc/fl/"
#define PREFIX     "client"
#define SUFFIX     ".yaml"

extern char **environ;

/* The part "-NAME" of "…/client-NAME.yaml", inside `config`; empty for any other file. */
static size_t instance_of(const char *config, const char **ret)
{
    const char *slash = strrchr(config, '/');
    const char *file = slash != NULL ? slash + 1 : config;
    size_t len = strlen(file);
    size_t ends = strlen(PREFIX) + strlen(SUFFIX);

    *ret = "";
    if (len <= ends + 1 || strncmp(file, PREFIX "-", strlen(PREFIX) + 1) != 0 ||
        !fl_str_ends_with(file, SUFFIX))
    {
        return 0;
    }
    *ret = file + strlen(PREFIX);
    return len - ends;
}

static bool is_below_config_dir(const char *config)
{
    size_t n = strlen(CONFIG_DIR);

    return strncmp(config, CONFIG_DIR, n) == 0 && strchr(config + n, '/') == NULL;
}

int fl_unit_state_dir(const char *config, char *out, size_t size)
{
    const char *instance;
    size_t n = instance_of(config, &instance);
    int len = snprintf(out, size, FL_UNIT_STATE_DIR "%.*s", (int)n, instance);

    return len > 0 && (size_t)len < size ? FL_OK : FL_ELIMIT;
}

bool fl_unit_name(const char *config, const char *state_dir, char *out, size_t size)
{
    const char *instance;
    size_t n = instance_of(config, &instance);
    char expected[512];
    int len;

    if (!is_below_config_dir(config) || (n == 0 && strcmp(config, CONFIG_DIR PREFIX SUFFIX) != 0) ||
        fl_unit_state_dir(config, expected, sizeof(expected)) != FL_OK ||
        strcmp(expected, state_dir) != 0)
    {
        return false;
    }
    len = n == 0 ? snprintf(out, size, "fl-clientd")
                 : snprintf(out, size, "fl-clientd@%.*s", (int)n - 1, instance + 1);
    return len > 0 && (size_t)len < size;
}

bool fl_unit_can_start(void)
{
    return geteuid() == 0 && fl_fs_exists("/run/systemd/system");
}

/* Returns the exit code of systemctl, or -1 when it could not be run. */
static int unit_systemctl(const char *verb, const char *option, const char *unit)
{
    char *argv[] = {(char *)(uintptr_t) "systemctl", (char *)(uintptr_t)verb,
                    (char *)(uintptr_t)option, (char *)(uintptr_t)unit, NULL};
    pid_t pid;
    int status;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0) {
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int fl_unit_start(const char *unit, struct fl_err *err)
{
    if (unit_systemctl("enable", "--quiet", unit) != 0) {
        return fl_err_set(err, FL_EUNAVAIL, "'systemctl enable %s' failed", unit);
    }
    if (unit_systemctl("is-active", "--quiet", unit) == 0) {
        return FL_OK;
    }
    /*
     * `restart` instead of `start`: a unit in its restart delay after failed starts must start now.
     */
    if (unit_systemctl("restart", "--quiet", unit) != 0) {
        return fl_err_set(err, FL_EUNAVAIL,
                          "'systemctl restart %s' failed: see 'systemctl status %s'", unit, unit);
    }
    return FL_OK;
}
