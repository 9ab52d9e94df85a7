/* Every public function, called with nothing but zeros, fails as the contract says and touches nothing. null_calls.h is made
 * from the headers, so that a new function is among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hurray.h"
#include "hurray/core.h"
#include "hurray/cuda.h"
#include "hurray/dense.h"
#if __has_include("hurray/dlpack.h")
#include "hurray/dlpack.h"
#endif
#include "hurray/import.h"
#include "hurray/loader.h"
#include "hurray/transport.h"

static int check_status(const char *name, HurrayStatus status) {
    if (status == HURRAY_ERR_NULL_POINTER) return 0;
    print_error("%s: returned %d, expected NULL_POINTER\n", name, (int)status);
    return 1;
}

static void every_function_refuses_nothing_but_zeros(void **state) {
    int bad = 0;
    (void)state;
#define CALL_STATUS(name, ...) bad += check_status(#name, name(__VA_ARGS__));
#define CALL_RECORD(name, ...)                                     \
    if (name(__VA_ARGS__) != NULL) {                               \
        print_error("%s: returned a record for no handle\n", #name); \
        bad++;                                                     \
    }
#define CALL_OTHER(name, ...)
#define CALL_ERROR(name, ...)
#include "null_calls.h"
    assert_int_equal(bad, 0);
}

#undef CALL_STATUS
#undef CALL_RECORD
#undef CALL_ERROR

static int check_record(const char *name, HurrayStatus status, const HurrayError *error) {
    if (status == HURRAY_OK || (error->code == status && error->message[0] && error->struct_size == sizeof *error)) return 0;
    print_error("%s: returned %d, but the record says %d \"%s\"\n", name, (int)status, (int)error->code, error->message);
    return 1;
}

static void the_record_says_what_the_status_says(void **state) {
    int bad = 0;
    (void)state;
#define CALL_STATUS(name, ...)
#define CALL_RECORD(name, ...)
#define CALL_ERROR(name, ...)                                        \
    {                                                                \
        HurrayError error = HURRAY_ERROR_INIT;                       \
        HurrayStatus status = name(__VA_ARGS__);                     \
        bad += check_record(#name, status, &error);                  \
    }
#include "null_calls.h"
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_refuses_nothing_but_zeros),
        cmocka_unit_test(the_record_says_what_the_status_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
