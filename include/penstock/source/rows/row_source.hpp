// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/rows/row_files.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

template <std::uint64_t... Lengths>
struct row_shape {
  using type = known_shape<Lengths...>;
  static constexpr const extents* wanted = &type::static_shape;
  static constexpr type of(const extents&) noexcept { return {}; }
};
template <>
struct row_shape<> {
  using type = given_shape;
  static constexpr const extents* wanted = nullptr;
  static type of(const extents& found) noexcept { return {found}; }
};

/// A source of the rows of arrays in files. `Format` is a value with
///   source_name, holder          the names of the source and of the rows' container, for messages
///   mark()                       a number that is mixed into the fingerprint
///   type_name()                  the name of T in the format
///   find(session, object, size)  the rows of a file
template <class Format, class T, storage Storage, std::uint64_t... Lengths>
class row_source : public opens_as_plan<row_source<Format, T, Storage, Lengths...>> {
  using shape = row_shape<Lengths...>;
  struct files : row_files {
    Storage where;
    Format format;
    files(Storage given, Format chosen) : where(std::move(given)), format(std::move(chosen)) {}
  };

 public:
  using penstock_part = source_tag;
  using element = stored_array<T, typename shape::type, typename Storage::session>;
  static constexpr std::string_view source_name = Format::source_name;

  class reader {
   public:
    using worker = values_worker<typename Storage::session>;
    static constexpr bool has_latency = latent_session<typename Storage::session>;

    reader(shared<const files> known, bool used)
        : files_(std::move(known)), open_(*files_, files_->where), used_(used) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const manifest::place place = files_->locate(p.index);
      const std::uint64_t offset = files_->begins[place.shard] + place.sample * files_->row_bytes;
      try {
        sink(element(shape::of(files_->row), used_ ? open_.session(place.shard) : open_.unread_session(),
                     files_->object(place.shard), offset, w, files_->swapped[place.shard]));
        if (used_) open_.confirm(place.shard);
      } catch (error& e) {
        if (used_) open_.confirm(place.shard);
        e.in_file(files_->path(place.shard)).at_offset(offset);
        throw;
      }
    }
    /// The file and the number of the row within it: "features.npy:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = files_->locate(index);
      return detail::text({files_->path(place.shard), ":", place.sample});
    }
    /// The bytes of the row; none if the row is not used.
    template <class Sink>
    void ranges(std::uint64_t index, Sink&& sink) const {
      if (!used_ || index >= files_->shards.samples()) return;
      const manifest::place place = files_->shards.locate(index);
      open_.range(place.shard, files_->begins[place.shard] + place.sample * files_->row_bytes,
                  files_->row_bytes, sink);
    }
    void cancel_reads() const noexcept { open_.cancel_reads(); }
    /// That of the session.
    [[nodiscard]] session_report report() const { return open_.report(); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return used_ ? files_->row_bytes : 0; }

   private:
    shared<const files> files_;
    open_files<Storage> open_;
    bool used_;
  };

  explicit row_source(Storage where, Format format = {}) {
    shared<files> known(new files(std::move(where), std::move(format)));
    auto session = known->where.connect();
    known->read(facts_of(known->where), session, shape::wanted,
                {&known->format,
                 [](const void* chosen, session_view opened, object_id object, std::uint64_t bytes) {
                   return static_cast<const Format*>(chosen)->find(opened, object, bytes);
                 },
                 Format::holder, sizeof(T)});
    files_ = std::move(known);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->shards.samples(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return files_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return files_->shards; }
  /// The shape of a row: the shape of the files minus their first dimension.
  [[nodiscard]] const extents& row() const noexcept { return files_->row; }
  /// The name of the array in files that hold several.
  [[nodiscard]] const std::string& array() const noexcept
    requires requires(const Format& which) { which.name; }
  {
    return files_->format.name;
  }
  /// Covers each file's name, size, rows and first and last 4 KiB, and the array's name if files hold
  /// several.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(files_->shards.fingerprint() ^ files_->format.mark());
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({source_name, "(", files_->versions.size(), " files): ", size(), " rows of ",
                         to_string(files_->row), " '", Format::type_name(), "'"});
  }
  /// Returns the reader. If the rows are not used, as in `zip<"a", "b">(...) | fields<"a">`, it never opens
  /// the files.
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(files_, !used.nothing()); }

 private:
  shared<const files> files_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
