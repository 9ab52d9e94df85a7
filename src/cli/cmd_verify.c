/* hurray verify: structure, padding, rules that need data; with --data the stored checksums too. */
#include <string.h>

#include "args.h"
#include "hurray/import.h"
#include "json.h"
#include "model.h"

#define SUMS_KEY "libhurray.crc32c"

enum { OPTION_DATA = 1 };

static const Option options[] = {{OPTION_DATA, "data", NULL, "check stored checksums too (CRC-32C of every buffer)"}};

typedef struct Findings {
    const char *path;
    yajl_gen json;
    uint64_t count;
    int code;
} Findings;

static void finding_json(yajl_gen json, const HurrayError *finding) {
    yajl_gen_map_open(json);
    json_key_word(json, "status", hurray_status_name(finding->code));
    if (finding->source[0]) json_key_word(json, "source", finding->source);
    if (finding->tensor[0]) json_key_word(json, "tensor", finding->tensor);
    if (finding->field[0]) json_key_word(json, "field", finding->field);
    if (finding->offset != HURRAY_NONE) json_key_u64(json, "offset", finding->offset);
    json_key_word(json, "message", finding->message);
    yajl_gen_map_close(json);
}

static HurrayStatus found(void *ctx, const HurrayError *finding) {
    Findings *findings = ctx;
    int code = report_error(findings->path, finding);
    if (findings->count++ == 0) findings->code = code == EXIT_DONE ? EXIT_BAD_INPUT : code;
    if (findings->json) finding_json(findings->json, finding);
    return interrupted ? HURRAY_ERR_CANCELLED : HURRAY_OK;
}

static bool begin_json(Findings *findings, uint64_t tensors, const char *checksums) {
    findings->json = json_begin();
    if (!findings->json) return false;
    yajl_gen_map_open(findings->json);
    json_key_path(findings->json, "file", findings->path);
    json_key_u64(findings->json, "tensors", tensors);
    json_key_word(findings->json, "checksums", checksums);
    json_key(findings->json, "findings");
    yajl_gen_array_open(findings->json);
    return true;
}

static void end_json(Findings *findings) {
    yajl_gen_array_close(findings->json);
    json_key_bool(findings->json, "ok", findings->count == 0);
    yajl_gen_map_close(findings->json);
    json_end(findings->json);
}

/* What does not open has that one finding; model_open has told it. */
static void verify_unopened(const Model *model) {
    Findings findings = {model->path, NULL, 1, EXIT_DONE};
    if (!begin_json(&findings, 0, "not asked")) return;
    finding_json(findings.json, &model->error);
    end_json(&findings);
}

static int verify(Model *model, bool data, const Output *output) {
    Findings findings = {model->path, NULL, 0, EXIT_DONE};
    HurrayKvEntry entry;
    bool stored = model->source.format == HURRAY_FORMAT_NPZ || /* an archive has sums of its members */
                  hurray_loader_kv_find(model->loader, SUMS_KEY, strlen(SUMS_KEY), &entry) == HURRAY_OK;
    uint32_t what = HURRAY_CHECK_PADDING | HURRAY_CHECK_DATA | (data ? HURRAY_CHECK_SUMS : 0u);
    if (output->json && !begin_json(&findings, model->count, !data ? "not asked" : stored ? "stored" : "none stored"))
        return report_failure(EXIT_SYSTEM, model->path, "no memory");
    install_signals(model->loader);
    HurrayStatus status = hurray_loader_verify(model->loader, what, found, &findings);
    install_signals(NULL);
    if (status != HURRAY_OK && findings.count == 0) {
        const HurrayError *error = hurray_loader_last_error(model->loader);
        findings.code = report_error(model->path, error);
        findings.count++;
        if (findings.json) finding_json(findings.json, error);
    } else if (status == HURRAY_ERR_CANCELLED) {
        findings.code = EXIT_INTERRUPTED;
    }
    if (findings.json) {
        end_json(&findings);
    } else if (findings.count == 0) {
        print_text(stdout, model->path, strlen(model->path));
        printf(": %llu tensor%s right%s\n", (unsigned long long)model->count, model->count == 1 ? "" : "s",
               !data    ? ""
               : stored ? ", checksums right"
                        : ", no checksums are stored (files written by `hurray convert` have them)");
    }
    return findings.code;
}

static int run(const Command *command, int argc, char **argv) {
    Args args;
    bool data = false;
    int id, count;
    args_begin(&args, command, argc, argv);
    while ((id = args_next(&args)) > 0)
        if (id == OPTION_DATA) data = true;
    args_end(&args);
    if (id != ARG_END) return id == ARG_HELP ? EXIT_DONE : EXIT_USAGE;
    char **rest = args_rest(&args, &count);
    if (count != 1) return report_usage("verify", "expected one FILE, got %d", count);
    Model model;
    int code = model_open(&model, rest[0], NULL, NULL);
    if (code != EXIT_DONE) {
        if (args.output.json) verify_unopened(&model);
        return code;
    }
    model_print_notes(&model, &args.output);
    code = verify(&model, data, &args.output);
    model_close(&model);
    return code;
}

const Command command_verify = {"verify",
                                "verify FILE [--data] [--json]",
                                "check a file: structure, padding, data rules, checksums",
                                "Every finding is a line on standard error; the exit code is 1 when there is one.",
                                options,
                                sizeof options / sizeof *options,
                                true,
                                run};
