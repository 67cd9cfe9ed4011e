// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// Where batches end up. A *device* is a value that is part of a plan; `connect()` makes the session that a
/// run owns.
namespace penstock::inline v0_1 {

/// What a run asks of a device. `allocate` and `deallocate` are called when the pool is filled or grows,
/// never in the steady state.
///   allocate(bytes) -> void*          host memory the device reads fast (pinned for CUDA), 64-byte aligned; or it throws
///   deallocate(p, bytes)              noexcept
///   transfer                          what one batch in flight keeps (buffers on the device, an event); default-constructible
///   start(transfer&, columns)         begins to copy the columns of a batch, in order, and returns at once
///   wait(transfer&)                   until the copy is there, as far as the host must wait
///   data(transfer&, i)                const void*: where column i is on the device, after `wait`
///   copies                            false: `start` and `wait` are never called, the batch is used where it is
///   space                             optional constant: the `memory_space` that `allocate` gives, which the host can write;
///                                     else it is `host`
/// A session whose copies go on after `start` has two more:
///   reuse(transfer&)                  the batch was given back: returns when its slots may be written again. Called once before
///                                     they are, if `start` was; a transfer that is destroyed waits by itself
///   wait_on(transfer&, stream)        makes one more stream wait: `batch.on(stream)`
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

/// A session whose copies may still read slots after `wait`, so that `reuse` must be called before they are
/// written again.
template <class S>
concept reusing_session = requires(S& s, typename S::transfer& t) { s.reuse(t); };

/// A value that is part of a plan; `connect()` makes the session that a run owns.
template <class D>
concept device = std::copy_constructible<D> && requires(const D& d) {
  typename D::session;
  requires device_session<typename D::session>;
  { d.connect() } -> std::same_as<typename D::session>;
  { d.describe() } -> std::convertible_to<std::string>;
};

}  // namespace penstock::inline v0_1
