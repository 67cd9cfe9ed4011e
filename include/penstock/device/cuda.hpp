// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<cuda_runtime_api.h>)
#error "penstock/device/cuda.hpp needs the CUDA toolkit: link penstock::cuda"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/device/detail/pinned_arena.hpp>
#include <penstock/device/pin_and_copy_stage.hpp>

#include <cuda_runtime_api.h>

namespace penstock::inline v0_1 {

/// Who waits for the copy of a batch: only the stream that uses it, or also the thread of the training loop.
enum class cuda_wait { stream, host };

/// On a machine with several NUMA nodes, what a run puts on the node of its device. `automatic`: its slots,
/// and its workers if the node has a processor for each; `always`: both, whatever the number of workers;
/// `off`: nothing.
enum class cuda_numa { automatic, always, off };

/// A CUDA GPU as the device where batches end up: `cuda::pin_and_copy`, or `pin_and_copy(cuda{...})` with
/// options.
///
///     const auto loader = generated(samples, made_up) | shuffle(seed(1)) | batch(256) | prefetch(4) |
///                         pin_and_copy(cuda{.stream = stream});
///
/// Slots are in pinned memory. As soon as a batch is ready, ahead of the loop, its copy starts on a separate
/// stream into device memory that belongs to the batch; `device_data<I>()` returns the address of column I.
/// `prefetch(n)` after `batch` sets the number of batches in flight; give it 2 or more. By default there are
/// enough that one is computed on while the next is copied and another one is filled.
/// Waiting: when a batch is delivered, `stream` waits for its copy and the host does not; `cuda_wait::host`
/// makes the loop wait too. After you drop the batch, its device memory is overwritten only once everything
/// you put on `stream` before you asked for the next batch has finished. So you can drop a batch as soon as
/// you have launched the kernels that use it. For other streams that do not synchronise with `stream`, call
/// `b.on(other)`; a stream of another device is refused.
/// Several devices: each run has its own, in one thread or in several. Runs leave the current device of every
/// thread as it was. Since CUDA 12, changing it also initialises the device that it is changed to, so in a
/// process that uses only device 1, make it current (`cudaSetDevice`) in the thread of the loop.
/// Memory: a run's slots are in a few large pieces, in huge pages where the system has them; each is pinned
/// once and stays until the run and its batches are gone, or until a batch larger than all before it takes
/// its place. With `memory(bytes)`, pieces are no larger than that asks for.
/// NUMA: on a machine with several nodes, slots are on the node of the device, and workers run on its
/// processors if they are at most as many, because a worker on another node is better than none;
/// `workers(n, {.processors = ...})` or `numa` say otherwise.
/// Element sizes and shapes: as on the host; columns start at multiples of 256 bytes.
/// Cost per batch: one asynchronous copy per column and two events; memory is allocated only when a batch is
/// larger than all before it. Each batch in flight takes its size once in pinned and once in device memory.
/// Throws, from `open` and when you ask for a batch: `errc::argument` for a device that does not exist;
/// `errc::io` with the name of the CUDA error and what to do. After an error the run is over, and releases
/// what it has; after the failure of a kernel, CUDA refuses everything until the process ends.
/// Threads: as the run; any thread may launch kernels. Keeps all guarantees. Streams must outlive the run and
/// its batches. Open and use the run outside of stream capture.
/// Source: CUDA Runtime API, 11 and newer.
struct cuda {
  static constexpr int current = -1;  ///< the device that is current in the thread that opens the run

  int device = current;                   ///< device number
  cudaStream_t stream = nullptr;          ///< the stream that uses batches; null: the default stream
  cuda_wait wait = cuda_wait::stream;     ///< who waits for copies
  cuda_numa numa = cuda_numa::automatic;  ///< what is placed near the device

  /// `pin_and_copy(cuda{})`; `cuda::pin_and_copy(cuda{.device = 1})` takes options too
  static const pin_and_copy_stage<cuda> pin_and_copy;

  class session;
  [[nodiscard]] session connect() const;
  [[nodiscard]] std::string describe() const {
    const std::string_view who = wait == cuda_wait::host ? "the host waits" : "the stream waits";
    const std::string_view near = numa == cuda_numa::off      ? ""
                                  : numa == cuda_numa::always ? ", slots and all workers on its node"
                                                              : ", slots and workers on its node";
    if (device == current) return detail::text({"cuda, the current device, ", who, near});
    return detail::text({"cuda device ", device, ", ", who, near});
  }
};

/// A run's session with a GPU: a stream for copies, and the pinned memory.
///
/// Any thread may call `allocate` and `deallocate`; everything else belongs to the consumer's thread.
class cuda::session : detail::unmovable {
 public:
  static constexpr bool copies = true;
  using stream_type = cudaStream_t;
  static constexpr memory_space space = memory_space::pinned;
  static constexpr std::string_view platform = "cuda";

