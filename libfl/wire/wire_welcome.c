/*
 * Welcome: describes the federation to a client, above all the layout of the model. Pure functions,
 * any thread.
 */

#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/wire_impl.h"

/* An hour: a longer interval is useless as a heartbeat. */
#define HEARTBEAT_MAX_MS 3600000

/* --- encoding --- */

static char *welcome_borrow_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

static int fill_tensors(struct fl__wire_arena *arena, const struct fl_layout *layout,
                        Fl__V1__Tensor **ret)
{
    size_t n = fl_layout_tensors(layout);
    Fl__V1__Tensor *tensors = fl__arena_array(arena, n, sizeof(*tensors));
    uint32_t *dims = fl__arena_array(arena, n * FL_LAYOUT_MAX_DIMS, sizeof(*dims));
    size_t i;
    size_t d;

    if (tensors == NULL || dims == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, i);

        fl__v1__tensor__init(&tensors[i]);
        tensors[i].name = welcome_borrow_text(tensor->name);
        tensors[i].buffer = tensor->buffer;
        tensors[i].local = tensor->local;
        tensors[i].dims = dims + i * FL_LAYOUT_MAX_DIMS;
        tensors[i].n_dims = tensor->n_dims;
        for (d = 0; d < tensor->n_dims; d++) {
            if (tensor->dims[d] > UINT32_MAX) {
                return FL_ELIMIT;
            }
            tensors[i].dims[d] = (uint32_t)tensor->dims[d];
        }
    }
    *ret = tensors;
    return FL_OK;
}

static int fill_units(struct fl__wire_arena *arena, const struct fl_layout *layout,
                      Fl__V1__ModelDescription *msg)
{
    size_t n = fl_layout_units(layout);
    Fl__V1__Unit *units = fl__arena_array(arena, n, sizeof(*units));
    Fl__V1__Tensor **list =
        fl__arena_array(arena, fl_layout_tensors(layout), sizeof(Fl__V1__Tensor *));
    Fl__V1__Tensor *tensors = NULL;
    size_t i;
    int rv;

    msg->n_units = n;
    msg->units = fl__arena_array(arena, n, sizeof(*msg->units));
    if (units == NULL || list == NULL || msg->units == NULL) {
        return FL_ENOMEM;
    }
    rv = fill_tensors(arena, layout, &tensors);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < fl_layout_tensors(layout); i++) {
        list[i] = &tensors[i];
    }
    for (i = 0; i < n; i++) {
        const struct fl_unit *unit = fl_layout_unit(layout, i);

        fl__v1__unit__init(&units[i]);
        units[i].name = welcome_borrow_text(unit->name);
        units[i].tensors = list + unit->first_tensor;
        units[i].n_tensors = unit->n_tensors;
        msg->units[i] = &units[i];
    }
    msg->digest = fl__wire_bytes(fl_layout_digest(layout), FL_DIGEST_SIZE);
    return FL_OK;
}

static Fl__V1__Slot *fill_slot(struct fl__wire_arena *arena, const struct fl_wire_slot *slot)
{
    size_t n = slot->n_options;
    Fl__V1__Slot *msg = fl__arena_array(arena, 1, sizeof(*msg));
    Fl__V1__Slot__OptionsEntry *entries = fl__arena_array(arena, n, sizeof(*entries));
    size_t i;

    if (msg == NULL || entries == NULL) {
        return NULL;
    }
    fl__v1__slot__init(msg);
    msg->name = slot->name;
    msg->n_options = n;
    msg->options = fl__arena_array(arena, n, sizeof(*msg->options));
    if (msg->options == NULL) {
        return NULL;
    }
    for (i = 0; i < n; i++) {
        fl__v1__slot__options_entry__init(&entries[i]);
        entries[i].key = slot->options[i].key;
        entries[i].value = slot->options[i].value;
        msg->options[i] = &entries[i];
    }
    return msg;
}

