// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<cuda_runtime_api.h>)
#error "penstock/device/detail/cuda_lanes.hpp needs the CUDA toolkit: link penstock::cuda"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/device/detail/cuda_calls.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Pinned memory that goes to a device piece by piece: two halves, so that one is filled while the other is
/// still being copied.
class cuda_staging : unmovable {
 public:
  ~cuda_staging() {
    for (half& h : halves_)
      if (h.memory != nullptr) static_cast<void>(cudaFreeHost(h.memory));
  }

  /// Room for the next piece, which nothing reads any more.
  [[nodiscard]] std::byte* room(std::size_t bytes) {
    next_ = 1 - next_;
    half& h = halves_[next_];
    if (h.used != nullptr) cuda_check(cudaEventSynchronize(h.used.get()), "waiting for a copy to the device");
    if (bytes > h.bytes) {
      if (h.memory != nullptr) static_cast<void>(cudaFreeHost(h.memory));
      h.memory = nullptr;
      h.bytes = 0;
      void* made = nullptr;
      cuda_check(cudaHostAlloc(&made, bytes, cudaHostAllocPortable), "pinning memory for one sample");
      h.memory = static_cast<std::byte*>(made);
      h.bytes = bytes;
    }
    return h.memory;
  }
  /// Copies the room's first bytes.
  void send(void* to, std::size_t bytes, cudaStream_t stream) {
    half& h = halves_[next_];
    if (h.used == nullptr) h.used = make_cuda_event();
    if (bytes != 0)
      cuda_check(cudaMemcpyAsync(to, h.memory, bytes, cudaMemcpyHostToDevice, stream),
                 "copying a sample to the device");
    cuda_check(cudaEventRecord(h.used.get(), stream), "recording an event after a copy");
  }

 private:
  struct half {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    cuda_event used;
  };
  std::array<half, 2> halves_;
  std::size_t next_ = 1;
};

/// One of the threads that prepare samples for a device, with a stream of its own.
struct cuda_lane {
  std::size_t number = 0;
  cuda_staging staging;  // outlives the stream that reads it
  cuda_stream stream;
  cuda_event passed;
};

/// The samples of one batch, which lanes take one by one. Whoever starts it keeps it until `finish` has
/// returned or thrown.
struct cuda_lane_job {
  void* self = nullptr;
  /// Prepares a sample in a lane: what it puts on the lane's stream is done before the batch is used.
  void (*sample)(void* self, cuda_lane& lane, std::size_t i) = nullptr;
  std::size_t count = 0;

  // Of the lanes, under their lock.
  std::size_t next = 0, done = 0;
  std::size_t failed_at = std::numeric_limits<std::size_t>::max();
  std::exception_ptr failure;
  bool started = false;
};

/// Threads that prepare the samples of batches for a device, each with a stream: what takes time on the host
/// and then ends on the device.
///
/// `start` and `finish` are called by one thread. Jobs are worked on in the order of their starts; one may
/// start before another is finished. A sample that throws ends its job: of several, `finish` throws what the
/// first one in the batch threw.
class cuda_lanes {
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
  cuda_lanes(const cuda_lanes&) = delete;
  cuda_lanes& operator=(const cuda_lanes&) = delete;
  ~cuda_lanes() {
    stop();
    const cuda_on_device here(device_);
    settle();
    lanes_.clear();
    begun_.reset();
  }

  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] std::size_t size() const noexcept { return lanes_.size(); }

  /// The lanes' streams come after what is on `stream` now, above all after the last use of the memory that
  /// they write to.
  void start(cuda_lane_job& job, cudaStream_t stream) {
    job.next = job.done = 0;
    job.failed_at = std::numeric_limits<std::size_t>::max();
    job.failure = nullptr;
    cuda_check(cudaEventRecord(begun_.get(), stream), "recording an event before a batch");
    for (const auto& lane : lanes_)
      cuda_check(cudaStreamWaitEvent(lane->stream.get(), begun_.get(), 0), "making a stream wait");
    job.started = true;
    if (job.count == 0) return;
    const std::lock_guard hold(lock_);
    jobs_.push_back(&job);
    wake_.notify_all();
  }

  /// Waits until every sample is prepared; `stream` comes after what the lanes have put on theirs. If it
  /// throws, no lane works on the job, and nothing of it is in progress on the device.
  void finish(cuda_lane_job& job, cudaStream_t stream) {
    if (!job.started) return;
    {
      std::unique_lock hold(lock_);
      ended_.wait(hold, [&] { return job.done == job.count; });
      job.started = false;
    }
    if (job.failure != nullptr) {
      settle();
      std::rethrow_exception(job.failure);
    }
    try {
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

  /// Ends a job that nobody wants: as `finish`, whose errors it drops.
  void abandon(cuda_lane_job& job) noexcept {
    if (!job.started) return;
    std::unique_lock hold(lock_);
    ended_.wait(hold, [&] { return job.done == job.count; });
    job.started = false;
    hold.unlock();
    settle();
  }

 private:
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
      wake_.wait(hold, [this] { return stopped_ || !jobs_.empty(); });
      if (stopped_) return;
      cuda_lane_job& job = *jobs_.front();
      const std::size_t i = job.next++;
      if (job.next == job.count) jobs_.pop_front();
      const bool wanted = job.failure == nullptr || i < job.failed_at;
      hold.unlock();
      std::exception_ptr failure;
      if (wanted) {
        try {
          cuda_check(chosen, "choosing the CUDA device");
          job.sample(job.self, lane, i);
        } catch (...) {
          failure = std::current_exception();
        }
      }
      hold.lock();
      if (failure != nullptr && i < job.failed_at) {
        job.failure = failure;
        job.failed_at = i;
      }
      if (++job.done == job.count) ended_.notify_all();
    }
  }

  int device_;
  cuda_event begun_;
  std::vector<std::unique_ptr<cuda_lane>> lanes_;
  std::vector<std::thread> threads_;
  std::mutex lock_;
  std::condition_variable wake_, ended_;
  std::deque<cuda_lane_job*> jobs_;
  bool stopped_ = false;
};

/// Lanes by default: half of the machine's threads, of which the run's workers want the rest.
[[nodiscard]] inline unsigned default_cuda_lanes() noexcept {
  return std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u);
}

}  // namespace penstock::inline v0_1::detail
