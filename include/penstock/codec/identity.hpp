// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>

namespace penstock::inline v0_1 {

/// The codec for raw payloads and for values that are already decoded: it changes nothing.
///
/// In: any element. Out: a blob stays that blob, still unread, so that `batch` can read it straight into the
/// slot; bytes already in memory become a `bytes_view` on them, valid as long as they are; every other value
/// passes unchanged, as does each field of a record. So a pipeline that is a template over its codec also
/// works over a source of values.
/// Kind: pointwise, keeps all guarantees. Cost per sample: none, no allocation. Throws nothing itself.
/// Thread-safe.
///
///     auto raw = webdataset("train-{0000..0127}.tar") | decode<field<"bin", identity>> | batch(64);
struct identity {
  static constexpr std::string_view codec_name = "identity";
  /// `decode` passes values through that are already decoded.
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
