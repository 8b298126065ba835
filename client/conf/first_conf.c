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
static int first_conf_add_quoted(struct fl_buf *out, const char *before, const char *text,
                                 const char *after)
{
    const char *c;
    int rv = fl_buf_printf(out, "%s\"", before);

    if (rv != FL_OK) {
        return rv;
    }
    for (c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            rv = fl_buf_printf(out, "\\%c", *c);
        } else if ((unsigned char)*c < 0x20) {
            rv = fl_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)*c);
        } else {
            rv = fl_buf_add(out, c, 1);
        }
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_buf_printf(out, "\"%s", after);
}

/* One address as a text, several as a list. */
static int first_conf_servers(const struct fl_client_first *first, struct fl_buf *out)
{
    bool list = first->n_servers > 1;
    size_t i;
    int rv = fl_buf_printf(out, "server: %s", list ? "[" : "");

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < first->n_servers; i++) {
        rv = first_conf_add_quoted(out, i > 0 ? ", " : "", first->servers[i], "");
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_buf_printf(out, "%s\n", list ? "]" : "");
}

static int first_conf_text(const struct fl_client_first *first, struct fl_buf *out)
{
    const char *const keys[][2] = {{"proxy: ", first->proxy},
                                   {"proxy_credentials: ", first->proxy_credentials},
                                   {"name: ", first->name},
                                   {"state_dir: ", first->state_dir}};
    size_t i;
    int rv =
        fl_buf_printf(out, "# Written by fl-clientd --join. All keys: fl-clientd --reference\n");

    if (rv != FL_OK) {
        return rv;
    }
    rv = first_conf_servers(first, out);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i][1] == NULL || keys[i][1][0] == '\0') {
            continue;
        }
        rv = first_conf_add_quoted(out, keys[i][0], keys[i][1], "\n");
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = first->n_labels > 0 ? fl_buf_printf(out, "labels:\n") : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < first->n_labels; i++) {
        rv = first_conf_add_quoted(out, "  ", first->labels[i].key, ": ");
        if (rv != FL_OK) {
            return rv;
        }
        rv = first_conf_add_quoted(out, "", first->labels[i].value, "\n");
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl_buf_printf(
        out, "data:\n%s",
        first->data != NULL
            ? ""
            : "  # The folder with the data of this host: put it there, or set another one.\n");
    if (rv != FL_OK) {
        return rv;
    }
    return first_conf_add_quoted(
        out, "  path: ", first->data != NULL ? first->data : FL_CLIENT_FIRST_DATA, "\n");
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
    if (rv != FL_OK) {
        goto done;
    }
    rv = first_conf_text(first, &text);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_replace(tmp, text.data, text.len, /* sync= */ true, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = first_conf_publish(tmp, path, err);
    (void)unlink(tmp);
done:
    fl_buf_done(&text);
    return rv;
}
