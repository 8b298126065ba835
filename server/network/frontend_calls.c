/*
 * What the calls of the network front end have in common: messages to the coordinator, jobs on the
 * io thread, the ends of calls with an error, sessions and slots of clients. Network loop.
 */

#include <stdlib.h>
#include <string.h>

#include "server/network/frontend_impl.h"

void fl_frontend_up(struct fl_frontend *frontend, struct fl_coord_msg *up)
{
    frontend->setup.ops->post(frontend->setup.ctx, up);
}

int fl_frontend_on_disk(struct fl_frontend *frontend, fl_loop_cb work, fl_loop_cb done, void *arg)
{
    const struct fl_frontend_setup *to = &frontend->setup;

    if (to->io == NULL) {
        return FL_ECLOSED;
    }
    return fl_worker_thread_submit(to->io, work, done != NULL ? to->net : NULL, done, arg);
}

void fl_frontend_disk_closed(struct fl_frontend *frontend)
{
    if (frontend != NULL) {
        frontend->setup.io = NULL;
    }
}

void fl_frontend_fail(struct fl_call *call, int code, const struct fl_err *err)
{
    fl_call_finish(call, fl_grpc_status_from_err(code), fl_err_text(err, code));
}

const char *fl_frontend_public(const struct fl_frontend *frontend, const char *text, char *out,
                               size_t size)
{
    const char *dir = frontend->setup.state_dir;
    size_t skip = dir != NULL && dir[0] == '/' && dir[1] != '\0' ? strlen(dir) : 0;
    size_t at = 0;

    while (*text != '\0' && at + 1 < size) {
        if (skip > 0 && strncmp(text, dir, skip) == 0) {
            text += skip + (text[skip] == '/');
        } else {
            out[at++] = *text++;
        }
    }
    out[at] = '\0';
    return out;
}

void fl_frontend_finish(const struct fl_frontend *frontend, struct fl_call *call,
                        enum fl_grpc_status status, const char *message)
{
    char text[FL_ERR_BUF_SIZE];

    fl_call_finish(call, status,
                   message != NULL ? fl_frontend_public(frontend, message, text, sizeof(text))
                                   : NULL);
}

void fl_frontend_fail_request(struct fl_call *call, int code, const struct fl_err *err)
{
    fl_call_finish(call, fl_frontend_request_status(code), fl_err_text(err, code));
}

enum fl_grpc_status fl_frontend_request_status(int code)
{
    return code == FL_EPERM ? FL_GRPC_UNAUTHENTICATED : fl_grpc_status_from_err(code);
}

int fl_frontend_send(struct fl_call *call, const struct fl_buf *message)
{
    struct fl_piece piece = {.data = message->data, .len = message->len};

    return fl_call_send(call, &piece, 1);
}

struct fl_frontend_client *fl_frontend_client_at(struct fl_frontend *frontend, uint32_t client)
{
    if (client >= frontend->n_slots) {
        size_t n = frontend->n_slots < 64 ? 64 : frontend->n_slots * 2;
        struct fl_frontend_client *slots;

        while (n <= client) {
            n *= 2;
        }
        slots = realloc(frontend->slots, n * sizeof(*slots));
        if (slots == NULL) {
            return NULL;
        }
        (void)memset(slots + frontend->n_slots, 0, (n - frontend->n_slots) * sizeof(*slots));
        frontend->slots = slots;
        frontend->n_slots = n;
    }
    return &frontend->slots[client];
}

/* A renewed certificate is another one of the same name; peers without one are all alike. */
static bool frontend_is_same_peer(const struct fl_control_stream *stream,
                                  const struct fl_identity *identity)
{
    if (identity == NULL || identity->kind != FL_IDENTITY_CERTIFICATE) {
        return !stream->verified;
    }
    return stream->verified && strcmp(identity->name, stream->name) == 0;
}

/* The first four bytes of a token are the client's number, the rest is random. */
struct fl_control_stream *fl_frontend_session(struct fl_frontend *frontend,
                                              const struct fl_call *call,
                                              const struct fl_wire_session *token)
{
    struct fl_control_stream *stream;
    unsigned char differ = 0;
    uint32_t client;
    size_t i;

    (void)memcpy(&client, token->id, sizeof(client));
    if (client >= frontend->n_slots || frontend->slots[client].stream == NULL) {
        return NULL;
    }
    stream = frontend->slots[client].stream;
    for (i = 0; i < sizeof(token->id); i++) {
        differ |= (unsigned char)(token->id[i] ^ stream->token.id[i]);
    }
    return differ == 0 && frontend_is_same_peer(stream, fl_call_identity(call)) ? stream : NULL;
}

void fl_frontend_notice(struct fl_frontend *frontend, const char *peer, const char *reason,
                        const char *text)
{
    fl_log_reason(frontend->setup.log, FL_LOG_WARNING, "net", peer, reason, "%s: %s", peer, text);
}

int fl_frontend_exclude(struct fl_frontend *frontend, const char *name, enum fl_revoked_keeps keeps)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_EXCLUDE);

    if (up != NULL) {
        up->text = fl_str_dup(name);
        up->keeps = keeps;
    }
    if (up == NULL || up->text == NULL) {
        fl_coord_msg_free(up);
        return FL_ENOMEM;
    }
    fl_frontend_up(frontend, up);
    return FL_OK;
}

bool fl_frontend_is_connected(const struct fl_frontend *frontend, const char *name)
{
    size_t i;

    for (i = 0; i < frontend->n_slots; i++) {
        const struct fl_control_stream *stream = frontend->slots[i].stream;

        if (stream != NULL && strcmp(stream->name, name) == 0) {
            return true;
        }
    }
    return false;
}

uint64_t fl_frontend_expelled(const struct fl_frontend *frontend)
{
    return frontend->n_expelled;
}

uint16_t fl_frontend_port(const struct fl_frontend *frontend)
{
    return frontend->port;
}
