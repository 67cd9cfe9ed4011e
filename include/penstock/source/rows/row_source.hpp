// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/projection.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/files/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/record_files.hpp>

namespace penstock::inline v0_1::detail {

/// The rows of a file: the shape of the array, with at least one dimension, and the offset of its bytes;
/// `described` is the offset of its description.
struct stored_rows {
  extents shape;
  std::uint64_t begin = 0;
  std::uint64_t described = 0;
  bool swapped = false;  // its byte order is not this machine's
};

/// A format's function that finds the rows of a file.
struct row_finder {
  const void* format;
  stored_rows (*find)(const void* format, session_view session, object_id object, std::uint64_t size);
  std::string_view what;  ///< the name of the rows' container, for messages
  std::size_t item;       ///< bytes of a number
};

template <class T, class Format>
[[nodiscard]] row_finder finder_of(const Format& format) noexcept {
  return {&format,
          [](const void* chosen, session_view session, object_id object, std::uint64_t size) {
            return static_cast<const Format*>(chosen)->find(session, object, size);
          },
          Format::holder, sizeof(T)};
}

/// The files of an array that is cut along its first dimension, and where their rows begin.
struct row_files : known_files {
  static constexpr bool rows_adjoin = true;

  extents row;
  std::uint64_t row_bytes = 0;
  std::vector<stored_rows> rows;  // by shard

  [[nodiscard]] static std::uint64_t number(const manifest::place& at, std::size_t&) noexcept {
    return at.sample;
  }
  [[nodiscard]] std::uint64_t offset(const manifest::place& at, std::uint64_t number) const noexcept {
    return rows[at.shard].begin + number * row_bytes;
  }
  [[nodiscard]] bool swapped(std::size_t shard) const noexcept { return rows[shard].swapped; }
  /// Finds the rows of each file. `wanted` is the shape of a row if it is part of the type, otherwise
  /// null.
  void read(storage_facts where, session_view session, const extents* wanted, const row_finder& finder) {
    rows.resize(where.names.size());
    read_each(*this, where, session, [&](std::size_t i, object_version version) {
      const auto object = static_cast<object_id>(i);
      rows[i] = finder.find(finder.format, session, object, version.size);
      const std::uint64_t hash = hash_of_file(session, object, version.size);
      return file_facts{rows[i].shape[0], rows[i].shape.elements() * finder.item, hash, hash};
    });
    row = wanted != nullptr ? *wanted : rows.front().shape.drop_front();
    row_bytes = finder.item * row.elements();
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (const extents found = rows[i].shape.drop_front(); !(found == row))
        throw error(errc::shape, {"the rows of ", finder.what, " have shape ", to_string(found), ", and ",
                                  to_string(row), wanted != nullptr ? " was asked for" : " in ",
                                  wanted != nullptr ? "" : where.names.front()})
            .in_file(path(i))
            .at_offset(rows[i].described);
  }
};

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

/// What a run keeps for files of arrays: nothing but whether they are used. `Files` has
///   row, row_bytes            the shape and the bytes of a row
///   number(place, document)   of a row in its file, for keys; `document` remembers what was found last
///   offset(place, number)     where it begins
///   swapped(shard)            whether the byte order is not this machine's
///   rows_adjoin               optional: true if the rows of a file lie one behind the other
template <class Files, class T, class Shape, class Session>
class array_rows {
 public:
  using element = stored_array<T, typename Shape::type, Session>;
  struct worker : values_worker<Session> {
    std::size_t document = 0;
    std::uint64_t offset = 0;  // of the current row
  };

  array_rows(const shared<const Files>& files, const projection& used) noexcept
      : files_(files.get()), used_(!used.nothing()) {}

  /// Whether files are opened.
  [[nodiscard]] bool reads() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return used_ ? files_->row_bytes : 0; }
  [[nodiscard]] element open(Session& session, const manifest::place& at, worker& w) const {
    w.offset = files_->offset(at, files_->number(at, w.document));
    return element(Shape::of(files_->row), session, files_->object(at.shard), w.offset, w,
                   files_->swapped(at.shard));
  }
  /// `count` rows as one array.
  [[nodiscard]] stored_array<T, given_shape, Session> open_rows(Session& session, const manifest::place& at,
                                                                std::uint64_t count, worker& w) const
    requires(Files::rows_adjoin)
  {
    w.offset = files_->offset(at, files_->number(at, w.document));
    return {given_shape{files_->row.prepend(count)},
            session,
            files_->object(at.shard),
            w.offset,
            w,
            files_->swapped(at.shard)};
  }
  [[nodiscard]] bool needs_confirm(const worker&) const noexcept { return used_; }
  void add_context(error& e, Session&, const manifest::place& at, const worker& w) const {
    e.in_file(files_->path(at.shard)).at_offset(w.offset);
  }
  /// The file and the row's number in it: "features.npy:17".
  [[nodiscard]] std::string key(Session&, const manifest::place& at) const {
    std::size_t document = 0;
    return text({files_->path(at.shard), ":", files_->number(at, document)});
  }
  template <class Sink>
  void ranges(Session& session, object_id object, const manifest::place& at, Sink&& sink) const {
    std::size_t document = 0;
    if (used_) sink(session, object, files_->offset(at, files_->number(at, document)), files_->row_bytes);
  }

 private:
  const Files* files_;  // which the reader holds
  bool used_;
};

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