static int fill_model(struct fl__wire_arena *arena, const struct fl_wire_welcome *welcome,
                      Fl__V1__Welcome *msg)
{
    Fl__V1__ModelDescription *model = fl__arena_array(arena, 1, sizeof(*model));

    if (model == NULL) {
        return FL_ENOMEM;
    }
    fl__v1__model_description__init(model);
    model->n_input = welcome->n_input;
    model->input = welcome->input;
    model->n_layers = welcome->n_layers;
    model->layers = welcome->layers;
    model->classes = welcome->classes;
    msg->model = model;
    return fill_units(arena, welcome->layout, model);
}

int fl__wire_welcome_fill(struct fl__wire_arena *arena, const struct fl_wire_welcome *welcome,
                          ProtobufCMessage **ret)
{
    Fl__V1__Welcome *msg = fl__arena_array(arena, 1, sizeof(*msg));
    Fl__V1__Limits *limits = fl__arena_array(arena, 1, sizeof(*limits));
    Fl__V1__TrainingOptions *training = fl__arena_array(arena, 1, sizeof(*training));

    if (msg == NULL || limits == NULL || training == NULL) {
        return FL_ENOMEM;
    }
    fl__v1__welcome__init(msg);
    fl__v1__limits__init(limits);
    fl__v1__training_options__init(training);
    msg->version = welcome->version;
    msg->federation = welcome->federation;
    msg->session = fl__wire_bytes(welcome->session.id, FL_WIRE_SESSION);
    msg->heartbeat_interval_ms = welcome->heartbeat_ms;
    msg->solver = fill_slot(arena, &welcome->solver);
    msg->codec = fill_slot(arena, &welcome->codec);
    msg->upload = welcome->upload.name != NULL ? fill_slot(arena, &welcome->upload) : NULL;
    msg->personal = welcome->personal.name != NULL ? fill_slot(arena, &welcome->personal) : NULL;
    if (msg->solver == NULL || msg->codec == NULL ||
        (msg->upload == NULL) != (welcome->upload.name == NULL) ||
        (msg->personal == NULL) != (welcome->personal.name == NULL))
    {
        return FL_ENOMEM;
    }
    msg->wants_previous_dot = welcome->wants_previous_dot;
    msg->wants_offer = welcome->wants_offer;
    msg->line = fl__wire_bytes(welcome->line, sizeof(welcome->line));
    msg->kept_line = fl__wire_bytes(welcome->kept_line, sizeof(welcome->kept_line));
    limits->chunk_bytes = welcome->limits.chunk_bytes;
    limits->message_bytes = welcome->limits.message_bytes;
    limits->streams = welcome->limits.streams;
    limits->idle_ms = welcome->limits.idle_ms;
    msg->limits = limits;
    training->epochs = welcome->training.epochs;
    training->steps = welcome->training.steps;
    training->batch_size = welcome->training.batch_size;
    training->momentum = welcome->training.momentum;
    training->weight_decay = welcome->training.weight_decay;
    msg->training = training;
    *ret = &msg->base;
    return fill_model(arena, welcome, msg);
}

/* --- decoding --- */

static int welcome_add_tensor(struct fl_layout *layout, const Fl__V1__Unit *unit,
                              const Fl__V1__Tensor *tensor, struct fl_err *err)
{
    struct fl_tensor like = {
        .n_dims = tensor->n_dims, .buffer = tensor->buffer != 0, .local = tensor->local != 0};
    size_t i;
    int rv = fl__wire_check_count("ServerCommand.welcome.model.units.tensors.dims", tensor->n_dims,
                                  FL_LAYOUT_MAX_DIMS, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < tensor->n_dims; i++) {
        like.dims[i] = tensor->dims[i];
    }
    if (fl_str_copy(like.name, sizeof(like.name), tensor->name) != FL_OK) {
        return fl_err_set(err, FL_EPROTO,
                          "ServerCommand.welcome.model.units.tensors.name: is longer than %d bytes",
                          FL_NAME_MAX - 1);
    }
    rv = fl_layout_add_like(layout, unit->name, &like, err);
    return rv == FL_OK || rv == FL_ENOMEM
               ? rv
               : fl_err_wrap(err, FL_EPROTO, "ServerCommand.welcome.model.units");
}

