/* Building of ONNX messages (onnx_graph.h) with the generated structs of protobuf-c. Pure. */
#include "libfl/onnx/onnx_graph.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"
#include "onnx/onnx.pb-c.h"

#define IR_VERSION 8
#define OPSET      17
#define INPUTS_MAX 8

/* All memory of a graph is one list of blocks, freed together. */
struct onnx_block {
    struct onnx_block *next;
    max_align_t data[];
};

/* Growing lists of the messages; protobuf-c has their numbers but no capacity. */
struct fl__onnx {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    size_t cap_nodes, cap_tensors, cap_inputs, cap_outputs, cap_attributes;
    struct onnx_block *blocks;
    bool no_memory;
};

/* Zeroed memory that lives as long as the graph; NULL: out of memory, which is remembered. */
static void *onnx_take(struct fl__onnx *g, size_t size)
{
    struct onnx_block *block = calloc(1, sizeof(*block) + size);

    if (block == NULL) {
        g->no_memory = true;
        return NULL;
    }
    block->next = g->blocks;
    g->blocks = block;
    return block->data;
}

static char *onnx_text(struct fl__onnx *g, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = onnx_take(g, size);

    if (copy != NULL) {
        (void)memcpy(copy, text, size);
    }
    return copy;
}

static int64_t *onnx_numbers(struct fl__onnx *g, const int64_t *values, size_t n)
{
    int64_t *copy = onnx_take(g, n * sizeof(*copy));

    if (copy != NULL && n > 0) { /* A scalar has no dimensions. */
        (void)memcpy(copy, values, n * sizeof(*copy));
    }
    return copy;
}

/* Make room for one more message in a list of pointers. */
static bool onnx_room(struct fl__onnx *g, void *list, size_t *cap, size_t n)
{
    if (g->no_memory || fl_grow(list, cap, n, sizeof(void *)) != FL_OK) {
        g->no_memory = true;
        return false;
    }
    return true;
}

struct fl__onnx *fl__onnx_create(const char *name)
{
    struct fl__onnx *g = calloc(1, sizeof(*g));

    if (g != NULL) {
        onnx__model_proto__init(&g->model);
        onnx__graph_proto__init(&g->graph);
        g->graph.name = onnx_text(g, name);
        g->model.graph = &g->graph;
    }
    return g;
}

void fl__onnx_free(struct fl__onnx *g)
{
    size_t i;

    if (g == NULL) {
        return;
    }
    for (i = 0; i < g->graph.n_node; i++) {
        free(g->graph.node[i]->attribute);
    }
    free(g->graph.node);
    free(g->graph.initializer);
    free(g->graph.input);
    free(g->graph.output);
    while (g->blocks != NULL) {
        struct onnx_block *next = g->blocks->next;

        free(g->blocks);
        g->blocks = next;
    }
    free(g);
}

/* The shape of a port: the batch has a name, the rest are numbers. */
static Onnx__TensorShapeProto *onnx_shape(struct fl__onnx *g, const size_t *dims, size_t n)
{
    Onnx__TensorShapeProto *shape = onnx_take(g, sizeof(*shape));
    Onnx__TensorShapeProto__Dimension *each = onnx_take(g, (n + 1) * sizeof(*each));
    Onnx__TensorShapeProto__Dimension **list = onnx_take(g, (n + 1) * sizeof(*list));
    size_t i;

    if (shape == NULL || each == NULL || list == NULL) {
        return NULL;
    }
    onnx__tensor_shape_proto__init(shape);
    for (i = 0; i <= n; i++) {
        onnx__tensor_shape_proto__dimension__init(&each[i]);
        each[i].value_case = i == 0 ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                    : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (i == 0) {
            each[i].dim_param = onnx_text(g, "batch");
        } else {
            each[i].dim_value = (int64_t)dims[i - 1];
        }
        list[i] = &each[i];
    }
    shape->n_dim = n + 1;
    shape->dim = list;
    return shape;
}

void fl__onnx_port(struct fl__onnx *g, bool output, const char *name, const size_t *dims, size_t n)
{
    Onnx__ValueInfoProto *port = onnx_take(g, sizeof(*port));
    Onnx__TypeProto *type = onnx_take(g, sizeof(*type));
    Onnx__TypeProto__Tensor *tensor = onnx_take(g, sizeof(*tensor));
    Onnx__TensorShapeProto *shape = onnx_shape(g, dims, n);
    bool room = output ? onnx_room(g, &g->graph.output, &g->cap_outputs, g->graph.n_output)
                       : onnx_room(g, &g->graph.input, &g->cap_inputs, g->graph.n_input);

    if (port == NULL || type == NULL || tensor == NULL || shape == NULL || !room) {
        return;
    }
    onnx__value_info_proto__init(port);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    tensor->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    port->name = onnx_text(g, name);
    port->type = type;
    if (output) {
        g->graph.output[g->graph.n_output++] = port;
    } else {
        g->graph.input[g->graph.n_input++] = port;
    }
}

static void onnx_tensor(struct fl__onnx *g, const char *name, const int64_t *dims, size_t n,
                        int32_t type, void *data, size_t size)
{
    Onnx__TensorProto *tensor = onnx_take(g, sizeof(*tensor));
    bool room = onnx_room(g, &g->graph.initializer, &g->cap_tensors, g->graph.n_initializer);

    if (tensor == NULL || !room) {
        return;
    }
    onnx__tensor_proto__init(tensor);
    tensor->name = onnx_text(g, name);
    tensor->n_dims = n;
    tensor->dims = onnx_numbers(g, dims, n);
    tensor->data_type = type;
    tensor->raw_data.len = size;
    tensor->raw_data.data = data;
    g->graph.initializer[g->graph.n_initializer++] = tensor;
}

