// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/npy.hpp>
#include <penstock/source/rows/row_files.hpp>

namespace penstock::inline v0_1::detail {

/// A type in the notation of npy files: "f4" has kind 'f' and 4 bytes.
struct npy_type {
  char kind;
  std::size_t size;

  template <class T>
  [[nodiscard]] static constexpr npy_type of() noexcept {
    static_assert(
        npy_kind<T> != '\0' && std::is_trivially_copyable_v<T>,
        "penstock: rows of npy arrays need a bool, integer or floating type; for a half-float type of "
        "your own specialise penstock::npy_kind");
    return {npy_kind<T>, sizeof(T)};
  }
  [[nodiscard]] std::string name() const;
  friend bool operator==(const npy_type&, const npy_type&) = default;
};

/// The rows of an array in npy format that occupies a range of a file, or all of it. Offsets in errors count
/// from the beginning of the range.
[[nodiscard]] stored_rows find_npy_rows(session_view session, object_id object, std::uint64_t begin,
                                        std::uint64_t size, npy_type wanted);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/stored_npy.ipp>
#endif
