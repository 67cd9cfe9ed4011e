// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/mds_writer.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/codec/layouts/mds_encoding.hpp>
#include <penstock/source/files/unpacked_copy.hpp>
#include <penstock/source/records/mds_shards.hpp>
#include <penstock/storage/local/output_file.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

namespace penstock::inline v0_1 {

/// Options of `mds_writer`.
struct mds_writer_options {
  /// The largest shard in bytes, below 4 GiB; a single larger sample gets a shard of its own.
  std::uint64_t size_limit = 64_MiB;
};

/// The value of a column, in bytes, for `mds_writer`.
struct mds_field {
  std::string_view column;
  bytes_view bytes;

  mds_field(std::string_view name, bytes_view value) noexcept : column(name), bytes(value) {}
  mds_field(std::string_view name, std::string_view text) noexcept : column(name), bytes(bytes_of(text)) {}
};

/// The bytes of a number in a column of `int`, `uint8`, `float32` and so on.
///
///     const auto seven = mds_number(std::int64_t{7});
template <class T>
  requires(!mds_dtype<T>.empty())
[[nodiscard]] std::array<std::byte, sizeof(T)> mds_number(T value) noexcept {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

/// The bytes of an array in a column of `ndarray`, `ndarray:DTYPE` or `ndarray:DTYPE:SHAPE`. Throws
/// `errc::argument` for an array that the encoding cannot hold, and for empty ones, which MosaicML refuses.
///
///     const std::vector<float> two{1, 2};
///     const std::vector<std::byte> bytes = mds_array_bytes<float>("ndarray:float32", extents(1, 2), two);
template <class T>
  requires(!mds_dtype<T>.empty())
[[nodiscard]] std::vector<std::byte> mds_array_bytes(std::string_view encoding, const extents& shape,
                                                     std::span<const T> values) {
  std::vector<std::byte> made = detail::mds_array_header(encoding, mds_dtype<T>, shape, values.size());
  for (const T& value : values) {
    const auto bytes = mds_number(value);
    made.insert(made.end(), bytes.begin(), bytes.end());
  }
  return made;
}

/// Writes a dataset that MosaicML Streaming and `mds` read: a folder of MDS shards and their `index.json`.
///
///     mds_writer out("written", {{"image", "jpeg"}, {"label", "int"}});
///     out.write({{"image", jpeg_bytes}, {"label", mds_number(std::int64_t{7})}});
///     out.close();
///
/// In: a folder, which is made if it is missing; the columns with their encodings, any of MosaicML's except
/// `pkl`; and the bytes of each value, which `mds_number` and `mds_array_bytes` make of numbers and arrays
/// and which are otherwise stored as they are. Out: the bytes that MosaicML's MDSWriter writes without
/// compression and hashes, except that no shard is empty. Each file appears under its name when it is
/// complete and flushed; the index comes last, at `close`: without it the folder is no dataset.
/// Cost: the samples of one shard are kept in memory.
/// Errors: errc::argument for an encoding that is not MosaicML's, for a folder that has an index already, a
/// column that is missing, unknown or given twice, and a value of the wrong size; errc::io with the path if a
/// file cannot be written; errc::state after `close`.
/// Threads: one at a time. Source: mosaicml-streaming, streaming/base/format/mds/writer.py.
class mds_writer {
 public:
  explicit mds_writer(std::string folder, std::vector<std::pair<std::string, std::string>> columns,
                      mds_writer_options options = {})
      : folder_(std::move(folder)), options_(options) {
    if (columns.empty()) throw error(errc::argument, "a dataset needs at least one column");
    if (options.size_limit >> 32 != 0)
      throw error(errc::argument, "a shard has less than 4 GiB; lower mds_writer_options::size_limit");
    std::sort(columns.begin(), columns.end());
    for (auto& [name, encoding] : columns) {
      if (!columns_.empty() && columns_.back().name == name)
        throw error(errc::argument, {"two columns are called '", name, "'"});
      const std::uint32_t size = detail::mds_value_size(encoding);
      columns_.push_back({std::move(name), std::move(encoding), size});
    }
    config_ = "{" + columns_text() +
              R"(, "compression": null, "format": "mds", "hashes": [], "size_limit": )" +
              std::to_string(options_.size_limit) + R"(, "version": 2})";
    if (::access(index_path().c_str(), F_OK) == 0)
      throw error(errc::argument, "the folder has an index already; write to another, or delete its files")
          .in_file(index_path());
    if (const int code = detail::make_folders(folder_); code != 0)
      throw error(errc::io, {"cannot make the folder: ", std::generic_category().message(code)})
          .in_file(folder_);
  }

  /// Appends a sample: each column once, in any order.
  void write(std::span<const mds_field> fields) {
    if (closed_) throw error(errc::state, "this mds_writer is closed");
    std::vector<const mds_field*> sorted(columns_.size());
    for (const mds_field& one : fields) *place_of(one, sorted) = &one;
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (sorted[i] == nullptr)
        throw error(errc::argument, {"the sample has no value for the column '", columns_[i].name, "'"});
      size += sorted[i]->bytes.size() + (columns_[i].size == 0 ? 4 : 0);
    }
    const std::uint64_t frame = 8 + config_.size();
    if ((frame + size + 4) >> 32 != 0)
      throw error(errc::argument, {"a sample of ", size, " bytes does not fit into a shard of 4 GiB"});
    if (!begins_.empty() && frame + samples_.size() + 4 * begins_.size() + size + 4 > options_.size_limit)
      finish_shard();
    begins_.push_back(samples_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].size == 0) put_number(samples_, sorted[i]->bytes.size());
    for (const mds_field* const one : sorted) samples_ += text_of(one->bytes);
  }
  void write(std::initializer_list<mds_field> fields) {
    write(std::span<const mds_field>(fields.begin(), fields.size()));
  }

