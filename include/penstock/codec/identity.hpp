// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/element.hpp>

#include <concepts>
#include <string_view>

namespace penstock::inline v0_1 {

/// The codec that changes nothing: raw payloads, and values that are decoded already.
///
/// In: any element. Out: a blob stays that blob, still unread, so that `batch` can have it read straight into
/// the slot; bytes that are there already come out as a `bytes_view` on them, which lives as long as they do;
/// every other value passes as it is, and of a record each field does. So a pipeline that is a template over
/// its codec also works over a source of values.
/// Kind: pointwise, keeps all guarantees. Cost per sample: none, no allocation. Throws nothing of its own.
/// Threads: any number at once.
///
///     auto raw = webdataset("train-{0000..0127}.tar") | decode<field<"bin", identity>> | batch(64);
struct identity {
  static constexpr std::string_view codec_name = "identity";
  /// `decode` passes on what is decoded already.
  static constexpr bool passes_values = true;

  template <byte_element Bytes>
  [[nodiscard]] auto decode(const Bytes& in, no_scratch&) const {
    if constexpr (blob<Bytes>) {
      static_assert(std::copy_constructible<Bytes>,
                    "penstock: identity: this blob cannot be copied; a blob is a handle on bytes and must be "
                    "cheap to copy");
      return in;
    } else {
      return as_bytes(in);
    }
  }
};

}  // namespace penstock::inline v0_1
