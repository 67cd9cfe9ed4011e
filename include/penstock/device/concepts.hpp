// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/processor_set.hpp>
#include <penstock/core/random.hpp>
#include <penstock/device/device_array.hpp>

#include <concepts>
#include <string>
#include <utility>

/// Where batches end up, and what is done with them there. A *device* is a value in a plan; its `connect()`
/// makes the session that a run owns. A *device operation* works on a column of a batch on the device.
namespace penstock::inline v0_1 {

/// The processors whose memory a device reads fastest.
struct near_processors {
  processor_set processors{};  ///< none if all are equally near
  bool always = false;         ///< workers run there even if they are more than these processors
};

/// The operations that a run needs from a device. `allocate` and `deallocate` are called when the pool is
/// filled or grows, never in the steady state.
///   allocate(bytes) -> void*          host memory that the device reads fast (pinned for CUDA), 64-byte aligned; or throws
///   deallocate(p, bytes)              noexcept
///   transfer                          the state of one batch in flight (device buffers, an event); default-constructible
///   start(transfer&, columns)         starts copying the columns of a batch, in order, and returns immediately
///   wait(transfer&)                   waits for the copy, as far as the host has to
///   data(transfer&, i)                const void*: the device address of column i, after `wait`
///   copies                            false: `start` and `wait` are never called, and the batch is used in place
///   space                             optional constant: the `memory_space` of `allocate`, which the host can write;
///                                     default: `host`
/// A session of accelerators says which, so that other libraries can find its batches:
///   platform                          "cuda" or "rocm"
///   device()                          int: the number of the device that `data` belongs to
/// A session whose copies continue after `start` returns has two more:
///   reuse(transfer&)                  the batch was returned: returns when its slots may be written again. Called once before
///                                     they are, if `start` was; the destructor of a transfer waits by itself
///   wait_on(transfer&, stream)        makes another stream wait: `batch.on(stream)`
/// and may have one more:
///   leave(transfer&)                  the batch was returned, and what the device is told from now on does not concern it;
///                                     returns immediately. Called before the next batch is delivered, once or more,
///                                     and before `reuse`
/// A session that cares where memory is and how much has some of these, which a run calls while it is opened:
///   near()                            near_processors: where workers run, unless `workers(n, {.processors})` says so
///   bound(bytes)                      noexcept: `memory(bytes)`, which all that `allocate` holds should not exceed
///   expect(times)                     noexcept: as much as is allocated now will be asked for so many times more
/// A session that can be given work is a `computing_session`.
template <class S>
concept device_session =
    requires(S& s, typename S::transfer& t, std::size_t n, void* p, std::span<const bytes_view> columns) {
      { s.allocate(n) } -> std::same_as<void*>;
      { s.deallocate(p, n) } noexcept;
      s.start(t, columns);
      s.wait(t);
      { s.data(t, n) } -> std::convertible_to<const void*>;
      { S::copies } -> std::convertible_to<bool>;
    };

/// A session whose copies may still be reading slots after `wait`, so `reuse` must be called before the slots
/// are written again.
template <class S>
concept reusing_session = requires(S& s, typename S::transfer& t) { s.reuse(t); };

/// A session that distinguishes what a device was told before a batch was returned from what it is told
/// later.
template <class S>
concept leaving_session = requires(S& s, typename S::transfer& t) { s.leave(t); };

/// A session that says which processors are near its device.
template <class S>
concept placed_session = requires(const S& s) {
  { s.near() } -> std::convertible_to<near_processors>;
};

/// A session that can prepare for what will be allocated.
template <class S>
concept sizing_session = requires(S& s, std::uint64_t bytes, std::size_t times) {
  { s.bound(bytes) } noexcept;
  { s.expect(times) } noexcept;
};

namespace detail {
/// Work that does nothing.
struct no_device_work {
  template <class Stream>
  void operator()(Stream) const noexcept {}
};
}  // namespace detail

/// A session that can be given work on the columns of a batch, for `on_device`:
///   stream_type                              what work is put on; `host_stream` if the host does it
///   start(transfer&, columns, rooms, work)   as `start`; `data(transfer&, columns.size() + i)` is device memory of `rooms[i]`
///                                            bytes, at a multiple of 256, which nothing is copied to. After the last copy
///                                            was put on a stream it calls `work(stream)`, which puts kernels there; the batch
///                                            is ready, as `wait` means it, after those. What `work` throws it throws
template <class S>
concept computing_session =
    device_session<S> && requires(S& s, typename S::transfer& t, std::span<const bytes_view> columns,
                                  std::span<const std::size_t> rooms, detail::no_device_work work) {
      typename S::stream_type;
      requires bool(S::copies);
      s.start(t, columns, rooms, work);
    };

/// A value in a plan; `connect()` makes the session that a run owns.
template <class D>
concept device = std::copy_constructible<D> && requires(const D& d) {
  typename D::session;
  requires device_session<typename D::session>;
  { d.connect() } -> std::same_as<typename D::session>;
  { d.describe() } -> std::convertible_to<std::string>;
};

/// The stream of a device whose work the host does itself, at once: its memory is the host's.
struct host_stream {};

/// A batch on its way to the device, as its operations see it on the host: which slots hold samples, and the
/// random numbers of each.
class device_batch {
 public:
  /// What its operations may ask. `positions` has those of the first `valid` slots, if an operation draws
  /// random numbers.
  struct facts {
    std::size_t slots = 0;
    std::size_t valid = 0;
    std::span<const std::uint8_t> mask{};  ///< 1 for each slot that holds a sample; empty without holes
    std::span<const position> positions{};
    std::uint64_t seed = 0;
  };

