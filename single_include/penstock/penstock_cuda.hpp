// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component cuda. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<cuda_runtime_api.h>)
#error "penstock_cuda.hpp needs the CUDA toolkit: link penstock::cuda"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

// ---- penstock/device/detail/cuda_calls.hpp

/// What everything that calls the CUDA runtime shares: its errors as sentences, the current device, and
/// owners of streams, events and device memory.
namespace penstock::inline v0_1 {

namespace detail {

/// Whether CUDA repeats an error at every later call of the process, whatever the call.
[[nodiscard]] constexpr bool cuda_error_stays(cudaError_t code) noexcept {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
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

[[noreturn, gnu::cold, gnu::noinline]] inline void cuda_fail(cudaError_t code, std::string_view what,
                                                             std::string_view cure) {
  static_cast<void>(cudaGetLastError());  // reported here; clear it so that the program does not see it again
  throw error(errc::io,
              {what, " failed with ", cudaGetErrorName(code), " (", cudaGetErrorString(code), "); ", cure});
}
[[noreturn, gnu::cold, gnu::noinline]] inline void cuda_fail(cudaError_t code, std::string_view what) {
  cuda_fail(code, what, cuda_cure(code));
}
inline void cuda_check(cudaError_t code, std::string_view what) {
  if (code != cudaSuccess) cuda_fail(code, what);
}

/// Makes a device current in this thread, and restores the previous one at the end.
class cuda_on_device {
 public:
  explicit cuda_on_device(int number) noexcept : status_(cudaGetDevice(&before_)) {
    if (status_ != cudaSuccess || before_ == number) return;
    status_ = cudaSetDevice(number);
    changed_ = status_ == cudaSuccess;
  }
  cuda_on_device(const cuda_on_device&) = delete;
  cuda_on_device& operator=(const cuda_on_device&) = delete;
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

}  // namespace detail

}  // namespace penstock::inline v0_1

// ---- penstock/device/detail/pinned_arena.hpp

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace penstock::inline v0_1::detail {

/// Pinned memory of one run: a few large pieces, each registered with CUDA once, and the gaps in them. What
/// is returned is used again; pinning, which takes milliseconds, happens only while a run finds its size.
///
/// A piece begins as huge pages where it has room for them, on the node that is given. It is pinned, and
/// given back while the run goes on, by a thread of its own: a device that a worker makes current would stay
/// so, and changing back would make CUDA initialise the device that was current before, which the process may
/// not use at all.
/// Threads: any.
class pinned_arena {
 public:
  static constexpr std::size_t page = 4096, huge_page = std::size_t{2} << 20;

  pinned_arena(int device, std::optional<numa_node> node) : device_(device), node_(std::move(node)) {}
  pinned_arena(const pinned_arena&) = delete;
  pinned_arena& operator=(const pinned_arena&) = delete;
  ~pinned_arena() {
    if (pieces_.empty()) return;
    const cuda_on_device here(device_);
    for (const piece& one : pieces_) unpin(one);
  }

  /// Takes no more for what is to come than leaves all pieces within so many bytes.
  void bound(std::uint64_t bytes) noexcept {
    const std::lock_guard guard(lock_);
    maximum_ = bytes;
  }
  /// Says that all that is in use now will be needed so many times more, so that one piece can hold it.
  void expect(std::size_t times) noexcept {
    const std::lock_guard guard(lock_);
    expected_ = in_use_ * times;
  }

  /// Memory at a multiple of a page.
  [[nodiscard]] void* allocate(std::size_t bytes) {
    const std::size_t size = in_pages(std::max<std::size_t>(1, bytes), page);
    const std::lock_guard guard(lock_);
    // At worst a gap follows everything that is in use; returning memory must not allocate.
    if (const std::size_t gaps = live_ + pieces_.size() + 3; gaps_.capacity() < gaps) gaps_.reserve(2 * gaps);
    auto found = fitting(size);
    if (found == gaps_.end()) {
      add_piece(size);
      found = fitting(size);
    }
    std::byte* const memory = found->begin;
    found->begin += size;
    found->size -= size;
    if (found->size == 0) gaps_.erase(found);
    in_use_ += size;
    ++live_;
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes) noexcept {
    const std::size_t size = in_pages(std::max<std::size_t>(1, bytes), page);
    const std::lock_guard guard(lock_);
    in_use_ -= size;
    --live_;
    add_gap({static_cast<std::byte*>(memory), size});
  }

  /// Bytes that are pinned.
  [[nodiscard]] std::size_t pinned() const noexcept {
    const std::lock_guard guard(lock_);
    return total_;
  }

 private:
  struct stretch {
    std::byte* begin = nullptr;
    std::size_t size = 0;
    [[nodiscard]] std::byte* end() const noexcept { return begin + size; }
  };
  struct piece : stretch {
    bool mapped = false;  // by this class, otherwise by CUDA
  };

  [[nodiscard]] static constexpr std::size_t in_pages(std::size_t bytes, std::size_t size) noexcept {
    return (bytes + size - 1) / size * size;
  }

  /// The smallest gap that is large enough.
  [[nodiscard]] std::vector<stretch>::iterator fitting(std::size_t size) noexcept {
    auto best = gaps_.end();
    for (auto at = gaps_.begin(); at != gaps_.end(); ++at)
      if (at->size >= size && (best == gaps_.end() || at->size < best->size)) best = at;
    return best;
  }

  /// Gaps of two pieces stay two, even side by side: what spans both is registered as neither.
  void add_gap(stretch gap) noexcept {
    auto after = std::ranges::lower_bound(gaps_, gap.begin, {}, &stretch::begin);
    if (after != gaps_.end() && after->begin == gap.end() && !begins_piece(after->begin)) {
      after->begin = gap.begin;
      after->size += gap.size;
    } else {
      after = gaps_.insert(after, gap);
    }
    if (after == gaps_.begin() || begins_piece(after->begin)) return;
    const auto before = after - 1;
    if (before->end() != after->begin) return;
    before->size += after->size;
    gaps_.erase(after);
  }
  [[nodiscard]] bool begins_piece(const std::byte* memory) const noexcept {
    return std::ranges::find(pieces_, memory, &piece::begin) != pieces_.end();
  }

  void add_piece(std::size_t size) {
    cudaError_t code = cudaSuccess;
    if (std::ranges::any_of(pieces_, [&](const piece& one) { return is_idle(one); }))
      on_thread([&] { return give_back_idle(), cudaSuccess; }, code);  // if not now, when the run is gone
    // A fourth more than needed keeps pieces few where nobody knows what is to come.
    std::size_t more = std::max(expected_, std::min(total_ / 4, max_without_reason));
    if (maximum_) more = std::min<std::uint64_t>(more, *maximum_ > total_ ? *maximum_ - total_ : 0);
    expected_ = 0;
    const auto rounded = [](std::size_t bytes) {
      return in_pages(bytes, bytes >= 2 * huge_page ? huge_page : page);
    };
    pieces_.reserve(pieces_.size() + 1);
    std::optional<piece> made;
    if (more > size) made = pinned(rounded(more), code);
    if (!made) made = pinned(rounded(size), code);
    if (!made)
      cuda_fail(
          code, text({"pinning ", size, " bytes of host memory for batches"}),
          code == cudaErrorMemoryAllocation
              ? "lower prefetch(n) after batch, bound the run with memory(bytes), or raise the limit of "
                "locked memory (ulimit -l)"
              : cuda_cure(code));
    pieces_.push_back(*made);
    total_ += made->size;
    add_gap(*made);
  }

  /// Whether all of it is free.
  [[nodiscard]] bool is_idle(const piece& one) const noexcept {
    const auto gap = std::ranges::find(gaps_, one.begin, &stretch::begin);
    return gap != gaps_.end() && gap->size == one.size;
  }
  /// Returns to the system what is whole, and too small: all of it is free, and no gap was large enough.
  void give_back_idle() noexcept {
    std::erase_if(pieces_, [&](const piece& one) {
      if (!is_idle(one)) return false;
      gaps_.erase(std::ranges::find(gaps_, one.begin, &stretch::begin));
      total_ -= one.size;
      unpin(one);
      return true;
    });
  }

  /// A piece of so many bytes; `code` says why there is none.
  [[nodiscard]] std::optional<piece> pinned(std::size_t size, cudaError_t& code) const {
    piece one{{nullptr, size}};
    if (map(one)) {
      on_thread([&] { return cudaHostRegister(one.begin, size, cudaHostRegisterPortable); }, code);
      if (code == cudaSuccess) return one;
      unmap(one);
      if (code != cudaErrorNotSupported && code != cudaErrorNotPermitted) return std::nullopt;
      one = {{nullptr, size}};
    }
    void* memory = nullptr;
    on_thread([&] { return cudaHostAlloc(&memory, size, cudaHostAllocPortable); }, code);
    if (code != cudaSuccess) return std::nullopt;
    one.begin = static_cast<std::byte*>(memory);
    return one;
  }
  static void unpin(const piece& one) noexcept {
    if (!one.mapped) {
      static_cast<void>(cudaFreeHost(one.begin));
      return;
    }
    static_cast<void>(cudaHostUnregister(one.begin));
    unmap(one);
  }

  /// Calls a function in a thread where the device is current and that is near it.
  template <class F>
  void on_thread(F call, cudaError_t& code) const {
    const auto work = [&] {
      if (node_) run_on(node_->processors);
      code = cudaSetDevice(device_);
      if (code == cudaSuccess) code = call();
      if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
    };
    try {
      std::thread(work).join();
    } catch (const std::system_error&) {
      code = cudaErrorMemoryAllocation;
    }
  }

  /// Maps memory that is not pinned yet, on the node; false where that is not possible.
  [[nodiscard]] bool map([[maybe_unused]] piece& one) const noexcept {
#if defined(__linux__)
    const bool huge = one.size >= 2 * huge_page;
    const std::size_t whole = one.size + (huge ? huge_page : 0);
    void* const found = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return false;
    one.begin = static_cast<std::byte*>(found);
    one.mapped = true;
    if (huge) {
      const std::size_t ahead = in_pages(reinterpret_cast<std::uintptr_t>(found), huge_page) -
                                reinterpret_cast<std::uintptr_t>(found);
      if (ahead != 0) ::munmap(found, ahead);
      one.begin += ahead;
      if (ahead != huge_page) ::munmap(one.end(), huge_page - ahead);
      ::madvise(one.begin, one.size, MADV_HUGEPAGE);  // a refusal leaves memory in small pages
    }
    if (node_) prefer_node(one.begin, one.size, node_->number);
    return true;
#else
    return false;
#endif
  }
  static void unmap([[maybe_unused]] const piece& one) noexcept {
#if defined(__linux__)
    ::munmap(one.begin, one.size);
#endif
  }

  static constexpr std::size_t max_without_reason = std::size_t{64} << 20;

  int device_;
  std::optional<numa_node> node_;
  mutable std::mutex lock_;
  std::vector<piece> pieces_;
  std::vector<stretch> gaps_;  // in order
  std::size_t total_ = 0, in_use_ = 0, expected_ = 0, live_ = 0;
  std::optional<std::uint64_t> maximum_;
};

}  // namespace penstock::inline v0_1::detail

// ---- penstock/device/cuda.hpp

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
/// Copies and kernels overlap: by default there are enough batches in flight that one is computed on while
/// the next is copied and another one is filled. `prefetch(n)` after `batch` sets their number; give it 2 or
/// more.
/// Waiting: when a batch is delivered, `stream` waits for its copy and the host does not. After you drop the
/// batch, its device memory is overwritten only once everything you put on `stream` before you asked for the
/// next batch has finished. So you can drop a batch as soon as you have launched the kernels that use it.
/// If you use other streams that do not synchronise with `stream`, call `b.on(other)`, which does the same
/// for them; a stream of another device is refused. `cuda_wait::host` makes the loop itself wait for the copy
/// too.
/// Several devices: each run has its own, in one thread or in several. Runs leave the current device of every
/// thread as it was. Since CUDA 12, changing it also initialises the device that it is changed to, so in a
/// process that uses only device 1, make it current (`cudaSetDevice`) in the thread of the loop.
/// Memory: a run's slots are in a few large pieces, in huge pages where the system has them; each is pinned
/// once and stays until the run and its batches are gone, or until a batch larger than all before it takes
/// its place. With `memory(bytes)`, pieces are no larger than that asks for.
/// NUMA: on a machine with several nodes, slots are on the node of the device. Workers run on its processors
/// if they are at most as many, because a worker on another node is better than none, and if neither
/// `workers(n, {.processors = ...})` nor `numa` says otherwise.
/// Element sizes and shapes: as on the host; columns start at multiples of 256 bytes.
/// Cost per batch: one asynchronous copy per column and two events; memory is allocated only when a batch is
/// larger than all before it. Each batch in flight takes its size once in pinned and once in device memory.
/// Throws, from `open` and when you ask for a batch: `errc::argument` for a device that does not exist;
/// `errc::io` with the name of the CUDA error and what to do. After an error the run is over, and releases
/// what it has; after the failure of a kernel, CUDA refuses everything until the process ends.
/// Threads: as the run; any thread may launch kernels.
/// Keeps all guarantees. Streams must outlive the run and its batches. Open and use the run outside of stream
/// capture.
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
class cuda::session {
 public:
  static constexpr bool copies = true;
  using stream_type = cudaStream_t;
  static constexpr memory_space space = memory_space::pinned;
  static constexpr std::string_view platform = "cuda";

  /// The state of one batch in flight: device memory, the event after its copy, and an event for each stream
  /// that used it.
  class transfer {
   public:
    transfer() = default;
    transfer(const transfer&) = delete;
    transfer& operator=(const transfer&) = delete;
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
  session(const session&) = delete;
  session& operator=(const session&) = delete;
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

  /// Starts copying. If it throws, no copy is in progress.
  void start(transfer& t, std::span<const bytes_view> columns) {
    start(t, columns, {}, detail::no_device_work{});
  }
  /// As above, and puts work on the stream behind the copies; see `computing_session`.
  template <class Work>
  void start(transfer& t, std::span<const bytes_view> columns, std::span<const std::size_t> rooms,
             const Work& work) {
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

// ---- penstock/device/detail/cuda_lanes.hpp

namespace penstock::inline v0_1::detail {

/// Pinned memory that goes to a device piece by piece: two halves, so that one is filled while the other is
/// still being copied.
class cuda_staging {
 public:
  cuda_staging() = default;
  cuda_staging(const cuda_staging&) = delete;
  cuda_staging& operator=(const cuda_staging&) = delete;
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
