// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/layouts/npy_header.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/half.hpp>

#include <algorithm>
#include <bit>

namespace penstock::inline v0_1 {

/// The letter that npy files use for numbers like `T` ('b', 'i', 'u', 'f'), or zero. Specialise it for your
/// own number types if they are trivially copyable and have 1, 2, 4 or 8 bytes: `template <> inline constexpr
/// char penstock::npy_kind<my_half> = 'f';`
template <class T>
inline constexpr char npy_kind = std::same_as<T, bool>        ? 'b'
                                 : std::same_as<T, std::byte> ? 'u'
                                 : std::same_as<T, half>      ? 'f'
                                 : std::floating_point<T>     ? 'f'
                                 : std::signed_integral<T>    ? 'i'
                                 : std::unsigned_integral<T>  ? 'u'
                                                              : '\0';

/// The array of an npy file, not yet copied: an array expression over bytes that are valid as long as the
/// codec's input.
template <class T>
class npy_array {
 public:
  using unfinished = void;
  using value_type = T;

  npy_array(bytes_view payload, const extents& shape, bool swapped, buffer& scratch) noexcept
      : payload_(payload), shape_(shape), swapped_(swapped), scratch_(&scratch) {}

  [[nodiscard]] const extents& shape() const noexcept { return shape_; }

  /// Writes `shape().elements()` values: one memcpy, or, for files of the other byte order, a pass that swaps
  /// the bytes.
  void write_to(const destination<T>& into) const {
    detail::write_or_copy(
        into, [this](T* to) { write_dense(to); }, [this] { return finish(); });
  }

  /// A view of the values: in place if byte order and alignment allow it, otherwise of a copy in the worker's
  /// scratch.
  [[nodiscard]] tensor_view<const T> finish() const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(payload_.data()) % alignof(T) == 0;
    if (!std::same_as<T, bool> && !swapped_ && aligned)
      return {reinterpret_cast<const T*>(payload_.data()), shape_};
    scratch_->resize_for_overwrite(payload_.size());
    T* const copy = reinterpret_cast<T*>(scratch_->data());
    write_dense(copy);
    return {copy, shape_};
  }

 private:
  void write_dense(T* into) const noexcept {
    if (payload_.empty()) return;
    if constexpr (std::same_as<T, bool>) {
      // a bool with a byte other than 0 and 1 is undefined behaviour, and untrusted files may contain one
      std::transform(payload_.begin(), payload_.end(), into, [](std::byte b) { return b != std::byte{0}; });
    } else if (swapped_) {
      for (std::size_t i = 0; i < payload_.size(); i += sizeof(T)) {
        std::array<std::byte, sizeof(T)> item;
        for (std::size_t k = 0; k < sizeof(T); ++k) item[k] = payload_[i + sizeof(T) - 1 - k];
        std::memcpy(into + i / sizeof(T), item.data(), sizeof(T));
      }
    } else {
      std::memcpy(into, payload_.data(), payload_.size());
    }
  }

  bytes_view payload_;
  extents shape_;
  bool swapped_;
  buffer* scratch_;
};

/// Reads numpy's `.npy` arrays of the element type `T`.
///
/// In: any byte element; a blob is finished once, as a whole. Out: an array expression of the file's shape
/// (at most eight dimensions, row-major) that writes its values straight to their destination. Versions 1.0
/// to 3.0, either byte order.
/// Kind: pointwise, keeps all guarantees. Cost per sample: a comparison for the header, or 0.3 us if it
/// differs from the last one, and one copy of the values; no allocation, except for the scratch of `finish`
/// if values are misaligned or of the other byte order. Thread-safe, with a scratch per thread.
/// Throws `errc::format` with the offset for anything that is not an npy file, a header that does not parse
/// or gives a wrong size, a dtype other than `T` (nothing is converted silently), Fortran order, structured
/// dtypes, and object dtypes, which are pickles.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
///
///     npy<float>::scratch scratch;
///     auto array = npy<float>{}.decode(file_bytes, scratch);    // array.shape(), array.finish()
template <class T>
struct npy {
  static_assert(
      npy_kind<T> != '\0' && std::is_trivially_copyable_v<T> && sizeof(T) <= 8 &&
          std::has_single_bit(sizeof(T)),
      "penstock: npy<T> needs a bool, integer or floating type or half, of 1, 2, 4 or 8 bytes; for a "
      "half-float type of your own specialise penstock::npy_kind");

  static constexpr std::string_view codec_name = "npy";
  static constexpr std::string_view extensions[] = {"npy"};
  struct scratch {
    buffer values;
    detail::npy_memo last;
  };

  template <byte_element Bytes>
  [[nodiscard]] npy_array<T> decode(const Bytes& in, scratch& s) const {
    const bytes_view file = as_bytes(in);
    const detail::npy_header* header = s.last.find(file);
    if (header == nullptr) header = &s.last.keep(file, detail::whole_npy(file, npy_kind<T>, sizeof(T)));
    constexpr char foreign = std::endian::native == std::endian::little ? '>' : '<';
    const bool swapped = header->order == foreign && sizeof(T) > 1;
    return {file.subspan(header->data_offset), header->shape, swapped, s.values};
  }
};

/// An array as the bytes of an npy file, version 1.0, as numpy itself writes it: for tests and small tools.
/// Throws `errc::argument` if the number of values does not match `shape`.
///
///     std::vector<std::byte> file = npy_bytes<float>(extents(2, 3), values);
template <class T>
  requires(npy_kind<T> != '\0')
[[nodiscard]] std::vector<std::byte> npy_bytes(const extents& shape, std::span<const T> values) {
  return detail::npy_file(npy_kind<T>, sizeof(T), shape, values.size(), std::as_bytes(values));
}

}  // namespace penstock::inline v0_1
