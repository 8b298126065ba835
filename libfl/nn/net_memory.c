/*
 * Plans and allocates the memory of a network: one block, planned once, for training steps and
 * evaluations. Also releases it to the system (fl_net_release()). Runs on the network's thread;
 * overlapping buffers are placed in plan.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libfl/nn/network_impl.h"

/*
 * Limit of the activations of an evaluation. It affects the bits of the result, so it must
 * depend on the description only.
 */
#define PIECE_FLOATS ((uint64_t)1 << 22)
/* Cache line and widest vector. */
#define ALIGNMENT 64
/* Every step reads the whole memory of the network: huge pages need fewer TLB entries. */
#define HUGE_PAGE ((size_t)1 << 21)
/* A multiple of the page size of every system. */
#define PAGE_MAX ((uintptr_t)1 << 16)

uint64_t fl__net_widest(const struct fl_net *net)
{
    uint64_t widest = 16;
    size_t i;

    for (i = 0; i < net->n_layers; i++) {
        widest = net->layers[i].ldy > widest ? net->layers[i].ldy : widest;
    }
    return widest;
}

float *fl__net_floats(uint64_t n)
{
    size_t size = (size_t)n * sizeof(float);
    float *p;

    if (size < HUGE_PAGE) {
        return aligned_alloc(ALIGNMENT, size);
    }
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    p = aligned_alloc(HUGE_PAGE, size);
    if (p != NULL) {
        /* kernels without huge pages use small ones */
        (void)madvise(p, size, MADV_HUGEPAGE);
    }
    return p;
}

/* --- a batch --- */

static size_t forward_moment(size_t i)
{
    return 1 + i;
}

static size_t loss_moment(const struct fl_net *net)
{
    return 1 + net->n_layers;
}

static size_t backward_moment(const struct fl_net *net, size_t i)
{
    return loss_moment(net) + net->n_layers - i;
}

/* The last time at which layer i, which computes, reads its inputs. */
static size_t read_until(const struct fl_net *net, size_t i)
{
    const struct fl__layer *layer = &net->layers[i];

    return layer->graded && layer->ops->needs(layer).x ? backward_moment(net, i)
                                                       : forward_moment(i);
}

/* First and last reader of a view, in the order of the backward pass. */
struct readers {
    size_t graded_from; /* when the first gradient of it is written */
    size_t to;          /* when it is read for the last time */
};

static struct readers readers_of(const struct fl_net *net, size_t view)
{
    struct readers r = {.graded_from = loss_moment(net), .to = 0};
    size_t i;

    if (view == net->n_layers) {
        r.to = loss_moment(net);
        return r;
    }
    for (i = 0; i < net->n_layers; i++) {
        const struct fl__layer *layer = &net->layers[i];

        if (!layer->skip && (layer->from == view || (layer->joins && layer->also == view))) {
            size_t until = read_until(net, i);

            r.to = until > r.to ? until : r.to;
            r.graded_from = backward_moment(net, i);
        }
    }
    return r;
}

/* Lifetime of y of layer i, which computes. */
static struct fl__buffer life_of_y(const struct fl_net *net, size_t i)
{
    struct fl__layer *layer = &net->layers[i];
    size_t above = readers_of(net, i + 1).to;
    size_t own = layer->graded && layer->ops->needs(layer).y ? backward_moment(net, i) : 0;

    return (struct fl__buffer){.n = fl__arena_piece((uint64_t)net->max_batch * layer->ldy),
                               .from = forward_moment(i),
                               .to = own > above ? own : above,
                               .of = &layer->at_y};
}

static struct fl__buffer life_of_dy(const struct fl_net *net, size_t i)
{
    struct fl__layer *layer = &net->layers[i];

    return (struct fl__buffer){.n = fl__arena_piece((uint64_t)net->max_batch * layer->ldy),
                               .from = readers_of(net, i + 1).graded_from,
                               .to = backward_moment(net, i),
                               .of = &layer->at_dy};
}

/* The gradient of layer i's input, before it is added to that of another reader. */
static struct fl__buffer life_of_spare(const struct fl_net *net, size_t i)
{
    struct fl__layer *layer = &net->layers[i];
    size_t ld = net->layers[layer->from - 1].ldy;

    return (struct fl__buffer){.n = fl__arena_piece((uint64_t)net->max_batch * ld),
                               .from = backward_moment(net, i),
                               .to = backward_moment(net, i),
                               .of = &layer->at_spare};
}

size_t fl__net_lives(struct fl_net *net, struct fl__buffer buffers[FL__NET_BUFFERS])
{
    size_t n = 0;
    size_t i;

    if (net->image_first) {
        buffers[n++] =
            (struct fl__buffer){.n = fl__arena_piece((uint64_t)net->max_batch * net->ld_image),
                                .to = readers_of(net, 0).to,
                                .of = &net->at_image};
    }
    for (i = 0; i < net->n_layers; i++) {
        if (!net->layers[i].skip) {
            buffers[n++] = life_of_y(net, i);
            if (net->layers[i].graded) {
                buffers[n++] = life_of_dy(net, i);
            }
            if (net->layers[i].add_dx) {
                buffers[n++] = life_of_spare(net, i);
            }
        }
    }
    return n;
}

/* --- the block --- */

static uint8_t *take_bytes(struct fl__arena *arena, uint64_t n)
{
    return (uint8_t *)(void *)fl__arena_take(arena, (n + sizeof(float) - 1) / sizeof(float));
}

