// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/whole_file.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// The code of type `T` in IDX files, or 0 if they have none.
template <class T>
inline constexpr unsigned idx_code = std::same_as<T, std::uint8_t>   ? 0x08
                                     : std::same_as<T, std::int8_t>  ? 0x09
                                     : std::same_as<T, std::int16_t> ? 0x0b
                                     : std::same_as<T, std::int32_t> ? 0x0c
                                     : std::same_as<T, float>        ? 0x0d
                                     : std::same_as<T, double>       ? 0x0e
                                                                     : 0;

/// Reads one big-endian number of a file.
template <class T>
[[nodiscard]] T idx_number(const std::byte* at) noexcept {
  std::array<std::byte, sizeof(T)> item;
  std::memcpy(item.data(), at, sizeof(T));
  if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little)
    std::reverse(item.begin(), item.end());
  return std::bit_cast<T>(item);
}

/// A whole IDX file in memory, with its header checked against its size.
struct idx_file {
  buffer bytes;
  std::string path;
  std::uint64_t rows = 0;
  extents row;
  std::size_t first = 0;  // where the numbers begin
  std::size_t row_bytes = 0;

  [[nodiscard]] const std::byte* row_at(std::uint64_t index) const noexcept {
    return bytes.data() + first + detail::to_size(index) * row_bytes;
  }
};

/// An IDX file of `size` bytes whose numbers have this code and size, by its header, with which `all` begins;
/// throws `errc::format` unless the header matches them exactly.
/// Source: the page of the MNIST database (LeCun, Cortes, Burges), "the IDX file format".
[[nodiscard]] inline idx_file idx_layout(bytes_view all, std::uint64_t size, unsigned code,
                                         std::size_t number_bytes) {
  const auto refuse = [](std::initializer_list<piece> what, std::uint64_t offset) {
    throw error(errc::format, what).at_offset(offset);
  };
  const auto octet = [&](std::size_t i) { return std::to_integer<unsigned>(all[i]); };
  if (all.size() >= 2 && octet(0) == 0x1f && octet(1) == 0x8b)
    refuse({"the file is compressed with gzip: read it with idx_gz, of penstock::gzip"}, 0);
  if (all.size() < 4 || octet(0) != 0 || octet(1) != 0)
    throw not_a("an IDX file", all, {"it does not begin with two zeros"});
  if (octet(2) != code) {
    constexpr char hex[] = "0123456789abcdef";
    const auto two = [&](unsigned number) { return text({"0x", hex[number >> 4], hex[number & 15]}); };
    refuse({"the IDX file holds numbers of type ", two(octet(2)), ", but ", two(code),
            " was asked for; see idx<T>"},
           2);
  }
  const std::size_t rank = octet(3);
  if (rank == 0 || rank > extents::max_rank)
    refuse({"the IDX header says ", rank, " dimensions, and from 1 to ", extents::max_rank, " are supported"},
           3);
  idx_file file;
  file.first = 4 + 4 * rank;
  if (all.size() < file.first) refuse({"the IDX file ends within its header"}, all.size());
  // saturates above the size of any file: the product of eight 32-bit lengths may exceed 64 bits
  const auto times = [](std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t maximum = std::uint64_t{1} << 63;
    return b != 0 && a > maximum / b ? maximum : a * b;
  };
  file.rows = idx_number<std::uint32_t>(all.data() + 4);
  std::uint64_t row_bytes = number_bytes;
  for (std::size_t i = 1; i < rank; ++i) {
    const std::uint64_t length = idx_number<std::uint32_t>(all.data() + 4 + 4 * i);
    file.row.push_back(length);
    row_bytes = times(row_bytes, length);
  }
  if (const std::uint64_t present = size - file.first; times(row_bytes, file.rows) != present)
    refuse({"the IDX header says ", file.rows, " rows of shape ", to_string(file.row), ", but ", present,
            " bytes follow it"},
           file.first);
  file.row_bytes = detail::to_size(row_bytes);
  return file;
}

template <class T>
[[nodiscard]] idx_file parse_idx(buffer bytes, std::string path) {
  idx_file file =
      in_file(path, [&] { return idx_layout(bytes.view(), bytes.size(), idx_code<T>, sizeof(T)); });
  file.bytes = std::move(bytes);
  file.path = std::move(path);
  return file;
}

}  // namespace detail

/// The number types that IDX files can hold.
template <class T>
concept idx_value = detail::idx_code<T> != 0;

/// One row of an IDX file, such as an image: an array expression over the file's bytes.
template <idx_value T>
class idx_row {
 public:
  using unfinished = void;
  using value_type = T;

  idx_row(const std::byte* data, const extents& shape, buffer& scratch) noexcept
      : data_(data), shape_(shape), scratch_(&scratch) {}

  [[nodiscard]] const extents& shape() const noexcept { return shape_; }
  void write_to(const destination<T>& into) const {
    detail::write_or_copy(
        into, [this](T* to) { write_dense(to); }, [this] { return finish(); });
  }
  /// A view of the values: in the file if they are bytes, otherwise in the worker's scratch.
  [[nodiscard]] tensor_view<const T> finish() const {
    if constexpr (sizeof(T) == 1) {
      return {reinterpret_cast<const T*>(data_), shape_};
    } else {
      scratch_->resize_for_overwrite(detail::to_size(shape_.elements()) * sizeof(T));
      T* const values = reinterpret_cast<T*>(scratch_->data());
      write_dense(values);
      return {values, shape_};
    }
  }