  /// The state of one batch in flight: device memory, the event after its copy, and an event for each stream
  /// that used it.
  class transfer : detail::unmovable {
   public:
    /// Waits for a copy that has started, because the slots that it reads are freed next.
    ~transfer() {
      if (copied_ == nullptr) return;
      const detail::cuda_on_device here(device_);
      if (in_flight_) static_cast<void>(cudaEventSynchronize(copied_.get()));
      users_.clear();
      memory_.reset();
      copied_.reset();
    }

   private:
    friend class session;
    struct user {
      cudaStream_t stream = nullptr;
      detail::cuda_event passed;
      bool uses = false;     // used since the last copy
      bool pending = false;  // `passed` is recorded, and the next copy must come after it
    };

    int device_ = 0;
    detail::cuda_event copied_;
    bool in_flight_ = false;
    std::vector<user> users_;
    std::vector<std::size_t> offsets_;
    std::size_t capacity_ = 0;
    detail::cuda_memory memory_;
  };

  /// `sys` is the folder that Linux calls /sys.
  explicit session(const cuda& given, const std::string& sys = "/sys")
      : device_(number_of(given)),
        node_(given.numa == cuda_numa::off ? std::nullopt : node_of(device_, sys)),
        always_near_(given.numa == cuda_numa::always),
        stream_(given.stream),
        wait_(given.wait),
        pinned_(device_, node_) {
    const detail::cuda_on_device here(device_);
    here.check();
    cudaStream_t made = nullptr;
    detail::cuda_check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a CUDA stream");
    copy_.reset(made);
    // Detects a stream of another device here, rather than at the first batch.
    const detail::cuda_event probe = detail::make_cuda_event();
    detail::cuda_check(cudaEventRecord(probe.get(), stream_), "recording an event on cuda{.stream = ...}");
  }
  ~session() {
    const detail::cuda_on_device here(device_);
    copy_.reset();
  }

  /// Page-aligned pinned memory that every device can read.
  [[nodiscard]] void* allocate(std::size_t bytes) { return pinned_.allocate(bytes); }
  void deallocate(void* p, std::size_t bytes) noexcept { pinned_.deallocate(p, bytes); }
  void bound(std::uint64_t bytes) noexcept { pinned_.bound(bytes); }
  void expect(std::size_t times) noexcept { pinned_.expect(times); }
  /// Bytes of pinned memory that the run has.
  [[nodiscard]] std::size_t pinned() const noexcept { return pinned_.pinned(); }
  /// The processors of the device's node; none on a machine with one node.
  [[nodiscard]] near_processors near() const {
    return {node_ ? node_->processors : processor_set{}, always_near_};
  }