  /// Writes what is left, and the index.
  void close() {
    if (closed_) throw error(errc::state, "this mds_writer is closed");
    if (!begins_.empty()) finish_shard();
    detail::output_file index(index_path());
    index.write(bytes_of(R"({"shards": [)" + entries_ + R"(], "version": 2})"));
    index.commit();
    closed_ = true;
  }

 private:
  [[nodiscard]] std::string index_path() const { return folder_ + "/index.json"; }

  /// Text as Python's json writes it.
  [[nodiscard]] static std::string quoted(const std::string& text) {
    try {
      return nlohmann::json(text).dump(-1, ' ', true);
    } catch (const nlohmann::json::exception&) {
      throw error(errc::argument, "the name of a column is not UTF-8");
    }
  }
  [[nodiscard]] std::string columns_text() const {
    std::string encodings, names, sizes;
    for (const mds_column& one : columns_) {
      const char* const comma = &one == columns_.data() ? "" : ", ";
      encodings += comma + quoted(one.encoding);
      names += comma + quoted(one.name);
      sizes += comma + (one.size == 0 ? "null" : std::to_string(one.size));
    }
    return R"("column_encodings": [)" + encodings + R"(], "column_names": [)" + names +
           R"(], "column_sizes": [)" + sizes + "]";
  }
  [[nodiscard]] const mds_field** place_of(const mds_field& one,
                                           std::vector<const mds_field*>& sorted) const {
    const auto found = std::ranges::lower_bound(columns_, one.column, {}, &mds_column::name);
    if (found == columns_.end() || found->name != one.column)
      throw error(errc::argument, {"there is no column '", one.column, "'"});
    const mds_field*& place = sorted[static_cast<std::size_t>(found - columns_.begin())];
    if (place != nullptr)
      throw error(errc::argument, {"the sample has two values for the column '", one.column, "'"});
    if (found->size != 0 && one.bytes.size() != found->size)
      throw error(errc::argument, {"a value of '", one.column, "' (", found->encoding, ") has ", found->size,
                                   " bytes, and ", one.bytes.size(), " were given"});
    return &place;
  }
  static void put_number(std::string& into, std::uint64_t number) {
    for (int i = 0; i < 4; ++i) into += static_cast<char>(number >> (8 * i) & 255);
  }

  void finish_shard() {
    const std::uint64_t first = 4 * (begins_.size() + 2) + config_.size();
    std::string head;
    put_number(head, begins_.size());
    for (const std::uint64_t begin : begins_) put_number(head, first + begin);
    put_number(head, first + samples_.size());
    head += config_;
    std::string number = std::to_string(shards_);
    number.insert(0, number.size() < 5 ? 5 - number.size() : 0, '0');
    const std::string name = "shard." + number + ".mds";
    detail::output_file file(folder_ + "/" + name);
    file.write(bytes_of(head));
    file.write(bytes_of(samples_));
    file.commit();
    entries_ += (shards_ == 0 ? "{" : ", {") + columns_text() +
                R"(, "compression": null, "format": "mds", "hashes": [], "raw_data": {"basename": )" +
                quoted(name) + R"(, "bytes": )" + std::to_string(head.size() + samples_.size()) +
                R"(, "hashes": {}}, "samples": )" + std::to_string(begins_.size()) + R"(, "size_limit": )" +
                std::to_string(options_.size_limit) + R"(, "version": 2, "zip_data": null})";
    ++shards_;
    begins_.clear();
    samples_.clear();
  }

  std::string folder_;
  mds_writer_options options_;
  std::vector<mds_column> columns_;  // by name
  std::string config_;
  std::vector<std::uint64_t> begins_;  // of the samples of the shard, from the first one
  std::string samples_;
  std::string entries_;  // of the index
  std::uint64_t shards_ = 0;
  bool closed_ = false;
};

}  // namespace penstock::inline v0_1
