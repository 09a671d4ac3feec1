/* A libcuda.so.1 (-DCUDA) or a libnvidia-ml.so.1 (-DNVML) for the tests, which answers as the environment says.

   Both
     STUB_GPUS         how many GPUs there are (1); STUB_GPU_NAME, STUB_CAPABILITY ("9.0"), STUB_MEMORY ("total,free" in
                       MiB, or "unsupported")
     STUB_HANG         the function that never returns; STUB_CRASH the one that dies of SIGSEGV ("cuInit", "nvmlInit");
                       STUB_SLOW the one that takes 4.5 seconds
   CUDA
     STUB_CUINIT       what cuInit returns; STUB_CUDA_VERSION (13000); CUDA_VISIBLE_DEVICES is honoured as CUDA does
   NVML
     STUB_NVML         what nvmlInit returns; STUB_DRIVER (580.159.04); STUB_LOST the index of a GPU that is lost
     STUB_COMPUTE_MODE 0, 2, 3; STUB_MIG "enabled,instances"; STUB_FABRIC "state,health", STUB_FABRIC_SUMMARY; STUB_REMAP "pending,failure[,corrected,uncorrected]";
     STUB_PROCESSES    pids, with commas; STUB_CONFIDENTIAL "feature,ready"
     STUB_VBIOS        96.00.A5.00.01; STUB_ECC 1, 0 or "unsupported"; STUB_POWER_LIMIT in milliwatts (700000)

     STUB_NVLINK       "up,total,speed,faulty": so many links are up, at MB/s, of which so many had faults
     STUB_PCIE         "generation,width,most lanes"; STUB_CLOCK in MHz; STUB_CLOCK_REASONS a mask
     STUB_ECC_ERRORS   "corrected,uncorrected"; STUB_GSP the firmware of the system processor
     (what is not set of these four lines is not supported)

   What is compiled in (-DDEFAULT_CUINIT=34, ...) holds where the environment says nothing.
   Signatures, structures and numbers: CUDA driver API and NVML reference. */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DEFAULT_CUINIT
#define DEFAULT_CUINIT 0
#endif
#ifndef DEFAULT_NVML
#define DEFAULT_NVML 0
#endif
#ifndef DRIVER
#define DRIVER "580.159.04"
#endif

#define EXPORT __attribute__((visibility("default")))
#define MOST_GPUS 64
#define MIB (1024ull * 1024)

static const char *text(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}

/* The number at this place of a list with commas; -1 when there is none. */
static long at(const char *list, int place) {
    for (; place > 0 && list; place--) {
        list = strchr(list, ',');
        if (list) list++;
    }
    return list && *list ? strtol(list, NULL, 10) : -1;
}

static long number(const char *name, long otherwise) {
    const char *value = getenv(name);
    return value ? atol(value) : otherwise;
}

static int gpus(void) {
    int count = (int)number("STUB_GPUS", 1);
    return count < MOST_GPUS ? count : MOST_GPUS;
}

static void uuid_of(int gpu, char *name, size_t size) {
    snprintf(name, size, "GPU-%08x-0000-4000-8000-000000000000", 0xabc00000u + gpu);
}

/* Every function that may be told to hang or to crash calls this first. */
static void reached(const char *function) {
    if (!strcmp(text("STUB_HANG", ""), function)) {
        fprintf(stderr, "%s waits for the GPU\n", function);
        for (;;) pause();
    }
    if (!strcmp(text("STUB_SLOW", ""), function)) usleep(4500000);
    if (!strcmp(text("STUB_CRASH", ""), function)) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
}

#ifdef CUDA

static int visible[MOST_GPUS], visible_count;

static int by_uuid(const char *token, size_t length) {
    char uuid[64];
    int found = -1;
    for (int gpu = 0; gpu < gpus(); gpu++) {
        uuid_of(gpu, uuid, sizeof uuid);
        if (strncmp(uuid, token, length)) continue;
        if (found >= 0) return -1; /* it may mean either */
        found = gpu;
    }
    return found;
}

static int by_index(const char *token) {
    while (isspace((unsigned char)*token)) token++;
    if (!isdigit((unsigned char)*token)) return -1;
    long gpu = strtol(token, NULL, 10);
    return gpu < gpus() ? (int)gpu : -1;
}