/*
 * The layout starts a new unit where the name changes, so adjacent units of one name would silently
 * merge. The layout checks whether a name is valid.
 */
static int add_unit(struct fl_layout *layout, const Fl__V1__ModelDescription *msg, size_t i,
                    struct fl_err *err)
{
    const Fl__V1__Unit *unit = msg->units[i];
    size_t t;
    int rv = FL_OK;

    if (unit->n_tensors == 0) {
        return fl_err_set(err, FL_EPROTO, "ServerCommand.welcome.model.units[%zu]: has no tensors",
                          i);
    }
    if (i > 0 && strcmp(unit->name, msg->units[i - 1]->name) == 0) {
        return fl_err_set(err, FL_EPROTO,
                          "ServerCommand.welcome.model.units[%zu]: has the name of the one before",
                          i);
    }
    for (t = 0; t < unit->n_tensors && rv == FL_OK; t++) {
        rv = welcome_add_tensor(layout, unit, unit->tensors[t], err);
    }
    return rv;
}

static int check_digest(const struct fl_layout *layout, const ProtobufCBinaryData *value,
                        struct fl_err *err)
{
    uint8_t digest[FL_DIGEST_SIZE];
    bool has = false;
    int rv = fl__wire_copy_digest("ServerCommand.welcome.model.digest", value, &has, digest, err);

    if (rv != FL_OK || !has) {
        return rv;
    }
    if (memcmp(digest, fl_layout_digest(layout), FL_DIGEST_SIZE) != 0) {
        return fl_err_set(err, FL_EPROTO,
                          "ServerCommand.welcome.model.digest: is not that of the units described");
    }
    return FL_OK;
}

static int take_layout(const Fl__V1__ModelDescription *msg, struct fl_layout **ret,
                       struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    size_t i;
    int rv = fl__wire_check_range("ServerCommand.welcome.model.units", msg->n_units, 1,
                                  FL_LAYOUT_MAX_UNITS, err);

    if (rv == FL_OK) {
        rv = fl_layout_create(&layout);
    }
    for (i = 0; rv == FL_OK && i < msg->n_units; i++) {
        rv = add_unit(layout, msg, i, err);
    }
    if (rv == FL_OK) {
        rv = fl_layout_finish(layout, err);
        if (rv != FL_OK && rv != FL_ENOMEM) {
            rv = fl_err_wrap(err, FL_EPROTO, "ServerCommand.welcome.model.units");
        }
    }
    if (rv == FL_OK) {
        rv = check_digest(layout, &msg->digest, err);
    }
    if (rv != FL_OK) {
        fl_layout_free(layout);
        return rv;
    }
    *ret = layout;
    return FL_OK;
}

static int take_input(const Fl__V1__ModelDescription *msg, struct fl_wire_welcome *ret,
                      struct fl_err *err)
{
    static const char field[] = "ServerCommand.welcome.model.input";
    size_t i;
    int rv = fl__wire_check_count(field, msg->n_input, FL_LAYOUT_MAX_DIMS, err);

    if (rv != FL_OK || msg->n_input == 0) {
        return rv;
    }
    ret->input = calloc(msg->n_input, sizeof(*ret->input));
    if (ret->input == NULL) {
        return FL_ENOMEM;
    }
    ret->n_input = msg->n_input;
    for (i = 0; i < msg->n_input && rv == FL_OK; i++) {
        ret->input[i] = msg->input[i];
        rv = fl__wire_check_range(field, msg->input[i], 1, UINT32_MAX, err);
    }
    return rv;
}

static int take_layers(const Fl__V1__ModelDescription *msg, struct fl_wire_welcome *ret,
                       struct fl_err *err)
{
    static const char field[] = "ServerCommand.welcome.model.layers";
    size_t i;
    int rv = fl__wire_check_count(field, msg->n_layers, FL_WIRE_MAX_LAYERS, err);

