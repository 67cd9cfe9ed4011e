// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/local/output_file.hpp>

#include <array>
#include <memory>

/// Files with one value per sample; the layout is in docs/shard_indexes.md.
namespace penstock::inline v0_1 {
namespace detail {

enum class value_kind : std::uint32_t { none = 0, whole = 1, natural = 2, floating = 3, text = 4 };

/// The first 128 bytes.
struct values_header {
  static constexpr std::size_t size = 128;
  static constexpr std::string_view magic = "PENSTVAL";
  static constexpr std::uint32_t version = 1;

  value_kind kind = value_kind::none;
  std::uint64_t dataset = 0;
  std::uint64_t samples = 0;
  std::uint64_t name_bytes = 0;
  std::uint64_t texts = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t content = 0;  ///< checksum of everything after the header

  [[nodiscard]] std::uint64_t text_ends_at() const noexcept { return size + 8 * samples; }
  [[nodiscard]] std::uint64_t texts_at() const noexcept { return text_ends_at() + 8 * texts; }
  [[nodiscard]] std::uint64_t name_at() const noexcept { return texts_at() + text_bytes; }
  [[nodiscard]] std::uint64_t file_size() const noexcept { return name_at() + name_bytes; }

  [[nodiscard]] std::array<std::byte, size> bytes() const noexcept;
};

/// Why a file of values cannot be used.
enum class values_fault { none, missing, foreign, newer, damaged };

/// A file of values, mapped or in memory, checked once as a whole. After the check its accessors are safe,
/// whatever the bytes were.
class values_file {
 public:
  struct outcome {
    std::shared_ptr<const values_file> file;  ///< null if there is a fault
    values_fault fault = values_fault::none;
    error why{errc::missing, ""};
  };

  /// Maps the file at `path` and checks it.
  [[nodiscard]] static outcome open(const std::string& path);

  /// Checks a file's bytes in memory; `path` appears in messages.
  [[nodiscard]] static outcome over(buffer bytes, std::string path) {
    std::shared_ptr<values_file> made(new values_file);
    made->path_ = std::move(path);
    made->owned_ = std::move(bytes);
    made->bytes_ = made->owned_.view();
    return checked(std::move(made));
  }

  values_file(const values_file&) = delete;
  values_file& operator=(const values_file&) = delete;
  ~values_file();

  [[nodiscard]] const values_header& header() const noexcept { return header_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t word(std::uint64_t i) const noexcept {
    return load_little<std::uint64_t>(bytes_.data() + values_header::size + 8 * i);
  }
  [[nodiscard]] std::string_view text(std::uint64_t number) const noexcept {
    const std::uint64_t begin = number == 0 ? 0 : text_end(number - 1);
    return text_of(bytes_.subspan(detail::to_size(header_.texts_at() + begin),
                                  detail::to_size(text_end(number) - begin)));
  }
  [[nodiscard]] std::string_view name() const noexcept {
    return text_of(bytes_.subspan(detail::to_size(header_.name_at())));
  }

 private:
  values_file() = default;

  [[nodiscard]] std::uint64_t text_end(std::uint64_t number) const noexcept {
    return load_little<std::uint64_t>(bytes_.data() + header_.text_ends_at() + 8 * number);
  }

  [[nodiscard]] static outcome checked(std::shared_ptr<values_file> made);

  /// Reads the header and checks the file; `result` receives the fault, if any.
  void check(outcome& result);

  values_header header_;
  bytes_view bytes_, mapped_;
  buffer owned_;
  std::string path_;
};

/// Writes a file of values, completely or not at all. For values of kind text, `values` are indices into
/// `texts`; otherwise `texts` is empty.
void write_values(const std::string& path, values_header header, std::string_view name,
                  std::span<const std::uint64_t> values, std::span<const std::string> texts);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/values_file.ipp>
#endif
