// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/file_range.hpp>
#include <penstock/source/rows/row_source.hpp>

namespace penstock::inline v0_1::detail {

/// Places of rows in local files, for `record_files`. `Format` is as for `row_source`; `wanted` is the shape
/// of a row, or null.
template <class Format, class T>
struct range_layout {
  static constexpr std::string_view source_name = Format::source_name;

  struct files : row_files {
    std::shared_ptr<const located_files> located;

    files(const range_layout& chosen, storage_facts where, session_view session) {
      read(where, session, chosen.wanted, finder_of<T>(chosen.format));
      located_files all;
      all.row = row;
      for (std::size_t i = 0; i < versions.size(); ++i) {
        if (swapped(i))
          throw error(errc::format,
                      {Format::holder,
                       " has its numbers in the other byte order, and nobody turns them on their "
                       "way to a device; read it with npy_rows, or store it anew"})
              .in_file(path(i));
        all.files.push_back({path(i), versions[i].size, versions[i].stamp});
      }
      located = std::make_shared<const located_files>(std::move(all));
    }
    [[nodiscard]] std::uint64_t fingerprint() const noexcept {
      return mix64(shards.fingerprint() ^ Format::mark());
    }
    [[nodiscard]] std::string describe() const {
      return text({source_name, "(", versions.size(), " files): ", shards.samples(), " rows of ",
                   to_string(row), " '", Format::type_name(), "', not read"});
    }
  };

  /// Rows that are not read are all that a run keeps.
  template <class Session>
  struct opened : array_rows<files, T, row_shape<>, Session> {
    using element = file_range;
    struct worker {};

    opened(const shared<const files>& all, const projection&) noexcept
        : opened::array_rows(all, projection::none()), rows(all.get()) {}
    [[nodiscard]] file_range open(Session&, const manifest::place& at, worker&) const noexcept {
      return {at.shard, rows->offset(at, at.sample), rows->row_bytes};
    }
    [[nodiscard]] static constexpr bool needs_confirm(const worker&) noexcept { return false; }
    static void add_context(error&, Session&, const manifest::place&, const worker&) noexcept {}
    [[nodiscard]] static constexpr std::uint64_t bytes_per_sample() noexcept { return sizeof(file_range); }

    const files* rows;
  };

  Format format;
  const extents* wanted;
};

/// A source of the places of rows in local files.
template <class Format, class T>
class range_source : public record_files<range_layout<Format, T>, file, range_source<Format, T>> {
 public:
  using value_type = T;

  range_source(file where, const Format& format, const extents* wanted)
      : range_source::record_files({format, wanted}, std::move(where)) {}

  /// The shape of a row: the shape of the files minus their first dimension.
  [[nodiscard]] const extents& row() const noexcept { return this->known().row; }
  /// The files that the ranges are of; whoever reads them keeps it.
  [[nodiscard]] const std::shared_ptr<const located_files>& located() const noexcept {
    return this->known().located;
  }
};

}  // namespace penstock::inline v0_1::detail
