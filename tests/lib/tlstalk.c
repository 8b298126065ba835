#include "tests/lib/tlstalk.h"

#include <stdlib.h>

#include "libfl/tls/tls_impl.h"

struct fl_account *tlstalk_account[2];

static void start(struct tlstalk *talk, struct tlsrig *rig, int side, struct end *end)
{
    end->world = &talk->world;
    end->stream = &talk->link.end[side].stream;
    ck_assert_int_eq(fl_stream_wrap(&rig->filter[side], &end->stream), FL_OK);
    if (tlstalk_account[side] != NULL) {
        fl_stream_charge(end->stream, tlstalk_account[side]);
    }
    talk->world.inside = true;
    fl_stream_start(end->stream, &ends_cbs, end);
    talk->world.inside = false;
}

void tlstalk_begin(struct tlstalk *talk, struct tlsrig *rig, bool client, bool server)
{
    *talk = (struct tlstalk){0};
    memlink_init(&talk->link);
    talk->client = &talk->world.end[CLIENT];
    talk->server = &talk->world.end[0];
    talk->link.end[MEMLINK_CLIENT].opened = !client;
    talk->link.end[MEMLINK_SERVER].opened = !server;
    if (client) {
        start(talk, rig, TLSRIG_CLIENT, talk->client);
    }
    if (server) {
        start(talk, rig, TLSRIG_SERVER, talk->server);
    }
}

void tlstalk_send(struct end *end, const void *data, size_t len)
{
    end->out = data;
    end->out_len = len;
    end->sent = 0;
    end->world->inside = true;
    fl_stream_wake(end->stream);
    end->world->inside = false;
}

void tlstalk_expect(struct end *end, size_t len)
{
    end->in = malloc(len);
    ck_assert_ptr_nonnull(end->in);
    end->in_cap = len;
}

void tlstalk_run(struct tlstalk *talk)
{
    memlink_run(&talk->link);
}

void tlstalk_end(struct tlstalk *talk)
{
    struct end *ends[] = {talk->client, talk->server};
    int i;

    for (i = 0; i < 2; i++) {
        if (ends[i]->stream != NULL) {
            talk->world.inside = true;
            fl_stream_close(ends[i]->stream);
            talk->world.inside = false;
        }
    }
    tlstalk_run(talk);
    for (i = 0; i < 2; i++) {
        ck_assert_ptr_null(ends[i]->stream);
        ck_assert_uint_eq(ends[i]->closed, ends[i]->world != NULL);
        free(ends[i]->in);
    }
    memlink_done(&talk->link);
}

void tlstalk_check_up(const struct tlstalk *talk)
{
    const struct fl_identity *client;
    const struct fl_identity *server;

    ck_assert_msg(talk->client->stream != NULL, "%s", talk->client->text);
    ck_assert_msg(talk->server->stream != NULL, "%s", talk->server->text);
    ck_assert_uint_eq(talk->client->opened, 1);
    ck_assert_uint_eq(talk->server->opened, 0);
    client = fl_stream_identity(talk->server->stream);
    server = fl_stream_identity(talk->client->stream);
    ck_assert_ptr_nonnull(client);
    ck_assert_ptr_nonnull(server);
    ck_assert_int_eq((int)client->kind, (int)FL_IDENTITY_CERTIFICATE);
    ck_assert_int_eq((int)client->role, (int)FL_ROLE_CLIENT);
    ck_assert_str_eq(client->name, "edge-001");
    ck_assert_int_eq((int)server->role, (int)FL_ROLE_SERVER);
    ck_assert_str_eq(server->name, "main");
}

bool tlstalk_resumed(const struct end *end)
{
    return SSL_session_reused(((const struct fl__tls_stream *)end->stream)->ssl) == 1;
}
