// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A CUDA runtime without a GPU, linked in place of the real one; include it in one source of a program.
//
// Work on a stream is done as late as CUDA allows: when a call waits for it. So a missing wait for a
// copy, or memory that is reused too early, gives wrong data on every run and not only on some. Calls are
// counted, the n-th can be made to fail, and leaks show in `live()`.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct CUevent_st {
  int device = 0;
  std::uint64_t recorded = 0;  // how often the event was recorded
  std::uint64_t reached = 0;   // the last record that its stream has passed
  CUstream_st* stream = nullptr;
};

struct CUstream_st {
  struct work {
    std::function<void()> what;       // a copy or a kernel
    CUevent_st* records = nullptr;    // or a record of an event
    CUevent_st* waits_for = nullptr;  // or a wait for one
    std::uint64_t number = 0;         // the number of the record
  };
  int device = 0;
  std::deque<work> queue;
  bool running = false;
};

namespace penstock_test {

/// The state of the fake. One test at a time uses it.
struct fake_cuda {
  std::recursive_mutex lock;
  int devices = 2;
  cudaError_t on_count = cudaSuccess;
  cudaError_t last = cudaSuccess;
  std::uint64_t fail_at = 0;  // the number of the call that fails, from 1
  cudaError_t fail_with = cudaErrorLaunchFailure;
  bool stays = false;               // after a failure every call fails, as after that of a kernel
  cudaError_t stuck = cudaSuccess;  // how
  std::uint64_t calls = 0;          // calls that may fail
  bool counts = true;               // false: calls are neither counted nor logged, and nothing is copied
  std::size_t device_bytes = std::size_t(-1);  // memory of all devices together
  std::uint64_t pageable = 0;                  // copies from memory that is not pinned
  cudaError_t on_register = cudaSuccess;       // what registering memory returns
  std::vector<std::string> log;
  std::map<std::string, std::uint64_t> count;
  std::set<void*> host_memory;
  std::map<const void*, std::size_t> registered;
  std::map<void*, int> device_memory;
  std::map<void*, std::size_t> device_sizes;
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::map<int, CUstream_st> default_streams;
  std::set<int> chosen;  // devices that were made current
  bool misused = false;  // something was released twice, or was of the wrong kind

  static fake_cuda& get() {
    static fake_cuda the_one;
    return the_one;
  }
  static int& current() {
    thread_local int device = 0;
    return device;
  }

  void reset() {
    const std::lock_guard guard(lock);
    finish_all();
    devices = 2;
    on_count = on_register = last = stuck = cudaSuccess;
    stays = false;
    counts = true;
    device_bytes = std::size_t(-1);
    fail_at = calls = pageable = 0;
    fail_with = cudaErrorLaunchFailure;
    log.clear();
    count.clear();
    chosen.clear();
    current() = 0;
    misused = false;
  }
  [[nodiscard]] std::size_t live() {
    const std::lock_guard guard(lock);
    return host_memory.size() + registered.size() + device_memory.size() + streams.size() + events.size();
  }

  /// Counts a call and returns its status.
  cudaError_t enter(const char* name, bool may_fail = true) {
    if (counts) {
      ++count[name];
      log.emplace_back(name);
    }
    if (stuck != cudaSuccess) return last = stuck;
    if (!may_fail || ++calls != fail_at) return cudaSuccess;
    if (stays) stuck = fail_with;
    return last = fail_with;
  }
  /// Whether all of this memory was registered by one call, or allocated pinned.
  [[nodiscard]] bool is_pinned(const void* memory, std::size_t size) const {
    auto after = registered.upper_bound(memory);
    if (after != registered.begin()) {
      const auto& [begin, bytes] = *--after;
      if (static_cast<const char*>(memory) + size <= static_cast<const char*>(begin) + bytes) return true;
    }
    return !host_memory.empty() && registered.empty();  // sizes of what CUDA allocated are not kept
  }
  [[nodiscard]] std::size_t registered_bytes() {
    const std::lock_guard guard(lock);
    std::size_t all = 0;
    for (const auto& [begin, bytes] : registered) all += bytes;
    return all;
  }
  cudaError_t wrong(cudaError_t code) { return last = code; }

  CUstream_st* real(cudaStream_t stream) {
    if (stream != nullptr) return stream;
    CUstream_st& own = default_streams[current()];
    own.device = current();
    return &own;
  }
  void put(cudaStream_t stream, CUstream_st::work work) { real(stream)->queue.push_back(std::move(work)); }

  void step(CUstream_st* stream) {
    CUstream_st::work next = std::move(stream->queue.front());
    if (next.waits_for != nullptr) reach(next.waits_for, next.number);
    stream->queue.pop_front();
    if (next.what) next.what();
    if (next.records != nullptr) next.records->reached = next.number;
  }
  void finish(CUstream_st* stream) {
    while (!stream->queue.empty()) step(stream);
  }
  void reach(CUevent_st* event, std::uint64_t number) {
    while (event->reached < number && event->stream != nullptr && !event->stream->queue.empty())
      step(event->stream);
  }
  void finish_all() {
    for (CUstream_st* stream : streams) finish(stream);
    for (auto& [number, stream] : default_streams) finish(&stream);
  }

