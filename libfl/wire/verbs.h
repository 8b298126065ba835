#ifndef FL_WIRE_VERBS_H
#define FL_WIRE_VERBS_H

/*
 * The verbs of operators: one row for each command of flctl that calls fl.v1.Admin. From the rows
 * follow the methods of the server and who may call them (server/admin), what carries them out
 * (server/runtime, server/admin), the word of the audit log, the commands of flctl with their help,
 * completion and manual page, and the table of docs/security.md (make reference).
 *
 * X(id, name, method, access, audit, thread, handler, request, answer, help)
 *
 *   id       FL_VERB_id
 *   name     as typed, one word or two
 *   method   of fl.v1.Admin; verbs that share one stand together
 *   access   LOOKS: read-only users too; ACTS: it changes something or hands out the model
 *   audit    its word in the audit log; NULL: not recorded
 *   thread   what carries it out:
 *            CORE         the event FL_EV_handler of server/core, and no other code
 *            COORDINATOR  fl_runtime_on_handler() on the coordinator thread
 *            DB           fl_runtime_db_handler() on the db thread
 *            IDENTITY     fl_identity_rpc_handler on the identity thread
 *   request  what is sent: how flctl fills it (fl_ctl_request_…) and, unless IDENTITY, how the
 *            server reads it (admin_request_… in admin_service.c)
 *   answer   how flctl prints the answer (fl_ctl_answer_…)
 *   help     of flctl
 *
 * Constants; any thread.
 */

/* clang-format off */

