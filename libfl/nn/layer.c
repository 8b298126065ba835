#include "libfl/nn/layer.h"

#include <string.h>

#include "libfl/num/vec.h"

int fl__layer_no_args(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    (void)layer;
    return args[0] == '\0' ? FL_OK : fl_err_set(err, FL_ECONF, "takes no argument");
}

int fl__layer_need_image(const struct fl__layer *layer, struct fl_err *err)
{
    if (!layer->in.flat) {
        return FL_OK;
    }
    return fl_err_set(err, FL_ECONF,
                      "needs an image (channels, height, width), but its input is a flat row of "
                      "%zu numbers",
                      layer->in.c);
}

bool fl__layer_word(const char **args, char *word, size_t size)
{
    const char *from = *args + strspn(*args, " \t");
    size_t len = strcspn(from, " \t");
    size_t n = len < size ? len : size - 1;

    (void)memcpy(word, from, n);
    word[n] = '\0';
    *args = from + len;
    return len > 0;
}

void fl__layer_backward_twice(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io, const struct fl__jvp *along)
{
    struct fl__io tangents = *io;

    layer->ops->backward(layer, pass, io);
    tangents.dy = along->sy;
    tangents.dx = along->sx;
    tangents.dx2 = along->sx2;
    layer->ops->backward(layer, pass, &tangents);
}

void fl__layer_accumulate(float *to, const float *from, size_t ld, size_t n, size_t batch)
{
    size_t b;

    for (b = 0; b < batch; b++) {
        fl_vec_axpy(to + b * ld, 1.0f, from + b * ld, n);
    }
}

void fl__layer_draw(struct fl_rng *rng, double bound, float *to, size_t n, size_t step)
{
    size_t i;

    for (i = 0; i < n; i++) {
        to[i * step] = (float)((2.0 * fl_rng_unit(rng) - 1.0) * bound);
    }
}
