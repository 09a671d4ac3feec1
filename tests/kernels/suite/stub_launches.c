/* A libcuda.so.1 for the tests, which loads any module and notes what is launched: `grid`, `stream`, and of `count`
   parameters of `sizes` bytes their bytes. Signatures: CUDA driver API reference. A descriptor (CUtensorMap) holds what
   it was encoded from. */
#include <stdint.h>
#include <string.h>

int sizes[64], count, launches;
unsigned char parameters[64][128];
unsigned grid[3];
void *stream;

typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned attribute_count;
} Configuration;

int cuLaunchKernelEx(const Configuration *launch, void *function, void **given, void **extra) {
    launches++;
    stream = launch->stream;
    memcpy(grid, launch->grid, sizeof grid);
    memset(parameters, 0, sizeof parameters);
    for (int i = 0; i < count; i++) memcpy(parameters[i], given[i], sizes[i]);
    return 0;
}

int cuTensorMapEncodeTiled(uint64_t *map, int type, unsigned rank, void *address, const uint64_t *shape,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
    memset(map, 0, 128);
    map[0] = (uint64_t)address;
    map[1] = type;
    for (unsigned i = 0; i < rank; i++) map[2 + i] = shape[i], map[4 + i] = box[i];
    if (rank > 1) map[6] = strides[0];
    map[7] = swizzle;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = 232448; return 0; } /* of shared memory */
int cuFuncGetAttribute(int *value, int attribute, void *function) { *value = attribute ? 0 : 1024; return 0; }
int cuPointerGetAttribute(uint64_t *value, int attribute, uint64_t pointer) { *value = pointer; return 0; }
int cuCtxGetCurrent(void **context) { *context = stream ? stream : &stream; return 0; }
int cuModuleLoadData(void **module, const void *image) { *module = &sizes; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) { *function = &grid; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuCtxGetLimit(uint64_t *value, int limit) { *value = 0; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuGetErrorString(int error, const char **text) { *text = "an error of the stub"; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuCtxSetLimit(int limit, uint64_t value) { return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &stream; return 0; }
int cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
int cuFuncSetCacheConfig(void *function, int config) { return 0; }
int cuOccupancyMaxActiveClusters(int *number, void *function, const void *config) { *number = 1; return 0; }
int cuTensorMapEncodeIm2col(void *map) { return 1; }