void fl__onnx_floats(struct fl__onnx *g, const char *name, const size_t *dims, size_t n,
                     const float *values)
{
    int64_t sizes[8];
    size_t count = 1;
    size_t i;

    FL_REQUIRE(n <= sizeof(sizes) / sizeof(*sizes));
    for (i = 0; i < n; i++) {
        sizes[i] = (int64_t)dims[i];
        count *= dims[i];
    }
    /* protobuf-c has no const; packing only reads. */
    onnx_tensor(g, name, sizes, n, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (void *)(uintptr_t)values,
                count * sizeof(*values));
}

void fl__onnx_ints(struct fl__onnx *g, const char *name, const int64_t *values, size_t n)
{
    onnx_tensor(g, name, (const int64_t[]){(int64_t)n}, 1, ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
                onnx_numbers(g, values, n), n * sizeof(*values));
}

float *fl__onnx_blank(struct fl__onnx *g, const char *name, const size_t *dims, size_t n)
{
    size_t count = 1;
    float *values;
    size_t i;

    for (i = 0; i < n; i++) {
        count *= dims[i];
    }
    values = onnx_take(g, count * sizeof(*values));
    if (values != NULL) {
        fl__onnx_floats(g, name, dims, n, values);
    }
    return values;
}

void fl__onnx_index(struct fl__onnx *g, const char *name, int64_t value)
{
    onnx_tensor(g, name, NULL, 0, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, onnx_numbers(g, &value, 1),
                sizeof(value));
}

void fl__onnx_repeated(struct fl__onnx *g, const char *name, float value, size_t n)
{
    float *values = fl__onnx_blank(g, name, &n, 1);
    size_t i;

    for (i = 0; values != NULL && i < n; i++) {
        values[i] = value;
    }
}

void fl__onnx_scalar(struct fl__onnx *g, const char *name, float value)
{
    float *copy;
    size_t i;

    for (i = 0; i < g->graph.n_initializer && !g->no_memory; i++) {
        if (strcmp(g->graph.initializer[i]->name, name) == 0) {
            return;
        }
    }
    copy = onnx_take(g, sizeof(*copy));
    if (copy != NULL) {
        *copy = value;
        onnx_tensor(g, name, NULL, 0, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, copy, sizeof(*copy));
    }
}

void fl__onnx_node(struct fl__onnx *g, const char *op, const char *const *inputs,
                   const char *output)
{
    Onnx__NodeProto *node = onnx_take(g, sizeof(*node));
    char **lists = onnx_take(g, (INPUTS_MAX + 1) * sizeof(*lists));
    bool room = onnx_room(g, &g->graph.node, &g->cap_nodes, g->graph.n_node);
    size_t i;

    if (node == NULL || lists == NULL || !room) {
        return;
    }
    onnx__node_proto__init(node);
    for (i = 0; inputs[i] != NULL; i++) {
        FL_REQUIRE(i < INPUTS_MAX);
        lists[i] = onnx_text(g, inputs[i]);
    }
    node->n_input = i;
    node->input = lists;
    node->n_output = 1;
    node->output = lists + INPUTS_MAX;
    node->output[0] = onnx_text(g, output);
    node->name = node->output[0];
    node->op_type = onnx_text(g, op);
    g->graph.node[g->graph.n_node++] = node;
    g->cap_attributes = 0;
}

static Onnx__AttributeProto *onnx_attribute(struct fl__onnx *g, const char *name,
                                            Onnx__AttributeProto__AttributeType type)
{
    Onnx__NodeProto *node = g->no_memory ? NULL : g->graph.node[g->graph.n_node - 1];
    Onnx__AttributeProto *attribute = onnx_take(g, sizeof(*attribute));

    if (node == NULL || attribute == NULL ||
        !onnx_room(g, &node->attribute, &g->cap_attributes, node->n_attribute))
    {
        return NULL;
    }
    onnx__attribute_proto__init(attribute);
    attribute->name = onnx_text(g, name);
    attribute->type = type;
    node->attribute[node->n_attribute++] = attribute;
    return attribute;
}

void fl__onnx_int(struct fl__onnx *g, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = onnx_attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    if (a != NULL) {
        a->i = value;
    }
}

void fl__onnx_float(struct fl__onnx *g, const char *name, float value)
{
    Onnx__AttributeProto *a = onnx_attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    if (a != NULL) {
        a->f = value;
    }
}

void fl__onnx_list(struct fl__onnx *g, const char *name, const int64_t *values, size_t n)
{
    Onnx__AttributeProto *a = onnx_attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

    if (a != NULL) {
        a->n_ints = n;
        a->ints = onnx_numbers(g, values, n);
    }
}

int fl__onnx_pack(struct fl__onnx *g, struct fl_buf *out)
{
    Onnx__OperatorSetIdProto set;
    Onnx__OperatorSetIdProto *sets[1] = {&set};
    static char producer[] = "fl";
    static char version[] = PACKAGE_VERSION;
    size_t size;
    int rv;

    if (g->no_memory) {
        return FL_ENOMEM;
    }
    onnx__operator_set_id_proto__init(&set);
    set.version = OPSET;
    g->model.ir_version = IR_VERSION;
    g->model.producer_name = producer;
    g->model.producer_version = version;
    g->model.n_opset_import = 1;
    g->model.opset_import = sets;
    size = onnx__model_proto__get_packed_size(&g->model);
    rv = fl_buf_reserve(out, size);
    if (rv != FL_OK) {
        return rv;
    }
    out->len += onnx__model_proto__pack(&g->model, out->data + out->len);
    g->model.opset_import = NULL;
    g->model.n_opset_import = 0;
    return FL_OK;
}
