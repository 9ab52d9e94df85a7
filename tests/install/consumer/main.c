#include <stdio.h>

#include "hurray.h"
#include "hurray/loader.h"
#include "hurray/version.h"

int main(void) {
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayLoader *loader = NULL;
    HurrayStatus status = hurray_loader_open("no such file", NULL, &loader, &error);
    printf("%s %u: %s: %s\n", HURRAY_VERSION_STRING, (unsigned)hurray_c_abi_version(), hurray_status_name(status), error.message);
    return status == HURRAY_OK || hurray_c_abi_version() / 1000 != HURRAY_C_ABI_VERSION / 1000;
}