static void select_devices(void) {
    const char *token = getenv("CUDA_VISIBLE_DEVICES");
    visible_count = 0;
    if (!token) {
        for (int gpu = 0; gpu < gpus(); gpu++) visible[visible_count++] = gpu;
        return;
    }
    while (token && *token && visible_count < MOST_GPUS) {
        size_t length = strcspn(token, ",");
        int gpu = strncmp(token, "GPU-", 4) ? by_index(token) : by_uuid(token, length);
        if (gpu < 0) return; /* the list ends before the first that is invalid */
        for (int seen = 0; seen < visible_count; seen++)
            if (visible[seen] == gpu) {
                visible_count = 0;
                return;
            }
        visible[visible_count++] = gpu;
        token += length;
        if (*token) token++;
    }
}

EXPORT int cuDriverGetVersion(int *version) {
    reached("cuDriverGetVersion");
    if (number("STUB_CUINIT", DEFAULT_CUINIT) == 34) return 34;
    *version = (int)number("STUB_CUDA_VERSION", 13000);
    return 0;
}

EXPORT int cuInit(unsigned int flags) {
    (void)flags;
    reached("cuInit");
    int code = (int)number("STUB_CUINIT", DEFAULT_CUINIT);
    if (code) return code;
    select_devices();
    return visible_count ? 0 : 100;
}

EXPORT int cuDeviceGetCount(int *count) {
    reached("cuDeviceGetCount");
    *count = visible_count;
    return (int)number("STUB_COUNT", 0);
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal < visible_count ? 0 : 101;
}

EXPORT int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    snprintf(name, size, "%s", text("STUB_GPU_NAME", "NVIDIA H200"));
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    const char *capability = text("STUB_CAPABILITY", "9.0");
    if (attribute == 75) *value = atoi(capability);
    else if (attribute == 76) *value = atoi(strchr(capability, '.') + 1);
    else return 1;
    return 0;
}

EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    memset(uuid, 0, 16);
    unsigned int first = 0xabc00000u + visible[device];
    for (int byte = 0; byte < 4; byte++) uuid[byte] = first >> (24 - 8 * byte);
    uuid[6] = 0x40;
    uuid[8] = 0x80;
    return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    long total = at(text("STUB_MEMORY", "143771,143000"), 0);
    *bytes = (total < 0 ? 0 : total) * MIB;
    return 0;
}

EXPORT int cuGetErrorString(int code, const char **message) {
    static char said[64];
    snprintf(said, sizeof said, "stub error %d", code);
    *message = said;
    return 0;
}

#endif
#ifdef NVML

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15, VERSION_MISMATCH = 25 };

struct gpu { int index, instance; };
static struct gpu table[MOST_GPUS], instances[MOST_GPUS];

EXPORT int nvmlInit_v2(void) {
    reached("nvmlInit");
    return (int)number("STUB_NVML", DEFAULT_NVML);
}

EXPORT int nvmlInit(void) { return nvmlInit_v2(); }
EXPORT int nvmlInitWithFlags(unsigned int flags) { (void)flags; return nvmlInit_v2(); }
EXPORT int nvmlShutdown(void) { return 0; }

EXPORT const char *nvmlErrorString(int code) {
    switch (code) {
        case 0: return "The operation was successful";
        case 3: return "Not Supported";
        case 9: return "Driver Not Loaded";
        case 15: return "GPU is lost";
        case 18: return "Driver/library version mismatch";
        default: return "Unknown Error";
    }
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned int size) {
    snprintf(version, size, "%s", text("STUB_DRIVER", DRIVER));
    return 0;
}

