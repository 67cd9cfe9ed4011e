// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
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

/// Where the rows of a file are: an array of at least one length, and where its bytes begin; `described` is
/// where the file says so.
struct stored_rows {
  extents shape;
  std::uint64_t begin = 0;
  std::uint64_t described = 0;
  bool swapped = false;  // its byte order is not this machine's
};

/// The files of an array that is cut along its first length, and where their rows are.
template <class T, class Storage>
struct row_files : known_files<Storage> {
  using known_files<Storage>::known_files;

  extents row;
  std::uint64_t row_bytes = 0;
  std::vector<std::uint64_t> begins;  // by shard: where the rows begin, in bytes
  std::vector<bool> swapped;          // by shard: whether its byte order is not this machine's

  /// Asks `find(session, object, size)` for the rows of each file. `wanted` is the shape of a row where the
  /// type knows it; `what` is what holds the rows, for messages.
  template <class Find>
  void read_each(const extents* wanted, std::string_view what, Find&& find) {
    auto session = this->where.connect();
    std::vector<manifest::shard> entries;
    for (std::size_t i = 0; i < this->where.names().size(); ++i) {
      const auto object = static_cast<object_id>(i);
      const std::string& path = this->where.names()[i];
      try {
        const object_signature signature = session.signature(object);
        const std::uint64_t rows = add(find(session, object, signature.size), wanted, what);
        entries.push_back(
            {path, signature.size, rows, rows * row_bytes, hash_of_file(session, object, signature.size)});
        this->objects.push_back(object);
        this->signatures.push_back(signature);
        penstock::confirm(session, object);
      } catch (error& e) {
        penstock::confirm(session, object);
        e.in_file(path);
        throw;
      }
    }
    this->shards = manifest(std::move(entries));
  }

 private:
  // The number of rows.
  std::uint64_t add(const stored_rows& rows, const extents* wanted, std::string_view what) {
    const extents found = rows.shape.drop_front();
    if (begins.empty()) row = wanted != nullptr ? *wanted : found;
    if (!(found == row))
      throw error(errc::shape, {"the rows of ", what, " have shape ", to_string(found), ", and ",
                                to_string(row), wanted != nullptr ? " was asked for" : " in ",
                                wanted != nullptr ? "" : this->where.names().front()})
          .at_offset(rows.described);
    row_bytes = sizeof(T) * row.elements();
    begins.push_back(rows.begin);
    swapped.push_back(rows.swapped);
    return rows.shape[0];
  }
};

/// A source of the rows of arrays that lie in files. `Files` is `row_files` with
///   source_name, mark()          what it is called, and what its fingerprint is mixed with
///   type_name()                  that of T, as the format writes it
///   read(wanted)                 finds the rows
template <class Files, class T, storage Storage, std::uint64_t... Lengths>
class row_source {
  using shape = row_shape<Lengths...>;

 public:
  using penstock_part = source_tag;
  using element = stored_array<T, typename shape::type, typename Storage::session>;
  static constexpr std::string_view source_name = Files::source_name;

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(std::shared_ptr<const Files> known) : known_(std::move(known)), open_(known_) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const manifest::place place = open_.locate(p.index);
      const std::uint64_t offset = known_->begins[place.shard] + place.sample * known_->row_bytes;
      try {
        sink(element(shape::of(known_->row), open_.session(place.shard), known_->objects[place.shard], offset,
                     w.scratch, known_->swapped[place.shard]));
        open_.confirm(place.shard);
      } catch (error& e) {
        open_.confirm(place.shard);
        e.in_file(known_->path(place.shard)).at_offset(offset);
        throw;
      }
    }
    /// The file and the number of the row in it: "features.npy:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = open_.locate(index);
      return detail::text({known_->path(place.shard), ":", place.sample});
    }
    void will_need(std::uint64_t index) const noexcept {
      if (index >= known_->shards.samples()) return;
      const manifest::place place = known_->shards.locate(index);
      open_.will_need(place.shard, known_->begins[place.shard] + place.sample * known_->row_bytes,
                      known_->row_bytes);
    }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return known_->row_bytes; }

   private:
    std::shared_ptr<const Files> known_;
    open_files<Storage> open_;
  };

  template <class... Choices>
  explicit row_source(Storage where, Choices&&... choices) {
    std::shared_ptr<Files> known(new Files(std::move(where), std::forward<Choices>(choices)...));
    known->read(shape::wanted);
    known_ = std::move(known);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return known_->shards.samples(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return known_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return known_->shards; }
  /// The shape of a row: that of the files without their first length.
  [[nodiscard]] const extents& row() const noexcept { return known_->row; }
  /// Of each file's name, size, rows and first and last 4 KiB, and of the array's name where files have
  /// several.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(known_->shards.fingerprint() ^ known_->mark());
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({source_name, "(", known_->objects.size(), " files): ", size(), " rows of ",
                         to_string(known_->row), " '", Files::type_name(), "'"});
  }
  [[nodiscard]] reader open() const { return reader(known_); }

 private:
  std::shared_ptr<const Files> known_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
