// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/npy_header.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/text.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// The files of an array that is cut along its first length, and where their rows are.
template <class T, class Storage>
struct npy_files : known_files<Storage> {
  using known_files<Storage>::known_files;

  extents row;
  std::uint64_t row_bytes = 0;
  std::vector<std::uint64_t> begins;  // by shard: where the rows begin, in bytes

  /// Reads the headers. `wanted` is the shape of a row where the type knows it.
  void read(const extents* wanted) {
    auto session = this->where.connect();
    std::vector<manifest::shard> entries;
    for (std::size_t i = 0; i < this->where.names().size(); ++i) {
      const auto object = static_cast<object_id>(i);
      const std::string& path = this->where.names()[i];
      try {
        const object_signature signature = session.signature(object);
        const std::uint64_t rows = add(session, object, signature.size, wanted);
        entries.push_back(
            {path, signature.size, rows, rows * row_bytes, hash_of_file(session, object, signature.size)});
        this->objects.push_back(object);
        this->signatures.push_back(signature);
      } catch (error& e) {
        e.in_file(path);
        throw;
      }
    }
    this->shards = manifest(std::move(entries));
  }

 private:
  static constexpr std::uint64_t longest_header = 1_MiB;

  // The number of rows of a file.
  template <class Session>
  std::uint64_t add(Session& session, object_id object, std::uint64_t size, const extents* wanted) {
    buffer room;
    const bytes_view start = range_of(session, object, 0, std::min<std::uint64_t>(size, 12), room);
    const npy_header header =
        read_npy_header(range_of(session, object, 0, std::min(size, length_of(start)), room));
    check(header);
    const std::uint64_t expected = npy_payload(header);
    if (expected != size - header.data_offset)
      throw error(errc::format, {"the npy header says shape ", to_string(header.shape), " of '", header.descr,
                                 "', which is ", expected, " bytes, but ", size - header.data_offset,
                                 " follow it; copy the file again if it was cut"})
          .at_offset(header.data_offset);
    const extents found = header.shape.drop_front();
    if (begins.empty()) row = wanted != nullptr ? *wanted : found;
    if (!(found == row))
      throw error(errc::shape, {"the rows of this npy file have shape ", to_string(found), ", and ",
                                to_string(row), wanted != nullptr ? " was asked for" : " in ",
                                wanted != nullptr ? "" : this->where.names().front()})
          .at_offset(8);
    row_bytes = sizeof(T) * row.elements();
    begins.push_back(header.data_offset);
    return header.shape[0];
  }

  // How much of a file its header takes, if it is one; what `start` says is not believed beyond a bound.
  static std::uint64_t length_of(bytes_view start) {
    if (start.size() < 12) return start.size();
    const auto byte_at = [start](std::size_t i) { return std::to_integer<std::uint64_t>(start[i]); };
    const bool wide = byte_at(6) > 1;
    const std::uint64_t length =
        byte_at(8) | byte_at(9) << 8 | (wide ? byte_at(10) << 16 : 0) | (wide ? byte_at(11) << 24 : 0);
    if (length > longest_header)
      throw error(errc::limit,
                  {"the npy header says it has ", length, " bytes, and more than a MiB is not read"})
          .at_offset(8);
    return length + (wide ? 12 : 10);
  }

  static void check(const npy_header& header) {
    const std::string descr(header.descr);
    if (header.kind != npy_kind<T> || header.item_size != sizeof(T))
      throw error(errc::format, {"the npy file holds dtype '", descr, "', but '", npy_kind<T>, sizeof(T),
                                 "' was asked for; see npy_rows<T>"})
          .at_offset(8);
    constexpr char foreign = std::endian::native == std::endian::little ? '>' : '<';
    if (header.order == foreign && sizeof(T) > 1)
      throw error(errc::format, {"the npy file holds '", descr,
                                 "', of the other byte order, and rows are read as they lie: save it "
                                 "with array.astype(array.dtype.newbyteorder('='))"})
          .at_offset(8);
    if (header.shape.rank() == 0)
      throw error(errc::format, "the npy file holds one number, which has no rows").at_offset(8);
    if (header.fortran && header.shape.rank() > 1)
      throw error(errc::format,
                  "the npy file is in Fortran order, in which a row is not in one piece: save it with "
                  "numpy.ascontiguousarray")
          .at_offset(8);
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

}  // namespace detail

/// The source that `npy_rows` makes of npy files.
template <class T, storage Storage, std::uint64_t... Lengths>
class npy_row_source {
  static_assert(npy_kind<T> != '\0' && std::is_trivially_copyable_v<T>,
                "penstock: npy_rows<T> needs a bool, integer or floating type; for a half-float type of your "
                "own specialise penstock::npy_kind");

  using files = detail::npy_files<T, Storage>;
  using shape = detail::row_shape<Lengths...>;

 public:
  using penstock_part = source_tag;
  using element = detail::stored_array<T, typename shape::type, typename Storage::session>;
  static constexpr std::string_view source_name = "npy_rows";

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(std::shared_ptr<const files> known) : known_(std::move(known)), open_(known_) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const manifest::place place = open_.locate(p.index);
      const std::uint64_t offset = known_->begins[place.shard] + place.sample * known_->row_bytes;
      try {
        sink(element(shape::of(known_->row), open_.session(place.shard), known_->objects[place.shard], offset,
                     w.scratch));
      } catch (error& e) {
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
    std::shared_ptr<const files> known_;
    detail::open_files<Storage> open_;
  };

  explicit npy_row_source(Storage where) {
    std::shared_ptr<files> known(new files(std::move(where)));
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
  /// Of each file's name, size, rows and first and last 4 KiB.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(known_->shards.fingerprint() ^ 0x6e7079);
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"npy_rows(", known_->objects.size(), " files): ", size(), " rows of ",
                         to_string(known_->row), " '", npy_kind<T>, sizeof(T), "'"});
  }
  [[nodiscard]] reader open() const { return reader(known_); }

 private:
  std::shared_ptr<const files> known_;
};

/// The rows of numpy's `.npy` files along their first length, all files as one dataset.
///
///     auto features = npy_rows<float>("features-{00..07}.npy") | shuffle(seed) | batch(256);
///     auto images = npy_rows<std::uint8_t, 28, 28>("images.npy");     // their shape is part of the type
///
/// In: a pattern with braces, which is `mapped_file`, or any storage. Out: an array expression of the files'
/// shape without its first length, a view of the mapping until it is written to its slot; with lengths in the
/// type a batch is written in place from the first one on. Versions 1.0 to 3.0 of the format.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the header and
/// the ends of each file.
/// Cost per sample: a binary search among the files and one copy of the row; with a storage that has no views
/// one read; no allocation, but for the scratch of `finish` where a file's values are misaligned.
/// Threads: any number at once.
/// Throws, with file and offset, `errc::format` for what is no npy file, another dtype than `T`, the other
/// byte order, Fortran order, an array without a length, and a header that does not fit the file's size;
/// `errc::shape` for rows of another shape than asked for or than those of the first file; `errc::io`, also
/// for a file that was changed after the plan was made.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] npy_row_source<T, Storage, Lengths...> npy_rows(Storage where) {
  return npy_row_source<T, Storage, Lengths...>(std::move(where));
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] npy_row_source<T, mapped_file, Lengths...> npy_rows(std::string_view pattern) {
  return npy_row_source<T, mapped_file, Lengths...>(mapped_file(pattern));
}

static_assert(indexed_source<npy_row_source<float, mapped_file>>, "npy_row_source is an indexed source");

}  // namespace penstock::inline v0_1