/* Plan the memory of a training batch. */
static void net_memory_plan_training(struct fl_net *net, struct fl__arena *arena)
{
    float *batch;
    size_t i;

    for (i = 0; i < net->n_layers; i++) {
        struct fl__layer *layer = &net->layers[i];

        if (!layer->skip) {
            layer->state = fl__arena_take(arena, layer->n_state);
            layer->index = take_bytes(arena, (uint64_t)net->max_batch * layer->n_index);
        }
    }
    batch = fl__arena_take(arena, net->n_batch);
    net->image = batch != NULL && net->image_first ? batch + net->at_image : NULL;
    for (i = 0; i < net->n_layers && batch != NULL; i++) {
        struct fl__layer *layer = &net->layers[i];

        layer->y = layer->skip ? NULL : batch + layer->at_y;
        layer->dy = layer->skip || !layer->graded ? NULL : batch + layer->at_dy;
        layer->spare = layer->add_dx ? batch + layer->at_spare : NULL;
    }
}

/* Plan the memory of a piece of an evaluation. */
static void net_memory_plan_evaluation(struct fl_net *net, struct fl__arena *arena)
{
    uint64_t widest[FL__NET_TURNS];
    uint64_t n_index = 0;
    uint64_t each = net->inputs; /* of the input, which the caller owns */
    size_t i;

    fl__net_take_turns(net, widest);
    for (i = 0; i < net->n_layers; i++) {
        const struct fl__layer *layer = &net->layers[i];

        if (!layer->skip && !layer->ops->training_only) {
            n_index = layer->n_index > n_index ? layer->n_index : n_index;
        }
    }
    for (i = 0; i < FL__NET_TURNS; i++) {
        each += widest[i];
    }
    each += n_index / sizeof(float);
    net->piece =
        (size_t)(PIECE_FLOATS / each < FL__NET_PIECE_MAX ? PIECE_FLOATS / each : FL__NET_PIECE_MAX);
    net->piece = net->piece > 0 ? net->piece : 1;
    for (i = 0; i < FL__NET_TURNS; i++) {
        net->turn[i] = widest[i] > 0 ? fl__arena_take(arena, net->piece * widest[i]) : NULL;
    }
    net->index = take_bytes(arena, net->piece * n_index);
}

/* Parameters and scratch, then activations: training and evaluation share one region. */
static void net_memory_plan(struct fl_net *net, struct fl__arena *arena)
{
    struct fl__arena evaluation;
    uint64_t scratch = 16;
    uint64_t before;
    size_t i;

    net->params = fl__arena_take(arena, net->n_block);
    for (i = 0; i < net->n_layers; i++) {
        scratch = net->layers[i].n_scratch > scratch ? net->layers[i].n_scratch : scratch;
    }
    net->scratch = fl__arena_take(arena, scratch);
    before = arena->used;
    evaluation = *arena;
    net->activations = arena->base != NULL ? arena->base + before : NULL;
    if (net->max_batch > 0) {
        net_memory_plan_training(net, arena);
    }
    net_memory_plan_evaluation(net, &evaluation);
    net->n_before = (size_t)before;
    net->n_activations = (size_t)(arena->used - before);
    net->n_evaluation = (size_t)(evaluation.used - before);
    arena->used = arena->used > evaluation.used ? arena->used : evaluation.used;
}

int fl__net_take_memory(struct fl_net *net, struct fl_err *err)
{
    struct fl__arena arena = {0};
    size_t i;

    net->ld_image = fl_dense_stride(net->inputs);
    for (i = 0; i < net->n_layers; i++) {
        net->layers[i].ldy = fl_dense_stride(fl__shape_count(&net->layers[i].out));
    }
    if (net->max_batch > 0) {
        struct fl__buffer buffers[FL__NET_BUFFERS];
        size_t n = fl__net_lives(net, buffers);

        net->n_batch = (size_t)fl__plan(buffers, n);
        for (i = 0; i < n; i++) {
            *(size_t *)buffers[i].of = (size_t)buffers[i].at;
        }
    }
    net_memory_plan(net, &arena);
    if (arena.used > FL__NET_MAX_FLOATS) {
        return fl_err_set(err, FL_ECONF, "the network needs more than 2 GiB for batches of %zu",
                          net->max_batch);
    }
    net->memory = fl__net_floats(arena.used);
    if (net->memory == NULL) {
        return fl_err_set(err, FL_ENOMEM, "the network needs %llu MB",
                          (unsigned long long)(arena.used * sizeof(float) >> 20));
    }
    arena = (struct fl__arena){.base = net->memory};
    net_memory_plan(net, &arena);
    /* Padding of parameters must be and stay zero; working memory is written before it is read. */
    (void)memset(net->memory, 0, net->n_before * sizeof(float));
    return FL_OK;
}

/* Release the whole pages of a region, if it is large enough for huge pages. */
static void net_memory_release(float *p, size_t n)
{
    uintptr_t from = ((uintptr_t)p + PAGE_MAX - 1) / PAGE_MAX * PAGE_MAX;
    uintptr_t to = (uintptr_t)(p + n) / PAGE_MAX * PAGE_MAX;

    if (p != NULL && n * sizeof(*p) >= HUGE_PAGE) {
        /* on failure the memory stays */
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
}

void fl_net_release(struct fl_net *net)
{
    net_memory_release(net->activations, net->n_activations > net->n_evaluation
                                             ? net->n_activations
                                             : net->n_evaluation);
    net_memory_release(net->along.memory, net->along.n);
}