  /// Starts copying, and puts work on the stream behind the copies; see `computing_session`. If it throws, no
  /// copy is in progress.
  template <class Work = detail::no_device_work>
  void start(transfer& t, std::span<const bytes_view> columns, std::span<const std::size_t> rooms = {},
             const Work& work = {}) {
    const detail::cuda_on_device here(device_);
    here.check();
    if (t.copied_ == nullptr) {
      t.copied_ = detail::make_cuda_event();
      t.device_ = device_;
    }
    make_room(t, columns, rooms);
    try {
      for (transfer::user& user : t.users_) {
        if (!user.pending) continue;
        detail::cuda_check(cudaStreamWaitEvent(copy_.get(), user.passed.get(), 0), "waiting for a stream");
        user.pending = false;
      }
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].empty()) continue;
        detail::cuda_check(cudaMemcpyAsync(t.memory_.get() + t.offsets_[i], columns[i].data(),
                                           columns[i].size(), cudaMemcpyHostToDevice, copy_.get()),
                           "copying a batch to the device");
      }
      if (!rooms.empty()) {
        const cudaError_t before = cudaPeekAtLastError();  // the program may have left an error there
        work(copy_.get());
        if (const cudaError_t after = cudaPeekAtLastError(); after != before)
          detail::cuda_check(after, "launching the kernels of on_device");
      }
      detail::cuda_check(cudaEventRecord(t.copied_.get(), copy_.get()), "recording an event after a copy");
    } catch (...) {
      static_cast<void>(cudaStreamSynchronize(copy_.get()));
      throw;
    }
    t.in_flight_ = true;
  }

  /// Makes the device's stream, and if requested the host, wait for the copy.
  void wait(transfer& t) {
    wait_on(t, stream_);
    if (wait_ == cuda_wait::stream) return;
    const detail::cuda_on_device here(device_);
    here.check();
    finish(t);
  }

  /// Makes another stream wait for the copy. The memory is not overwritten before that stream has passed
  /// everything put on it until the batch is dropped. `batch.on(stream)` calls it.
  void wait_on(transfer& t, cudaStream_t given) {
    const detail::cuda_on_device here(device_);
    here.check();
    auto found = std::ranges::find(t.users_, given, &transfer::user::stream);
    if (found == t.users_.end()) {
      transfer::user one{given, detail::make_cuda_event()};
      // Refuses a stream of another device here, rather than when the batch has been dropped.
      detail::cuda_check(cudaEventRecord(one.passed.get(), given), "using a batch on another stream");
      t.users_.push_back(std::move(one));
      found = t.users_.end() - 1;
    }
    detail::cuda_check(cudaStreamWaitEvent(given, t.copied_.get(), 0), "making a stream wait for a batch");
    found->uses = true;
  }

  /// Call when the batch has been dropped: records what the streams must pass before its device memory may be
  /// written.
  void leave(transfer& t) {
    if (std::ranges::none_of(t.users_, &transfer::user::uses)) return;
    const detail::cuda_on_device here(device_);
    here.check();
    for (transfer::user& user : t.users_) {
      if (!user.uses) continue;
      detail::cuda_check(cudaEventRecord(user.passed.get(), user.stream), "recording an event after a batch");
      user.uses = false;
      user.pending = true;
    }
  }

  /// Call when the batch has been dropped: returns when its slots may be written.
  void reuse(transfer& t) {
    leave(t);
    if (!t.in_flight_) return;
    const detail::cuda_on_device here(device_);
    here.check();
    finish(t);
  }

  /// The device address of column i; null before the first copy and for a batch without bytes.
  [[nodiscard]] const void* data(transfer& t, std::size_t i) {
    return t.memory_ == nullptr ? nullptr : t.memory_.get() + t.offsets_[i];
  }
  /// The device number.
  [[nodiscard]] int device() const noexcept { return device_; }

 private:
  [[nodiscard]] static int number_of(const cuda& given) {
    int count = 0, number = given.device;
    detail::cuda_check(cudaGetDeviceCount(&count), "looking for CUDA devices");
    if (number == current) {
      detail::cuda_check(cudaGetDevice(&number), "looking for the current CUDA device");
    } else if (number < 0 || number >= count) {
      throw error(errc::argument, {"there is no CUDA device ", number, ": this process sees ", count,
                                   ", counted from 0; CUDA_VISIBLE_DEVICES chooses which"});
    }
    return number;
  }
  [[nodiscard]] static std::optional<numa_node> node_of(int number, const std::string& sys) {
    char address[32] = {};
    detail::cuda_check(cudaDeviceGetPCIBusId(address, sizeof address, number),
                       "looking for the PCI address of the CUDA device");
    return numa_node_of(address, sys);
  }

  static void finish(transfer& t) {
    if (!t.in_flight_) return;
    detail::cuda_check(cudaEventSynchronize(t.copied_.get()), "waiting for a copy to the device");
    t.in_flight_ = false;
  }

  static void make_room(transfer& t, std::span<const bytes_view> columns,
                        std::span<const std::size_t> rooms) {
    constexpr std::size_t alignment = 256;  // enough for the widest kernel loads and for texture units
    t.offsets_.resize(columns.size() + rooms.size());
    std::size_t needed = 0;
    for (std::size_t i = 0; i < t.offsets_.size(); ++i) {
      t.offsets_[i] = needed;
      const std::size_t bytes = i < columns.size() ? columns[i].size() : rooms[i - columns.size()];
      needed += (bytes + alignment - 1) / alignment * alignment;
    }
    if (needed <= t.capacity_) return;
    for (transfer::user& user : t.users_)
      if (user.pending) detail::cuda_check(cudaEventSynchronize(user.passed.get()), "waiting for a stream");
    const std::size_t wanted = t.capacity_ == 0 ? needed : needed + needed / 4;
    t.memory_.reset();
    t.capacity_ = 0;
    void* made = nullptr;
    const cudaError_t code = cudaMalloc(&made, wanted);
    if (code != cudaSuccess)
      detail::cuda_fail(code, detail::text({"allocating ", wanted, " bytes on the device"}));
    t.memory_.reset(static_cast<std::byte*>(made));
    t.capacity_ = wanted;
  }

  int device_;
  std::optional<numa_node> node_;
  bool always_near_;
  cudaStream_t stream_;
  cuda_wait wait_;
  detail::pinned_arena pinned_;
  detail::cuda_stream copy_;
};

inline constexpr pin_and_copy_stage<cuda> cuda::pin_and_copy{};

inline cuda::session cuda::connect() const { return session(*this); }

static_assert(device<cuda>, "a GPU of CUDA is a device");

}  // namespace penstock::inline v0_1
