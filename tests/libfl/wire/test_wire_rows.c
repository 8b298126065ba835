/* Every field in proto/ has a row: a field without one would be dropped without a word. */

#include <check.h>
#include <ctype.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "fl/v1/federation.pb-c.h"
#include "fl/v1/identity.pb-c.h"
#include "libfl/wire/admin_identity.h"
#include "tests/lib/suites.h"

/* The arguments of the rows, as "version_min, version_min, .min = 1; ". */
#define TEXT_OF(kind, ...) #__VA_ARGS__ "; "
/* Of a figure, as "personal->mean; ". */
#define FIELD_OF(type, member, field, ...) #field "; "
#define TASK_FIELD_OF(type, member, field) FIELD_OF(type, member, field, )
/* Of a row of a list of messages. */
#define LISTED(kind, name, Message, message, ...) MESSAGE(message, FL_WIRE_ROWS_##name),
#define MESSAGE(message, rows)                          \
    {                                                   \
        &fl__v1__##message##__descriptor, rows(TEXT_OF) \
    }

static const struct message {
    const ProtobufCMessageDescriptor *type;
    const char *rows;
} messages[] = {
    FL_WIRE_EVENTS(LISTED) FL_WIRE_COMMANDS(LISTED) FL_WIRE_BULK(LISTED) FL_WIRE_IDENTITY(LISTED)
        FL_WIRE_ADMIN_IDENTITY(LISTED) MESSAGE(held, FL_WIRE_ROWS_hello_held),
    MESSAGE(held, FL_WIRE_ROWS_report_kept),
    MESSAGE(held, FL_WIRE_ROWS_task_counted),
    {&fl__v1__task__descriptor, FL_WIRE_ROWS_task(TEXT_OF) FL_TASK_FIELDS(TASK_FIELD_OF)},
    MESSAGE(accepted, FL_WIRE_ROWS_accepted),
    MESSAGE(rejected, FL_WIRE_ROWS_rejected),
    MESSAGE(dismissed, FL_WIRE_ROWS_dismissed),
    MESSAGE(client_event, FL_WIRE_ROWS_event),
    MESSAGE(server_command, FL_WIRE_ROWS_command),
    MESSAGE(push_status_request, FL_WIRE_ROWS_push_status_request),
    MESSAGE(push_status_reply, FL_WIRE_ROWS_push_status_reply),
    MESSAGE(why_reply, FL_WIRE_ROWS_why),
    MESSAGE(checkpoint_info, FL_WIRE_ROWS_checkpoint),
    MESSAGE(pin_checkpoint_request, FL_WIRE_ROWS_pin),
    MESSAGE(rollback_request, FL_WIRE_ROWS_rollback),
    MESSAGE(list_rounds_request, FL_WIRE_ROWS_list_rounds),
    MESSAGE(list_participations_request, FL_WIRE_ROWS_list_participations),
    MESSAGE(forget_clients_request, FL_WIRE_ROWS_forget),
    MESSAGE(forget_clients_reply, FL_WIRE_ROWS_forgotten),
    MESSAGE(summary_info, FL_WIRE_ROWS_summary),
    MESSAGE(control_request, FL_WIRE_ROWS_control),
    MESSAGE(client_control_request, FL_WIRE_ROWS_client_control),
    MESSAGE(label_client_request, FL_WIRE_ROWS_label_client),
    MESSAGE(schedule_client_request, FL_WIRE_ROWS_schedule_client),
    MESSAGE(limit_client_request, FL_WIRE_ROWS_limit_client),
    MESSAGE(control_reply, FL_WIRE_ROWS_controlled),
    MESSAGE(revoke_request, FL_WIRE_ROWS_revoke),
    /* The layout has these two. */
    {&fl__v1__model_description__descriptor, FL_WIRE_ROWS_welcome_model(TEXT_OF) "units, digest"},
    {&fl__v1__status_reply__descriptor, FL_WIRE_ROWS_status(TEXT_OF) FL_ROUND_FIGURES(FIELD_OF)},
    {&fl__v1__round_info__descriptor, FL_WIRE_ROWS_round(TEXT_OF) FL_ROUND_FIGURES(FIELD_OF)},
    {&fl__v1__participation_info__descriptor,
     FL_WIRE_ROWS_participation(TEXT_OF) FL_PART_FIGURES(FIELD_OF)},
    {&fl__v1__client_info__descriptor, FL_WIRE_ROWS_client(TEXT_OF) FL_CLIENT_FIGURES(FIELD_OF)},
};

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    const char *at = strstr(text, word);

    while (at != NULL && (isalnum((unsigned char)at[len]) || at[len] == '_' ||
                          (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))))
    {
        at = strstr(at + 1, word);
    }
    return at != NULL;
}

TEST_EACH(every_field_has_its_row, ARRAY_LEN(messages))
{
    const struct message *message = &messages[_i];
    unsigned i;

    for (i = 0; i < message->type->n_fields; i++) {
        const char *name = message->type->fields[i].name;

        ck_assert_msg(has_word(message->rows, name), "%s.%s has no row in libfl/wire",
                      message->type->short_name, name);
    }
}
