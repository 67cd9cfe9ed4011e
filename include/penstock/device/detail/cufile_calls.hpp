// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<cufile.h>)
#error "penstock/device/detail/cufile_calls.hpp needs cuFile: link penstock::cufile"
#endif

#include <penstock/core/message.hpp>

#include <cuda_runtime_api.h>
#include <cufile.h>
#include <sys/types.h>
#include <unistd.h>

#include <utility>

/// The calls of cuFile, which reads files to device memory.
namespace penstock::inline v0_1::detail {

/// What the library says of an error, which is a number beyond those of the system.
[[nodiscard]] inline std::string cufile_reason(CUfileOpError code) {
  return text({cufileop_status_error(code), " (cuFile ", static_cast<int>(code), ")"});
}

/// The library's driver, open while this lives, or the reason why nothing can be read directly.
class cufile_driver {
 public:
  /// `modules` is the kernel's list of modules. Where there is no such file, as in some containers, the
  /// library reads it without end, so it is not asked. Found with cuFile 1.20.
  explicit cufile_driver(const char* modules) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      static_cast<void>(cudaGetLastError());  // the session says so if the device is used
      reason_ = "there is no CUDA device";
      return;
    }
    if (::access(modules, R_OK) != 0) {
      reason_ = text({"the kernel has no ", modules, ", in which cuFile would look for nvidia-fs"});
      return;
    }
    const CUfileError_t opened = cuFileDriverOpen();
    opened_ = opened.err == CU_FILE_SUCCESS;
    if (!opened_ && opened.err != CU_FILE_DRIVER_ALREADY_OPEN) {
      reason_ = cufile_reason(opened.err);
      return;
    }
    CUfileDrvProps_t facts{};
    const CUfileError_t asked = cuFileDriverGetProperties(&facts);
    if (asked.err != CU_FILE_SUCCESS)
      reason_ = cufile_reason(asked.err);
    else if (facts.nvfs.major_version == 0 && (facts.fflags >> p2p_supported & 1u) == 0)
      reason_ = "there is neither the nvidia-fs driver nor peer-to-peer access of the kernel's";
  }
  cufile_driver(const cufile_driver&) = delete;
  cufile_driver& operator=(const cufile_driver&) = delete;
  ~cufile_driver() {
    if (opened_) static_cast<void>(cuFileDriverClose());
  }

  [[nodiscard]] bool direct() const noexcept { return reason_.empty(); }
  /// Why not, without a full stop.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  static constexpr unsigned p2p_supported = 4;  // CU_FILE_P2P_SUPPORTED, which older headers do not have
  bool opened_ = false;
  std::string reason_;
};

/// A file that the library knows.
class cufile_handle {
 public:
  cufile_handle() = default;
  /// Empty if the library cannot read the file.
  explicit cufile_handle(int opened) noexcept {
    CUfileDescr_t about{};
    about.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
    about.handle.fd = opened;
    CUfileHandle_t made = nullptr;
    if (cuFileHandleRegister(&made, &about).err == CU_FILE_SUCCESS) handle_ = made;
  }
  cufile_handle(cufile_handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  cufile_handle& operator=(cufile_handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~cufile_handle() {
    if (handle_ != nullptr) cuFileHandleDeregister(handle_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }
  /// Returns the number of bytes; -1 with errno, or the library's error, negative.
  [[nodiscard]] ssize_t read(void* into, std::size_t bytes, off_t offset) const noexcept {
    return cuFileRead(handle_, into, bytes, offset, 0);
  }

 private:
  CUfileHandle_t handle_ = nullptr;
};

}  // namespace penstock::inline v0_1::detail
