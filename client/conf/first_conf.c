#include "client/conf/first_conf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/buf.h"
#include "libfl/base/fs.h"

#define FIRST_MAX  ((size_t)64 << 10)
#define PATH_BYTES 4096

/* A double-quoted scalar (YAML 1.2, section 7.3.1). */
static int first_conf_add_quoted(struct fl_buf *out, const char *text)
{
    const char *c;
    int rv = fl_buf_add(out, "\"", 1);

    for (c = text; rv == FL_OK && *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            rv = fl_buf_printf(out, "\\%c", *c);
        } else if ((unsigned char)*c < 0x20) {
            rv = fl_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)*c);
        } else {
            rv = fl_buf_add(out, c, 1);
        }
    }
    return rv == FL_OK ? fl_buf_add(out, "\"", 1) : rv;
}

static int add_key(struct fl_buf *out, const char *key, const char *text)
{
    int rv = fl_buf_printf(out, "%s: ", key);

    rv = rv == FL_OK ? first_conf_add_quoted(out, text) : rv;
    return rv == FL_OK ? fl_buf_add(out, "\n", 1) : rv;
}

static int first_conf_add_labels(struct fl_buf *out, const struct fl_client_first *first)
{
    size_t i;
    int rv = first->n_labels > 0 ? fl_buf_printf(out, "labels:\n") : FL_OK;

    for (i = 0; rv == FL_OK && i < first->n_labels; i++) {
        rv = fl_buf_add(out, "  ", 2);
        rv = rv == FL_OK ? first_conf_add_quoted(out, first->labels[i].key) : rv;
        rv = rv == FL_OK ? fl_buf_add(out, ": ", 2) : rv;
        rv = rv == FL_OK ? first_conf_add_quoted(out, first->labels[i].value) : rv;
        rv = rv == FL_OK ? fl_buf_add(out, "\n", 1) : rv;
    }
    return rv;
}

static int first_conf_text(const struct fl_client_first *first, struct fl_buf *out)
{
    int rv =
        fl_buf_printf(out, "# Written by fl-clientd --join. All keys: fl-clientd --reference\n");

    rv = rv == FL_OK ? add_key(out, "server", first->server) : rv;
    rv = rv == FL_OK ? add_key(out, "name", first->name) : rv;
    rv = rv == FL_OK ? add_key(out, "state_dir", first->state_dir) : rv;
    rv = rv == FL_OK ? first_conf_add_labels(out, first) : rv;
    if (rv == FL_OK) {
        rv = fl_buf_printf(
            out, "data:\n%s  ",
            first->data != NULL
                ? ""
                : "  # The folder with the data of this host: put it there, or set another one.\n");
    }
    return rv == FL_OK
               ? add_key(out, "path", first->data != NULL ? first->data : FL_CLIENT_FIRST_DATA)
               : rv;
}

static int make_folder_of(const char *path, struct fl_err *err)
{
    char folder[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    size_t len = slash != NULL ? (size_t)(slash - path) : 0;

    if (len == 0) {
        return FL_OK;
    }
    if (len >= sizeof(folder)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
    }
    (void)memcpy(folder, path, len);
    folder[len] = '\0';
    return fl_fs_mkdirs(folder, err);
}

/* link() fails when `path` exists; rename() would replace it. */
static int first_conf_publish(const char *tmp, const char *path, struct fl_err *err)
{
    if (chmod(tmp, 0644) != 0 || link(tmp, path) != 0) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved), "cannot write '%s': %s", path,
                          strerror(saved));
    }
    return FL_OK;
}

int fl_client_first_write(const char *path, const struct fl_client_first *first, struct fl_err *err)
{
    char tmp[PATH_BYTES];
    struct fl_buf text;
    int n = snprintf(tmp, sizeof(tmp), "%s.new", path);
    int rv = n > 0 && (size_t)n < sizeof(tmp)
                 ? make_folder_of(path, err)
                 : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);

    fl_buf_init(&text, FIRST_MAX);
    rv = rv == FL_OK ? first_conf_text(first, &text) : rv;
    if (rv == FL_OK) {
        rv = fl_fs_replace(tmp, text.data, text.len, /* sync= */ true, err);
    }
    if (rv == FL_OK) {
        rv = first_conf_publish(tmp, path, err);
        (void)unlink(tmp);
    }
    fl_buf_done(&text);
    return rv;
}
