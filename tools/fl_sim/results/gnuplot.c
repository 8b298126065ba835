/* Runs gnuplot: its script is an unlinked temporary file on stdin, without a shell. */

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "tools/fl_sim/results/plot.h"
#include "tools/fl_sim/results/results_impl.h"

#define SCRIPT_MAX ((size_t)256 << 20)

extern char **environ;

/* The end of its stderr, on one line. */
static const char *gnuplot_last_words(FILE *stderr_file, char out[FL_ERR_BUF_SIZE / 2])
{
    char text[4096];
    size_t len;
    char *p;

    rewind(stderr_file);
    len = fread(text, 1, sizeof(text) - 1, stderr_file);
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' ')) {
        len--;
    }
    text[len] = '\0';
    for (p = text; *p != '\0'; p++) {
        *p = *p == '\n' ? ' ' : *p;
    }
    return fl_str_ends(out, FL_ERR_BUF_SIZE / 2, fl_str_clean(text));
}

/* -d: ignores the user's settings for gnuplot. */
static int gnuplot_spawn(FILE *script, FILE *stderr_file, pid_t *ret)
{
    char *const argv[] = {(char[]){"gnuplot"}, (char[]){"-d"}, NULL};
    posix_spawn_file_actions_t actions;
    int rv = posix_spawn_file_actions_init(&actions);

    if (rv != 0) {
        return rv;
    }
    rv = posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
    rv = rv == 0 ? posix_spawn_file_actions_adddup2(&actions, fileno(stderr_file), STDOUT_FILENO)
                 : rv;
    rv = rv == 0 ? posix_spawn_file_actions_adddup2(&actions, fileno(stderr_file), STDERR_FILENO)
                 : rv;
    rv = rv == 0 ? posix_spawnp(ret, argv[0], &actions, NULL, argv, environ) : rv;
    (void)posix_spawn_file_actions_destroy(&actions);
    return rv;
}

static int gnuplot_run(FILE *script, FILE *stderr_file, struct fl_err *err)
{
    char words[FL_ERR_BUF_SIZE / 2];
    int status = 0;
    pid_t pid;
    int code = gnuplot_spawn(script, stderr_file, &pid);

    if (code == ENOENT) {
        return fl_err_set(
            err, FL_ENOENT,
            "cannot find the program 'gnuplot' in PATH, which draws the pictures: install it "
            "(Debian: apt-get install gnuplot-nox)");
    }
    if (code != 0) {
        return fl_err_set(err, fl_err_from_errno(code), "cannot start gnuplot: %s", strerror(code));
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return fl_err_set(err, fl_err_from_errno(errno), "cannot wait for gnuplot: %s",
                              strerror(errno));
        }
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return FL_OK;
    }
    return fl_err_set(err, FL_ESTATE, "gnuplot failed: %s", gnuplot_last_words(stderr_file, words));
}

static int gnuplot_draw(const struct fl_buf *text, struct fl_err *err)
{
    FILE *script = tmpfile();
    FILE *stderr_file = tmpfile();
    int rv = FL_OK;

    if (script == NULL || stderr_file == NULL ||
        (text->len > 0 && fwrite(text->data, text->len, 1, script) != 1) || fflush(script) != 0)
    {
        rv = fl_err_set(err, fl_err_from_errno(errno), "cannot write a temporary file: %s",
                        strerror(errno));
    } else {
        rewind(script);
        rv = gnuplot_run(script, stderr_file, err);
    }
    if (script != NULL) {
        (void)fclose(script);
    }
    if (stderr_file != NULL) {
        (void)fclose(stderr_file);
    }
    return rv;
}

static int gnuplot_draw_file(const struct fl_plot *plot, enum fl_picture picture, const char *name,
                             struct fl_err *err)
{
    static const char *const ends[] = {
        [FL_PICTURE_SVG] = "svg", [FL_PICTURE_PNG] = "png", [FL_PICTURE_PDF] = "pdf"};
    const char *end = ends[picture];
    char path[FL_RESULTS_DIR];
    char tmp[FL_RESULTS_PATH];
    struct fl_buf text;
    int n = snprintf(path, sizeof(path), "%s.%s", name, end);
    int rv;

    if (n < 0 || (size_t)n >= sizeof(path)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", name);
    }
    (void)snprintf(tmp, sizeof(tmp), "%s.tmp", path);
    rv = fl_fs_check_place(tmp, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_buf_init(&text, SCRIPT_MAX);
    rv = fl_plot_script(&text, plot, picture, tmp);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "the script for '%s': %s", path, fl_strerror(rv));
        goto done;
    }
    rv = gnuplot_draw(&text, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_publish(tmp, path, /* sync= */ false, err);
done:
    fl_buf_done(&text);
    if (rv != FL_OK) {
        (void)unlink(tmp);
    }
    return rv;
}

int fl_plot_draw(const struct fl_plot *plot, const char *name, struct fl_err *err)
{
    int rv = gnuplot_draw_file(plot, FL_PICTURE_SVG, name, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = gnuplot_draw_file(plot, FL_PICTURE_PNG, name, err);
    if (rv != FL_OK || !plot->pdf) {
        return rv;
    }
    rv = gnuplot_draw_file(plot, FL_PICTURE_PDF, name, err);
    if (rv == FL_ESTATE) {
        return fl_err_wrap(err, rv,
                           "no PDF, for which gnuplot needs its terminal pdfcairo (the SVG and the "
                           "PNG are written)");
    }
    return rv;
}
