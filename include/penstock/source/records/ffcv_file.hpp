// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/record_format.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// The fields that FFCV has, by their numbers in a file.
enum class ffcv_kind : std::uint8_t { real, whole, image, bytes, array, json, tensor, custom = 255 };

/// A field of FFCV's files; its type is "float64", "int64", "image", "bytes", "json", "ndarray:float32:2,3",
/// or another one that no codec reads. Numbers lie in a sample's row; of other values a row says where they
/// are.
struct ffcv_field : record_field {
  ffcv_kind kind = ffcv_kind::custom;
  std::size_t offset = 0;       ///< in a row
  std::uint64_t size = 0;       ///< of a number, or the bytes of an array
  std::size_t image_place = 0;  ///< among the images
  friend bool operator==(const ffcv_field&, const ffcv_field&) = default;
};

/// Where a value is in its file. An image that is not compressed has a width and a height.
struct ffcv_place : value_place {
  std::uint32_t width = 0, height = 0;
  bool raw_image = false;
};

/// A file of FFCV: its rows, in memory.
class ffcv_file {
 public:
  /// Reads all of a file but its values. Throws errc::format, with the offset, for what is none of FFCV's of
  /// version 2, incomplete or damaged.
  ffcv_file(session_view session, object_id object);

  [[nodiscard]] std::uint64_t records() const noexcept { return samples_; }
  [[nodiscard]] const std::vector<ffcv_field>& fields() const noexcept { return fields_; }
  /// The place of a value. Throws errc::format if it is not in the file.
  [[nodiscard]] ffcv_place place(std::uint64_t sample, std::size_t field) const {
    ffcv_place found;
    find_place(sample, field, found);
    return found;
  }
  [[nodiscard]] std::uint64_t mark() const noexcept { return mark_; }
  /// The bytes of values.
  [[nodiscard]] std::uint64_t payload() const noexcept { return payload_; }
  void prefetch(std::uint64_t sample) const noexcept {
    __builtin_prefetch(row(sample));
    if (images_ != 0) __builtin_prefetch(image_sizes_.data() + to_size(sample) * images_);
  }

 private:
  static constexpr std::uint32_t no_size = 0xffffffff;

  [[nodiscard]] const std::byte* row(std::uint64_t sample) const noexcept {
    return rows_.data() + to_size(sample) * row_size_;
  }
  /// Writes it to `found`, which must be fresh. Returning it would copy what was just written, in wider
  /// pieces than it was written in, and such a load waits until the stores have reached the cache.
  void find_place(std::uint64_t sample, std::size_t field, ffcv_place& found) const;

  std::vector<ffcv_field> fields_;
  std::size_t images_ = 0;  // fields that are images
  std::size_t row_size_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t payload_ = 0;
  std::uint64_t mark_ = 0;  // a hash of all rows
  buffer rows_;
  std::vector<std::uint32_t> image_sizes_;  // by sample and image
};

/// Throws errc::format if a codec of this name cannot read a field.
void check_ffcv_codec(const ffcv_field& field, std::string_view codec);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/ffcv_file.ipp>
#endif