    if (rv != FL_OK || msg->n_layers == 0) {
        return rv;
    }
    ret->layers = calloc(msg->n_layers, sizeof(*ret->layers));
    if (ret->layers == NULL) {
        return FL_ENOMEM;
    }
    ret->n_layers = msg->n_layers;
    for (i = 0; i < msg->n_layers && rv == FL_OK; i++) {
        rv = fl__wire_take_text(field, msg->layers[i], &ret->layers[i], err);
    }
    return rv;
}

static int welcome_take_model(const Fl__V1__ModelDescription *msg, struct fl_wire_welcome *ret,
                              struct fl_err *err)
{
    int rv = fl__wire_check_set("ServerCommand.welcome.model", msg, err);

    if (rv != FL_OK || (rv = take_layout(msg, &ret->layout, err)) != FL_OK ||
        (rv = take_input(msg, ret, err)) != FL_OK || (rv = take_layers(msg, ret, err)) != FL_OK)
    {
        return rv;
    }
    ret->classes = msg->classes;
    return FL_OK;
}

struct slot_fields {
    const char *self, *name, *options;
};

static int take_slot(const struct slot_fields *field, const Fl__V1__Slot *msg,
                     struct fl_wire_slot *ret, struct fl_err *err)
{
    struct fl__pair_ref refs[FL_WIRE_MAX_PAIRS];
    size_t i;
    int rv;