  device_batch() = default;
  /// `stream` is that of the stage; the operations before this one drew `drawn` streams of it.
  device_batch(const facts& known, std::uint64_t stream, std::uint64_t drawn) noexcept
      : facts_(known), stream_(stream), drawn_(drawn) {}

  /// All slots, padding included.
  [[nodiscard]] std::size_t slots() const noexcept { return facts_.slots; }
  /// Slots with a sample come first; `bad_samples::skip` leaves holes among them.
  [[nodiscard]] std::size_t valid() const noexcept { return facts_.valid; }
  [[nodiscard]] bool has_holes() const noexcept { return !facts_.mask.empty(); }
  /// Whether a slot holds a sample. What an operation writes to others is 0, as on the host.
  [[nodiscard]] bool holds(std::size_t slot) const noexcept {
    return slot < facts_.valid && (facts_.mask.empty() || facts_.mask[slot] != 0);
  }
  /// The random numbers of a slot that holds a sample: the same that a `map` in place of this operation gets
  /// for it. An operation that draws several streams says with `number` which.
  [[nodiscard]] rng random(std::size_t slot, std::uint64_t number = 0) const noexcept {
    const position at = facts_.positions[slot];
    const std::uint64_t before = drawn_ + number;
    return {facts_.seed, at.epoch, at.index, before == 0 ? stream_ : mix64(mix64(stream_) + before)};
  }

 private:
  facts facts_;
  std::uint64_t stream_ = 0, drawn_ = 0;
};

/// Where an operation finds its input and puts its output: device addresses, at multiples of 256. A table or
/// scratch that was not asked for may be null.
struct device_places {
  const std::byte* input = nullptr;
  const std::byte* table = nullptr;  ///< what `fill_table` wrote, copied with the batch
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
};

/// An operation on a column of a batch, on the device: what `on_device` is given. `View` is the column as
/// `map_batch` sees it, on the host; for the second of several operations, a `tensor_view` whose shape the
/// first one chose, and whose address is null.
///   output<View>                            the type of the numbers that it makes
///   shape(view, batch) -> extents           the shape of the whole column that it makes, slots first; or throws
///   launch(stream, view, batch, places)     puts kernels on `stream`, which read `places.input` and write `places.output`,
///                                           and returns; or throws. A template, or for the `stream_type` of one device
/// Optional:
///   streams                                 constant: how many streams of random numbers it draws; default 0
///   table_bytes(view, batch)                bytes of parameters that cross the bus with the batch
///   fill_table(view, batch, bytes)          writes them, on the host
///   scratch_bytes(view, batch)              bytes of device memory that the kernels need beside the output
///   connect(device)                         makes the object that has these members, once for each run; `device` is the
///                                           session's `device()`, or 0. It outlives the run's last batch
///   describe()                              a line for `describe(plan)`
///   wrong_column_for<View>                  a mistake that says why `output<View>` does not exist
/// Everything is called in the consumer's thread, with the device current. One that writes a slot without a
/// sample writes zeros.
template <class Op, class View>
concept device_operation =
    std::copy_constructible<Op> && requires(Op& op, const View& column, const device_batch& batch) {
      typename Op::template output<View>;
      requires std::is_trivially_copyable_v<typename Op::template output<View>>;
      { op.shape(column, batch) } -> std::same_as<extents>;
    };

namespace detail {

/// What belongs together to one operation: operations of one family that follow each other are
/// `family::join(them...)`. Without a family an operation is one by itself.
template <class Op>
struct device_family {
  using type = void;
};

/// The number of streams of random numbers that an operation draws.
template <class Op>
inline constexpr std::uint64_t device_streams = 0;
template <class Op>
  requires requires { Op::streams; }
inline constexpr std::uint64_t device_streams<Op> = Op::streams;

/// The object that works in a run: the operation itself, or what its `connect` makes.
template <class Op>
struct connected_operation {
  using type = Op;
  static type make(const Op& op, int /*device*/) { return op; }
};
template <class Op>
  requires requires(const Op& op) { op.connect(0); }
struct connected_operation<Op> {
  using type = decltype(std::declval<const Op&>().connect(0));
  static type make(const Op& op, int device) { return op.connect(device); }
};

}  // namespace detail

}  // namespace penstock::inline v0_1
