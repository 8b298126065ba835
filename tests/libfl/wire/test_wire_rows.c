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
#define MESSAGE(message, rows)                          \
    {                                                   \
        &fl__v1__##message##__descriptor, rows(TEXT_OF) \
    }

static const struct message {
    const ProtobufCMessageDescriptor *type;
    const char *rows;
} messages[] = {
    MESSAGE(evaluation, FL_WIRE_ROWS_evaluation),
    MESSAGE(hello, FL_WIRE_ROWS_hello),
    MESSAGE(held, FL_WIRE_ROWS_hello_held),
    MESSAGE(held, FL_WIRE_ROWS_report_kept),
    MESSAGE(held, FL_WIRE_ROWS_task_counted),
    MESSAGE(report, FL_WIRE_ROWS_report),
    MESSAGE(failed, FL_WIRE_ROWS_failed),
    MESSAGE(evaluation_report, FL_WIRE_ROWS_evaluated),
    MESSAGE(data_summary, FL_WIRE_ROWS_data_summary),
    MESSAGE(component, FL_WIRE_ROWS_component),
    MESSAGE(limits, FL_WIRE_ROWS_limits),
    MESSAGE(training_options, FL_WIRE_ROWS_training),
    MESSAGE(welcome, FL_WIRE_ROWS_welcome),
    MESSAGE(refused, FL_WIRE_ROWS_refused),
    MESSAGE(payload_ref, FL_WIRE_ROWS_payload),
    MESSAGE(plan, FL_WIRE_ROWS_plan),
    MESSAGE(task, FL_WIRE_ROWS_task),
    MESSAGE(accepted, FL_WIRE_ROWS_accepted),
    MESSAGE(rejected, FL_WIRE_ROWS_rejected),
    MESSAGE(dismissed, FL_WIRE_ROWS_dismissed),
    MESSAGE(drain, FL_WIRE_ROWS_drain),
    MESSAGE(evaluate, FL_WIRE_ROWS_evaluate),
    MESSAGE(central_settings, FL_WIRE_ROWS_central),
    MESSAGE(client_event, FL_WIRE_ROWS_event),
    MESSAGE(server_command, FL_WIRE_ROWS_command),
    MESSAGE(fetch_request, FL_WIRE_ROWS_fetch),
    MESSAGE(push_header, FL_WIRE_ROWS_push_header),
    MESSAGE(part, FL_WIRE_ROWS_part),
    MESSAGE(push_reply, FL_WIRE_ROWS_push_reply),
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
    MESSAGE(control_reply, FL_WIRE_ROWS_controlled),
    MESSAGE(labels, FL_WIRE_ROWS_labels),
    MESSAGE(join_request, FL_WIRE_ROWS_join),
    MESSAGE(join_reply, FL_WIRE_ROWS_joined),
    MESSAGE(renew_request, FL_WIRE_ROWS_renew),
    MESSAGE(renew_reply, FL_WIRE_ROWS_renewed),
    MESSAGE(new_invitation, FL_WIRE_ROWS_new_invitation),
    MESSAGE(invite_request, FL_WIRE_ROWS_invite),
    MESSAGE(invite_reply, FL_WIRE_ROWS_invited),
    MESSAGE(invitation_info, FL_WIRE_ROWS_invitation),
    MESSAGE(withdraw_invitation_reply, FL_WIRE_ROWS_withdrawn),
    MESSAGE(list_certificates_request, FL_WIRE_ROWS_list_certificates),
    MESSAGE(certificate_info, FL_WIRE_ROWS_certificate),
    MESSAGE(issue_admin_request, FL_WIRE_ROWS_issue_admin),
    MESSAGE(issue_admin_reply, FL_WIRE_ROWS_issued_admin),
    MESSAGE(revoke_reply, FL_WIRE_ROWS_revoke_reply),
    MESSAGE(audit_line, FL_WIRE_ROWS_audit),
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
