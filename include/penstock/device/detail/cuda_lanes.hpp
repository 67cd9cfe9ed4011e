// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/device/detail/cuda_calls.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Memory from which pieces are copied to their places on a device: two halves, so that one is filled while
/// the other is still being copied. `Memory` owns a half: it is made with a number of bytes, and has `get()`
/// and the `kind` of copies.
template <class Memory>
class cuda_halves : unmovable {
 public:
  /// Room for the next piece, which nothing reads any more.
  [[nodiscard]] std::byte* room(std::size_t bytes) {
    next_ = 1 - next_;
    half& h = halves_[next_];
    if (h.used != nullptr) cuda_check(cudaEventSynchronize(h.used.get()), "waiting for a copy to the device");
    if (bytes > h.bytes) {
      h.memory = Memory();
      h.bytes = 0;
      h.memory = Memory(bytes);
      h.bytes = bytes;
    }
    return h.memory.get();
  }
  /// Copies bytes of the room, from `begin` on.
  void send(void* to, std::size_t bytes, cudaStream_t stream, std::size_t begin = 0) {
    half& h = halves_[next_];
    if (h.used == nullptr) h.used = make_cuda_event();
    if (bytes != 0)
      cuda_check(cudaMemcpyAsync(to, h.memory.get() + begin, bytes, Memory::kind, stream),
                 "copying a sample to its place on the device");
    cuda_check(cudaEventRecord(h.used.get(), stream), "recording an event after a copy");
  }

 private:
  struct half {
    Memory memory;
    std::size_t bytes = 0;
    cuda_event used;
  };

  std::array<half, 2> halves_;
  std::size_t next_ = 1;
};

struct pinned_bytes : std::unique_ptr<std::byte, freed_by<cudaFreeHost>> {
  static constexpr cudaMemcpyKind kind = cudaMemcpyHostToDevice;
  pinned_bytes() = default;
  explicit pinned_bytes(std::size_t bytes) {
    void* made = nullptr;
    cuda_check(cudaHostAlloc(&made, bytes, cudaHostAllocPortable), "pinning memory for one sample");
    reset(static_cast<std::byte*>(made));
  }
};
using cuda_staging = cuda_halves<pinned_bytes>;

/// One of the threads that prepare samples for a device, with a stream of its own.
struct cuda_lane {
  std::size_t number = 0;
  cuda_staging staging;  // outlives the stream that reads it
  cuda_stream stream;
  cuda_event passed;
};

/// Threads that prepare the samples of batches for a device, each with a stream: what takes time on the host
/// and then ends on the device.
///
/// `run` is called by one thread at a time. A sample that throws ends it: of several, `run` throws what the
/// first one in the batch threw.
class cuda_lanes : unmovable {
 public:
  cuda_lanes(int device, unsigned threads) : device_(device) {
    const cuda_on_device here(device_);
    here.check();
    begun_ = make_cuda_event();
    for (std::size_t i = 0; i < std::max(1u, threads); ++i) {
      lanes_.push_back(std::make_unique<cuda_lane>());
      cuda_lane& lane = *lanes_.back();
      lane.number = i;
      cudaStream_t made = nullptr;
      cuda_check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a CUDA stream");
      lane.stream.reset(made);
      lane.passed = make_cuda_event();
    }
    try {
      for (const auto& lane : lanes_) threads_.emplace_back([this, &lane = *lane] { work(lane); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~cuda_lanes() {
    stop();
    const cuda_on_device here(device_);
    settle();
    lanes_.clear();
    begun_.reset();
  }

  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] std::size_t size() const noexcept { return lanes_.size(); }

  /// Prepares the samples of a batch and waits until all of them are: `sample(lane, i)` for each i below
  /// `count`, in any lane. What that puts on the lane's stream comes after what is on `stream` now, above all
  /// after the last use of the memory that it writes to, and before what `stream` is given next. If it
  /// throws, no lane works on the batch, and nothing of it is in progress on the device.
  template <class Sample>
  void run(std::size_t count, cudaStream_t stream, const Sample& sample) {
    if (count == 0) return;
    job all;
    all.self = &sample;
    all.sample = [](const void* self, cuda_lane& lane, std::size_t i) {
      (*static_cast<const Sample*>(self))(lane, i);
    };
    all.count = count;
    cuda_check(cudaEventRecord(begun_.get(), stream), "recording an event before a batch");
    for (const auto& lane : lanes_)
      cuda_check(cudaStreamWaitEvent(lane->stream.get(), begun_.get(), 0), "making a stream wait");
    {
      std::unique_lock hold(lock_);
      job_ = &all;
      wake_.notify_all();
      ended_.wait(hold, [&] { return all.done == all.count; });
    }
    try {
      if (all.failure != nullptr) std::rethrow_exception(all.failure);
      for (const auto& lane : lanes_) {
        cuda_check(cudaEventRecord(lane->passed.get(), lane->stream.get()),
                   "recording an event after a batch");
        cuda_check(cudaStreamWaitEvent(stream, lane->passed.get(), 0), "making a stream wait for a batch");
      }
    } catch (...) {
      settle();
      throw;
    }
  }

 private:
  /// The samples of one batch, which lanes take one by one, under the lock.
  struct job {
    const void* self = nullptr;
    void (*sample)(const void* self, cuda_lane& lane, std::size_t i) = nullptr;
    std::size_t count = 0, next = 0, done = 0;
    std::size_t failed_at = std::numeric_limits<std::size_t>::max();
    std::exception_ptr failure;
  };

  void settle() noexcept {
    for (const auto& lane : lanes_) static_cast<void>(cudaStreamSynchronize(lane->stream.get()));
  }
  void stop() noexcept {
    {
      const std::lock_guard hold(lock_);
      stopped_ = true;
      wake_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  void work(cuda_lane& lane) noexcept {
    const cudaError_t chosen = cudaSetDevice(device_);
    std::unique_lock hold(lock_);
    for (;;) {
      wake_.wait(hold, [this] { return stopped_ || job_ != nullptr; });
      if (stopped_) return;
      job& mine = *job_;
      const std::size_t i = mine.next++;
      if (mine.next == mine.count) job_ = nullptr;
      const bool wanted = i < mine.failed_at;
      hold.unlock();
      std::exception_ptr failure;
      if (wanted) {
        try {
          cuda_check(chosen, "choosing the CUDA device");
          mine.sample(mine.self, lane, i);
        } catch (...) {
          failure = std::current_exception();
        }
      }
      hold.lock();
      if (failure != nullptr && i < mine.failed_at) {
        mine.failure = failure;
        mine.failed_at = i;
      }
      if (++mine.done == mine.count) ended_.notify_all();
    }
  }

  int device_;
  cuda_event begun_;
  std::vector<std::unique_ptr<cuda_lane>> lanes_;
  std::vector<std::thread> threads_;
  std::mutex lock_;
  std::condition_variable wake_, ended_;
  job* job_ = nullptr;  // whose samples are taken now
  bool stopped_ = false;
};

/// Lanes by default: half of the machine's threads, of which the run's workers want the rest.
[[nodiscard]] inline unsigned default_cuda_lanes() noexcept {
  return std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u);
}

}  // namespace penstock::inline v0_1::detail
