/* A library of an old driver with one GPU: a few functions of NVML, the others are missing. */
#include <string.h>

typedef void *device;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci_info;

static int open, gpu;

int nvmlInit_v2(void) { open = 1; return 0; }
int nvmlShutdown(void) { open = 0; return 0; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { strncpy(s, "450.80.02", n); return open ? 0 : 1; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return open ? 0 : 1; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d) { *d = &gpu; return open && i == 0 ? 0 : 2; }
int nvmlDeviceGetUUID(device d, char *s, unsigned n) { strncpy(s, "GPU-00000000-1111-2222-3333-444444444444", n); return open ? 0 : 1; }
int nvmlDeviceGetPciInfo_v3(device d, pci_info *p) { strcpy(p->bus_id, "00000000:3B:00.0"); return open ? 0 : 1; }
int nvmlDeviceGetCurrPcieLinkWidth(device d, unsigned *n) { *n = 16; return open ? 0 : 1; }
int nvmlDeviceGetTemperature(device d, int sensor, unsigned *n) { *n = 41; return open ? 0 : 1; }
int nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long *n) { *n = 4; return open ? 0 : 1; }
int nvmlDeviceGetPowerUsage(device d, unsigned *n) { return 3; }
