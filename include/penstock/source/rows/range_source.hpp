// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/file_range.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/rows/row_files.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// A source of the places of rows in local files. `Format` is as for `row_source`; `wanted` is the shape of a
/// row, or null.
template <class Format, class T>
class range_source : public opens_as_plan<range_source<Format, T>> {
 public:
  using penstock_part = source_tag;
  using element = file_range;
  using value_type = T;
  static constexpr std::string_view source_name = Format::source_name;

  class reader {
   public:
    struct worker {};

    explicit reader(shared<const row_files> known) noexcept : files_(std::move(known)) {}

    template <class Sink>
    void evaluate(position p, worker& /*w*/, Sink&& sink) const {
      const manifest::place place = files_->locate(p.index);
      sink(file_range{place.shard, files_->offset(place, place.sample), files_->row_bytes});
    }
    /// The file and the number of the row within it: "features.npy:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = files_->locate(index);
      return detail::text({files_->path(place.shard), ":", place.sample});
    }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return sizeof(file_range); }

   private:
    shared<const row_files> files_;
  };

  range_source(const file& where, const Format& format, const extents* wanted) {
    shared<row_files> known(new row_files());
    auto session = where.connect();
    known->read(facts_of(where), session, wanted, finder_of<T>(format));
    auto located = std::make_shared<located_files>();
    located->row = known->row;
    for (std::size_t i = 0; i < known->versions.size(); ++i) {
      if (known->swapped(i))
        throw error(errc::format, {Format::holder,
                                   " has its numbers in the other byte order, and nobody "
                                   "turns them on their way to a device; read it with npy_rows, or store it "
                                   "anew"})
            .in_file(known->path(i));
      located->files.push_back({known->path(i), known->versions[i].size, known->versions[i].stamp});
    }
    located_ = std::move(located);
    files_ = std::move(known);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->shards.samples(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return files_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return files_->shards; }
  /// The shape of a row: the shape of the files minus their first dimension.
  [[nodiscard]] const extents& row() const noexcept { return files_->row; }
  /// The files that the ranges are of; whoever reads them keeps it.
  [[nodiscard]] const std::shared_ptr<const located_files>& located() const noexcept { return located_; }
  /// Covers each file's name, size, rows and first and last 4 KiB.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(files_->shards.fingerprint() ^ Format::mark());
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({source_name, "(", files_->versions.size(), " files): ", size(), " rows of ",
                         to_string(files_->row), " '", Format::type_name(), "', not read"});
  }
  [[nodiscard]] reader connect() const noexcept { return reader(files_); }

 private:
  shared<const row_files> files_;
  std::shared_ptr<const located_files> located_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
