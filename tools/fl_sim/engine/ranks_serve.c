/*
 * A process of a shared worker pool that is not the leader: executes the leader's messages in order
 * and sends the answers. The main thread receives and sends; the pool's threads do the work. It
 * holds no state of the federation.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/engine/ranks_impl.h"

/* An unanswered job; the list is in order of start. */
struct serve_job {
    struct serve_job *next;
    uint64_t id;
    struct fl_pool_job *job;
};

struct serving {
    const struct fl_ranks *ranks;
    const struct fl_sim_clients *sim_clients;
    const struct fl_log *log;
    unsigned threads;
    const struct fl_kernels *kernels;
    struct fl_worker_pool *pool; /* NULL: none is open */
    char *dir;
    struct fl_setup *setup;
    struct fl_model_cache *model_cache;
    struct fl_blob *model, *malicious;
    struct serve_job *first, **end;
    bool over;
};

/* --- the pool --- */

static void serve_close_pool(struct serving *s)
{
    while (s->first != NULL) {
        struct serve_job *p = s->first;

        s->first = p->next;
        fl_pool_job_free(p->job);
        free(p);
    }
    s->end = &s->first;
    fl_worker_pool_free(s->pool);
    fl_setup_unref(s->setup);
    fl_model_cache_unref(s->model_cache);
    fl_blob_unref(s->model);
    fl_blob_unref(s->malicious);
    free(s->dir);
    s->pool = NULL;
    s->setup = NULL;
    s->model_cache = NULL;
    s->model = NULL;
    s->malicious = NULL;
    s->dir = NULL;
}