 private:
  void write_dense(T* into) const noexcept {
    const auto count = detail::to_size(shape_.elements());
    if constexpr (sizeof(T) == 1) {
      if (count != 0) std::memcpy(into, data_, count);
    } else {
      for (std::size_t i = 0; i < count; ++i) into[i] = detail::idx_number<T>(data_ + i * sizeof(T));
    }
  }

  const std::byte* data_;
  extents shape_;
  buffer* scratch_;
};

/// The source that `idx` makes of one file.
template <idx_value T>
class idx_source : public opens_as_plan<idx_source<T>> {
 public:
  using penstock_part = source_tag;
  using element = idx_row<T>;
  static constexpr std::string_view source_name = "idx";

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(shared<const detail::idx_file> file) noexcept : file_(std::move(file)) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      sink(idx_row<T>(file_->row_at(p.index), file_->row, w.scratch));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return file_->row_bytes; }

   private:
    shared<const detail::idx_file> file_;
  };

  /// From the bytes of a file; `path` appears in messages.
  idx_source(buffer bytes, std::string path)
      : file_(new const detail::idx_file(detail::parse_idx<T>(std::move(bytes), std::move(path)))) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return file_->rows; }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"idx(", file_->path, ", ", file_->rows, " rows of ", to_string(file_->row), ")"});
  }
  /// Covers the size and the first and last MiB.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return detail::hash_ends(0x696478, file_->bytes.view());
  }
  [[nodiscard]] reader connect() const noexcept { return reader(file_); }

  [[nodiscard]] const detail::idx_file& file() const noexcept { return *file_; }

 private:
  shared<const detail::idx_file> file_;
};

/// The source that `idx` makes from a file of images and a file of labels.
template <idx_value T, idx_value Label>
class idx_pair_source : public opens_as_plan<idx_pair_source<T, Label>> {
 public:
  using penstock_part = source_tag;
  using element = record<field<"image", idx_row<T>>, field<"label", Label>>;
  static constexpr std::string_view source_name = "idx";

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(const idx_pair_source& source) noexcept
        : images_(source.images_), labels_(source.labels_) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const detail::idx_file& images = images_.file();
      sink(element(idx_row<T>(images.row_at(p.index), images.row, w.scratch),
                   detail::idx_number<Label>(labels_.file().row_at(p.index))));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
      return images_.file().row_bytes + sizeof(Label);
    }

   private:
    idx_source<T> images_;
    idx_source<Label> labels_;
  };

  idx_pair_source(idx_source<T> images, idx_source<Label> labels)
      : images_(std::move(images)), labels_(std::move(labels)) {
    if (labels_.file().row.rank() != 0)
      throw error(errc::format, {"the IDX file of labels must have one dimension, and its rows have shape ",
                                 to_string(labels_.file().row)})
          .in_file(labels_.file().path)
          .at_offset(3);
    if (images_.size() != labels_.size())
      throw error(errc::format, {"there are ", labels_.size(), " labels for the ", images_.size(),
                                 " images of ", images_.file().path})
          .in_file(labels_.file().path)
          .at_offset(4);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return images_.size(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"idx(images ", images_.describe(), ", labels ", labels_.describe(), ")"});
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(images_.fingerprint() ^ mix64(labels_.fingerprint()));
  }
  [[nodiscard]] reader connect() const noexcept { return reader(*this); }

 private:
  idx_source<T> images_;
  idx_source<Label> labels_;
};

/// The rows of an IDX file, the format of MNIST and similar datasets.
///
/// In: a path. Out: array expressions of `T` with the file's shape minus its first dimension (a scalar for a
/// one-dimensional file); the file's big-endian numbers are byte-swapped when they are written.
/// Kind: an indexed source; indexed, deterministic, resumable, elastic, lockstep. The whole file is read
/// when the plan is made and shared by its copies. Cost per sample: one copy of the row; no allocation,
/// except by `finish` of numbers wider than a byte.
/// Threads: any number at once.
/// Throws `errc::io`; `errc::format` with file and offset if the header does not match the file's size
/// exactly, or the file's numbers are not of type `T`.
/// Source: the page of the MNIST database (LeCun, Cortes, Burges), "the IDX file format".
///
///     auto images = idx("train-images-idx3-ubyte") | batch(256);
template <idx_value T = std::uint8_t>
[[nodiscard]] idx_source<T> idx(const std::string& path) {
  return {detail::read_whole_file(path), path};
}

/// Images and their labels, from two IDX files: records of "image", an array expression of `T`, and "label",
/// a `Label`.
/// Also throws `errc::format` if the two files have different numbers of rows.
///
///     auto mnist = idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte") | shuffle | batch(256);
template <idx_value T = std::uint8_t, idx_value Label = std::uint8_t>
[[nodiscard]] idx_pair_source<T, Label> idx(const std::string& images, const std::string& labels) {
  return {idx<T>(images), idx<Label>(labels)};
}

}  // namespace penstock::inline v0_1
