// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The fields that FFCV has, by their numbers in a file.
enum class ffcv_kind : std::uint8_t { real, whole, image, bytes, array, json, tensor, custom = 255 };

/// A field of FFCV's files.
struct ffcv_field {
  std::string name;
  ffcv_kind kind = ffcv_kind::custom;
  std::size_t offset = 0;  ///< in a row
  std::string encoding;    ///< "float64", "int64", "image", "bytes", "json", "ndarray:float32:2,3", "custom"
  std::uint64_t size = 0;  ///< of the bytes of an array
  std::size_t image_place = 0;  ///< among the images

  /// Whether a row says where the value is, instead of having it.
  [[nodiscard]] bool points() const noexcept {
    return kind != ffcv_kind::real && kind != ffcv_kind::whole && kind != ffcv_kind::custom;
  }
  friend bool operator==(const ffcv_field&, const ffcv_field&) = default;
};

/// Where a value is in its file. An image that is not compressed has a width and a height.
struct ffcv_place {
  std::uint64_t begin = 0, size = 0;
  std::uint32_t width = 0, height = 0;
  bool raw_image = false;
};

/// A file of FFCV: its rows, in memory.
struct ffcv_file {
  static constexpr std::uint32_t no_size = 0xffffffff;

  std::vector<ffcv_field> fields;
  std::size_t images = 0;  // fields that are images
  std::size_t row_size = 0;
  std::uint64_t samples = 0;
  std::uint64_t size = 0;
  std::uint64_t payload = 0;  // bytes of values
  std::uint64_t mark = 0;     // a hash of all rows
  buffer rows;
  std::vector<std::uint32_t> image_sizes;  // by sample and image

  /// Reads all of a file but its values. Throws errc::format, with the offset, for what is none of FFCV's of
  /// version 2, incomplete or damaged.
  [[nodiscard]] static ffcv_file read(session_view session, object_id object);

  [[nodiscard]] const std::byte* row(std::uint64_t sample) const noexcept {
    return rows.data() + to_size(sample) * row_size;
  }
  /// The place of a value that a row points to. Throws errc::format if it is not in the file.
  [[nodiscard]] ffcv_place place(std::uint64_t sample, std::size_t field) const {
    ffcv_place found;
    find_place(sample, field, found);
    return found;
  }
  /// Writes it to `found`, which must be fresh. Returning it would copy what was just written, in wider
  /// pieces than it was written in, and such a load waits until the stores have reached the cache.
  void find_place(std::uint64_t sample, std::size_t field, ffcv_place& found) const;
};

/// The files of a dataset of FFCV, as part of a plan.
struct ffcv_files : known_files {
  std::vector<ffcv_file> files;
  std::uint64_t mark = 0;

  /// Throws errc::format for a file of other fields than the first.
  ffcv_files(storage_facts where, session_view session);

  [[nodiscard]] const std::vector<ffcv_field>& fields() const noexcept { return files.front().fields; }
  /// "train.beton:17".
  [[nodiscard]] std::string key_of(std::size_t shard, std::uint64_t sample) const;
  [[nodiscard]] std::string describe() const;
};

/// Throws errc::format if a codec of this name cannot read a field.
void check_ffcv_codec(const ffcv_field& field, std::string_view codec);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/ffcv_files.ipp>
#endif