  /// A kernel: its work is done when its turn comes.
  void launch(cudaStream_t stream, std::function<void()> what) {
    const std::lock_guard guard(lock);
    put(stream, {std::move(what), nullptr, nullptr, 0});
  }
};

}  // namespace penstock_test

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaGetDeviceCount")) return code;
  *count = fake.devices;
  return fake.on_count == cudaSuccess ? cudaSuccess : fake.wrong(fake.on_count);
}
cudaError_t cudaGetDevice(int* device) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaGetDevice")) return code;
  *device = penstock_test::fake_cuda::current();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  // resetting the device in a destructor does not fail
  if (const cudaError_t code = fake.enter("cudaSetDevice", device != 0)) return code;
  if (device < 0 || device >= fake.devices) return fake.wrong(cudaErrorInvalidDevice);
  penstock_test::fake_cuda::current() = device;
  fake.chosen.insert(device);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  return std::exchange(fake.last, fake.stuck);
}
cudaError_t cudaPeekAtLastError() {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  return fake.last;
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError:
      return "cudaErrorInitializationError";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorDevicesUnavailable:
      return "cudaErrorDevicesUnavailable";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorECCUncorrectable:
      return "cudaErrorECCUncorrectable";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorContextIsDestroyed:
      return "cudaErrorContextIsDestroyed";
    case cudaErrorAssert:
      return "cudaErrorAssert";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorUnknown:
      return "cudaErrorUnknown";
    default:
      return "cudaErrorLaunchFailure";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "of the fake runtime";
}
cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned int flags) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaHostAlloc")) return code;
  if (size == 0 || flags != cudaHostAllocPortable) return fake.wrong(cudaErrorInvalidValue);
  *memory = ::operator new(size, std::align_val_t{4096});
  fake.host_memory.insert(*memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  fake.enter("cudaFreeHost", false);
  if (fake.host_memory.erase(memory) == 0) fake.misused = true;
  ::operator delete(memory, std::align_val_t{4096});
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* memory, size_t size, unsigned int flags) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaHostRegister")) return code;
  if (fake.on_register != cudaSuccess) return fake.wrong(fake.on_register);
  if (size == 0 || flags != cudaHostRegisterPortable) return fake.wrong(cudaErrorInvalidValue);
  fake.registered[memory] = size;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  fake.enter("cudaHostUnregister", false);
  fake.finish_all();  // as late as work may be, it is not later than this
  if (fake.registered.erase(memory) == 0) fake.misused = true;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* address, int size, int device) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaDeviceGetPCIBusId")) return code;
  if (device < 0 || device >= fake.devices) return fake.wrong(cudaErrorInvalidDevice);
  const std::string name = "0000:" + std::string(device == 0 ? "3B" : "AF") + ":00.0";
  if (size <= static_cast<int>(name.size())) return fake.wrong(cudaErrorInvalidValue);
  std::memcpy(address, name.c_str(), name.size() + 1);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t size) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaMalloc")) return code;
  if (size == 0) return fake.wrong(cudaErrorInvalidValue);
  std::size_t used = 0;
  for (const auto& [there, bytes] : fake.device_sizes) used += bytes;
  if (size > fake.device_bytes - used) return fake.wrong(cudaErrorMemoryAllocation);
  *memory = ::operator new(size, std::align_val_t{256});
  fake.device_sizes[*memory] = size;
  std::memset(*memory, 0xcd, size);
  fake.device_memory[*memory] = penstock_test::fake_cuda::current();
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  fake.enter("cudaFree", false);
  fake.finish_all();  // as in the real runtime
  if (fake.device_memory.erase(memory) == 0) fake.misused = true;
  fake.device_sizes.erase(memory);
  ::operator delete(memory, std::align_val_t{256});
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaStreamCreateWithFlags")) return code;
  if (flags != cudaStreamNonBlocking) return fake.wrong(cudaErrorInvalidValue);
  *stream = new CUstream_st;
  (*stream)->device = penstock_test::fake_cuda::current();
  fake.streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  fake.enter("cudaStreamDestroy", false);
  if (fake.streams.erase(stream) == 0) {
    fake.misused = true;
    return fake.wrong(cudaErrorInvalidResourceHandle);
  }
  fake.finish(stream);
  for (CUevent_st* event : fake.events)
    if (event->stream == stream) event->stream = nullptr;
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaStreamSynchronize")) return code;
  fake.finish(fake.real(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaStreamWaitEvent")) return code;
  if (!fake.events.contains(event)) return fake.wrong(cudaErrorInvalidResourceHandle);
  fake.put(stream, {nullptr, nullptr, event, event->recorded});
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaEventCreateWithFlags")) return code;
  *event = new CUevent_st;
  (*event)->device = penstock_test::fake_cuda::current();
  fake.events.insert(*event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  fake.enter("cudaEventDestroy", false);
  if (fake.events.erase(event) == 0) {
    fake.misused = true;
    return fake.wrong(cudaErrorInvalidResourceHandle);
  }
  fake.finish_all();  // nothing in a queue may refer to it any more
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaEventRecord")) return code;
  CUstream_st* const real = fake.real(stream);
  if (!fake.events.contains(event) || real->device != event->device)
    return fake.wrong(cudaErrorInvalidResourceHandle);
  event->stream = real;
  fake.put(stream, {nullptr, event, nullptr, ++event->recorded});
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaEventSynchronize")) return code;
  fake.reach(event, event->recorded);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  auto& fake = penstock_test::fake_cuda::get();
  const std::lock_guard guard(fake.lock);
  if (const cudaError_t code = fake.enter("cudaMemcpyAsync")) return code;
  if (size == 0 || (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice))
    return fake.wrong(cudaErrorInvalidValue);
  if (!fake.counts) return cudaSuccess;
  if (kind == cudaMemcpyHostToDevice && !fake.is_pinned(from, size)) ++fake.pageable;
  fake.put(stream, {[=] { std::memcpy(to, from, size); }, nullptr, nullptr, 0});
  return cudaSuccess;
}

}  // extern "C"