static int serve_open_pool(struct serving *s, struct fl__ranks_rest *rest, struct fl_err *err)
{
    struct fl_worker_pool_conf conf = {
        .threads = s->threads, .sim_clients = s->sim_clients, .kernels = s->kernels, .log = s->log};
    struct fl_wire_command heard = {.type = FL_WIRE_WELCOME};
    struct fl__ranks_open open;
    const uint8_t *dir = NULL;
    int rv = fl__ranks_read(rest, &open, sizeof(open));

    serve_close_pool(s);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__ranks_skip(rest, open.dir_len, &dir);
    if (rv != FL_OK) {
        return rv;
    }
    s->dir = strndup((const char *)dir, (size_t)open.dir_len);
    if (s->dir == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_wire_command_decode(rest->at, rest->left, &heard, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_setup_create(&heard.u.welcome, &s->setup, err);
    if (rv != FL_OK) {
        return rv;
    }
    conf.dir = s->dir;
    conf.seed = open.seed;
    conf.setup = s->setup;
    return fl_worker_pool_create(&conf, &s->pool, err);
}

/* --- shared payloads of rounds --- */

static int serve_set_model_cache(struct serving *s, struct fl__ranks_rest *rest)
{
    struct fl_model_cache_item items[FL_PAYLOADS_MAX] = {{.name = ""}};
    struct fl_model_cache *model_cache = NULL;
    size_t n = 0;
    int rv;

    while (rest->left > 0) {
        rv = n < FL_PAYLOADS_MAX ? fl__ranks_read_item(rest, &items[n]) : FL_EFORMAT;
        if (rv != FL_OK) {
            goto done;
        }
        n++;
    }
    rv = fl_model_cache_make(items, n, NULL, &model_cache);
    if (rv != FL_OK) {
        goto done;
    }
    fl_model_cache_unref(s->model_cache);
    s->model_cache = model_cache;
done:
    while (n > 0) {
        fl_bytes_done(&items[--n].bytes);
    }
    return rv;
}

/* Replaces `*at`. */
static int serve_set_blob(struct fl_blob **at, struct fl__ranks_rest *rest)
{
    struct fl_blob *blob = NULL;
    int rv = fl__ranks_read_blob(rest, rest->left, &blob);

    if (rv != FL_OK) {
        return rv;
    }
    fl_blob_unref(*at);
    *at = blob;
    return FL_OK;
}

/* --- jobs --- */

static int serve_start_training(struct serving *s, uint32_t client,
                                const struct fl__ranks_begin *begin, struct fl__ranks_rest *rest,
                                struct fl_pool_job **ret)
{
    struct fl_model_cache_item own = {.name = ""};
    struct fl_model_cache *model_cache = NULL;
    const struct fl_pool_collusion collusion = {begin->shares,
                                                begin->has_malicious ? s->malicious : NULL};
    struct fl_sim_client sim_client;
    int rv;

    if (s->model_cache == NULL) {
        return FL_EFORMAT;
    }
    if (!begin->has_own) {
        *ret = fl_worker_pool_train(s->pool, client, &begin->task, s->model_cache, &collusion);
        return FL_OK;
    }
    s->sim_clients->sim_client(s->sim_clients->ctx, client, &sim_client);
    rv = fl__ranks_read_item(rest, &own);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_str_copy(own.client, sizeof(own.client), sim_client.name);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_model_cache_make(s->model_cache->common, s->model_cache->n_common, &own, &model_cache);
    if (rv != FL_OK) {
        goto done;
    }
    *ret = fl_worker_pool_train(s->pool, client, &begin->task, model_cache, &collusion);
done:
    fl_bytes_done(&own.bytes);
    fl_model_cache_unref(model_cache);
    return rv;
}

static int serve_start_job(struct serving *s, uint32_t client, struct fl__ranks_rest *rest,
                           struct fl_pool_job **ret)
{
    struct fl__ranks_begin begin;
    const uint8_t *units = NULL;
    int rv = fl__ranks_read(rest, &begin, sizeof(begin));

    if (rv != FL_OK) {
        return rv;
    }
    switch (begin.job) {
    case FL_JOB_SUMMARY:
        *ret = fl_worker_pool_summary(s->pool, client);
        break;
    case FL_JOB_TRAIN:
        rv = serve_start_training(s, client, &begin, rest, ret);
        if (rv != FL_OK) {
            return rv;
        }
        break;
    case FL_JOB_CODE:
        if (begin.n_units != 0 && begin.n_units != fl_layout_units(s->setup->layout)) {
            return FL_EFORMAT;
        }
        rv = fl__ranks_skip(rest, begin.n_units, &units);
        if (rv != FL_OK) {
            return rv;
        }
        *ret =
            fl_worker_pool_code(s->pool, client, begin.task.key, begin.n_units > 0 ? units : NULL);
        break;
    case FL_JOB_EVALUATE:
        if (s->model == NULL) {
            return FL_EFORMAT;
        }
        *ret = fl_worker_pool_evaluate(s->pool, client, &begin.task, s->model, begin.rate);
        break;
    default:
        return FL_EFORMAT;
    }
    return *ret != NULL ? FL_OK : FL_ENOMEM;
}

static int serve_begin_job(struct serving *s, const struct fl__ranks_head *head,
                           struct fl__ranks_rest *rest)
{
    struct serve_job *p;
    int rv;

    if (s->pool == NULL || head->client >= s->sim_clients->n) {
        return FL_EFORMAT;
    }
    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return FL_ENOMEM;
    }
    rv = serve_start_job(s, head->client, rest, &p->job);
    if (rv != FL_OK) {
        free(p);
        return rv;
    }
    p->id = head->id;
    *s->end = p;
    s->end = &p->next;
    return FL_OK;
}

/* Removes the job from the list and frees it. */
static void serve_drop_job(struct serving *s, struct serve_job **at)
{
    struct serve_job *p = *at;

    *at = p->next;
    s->end = s->end == &p->next ? at : s->end;
    fl_pool_job_free(p->job);
    free(p);
}

static void serve_cancel_job(struct serving *s, uint64_t id)
{
    struct serve_job **at = &s->first;

    while (*at != NULL && (*at)->id != id) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        serve_drop_job(s, at);
    }
}

