/*
 * flctl export --onnx: the exported safetensors file, whose metadata describe the network, as ONNX.
 * Needs no server.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/safetensors.h"
#include "libfl/onnx/onnx_model.h"
#include "tools/flctl/flctl.h"

/* Bytes of the metadata about the network. */
#define TEXT_MAX ((size_t)1 << 20)
/* An ONNX file is the parameters and a description of the layers. */
#define ROOM_MAX ((size_t)16 << 20)

/* The network as the metadata describe it; `layers` is cut into texts. */
struct onnx_network {
    struct fl_net_spec spec;
    char input[64];
    char *text; /* owned */
    const char *layers[FL_NET_MAX_LAYERS];
};

static int onnx_parse_input(struct onnx_network *n, const char *path, struct fl_err *err)
{
    char *at = n->input;
    char *comma;
    uint64_t value;

    while (at != NULL) {
        comma = strchr(at, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        if (n->spec.n_input == FL_NET_MAX_INPUT_DIMS || fl_str_to_u64(at, &value) != FL_OK ||
            value > SIZE_MAX)
        {
            return fl_err_set(err, FL_EFORMAT,
                              "'%s': metadata '" FL_ST_INPUT_KEY
                              "': expected 1 to 3 numbers, found '%s'",
                              path, at);
        }
        n->spec.input[n->spec.n_input++] = (size_t)value;
        at = comma != NULL ? comma + 1 : NULL;
    }
    return FL_OK;
}

static int onnx_read_network(const char *path, struct onnx_network *n, struct fl_err *err)
{
    char *at;
    int rv;

    *n = (struct onnx_network){.text = malloc(TEXT_MAX)};
    if (n->text == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory", path);
    }
    rv = fl_st_meta(path, FL_ST_LAYERS_KEY, n->text, TEXT_MAX, err);
    if (rv == FL_ENOENT) {
        return fl_err_set(err, rv,
                          "the server does not say which layers its model has: it has one from a "
                          "file (model.file), which cannot be exported as ONNX, or is older");
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_st_meta(path, FL_ST_INPUT_KEY, n->input, sizeof(n->input), err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = onnx_parse_input(n, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (at = n->text; at != NULL && n->spec.n_layers < FL_NET_MAX_LAYERS;) {
        char *end = strstr(at, "; ");

        n->layers[n->spec.n_layers++] = at;
        if (end != NULL) {
            *end = '\0';
        }
        at = end != NULL ? end + 2 : NULL;
    }
    if (at != NULL) {
        return fl_err_set(err, FL_ELIMIT, "'%s': expected at most %d layers", path,
                          FL_NET_MAX_LAYERS);
    }
    n->spec.layers = n->layers;
    return FL_OK;
}

static int onnx_convert(const char *from, const struct fl_net_outline *outline, struct fl_buf *out,
                        struct fl_err *err)
{
    size_t n = fl_layout_count(outline->layout);
    float *params = malloc(n * sizeof(*params));
    int rv = params != NULL ? fl_st_load(from, outline->layout, params, err)
                            : fl_err_set(err, FL_ENOMEM, "'%s': out of memory", from);

    if (rv != FL_OK) {
        goto done;
    }
    fl_buf_init(out, n * sizeof(*params) + ROOM_MAX);
    rv = fl_onnx_model(outline, params, "model", out, err);
done:
    free(params);
    return rv;
}

int fl_ctl_to_onnx(const char *from, const char *to, struct fl_err *err)
{
    struct onnx_network network;
    struct fl_net_outline *outline = NULL;
    struct fl_buf out;
    int rv;

    fl_buf_init(&out, 0);
    rv = onnx_read_network(from, &network, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_net_outline_create(&network.spec, &outline, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = onnx_convert(from, outline, &out, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_replace(to, out.data, out.len, /* sync= */ true, err);
done:
    fl_net_outline_free(outline);
    fl_buf_done(&out);
    free(network.text);
    return rv;
}
