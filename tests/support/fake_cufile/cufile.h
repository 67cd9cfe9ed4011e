/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The part of cuFile that penstock uses, for builds without the library: its declarations, with the library's
   values. What the functions do is in ../fake_cufile.hpp. */

#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

#define CUFILEOP_BASE_ERR 5000
typedef enum CUfileOpError {
  CU_FILE_SUCCESS = 0,
  CU_FILE_DRIVER_NOT_INITIALIZED = CUFILEOP_BASE_ERR + 1,
  CU_FILE_IO_NOT_SUPPORTED = CUFILEOP_BASE_ERR + 8,
  CU_FILE_NVFS_DRIVER_ERROR = CUFILEOP_BASE_ERR + 10,
  CU_FILE_DRIVER_ALREADY_OPEN = CUFILEOP_BASE_ERR + 26,
  CU_FILE_INTERNAL_ERROR = CUFILEOP_BASE_ERR + 30
} CUfileOpError;
static inline const char* cufileop_status_error(CUfileOpError status) {
  switch (status) {
    case CU_FILE_SUCCESS:
      return "cufile success";
    case CU_FILE_DRIVER_NOT_INITIALIZED:
      return "nvidia-fs driver is not loaded. Set allow_compat_mode to true in cufile.json file to enable "
             "compatible mode";
    case CU_FILE_IO_NOT_SUPPORTED:
      return "GPUDirect Storage not supported on current file";
    default:
      return "unknown cufile error";
  }
}
typedef struct CUfileError {
  CUfileOpError err;
  int cu_err;
} CUfileError_t;
typedef enum CUfileFeatureFlags { CU_FILE_P2P_SUPPORTED = 4 } CUfileFeatureFlags_t;
typedef struct CUfileDrvProps {
  struct {
    unsigned int major_version;
    unsigned int minor_version;
    size_t poll_thresh_size;
    size_t max_direct_io_size;
    unsigned int dstatusflags;
    unsigned int dcontrolflags;
  } nvfs;
  unsigned int fflags;
  unsigned int max_device_cache_size;
  unsigned int per_buffer_cache_size;
  unsigned int max_device_pinned_mem_size;
  unsigned int max_batch_io_size;
  unsigned int max_batch_io_timeout_msecs;
} CUfileDrvProps_t;
enum CUfileFileHandleType { CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1 };
typedef struct CUfileFSOps CUfileFSOps_t;
typedef struct CUfileDescr_t {
  enum CUfileFileHandleType type;
  union {
    int fd;
    void* handle;
  } handle;
  const CUfileFSOps_t* fs_ops;
} CUfileDescr_t;
typedef void* CUfileHandle_t;

extern "C" {
CUfileError_t cuFileDriverOpen(void);
CUfileError_t cuFileDriverClose_v2(void);
#define cuFileDriverClose cuFileDriverClose_v2
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t* props);
CUfileError_t cuFileHandleRegister(CUfileHandle_t* fh, CUfileDescr_t* descr);
void cuFileHandleDeregister(CUfileHandle_t fh);
CUfileError_t cuFileBufRegister(const void* base, size_t length, int flags);
CUfileError_t cuFileBufDeregister(const void* base);
ssize_t cuFileRead(CUfileHandle_t fh, void* base, size_t size, off_t file_offset, off_t base_offset);
}
