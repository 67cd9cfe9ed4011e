// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/source/rows/row_files.hpp>

namespace penstock::inline v0_1::detail {

/// Rows of arrays in files, for `record_files`. `Format` is a value with
///   source_name, holder          the names of the source and of the rows' container, for messages
///   mark()                       a number that is mixed into the fingerprint
///   type_name()                  the name of T in the format
///   find(session, object, size)  the rows of a file
template <class Format, class T, std::uint64_t... Lengths>
struct row_layout {
  static constexpr std::string_view source_name = Format::source_name;
  using shape = row_shape<Lengths...>;

  struct files : row_files {
    Format format;

    files(const row_layout& chosen, storage_facts where, session_view session) : format(chosen.format) {
      read(where, session, shape::wanted, finder_of<T>(format));
    }
    [[nodiscard]] std::uint64_t fingerprint() const noexcept {
      return mix64(shards.fingerprint() ^ format.mark());
    }
    [[nodiscard]] std::string describe() const {
      return text({source_name, "(", versions.size(), " files): ", shards.samples(), " rows of ",
                   to_string(row), " '", Format::type_name(), "'"});
    }
  };
  template <class Session>
  using opened = array_rows<files, T, shape, Session>;

  Format format;
};

/// A source of the rows of arrays in files.
template <class Format, class T, storage Storage, std::uint64_t... Lengths>
class row_source : public record_files<row_layout<Format, T, Lengths...>, Storage,
                                       row_source<Format, T, Storage, Lengths...>> {
 public:
  explicit row_source(Storage where, Format format = {})
      : row_source::record_files({std::move(format)}, std::move(where)) {}

  /// The shape of a row: the shape of the files minus their first dimension.
  [[nodiscard]] const extents& row() const noexcept { return this->known().row; }
  /// The name of the array in files that hold several.
  [[nodiscard]] const std::string& array() const noexcept
    requires requires(const Format& which) { which.name; }
  {
    return this->known().format.name;
  }
};

}  // namespace penstock::inline v0_1::detail
