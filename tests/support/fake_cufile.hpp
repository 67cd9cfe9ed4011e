// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A cuFile without a driver, over pread and the memory of fake_cuda.hpp; include both in one source of a
// program. Calls are counted with those of CUDA, so that the n-th can be made to fail, and leaks show in
// `live()`.

#include "support/fake_cuda.hpp"

#include <cufile.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace penstock_test {

/// The state of the fake; one test at a time uses it.
struct fake_cufile {
  bool has_driver = true;  // otherwise it cannot be opened
  bool direct = true;      // otherwise the library would read through the host
  bool understands_files = true;
  ssize_t next_read = 1;  // what the next read returns instead, and then 1 again: -1 is errno's
  int next_errno = 0;
  std::size_t longest = ~std::size_t{0};  // a read is at most as long
  CUfileOpError fail_with = CU_FILE_INTERNAL_ERROR;
  long opens = 0;
  std::map<const void*, std::size_t> buffers;
  std::set<const int*> handles;  // descriptors of the fake's own, which need no alignment
  bool misused = false;

  static fake_cufile& get() {
    static fake_cufile the_one;
    return the_one;
  }
  void reset() {
    const std::lock_guard guard(fake_cuda::get().lock);
    has_driver = direct = understands_files = true;
    next_read = 1;
    next_errno = 0;
    longest = ~std::size_t{0};
    fail_with = CU_FILE_INTERNAL_ERROR;
    misused = false;
  }
  [[nodiscard]] std::size_t live() {
    const std::lock_guard guard(fake_cuda::get().lock);
    return static_cast<std::size_t>(opens) + buffers.size() + handles.size();
  }
  CUfileError_t enter(const char* name) {
    fake_cuda& cuda = fake_cuda::get();
    const cudaError_t last = cuda.last;
    CUfileError_t status{};
    if (cuda.enter(name) != cudaSuccess) status.err = fail_with;
    cuda.last = last;  // it is not the runtime's
    return status;
  }
};

}  // namespace penstock_test

extern "C" {

CUfileError_t cuFileDriverOpen(void) {
  auto& fake = penstock_test::fake_cufile::get();
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  CUfileError_t status = fake.enter("cuFileDriverOpen");
  if (status.err == CU_FILE_SUCCESS && !fake.has_driver) status.err = CU_FILE_DRIVER_NOT_INITIALIZED;
  if (status.err == CU_FILE_SUCCESS) ++fake.opens;
  return status;
}
CUfileError_t cuFileDriverClose_v2(void) {
  auto& fake = penstock_test::fake_cufile::get();
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  if (--fake.opens < 0) fake.misused = true;
  return {};
}
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t* props) {
  auto& fake = penstock_test::fake_cufile::get();
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  const CUfileError_t status = fake.enter("cuFileDriverGetProperties");
  *props = {};
  props->nvfs.major_version = fake.direct ? 2 : 0;
  return status;
}
CUfileError_t cuFileHandleRegister(CUfileHandle_t* fh, CUfileDescr_t* descr) {
  auto& fake = penstock_test::fake_cufile::get();
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  CUfileError_t status = fake.enter("cuFileHandleRegister");
  if (status.err == CU_FILE_SUCCESS && !fake.understands_files) status.err = CU_FILE_IO_NOT_SUPPORTED;
  if (status.err == CU_FILE_SUCCESS) {
    const std::string path = "/proc/self/fd/" + std::to_string(descr->handle.fd);
    const int* const made = new int(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    fake.handles.insert(made);
    *fh = const_cast<int*>(made);
  }
  return status;
}
void cuFileHandleDeregister(CUfileHandle_t fh) {
  auto& fake = penstock_test::fake_cufile::get();
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  const int* const made = static_cast<const int*>(fh);
  if (fake.handles.erase(made) == 0) {
    fake.misused = true;
    return;
  }
  close(*made);
  delete made;
}
CUfileError_t cuFileBufRegister(const void* base, size_t length, int) {
  auto& fake = penstock_test::fake_cufile::get();
  auto& cuda = penstock_test::fake_cuda::get();
  const std::lock_guard guard(cuda.lock);
  const CUfileError_t status = fake.enter("cuFileBufRegister");
  if (!cuda.device_memory.contains(const_cast<void*>(base))) fake.misused = true;
  if (status.err == CU_FILE_SUCCESS) fake.buffers[base] = length;
  return status;
}
CUfileError_t cuFileBufDeregister(const void* base) {
  auto& fake = penstock_test::fake_cufile::get();
  auto& cuda = penstock_test::fake_cuda::get();
  const std::lock_guard guard(cuda.lock);
  if (fake.buffers.erase(base) == 0 || !cuda.device_memory.contains(const_cast<void*>(base)))
    fake.misused = true;
  return {};
}
ssize_t cuFileRead(CUfileHandle_t fh, void* base, size_t size, off_t file_offset, off_t base_offset) {
  auto& fake = penstock_test::fake_cufile::get();
  auto& cuda = penstock_test::fake_cuda::get();
  const std::lock_guard guard(cuda.lock);
  const CUfileError_t status = fake.enter("cuFileRead");
  if (status.err != CU_FILE_SUCCESS) return -static_cast<ssize_t>(status.err);
  if (const ssize_t next = std::exchange(fake.next_read, 1); next != 1) {
    errno = fake.next_errno;
    return next;
  }
  const auto found = fake.buffers.find(base);
  if (found != fake.buffers.end() && size + static_cast<std::size_t>(base_offset) > found->second)
    fake.misused = true;
  // At once, as the real one: what still reads the buffer gets the new bytes.
  return pread(*static_cast<const int*>(fh), static_cast<std::byte*>(base) + base_offset,
               size < fake.longest ? size : fake.longest, file_offset);
}

}  // extern "C"