EXPORT int nvmlSystemGetNVMLVersion(char *version, unsigned int size) {
    return snprintf(version, size, "13.%s", text("STUB_DRIVER", DRIVER)) < 0;
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = (int)number("STUB_CUDA_VERSION", 13000);
    return 0;
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

EXPORT int nvmlSystemGetConfComputeState(unsigned int state[3]) {
    const char *said = getenv("STUB_CONFIDENTIAL");
    if (!said) return NOT_SUPPORTED;
    state[0] = 2;
    state[1] = (unsigned int)at(said, 0);
    state[2] = 0;
    return 0;
}

EXPORT int nvmlSystemGetConfComputeGpusReadyState(unsigned int *ready) {
    const char *said = text("STUB_CONFIDENTIAL", "0,0");
    *ready = (unsigned int)at(said, 1);
    return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *count) {
    reached("nvmlDeviceGetCount");
    *count = gpus();
    return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct gpu **gpu) {
    if (index >= (unsigned int)gpus()) return 2;
    if ((long)index == number("STUB_LOST", -1)) return GPU_IS_LOST;
    table[index].index = index;
    *gpu = &table[index];
    return 0;
}

EXPORT int nvmlDeviceGetName(struct gpu *gpu, char *name, unsigned int size) {
    (void)gpu;
    snprintf(name, size, "%s", text("STUB_GPU_NAME", "NVIDIA H200"));
    return 0;
}

EXPORT int nvmlDeviceGetUUID(struct gpu *gpu, char *uuid, unsigned int size) {
    uuid_of(gpu->index, uuid, size);
    return 0;
}

EXPORT int nvmlDeviceGetVbiosVersion(struct gpu *gpu, char *version, unsigned int size) {
    (void)gpu;
    snprintf(version, size, "%s", text("STUB_VBIOS", "96.00.A5.00.01"));
    return 0;
}

EXPORT int nvmlDeviceGetEccMode(struct gpu *gpu, unsigned int *current, unsigned int *pending) {
    (void)gpu;
    const char *ecc = text("STUB_ECC", "1");
    if (!strcmp(ecc, "unsupported")) return NOT_SUPPORTED;
    *current = *pending = (unsigned int)at(ecc, 0);
    return 0;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(struct gpu *gpu, unsigned int *milliwatts) {
    (void)gpu;
    *milliwatts = (unsigned int)number("STUB_POWER_LIMIT", 700000);
    return 0;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(struct gpu *gpu, int *major, int *minor) {
    (void)gpu;
    const char *capability = text("STUB_CAPABILITY", "9.0");
    *major = atoi(capability);
    *minor = atoi(strchr(capability, '.') + 1);
    return 0;
}

EXPORT int nvmlDeviceGetComputeMode(struct gpu *gpu, unsigned int *mode) {
    (void)gpu;
    *mode = (unsigned int)number("STUB_COMPUTE_MODE", 0);
    return 0;
}

EXPORT int nvmlDeviceGetMigMode(struct gpu *gpu, unsigned int *current, unsigned int *pending) {
    (void)gpu;
    const char *mig = text("STUB_MIG", "0,0");
    if (!strcmp(mig, "unsupported")) return NOT_SUPPORTED;
    *current = *pending = (unsigned int)at(mig, 0);
    return 0;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct gpu *gpu, unsigned int *count) {
    (void)gpu;
    *count = 7;
    return 0;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *gpu, unsigned int index, struct gpu **instance) {
    if ((long)index >= at(text("STUB_MIG", "0,0"), 1)) return NOT_FOUND;
    instances[index].index = gpu->index;
    *instance = &instances[index];
    return 0;
}

EXPORT int nvmlDeviceGetMemoryInfo(struct gpu *gpu, unsigned long long memory[3]) {
    (void)gpu;
    const char *said = text("STUB_MEMORY", "143771,143000");
    if (!strcmp(said, "unsupported")) return NOT_SUPPORTED;
    memory[0] = at(said, 0) * MIB;
    memory[1] = at(said, 1) * MIB;
    memory[2] = memory[0] - memory[1];
    return 0;
}

EXPORT int nvmlDeviceGetGpuFabricInfoV(struct gpu *gpu, unsigned char *info) {
    (void)gpu;
    const char *fabric = getenv("STUB_FABRIC");
    unsigned int version, health;
    memcpy(&version, info, sizeof version);
    const char *summary = getenv("STUB_FABRIC_SUMMARY"); /* a driver with version 3 of the structure */
    int newest = version == (40u | 3u << 24);
    if (newest ? !summary : version != (36u | 2u << 24)) return VERSION_MISMATCH;
    memset(info + 4, 0, newest ? 36 : 32);
    if (newest) info[36] = (unsigned char)atoi(summary), info[19] = 7, info[24] = 5; /* also the domain */
    if (!fabric) return 0; /* the state is 0: not supported */
    health = (unsigned int)at(fabric, 1);
    info[28] = (unsigned char)at(fabric, 0);
    memcpy(info + 32, &health, sizeof health);
    return 0;
}

static int part(const char *name, int place, unsigned int *value) {
    const char *said = getenv(name);
    if (!said) return NOT_SUPPORTED;
    *value = (unsigned int)at(said, place);
    return 0;
}

EXPORT int nvmlDeviceGetNvLinkState(struct gpu *gpu, unsigned int link, unsigned int *active) {
    (void)gpu;
    reached("nvmlDeviceGetNvLinkState");
    const char *said = getenv("STUB_NVLINK");
    if (!said) return NOT_SUPPORTED;
    if ((long)link >= at(said, 1)) return 2;
    *active = (long)link < at(said, 0);
    return 0;
}

struct field { unsigned int id, scope; long long timestamp, latency; int kind, code; unsigned char value[8]; };

EXPORT int nvmlDeviceGetFieldValues(struct gpu *gpu, int count, struct field *fields) {
    (void)gpu;
    const char *said = getenv("STUB_NVLINK");
    if (!said) return NOT_SUPPORTED;
    for (struct field *field = fields; field < fields + count; field++) {
        unsigned int speed = (unsigned int)at(said, 2);
        unsigned long long faults = (long)field->scope < at(said, 3) ? 7 : 0;
        field->code = field->id == 164 || field->id == 162 ? 0 : NOT_SUPPORTED;
        field->kind = field->id == 164 ? 1 : 3;
        if (field->id == 164) memcpy(field->value, &speed, sizeof speed);
        else memcpy(field->value, &faults, sizeof faults);
    }
    return 0;
}

EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(struct gpu *gpu, unsigned int *generation) {
    (void)gpu;
    return part("STUB_PCIE", 0, generation);
}

EXPORT int nvmlDeviceGetCurrPcieLinkWidth(struct gpu *gpu, unsigned int *width) {
    (void)gpu;
    return part("STUB_PCIE", 1, width);
}

EXPORT int nvmlDeviceGetMaxPcieLinkWidth(struct gpu *gpu, unsigned int *width) {
    (void)gpu;
    return part("STUB_PCIE", 2, width);
}

EXPORT int nvmlDeviceGetMaxClockInfo(struct gpu *gpu, int clock, unsigned int *megahertz) {
    (void)gpu;
    return clock == 1 ? part("STUB_CLOCK", 0, megahertz) : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(struct gpu *gpu, unsigned long long *reasons) {
    (void)gpu;
    unsigned int mask;
    int code = part("STUB_CLOCK_REASONS", 0, &mask);
    if (!code) *reasons = mask;
    return code;
}

EXPORT int nvmlDeviceGetTotalEccErrors(struct gpu *gpu, int type, int counter, unsigned long long *errors) {
    (void)gpu;
    unsigned int count;
    int code = counter == 1 ? part("STUB_ECC_ERRORS", type, &count) : NOT_SUPPORTED;
    if (!code) *errors = count;
    return code;
}

EXPORT int nvmlDeviceGetGspFirmwareVersion(struct gpu *gpu, char *version) {
    (void)gpu;
    const char *said = getenv("STUB_GSP");
    if (!said) return NOT_SUPPORTED;
    strcpy(version, said);
    return 0;
}

EXPORT int nvmlDeviceGetRemappedRows(struct gpu *gpu, unsigned int *corrected, unsigned int *uncorrected,
                                     unsigned int *pending, unsigned int *failure) {
    (void)gpu;
    const char *remap = text("STUB_REMAP", "0,0");
    if (!strcmp(remap, "unsupported")) return NOT_SUPPORTED;
    *corrected = at(remap, 2) > 0 ? (unsigned int)at(remap, 2) : 0;
    *uncorrected = at(remap, 3) > 0 ? (unsigned int)at(remap, 3) : 0;
    *pending = (unsigned int)at(remap, 0);
    *failure = (unsigned int)at(remap, 1);
    return 0;
}

struct process { unsigned int pid; unsigned long long memory; unsigned int gpu_instance, compute_instance; };

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct gpu *gpu, unsigned int *count, struct process *processes) {
    (void)gpu;
    const char *pids = text("STUB_PROCESSES", "");
    unsigned int found = 0;
    for (; at(pids, found) >= 0; found++)
        if (found < *count) processes[found].pid = (unsigned int)at(pids, found);
    int enough = found <= *count;
    *count = found;
    return enough ? 0 : INSUFFICIENT_SIZE;
}

#endif
