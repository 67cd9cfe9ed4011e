// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/processor_set.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// Where batches end up. A *device* is a value in a plan; its `connect()` makes the session that a run owns.
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

/// A value in a plan; `connect()` makes the session that a run owns.
template <class D>
concept device = std::copy_constructible<D> && requires(const D& d) {
  typename D::session;
  requires device_session<typename D::session>;
  { d.connect() } -> std::same_as<typename D::session>;
  { d.describe() } -> std::convertible_to<std::string>;
};

}  // namespace penstock::inline v0_1