    if ((rv = fl__wire_check_set(field->self, msg, err)) != FL_OK ||
        (rv = fl__wire_take_name(field->name, msg->name, &ret->name, err)) != FL_OK ||
        (rv = fl__wire_check_count(field->options, msg->n_options, FL_WIRE_MAX_PAIRS, err)) !=
            FL_OK)
    {
        return rv;
    }
    for (i = 0; i < msg->n_options; i++) {
        refs[i] = (struct fl__pair_ref){msg->options[i]->key, msg->options[i]->value};
        rv = fl__wire_check_name(field->options, refs[i].key, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl__wire_take_pairs(field->options, refs, msg->n_options, &ret->options, &ret->n_options,
                               err);
}

static int take_limits(const Fl__V1__Limits *msg, struct fl_wire_limits *ret, struct fl_err *err)
{
    int rv;

    if ((rv = fl__wire_check_set("ServerCommand.welcome.limits", msg, err)) != FL_OK ||
        (rv = fl__wire_check_range("ServerCommand.welcome.limits.chunk_bytes", msg->chunk_bytes, 1,
                                   FL_WIRE_CHUNK, err)) != FL_OK ||
        (rv = fl__wire_check_range("ServerCommand.welcome.limits.message_bytes", msg->message_bytes,
                                   msg->chunk_bytes, UINT32_MAX, err)) != FL_OK ||
        (rv = fl__wire_check_range("ServerCommand.welcome.limits.streams", msg->streams, 1,
                                   UINT32_MAX, err)) != FL_OK)
    {
        return rv;
    }
    *ret =
        (struct fl_wire_limits){msg->chunk_bytes, msg->message_bytes, msg->streams, msg->idle_ms};
    return FL_OK;
}

static int take_training(const Fl__V1__TrainingOptions *msg, struct fl_wire_training *ret,
                         struct fl_err *err)
{
    int rv;

    if ((rv = fl__wire_check_set("ServerCommand.welcome.training", msg, err)) != FL_OK ||
        (rv = fl__wire_check_range("ServerCommand.welcome.training.epochs", msg->epochs, 0,
                                   FL_WIRE_MAX_EPOCHS, err)) != FL_OK ||
        (rv = fl__wire_check_range("ServerCommand.welcome.training.steps", msg->steps, 0,
                                   FL_WIRE_MAX_STEPS, err)) != FL_OK ||
        (rv = fl__wire_check_range("ServerCommand.welcome.training.batch_size", msg->batch_size, 1,
                                   UINT32_MAX, err)) != FL_OK ||
        (rv = fl__wire_check_finite("ServerCommand.welcome.training.momentum", msg->momentum,
                                    err)) != FL_OK ||
        (rv = fl__wire_check_finite("ServerCommand.welcome.training.weight_decay",
                                    msg->weight_decay, err)) != FL_OK)
    {
        return rv;
    }
    if (msg->epochs == 0 && msg->steps == 0) {
        return fl_err_set(err, FL_EPROTO,
                          "ServerCommand.welcome.training: neither epochs nor steps are set");
    }
    *ret = (struct fl_wire_training){msg->epochs, msg->steps, msg->batch_size, msg->momentum,
                                     msg->weight_decay};
    return FL_OK;
}

int fl__wire_welcome_take(const ProtobufCMessage *base, struct fl_wire_welcome *ret,
                          struct fl_err *err)
{
    static const struct slot_fields solver = {"ServerCommand.welcome.solver",
                                              "ServerCommand.welcome.solver.name",
                                              "ServerCommand.welcome.solver.options"};
    static const struct slot_fields codec = {"ServerCommand.welcome.codec",
                                             "ServerCommand.welcome.codec.name",
                                             "ServerCommand.welcome.codec.options"};
    static const struct slot_fields upload = {"ServerCommand.welcome.upload",
                                              "ServerCommand.welcome.upload.name",
                                              "ServerCommand.welcome.upload.options"};
    static const struct slot_fields personal = {"ServerCommand.welcome.personal",
                                                "ServerCommand.welcome.personal.name",
                                                "ServerCommand.welcome.personal.options"};
    const Fl__V1__Welcome *msg = (const Fl__V1__Welcome *)base;
    bool has = false; /* A server that sends no generations has one that never changes. */
    int rv;

    ret->version = msg->version;
    ret->heartbeat_ms = msg->heartbeat_interval_ms;
    ret->wants_previous_dot = msg->wants_previous_dot;
    ret->wants_offer = msg->wants_offer;
    if ((rv = fl__wire_check_range("ServerCommand.welcome.version", msg->version,
                                   FL_WIRE_VERSION_MIN, FL_WIRE_VERSION, err)) != FL_OK ||
        (rv = fl__wire_take_name("ServerCommand.welcome.federation", msg->federation,
                                 &ret->federation, err)) != FL_OK ||
        (rv = fl__wire_copy_session("ServerCommand.welcome.session", &msg->session, &ret->session,
                                    err)) != FL_OK ||
        (rv = welcome_take_model(msg->model, ret, err)) != FL_OK ||
        (rv = take_slot(&solver, msg->solver, &ret->solver, err)) != FL_OK ||
        (rv = take_slot(&codec, msg->codec, &ret->codec, err)) != FL_OK ||
        (msg->upload != NULL &&
         (rv = take_slot(&upload, msg->upload, &ret->upload, err)) != FL_OK) ||
        (msg->personal != NULL &&
         (rv = take_slot(&personal, msg->personal, &ret->personal, err)) != FL_OK) ||
        (rv = fl__wire_check_range("ServerCommand.welcome.heartbeat_interval_ms",
                                   msg->heartbeat_interval_ms, 1, HEARTBEAT_MAX_MS, err)) !=
            FL_OK ||
        (rv = fl__wire_copy_digest("ServerCommand.welcome.line", &msg->line, &has, ret->line,
                                   err)) != FL_OK ||
        (rv = fl__wire_copy_digest("ServerCommand.welcome.kept_line", &msg->kept_line, &has,
                                   ret->kept_line, err)) != FL_OK ||
        (rv = take_limits(msg->limits, &ret->limits, err)) != FL_OK ||
        (rv = take_training(msg->training, &ret->training, err)) != FL_OK)
    {
        return rv;
    }
    return FL_OK;
}

static void slot_done(struct fl_wire_slot *slot)
{
    free(slot->name);
    fl__wire_pairs_done(slot->options, slot->n_options);
}

void fl__wire_welcome_done(struct fl_wire_welcome *welcome)
{
    size_t i;

    free(welcome->federation);
    fl_layout_free(welcome->layout);
    free(welcome->input);
    for (i = 0; i < welcome->n_layers; i++) {
        free(welcome->layers[i]);
    }
    free(welcome->layers);
    slot_done(&welcome->solver);
    slot_done(&welcome->codec);
    slot_done(&welcome->upload);
    slot_done(&welcome->personal);
}
