// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<cuda_runtime_api.h>)
#error "penstock/device/detail/cuda_calls.hpp needs the CUDA toolkit: link penstock::cuda"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/core/error.hpp>

#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

/// What everything that calls the CUDA runtime shares: its errors as sentences, the current device, and
/// owners of streams, events and device memory.
namespace penstock::inline v0_1::detail {

/// Whether CUDA repeats an error at every later call of the process, whatever the call.
[[nodiscard]] constexpr bool cuda_error_stays(cudaError_t code) noexcept {
  for (const cudaError_t one :
       {cudaErrorIllegalAddress, cudaErrorLaunchTimeout, cudaErrorAssert, cudaErrorHardwareStackError,
        cudaErrorIllegalInstruction, cudaErrorMisalignedAddress, cudaErrorInvalidAddressSpace,
        cudaErrorInvalidPc, cudaErrorLaunchFailure})
    if (code == one) return true;
  return false;
}

/// The remedy for a CUDA error, phrased as the end of a sentence.
[[nodiscard]] inline std::string_view cuda_cure(cudaError_t code) noexcept {
  if (cuda_error_stays(code))
    return "a kernel that was launched earlier failed, and until the process ends every call says so; "
           "compute-sanitizer finds the kernel";
  constexpr int stub_library = 34;  // cudaErrorStubLibrary, which not all versions have
  if (static_cast<int>(code) == stub_library)
    return "the program found the toolkit's stub of libcuda.so; put the driver's before it in "
           "LD_LIBRARY_PATH";
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "lower prefetch(n) after batch or memory(bytes), or make batches smaller";
    case cudaErrorNoDevice:
      return "see whether nvidia-smi lists a device and CUDA_VISIBLE_DEVICES shows it to this process";
    case cudaErrorInsufficientDriver:
    case cudaErrorCompatNotSupportedOnDevice:
      return "install a driver, or one that is not older than the toolkit of this build; in a container, "
             "start it with --gpus all";
    case cudaErrorInitializationError:
      return "see whether nvidia-smi works; a process that was forked after its parent used CUDA cannot use "
             "it";
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
      return "see whether nvidia-smi works; after a driver was updated, restart its services or the machine";
    case cudaErrorDevicesUnavailable:
      return "another process has exclusive use of the device, or the device was lost; nvidia-smi and the "
             "kernel's log (Xid) say which";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown:
      return "the device may be lost; nvidia-smi and the kernel's log (Xid) say more, and a run that resumes "
             "from its last state needs another device or a restart";
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
      return "the device was reset, or the program is ending, while a run used it; destroy runs and batches "
             "before";
    case cudaErrorInvalidResourceHandle:
      return "a stream must belong to the device that cuda{.device = ...} names, and live as long as the run";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread:
      return "open and use a run outside of stream capture; capture only the kernels that use a batch";
    default:
      return "see what the program did on the device before; compute-sanitizer finds failing kernels and "
             "calls";
  }
}

/// Without a cure, the one for the error.
[[noreturn, gnu::cold, gnu::noinline]] inline void cuda_fail(cudaError_t code, std::string_view what,
                                                             std::string_view cure = {}) {
  static_cast<void>(cudaGetLastError());  // reported here; clear it so that the program does not see it again
  throw error(errc::io, {what, " failed with ", cudaGetErrorName(code), " (", cudaGetErrorString(code), "); ",
                         cure.empty() ? cuda_cure(code) : cure});
}
inline void cuda_check(cudaError_t code, std::string_view what) {
  if (code != cudaSuccess) cuda_fail(code, what);
}

/// Makes a device current in this thread, and restores the previous one at the end.
class cuda_on_device : unmovable {
 public:
  explicit cuda_on_device(int number) noexcept : status_(cudaGetDevice(&before_)) {
    if (status_ != cudaSuccess || before_ == number) return;
    status_ = cudaSetDevice(number);
    changed_ = status_ == cudaSuccess;
  }
  ~cuda_on_device() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  void check() const { cuda_check(status_, "choosing the CUDA device"); }

 private:
  int before_ = 0;
  cudaError_t status_;
  bool changed_ = false;
};

struct cuda_destroy {
  void operator()(std::remove_pointer_t<cudaStream_t>* stream) const noexcept {
    static_cast<void>(cudaStreamDestroy(stream));
  }
  void operator()(std::remove_pointer_t<cudaEvent_t>* event) const noexcept {
    static_cast<void>(cudaEventDestroy(event));
  }
  void operator()(std::byte* memory) const noexcept { static_cast<void>(cudaFree(memory)); }
};
using cuda_stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, cuda_destroy>;
using cuda_event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, cuda_destroy>;
using cuda_memory = std::unique_ptr<std::byte, cuda_destroy>;

/// An event without timing. A host that waits for it yields its processor, which the workers can use.
[[nodiscard]] inline cuda_event make_cuda_event() {
  cudaEvent_t made = nullptr;
  cuda_check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming | cudaEventBlockingSync),
             "making a CUDA event");
  return cuda_event(made);
}

}  // namespace penstock::inline v0_1::detail