#define FL_VERBS(X)                                                                                \
    X(STATUS, "status", Status, LOOKS, NULL, COORDINATOR, status, empty, status,                   \
      "phase, round, clients, accuracy, bytes")                                                    \
    X(WHY, "why", Why, LOOKS, NULL, COORDINATOR, why, empty, why,                                  \
      "what the round waits for, and for which clients")                                           \
    X(ROUNDS, "rounds", ListRounds, LOOKS, NULL, DB, rounds, rounds, rounds,                       \
      "the newest committed rounds (--last N, --follow), or abandoned ones (--abandoned)")         \
    X(CLIENTS, "clients", ListClients, LOOKS, NULL, COORDINATOR, clients, empty, clients,          \
      "known clients with their counters")                                                         \
    X(PARTICIPATIONS, "participations", ListParticipations, LOOKS, NULL, DB, participations,       \
      participations, participations,                                                              \
      "what clients were asked and sent in the newest rounds, and why some were left out; of "     \
      "NAME, or of --round N (--last N)")                                                          \
    X(CLIENTS_FORGET, "clients forget", ForgetClients, ACTS, "forget", COORDINATOR, forget,        \
      forget, forgotten,                                                                           \
      "NAME or PATTERN, or --unseen-for SPAN: delete clients; one that reconnects is new")                    \
    X(CLIENTS_QUARANTINE, "clients quarantine", QuarantineClient, ACTS, "quarantine", CORE,        \
      QUARANTINE, client_control, controlled,                                                      \
      "NAME or PATTERN: do not select this client until it is released (--reason TEXT)")                      \
    X(CLIENTS_RELEASE, "clients release", ReleaseClient, ACTS, "release", CORE, END_QUARANTINE,    \
      client_control, controlled, "NAME or PATTERN: end the quarantine of this client")                       \
    X(CLIENTS_LABEL, "clients label", LabelClient, ACTS, "label", COORDINATOR, label, label,       \
      controlled, "NAME or PATTERN, KEY=VALUE…, KEY-…: set labels of this client from here, or "   \
      "remove (-) such labels, as far as its owner accepts that")                                  \
    X(CLIENTS_SCHEDULE, "clients schedule", ScheduleClient, ACTS, "schedule", COORDINATOR,         \
      schedule, schedule, controlled, "NAME or PATTERN --hours HH:MM-HH:MM: let this client take " \
      "part only then (repeated: in any of them; none: at any time), as far as its owner accepts " \
      "that")                                                                                      \
    X(CLIENTS_LIMIT, "clients limit", LimitClient, ACTS, "limit", COORDINATOR, limit, limit,       \
      controlled, "NAME or PATTERN, KEY=VALUE…, KEY-…: lower upload_rate, download_rate or "       \
      "rounds_per_day of this client, or remove (-) such a limit, as far as its owner accepts "    \
      "that")                                                                                      \
    X(PAUSE, "pause", Pause, ACTS, "pause", CORE, PAUSE, control, controlled,                      \
      "start no round after the open one until resume, also after a restart (--reason TEXT)")      \
    X(RESUME, "resume", Resume, ACTS, "resume", CORE, RESUME, control, controlled,                 \
      "continue after a pause")                                                                    \
    X(DRAIN, "drain", Drain, ACTS, "drain", CORE, DRAIN, control, controlled,                      \
      "stop the server when the open round has ended")                                             \
    X(ABORT_ROUND, "abort-round", AbortRound, ACTS, "abort-round", CORE, ABORT_ROUND, control,     \
      controlled, "abort the open attempt now; the next one follows (--reason TEXT)")              \
    X(CONTROLS_RESET, "controls reset", ResetControls, ACTS, "controls reset", CORE, NEW_EPOCH,    \
      control, controlled,                                                                         \
      "SCAFFOLD: set the controls to 0 from the next round on, on the server and on clients")      \
    X(SUMMARIES, "summaries", ListSummaries, LOOKS, NULL, COORDINATOR, summaries, empty,           \
      summaries,                                                                                   \
      "FedMix: data summaries of clients, their largest values, and which are excluded")           \
    X(SUMMARIES_DROP, "summaries drop", DropSummary, ACTS, "summaries drop", COORDINATOR,          \
      summaries, drop, done, "NAME or PATTERN: stop sending the data summary of this client, and " \
      "accept no other from it")                                                                   \
    X(EXPORT, "export", ExportModel, ACTS, "export", COORDINATOR, export, export, export,          \
      "the current model, or that of a checkpoint (--round N), as safetensors (--output FILE)")    \
    X(CHECKPOINTS, "checkpoints", ListCheckpoints, LOOKS, NULL, DB, checkpoints, empty,            \
      checkpoints, "list the checkpoints, and why they are kept")                                  \
    X(PIN, "pin", PinCheckpoint, ACTS, "pin", DB, pin, pin, done,                             \
      "pin a checkpoint (--round N) until unpin")                                                \
    X(UNPIN, "unpin", PinCheckpoint, ACTS, "unpin", DB, pin, unpin, done,                 \
      "unpin a checkpoint (--round N): the retention rules apply again")                           \
    X(ROLLBACK, "rollback", Rollback, ACTS, "rollback", DB, rollback, rollback, rollback,          \
      "N: go back to the checkpoint of round N; the rounds after it are abandoned")                \
    X(INVITE, "invite", Invite, ACTS, "invite", IDENTITY, invite, invite, invited,                 \
      "NAME or PATTERN, or --many FILE: print an invitation with which a client joins")            \
    X(INVITATIONS, "invitations", ListInvitations, LOOKS, NULL, IDENTITY, invitations,             \
      invitations, invitations, "list valid invitations; --all: the others too")                   \
    X(UNINVITE, "uninvite", WithdrawInvitation, ACTS, "withdraw", IDENTITY, withdraw, uninvite,    \
      withdrawn, "PREFIX, as invitations lists it: withdraw that invitation")                      \
    X(CERTIFICATES, "certificates", ListCertificates, LOOKS, NULL, IDENTITY, certificates,         \
      certificates, certificates,                                                                  \
      "list all valid certificates, or those of NAME; --all: also expired or replaced ones")       \
    X(REVOKE, "revoke", Revoke, ACTS, "revoke", IDENTITY, revoke, revoke, revoked,                 \
      "NAME or PATTERN, --serial or --public-key: reject these certificates permanently")                     \
    X(EVICT, "evict", Evict, ACTS, "evict", IDENTITY, revoke, revoke, revoked,                     \
      "NAME or PATTERN: the same, but with a new invitation it may join again")                               \
    X(DISABLE, "disable", Disable, ACTS, "disable", IDENTITY, revoke, revoke, revoked,             \
      "NAME or PATTERN, --serial or --public-key: reject these certificates until enable")                    \
    X(ENABLE, "enable", Enable, ACTS, "enable", IDENTITY, revoke, revoke, revoked,                 \
      "NAME or PATTERN, --serial or --public-key: accept disabled certificates again")                        \
    X(ADMIN_CERTIFICATE, "admin-certificate", IssueAdmin, ACTS, "admin certificate", IDENTITY,     \
      issue_admin, admin, admin,                                                                   \
      "NAME --output DIR: make a key and a certificate for flctl --server")                        \
    X(AUDIT, "audit", ListAudit, LOOKS, NULL, IDENTITY, audit, audit, audit,                       \
      "admin commands: what was done, by whom, and the result (--last N, default 100)")

/* clang-format on */

#define FL__VERB_ID(id, ...) FL_VERB_##id,
enum fl_verb { FL_VERBS(FL__VERB_ID) FL_VERB_N };
#undef FL__VERB_ID

enum fl_verb_access { FL_VERB_LOOKS, FL_VERB_ACTS };

struct fl_verb_row {
    const char *name;
    const char *path; /* "/fl.v1.Admin/Drain" */
    const char *audit;
    const char *help;
    enum fl_verb_access access;
};

extern const struct fl_verb_row fl_verbs[FL_VERB_N];

#endif
