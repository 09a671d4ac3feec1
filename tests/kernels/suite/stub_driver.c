/* A libcuda.so.1 for the tests, which answers as the environment says:
   STUB_INIT (what cuInit returns), STUB_GPUS (how many there are), STUB_MODE (their compute mode),
   STUB_END=hang (cuInit never returns) or STUB_END=crash. Signatures: CUDA driver API reference. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

int cuInit(unsigned int flags) {
    const char *end = getenv("STUB_END");
    puts("a library may print");
    fflush(stdout);
    if (end && !strcmp(end, "hang")) {
        fputs("waiting for the GPU\n", stderr);
        for (;;) pause();
    }
    if (end && !strcmp(end, "crash")) abort();
    return number("STUB_INIT", 0);
}

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return number("STUB_INIT", 0) == 34 ? 34 : 0;
}

int cuDeviceGetCount(int *count) { *count = number("STUB_GPUS", 2); return 0; }

int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }

int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "NVIDIA GB%d", 200 + 100 * device);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)180 << 30; return 0; }

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    for (int i = 0; i < 16; i++) uuid[i] = 16 * i + device;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 13: *value = 1965000; return 0; /* clock rate, kHz */
    case 16: *value = 152; return 0; /* multiprocessors */
    case 20: *value = number("STUB_MODE", 0); return 0; /* compute mode */
    case 36: *value = 3996000; return 0; /* memory clock rate, kHz */
    case 75: *value = 10; return 0; /* compute capability */
    case 76: *value = 3 * device; return 0;
    case 97: *value = 232448; return 0; /* shared memory per block, opt-in */
    }
    return 1; /* CUDA_ERROR_INVALID_VALUE */
}