static int serve_send_answer(struct serving *s, const struct serve_job *p,
                             const struct fl_job_answer *a, struct fl_err *err)
{
    const struct fl__ranks_head head = {FL__RANKS_ANSWER, p->job->client, p->id, {0}};
    const struct fl_buf *summary = fl_job_bytes(p->job);
    const struct fl_blob *upload =
        p->job->kind == FL_JOB_TRAIN ? fl_job_update(p->job) : p->job->upload;
    struct fl__ranks_answer answer;
    struct fl_buf encoded;
    struct fl_buf message;
    struct fl_writer w = fl__ranks_start_message(&message, &head);

    fl_buf_init(&encoded, SIZE_MAX / 2);
    fl_writer_note(&w, fl_job_answer_encode(a, &encoded));
    (void)memset(&answer, 0, sizeof(answer));
    answer.n_answer = encoded.len;
    answer.n_summary = summary->len;
    answer.n_parts = p->job->n_parts;
    answer.n_upload = upload != NULL ? fl_blob_len(upload) : 0;
    fl_writer_add(&w, &answer, sizeof(answer));
    fl_writer_add(&w, encoded.data, encoded.len);
    fl_buf_done(&encoded);
    fl_writer_add(&w, summary->data, summary->len);
    if (answer.n_parts > 0) {
        fl_writer_add(&w, p->job->parts, p->job->n_parts * sizeof(*p->job->parts));
    }
    if (answer.n_upload > 0) {
        fl_writer_add(&w, fl_blob_data(upload), (size_t)answer.n_upload);
    }
    return fl__ranks_send(s->ranks, 0, &w, err);
}

static int serve_finish_first(struct serving *s, struct fl_err *err)
{
    struct fl_job_answer a;
    int rv;

    fl_job_take(s->first->job, &a);
    rv = serve_send_answer(s, s->first, &a, err);
    fl_job_answer_done(&a);
    serve_drop_job(s, &s->first);
    return rv;
}

/* --- messages --- */

static int serve_receive(struct serving *s, const struct fl_buf *message, struct fl_err *err)
{
    struct fl__ranks_rest rest = {message->data, message->len};
    struct fl__ranks_head head;
    int rv = fl__ranks_read(&rest, &head, sizeof(head));

    if (rv != FL_OK) {
        return rv;
    }
    switch (head.kind) {
    case FL__RANKS_OPEN:
        return serve_open_pool(s, &rest, err);
    case FL__RANKS_MODEL_CACHE:
        return serve_set_model_cache(s, &rest);
    case FL__RANKS_MODEL:
        return serve_set_blob(&s->model, &rest);
    case FL__RANKS_MALICIOUS:
        return serve_set_blob(&s->malicious, &rest);
    case FL__RANKS_BEGIN:
        return serve_begin_job(s, &head, &rest);
    case FL__RANKS_CANCEL:
        serve_cancel_job(s, head.id);
        return FL_OK;
    case FL__RANKS_DROP:
        if (s->pool != NULL && head.client < s->sim_clients->n) {
            fl_worker_pool_drop(s->pool, head.client, head.key);
        }
        return FL_OK;
    case FL__RANKS_CLOSE:
        serve_close_pool(s);
        return FL_OK;
    case FL__RANKS_END:
        s->over = true;
        return FL_OK;
    default:
        return FL_EFORMAT;
    }
}

int fl_ranks_serve(const struct fl_ranks *ranks, const struct fl_sim_clients *sim_clients,
                   const struct fl_kernels *kernels, unsigned threads, const struct fl_log *log,
                   struct fl_err *err)
{
    struct serving s = {.ranks = ranks,
                        .sim_clients = sim_clients,
                        .kernels = kernels,
                        .threads = threads,
                        .log = log};
    struct fl_buf message;
    int rv = FL_OK;

    s.end = &s.first;
    while (!s.over) {
        /* First all messages, then the oldest job, which the leader waits for first. */
        rv = ranks->receive(ranks->ctx, /* wait= */ s.first == NULL, &message, err);
        if (rv == FL_ENOENT) {
            rv = serve_finish_first(&s, err);
            if (rv != FL_OK) {
                goto done;
            }
            continue;
        }
        if (rv != FL_OK) {
            goto done;
        }
        rv = serve_receive(&s, &message, err);
        fl_buf_done(&message);
        if (rv != FL_OK) {
            rv = fl_err_wrap(err, rv, "a message from the leader");
            goto done;
        }
    }
done:
    serve_close_pool(&s);
    return rv;
}
