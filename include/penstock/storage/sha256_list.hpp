// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// The SHA-256 of some bytes.
struct sha256_hash {
  std::array<std::byte, 32> bytes{};
  friend bool operator==(const sha256_hash&, const sha256_hash&) = default;
};

/// A hash as 64 hexadecimal digits.
[[nodiscard]] std::string to_string(const sha256_hash& hash);

/// The SHA-256 of each object of a dataset: what `sha256sum *.tar > train.sha256` writes.
///
///     const sha256_list known = sha256_list_from_string(
///         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  train/0.tar\n");
///     const bool there = known.find("s3://bucket/data/train/0.tar").has_value();
///
/// In: entries with different names, none of which is empty or has a zero byte; errc::argument otherwise. A
/// "./" that a name begins with counts for nothing.
/// Cost: finding a name is logarithmic in the number of entries, once for each folder in the name. Copies
/// share their table. Threads: any number at once; a list is const once made.
class sha256_list {
 public:
  struct entry {
    std::string name;
    sha256_hash hash;
  };

  sha256_list();
  explicit sha256_list(std::vector<entry> entries);

  [[nodiscard]] std::size_t size() const noexcept { return table_->entries.size(); }
  /// In the order in which they were given.
  [[nodiscard]] std::span<const entry> entries() const noexcept { return table_->entries; }
  /// The hash of an object by its name in a storage: of the entry with this name, else of the one with the
  /// most of its last parts, of those between slashes. So a list that says "0.tar" is for "data/0.tar" and
  /// for "https://host/data/0.tar", unless it also says "data/0.tar". A URL's query counts for nothing.
  [[nodiscard]] std::optional<sha256_hash> find(std::string_view name) const noexcept;

 private:
  struct table {
    std::vector<entry> entries;
    std::vector<std::size_t> by_name;
  };
  explicit sha256_list(shared<const table> made) noexcept;
  friend sha256_list sha256_list_from_string(std::string_view text);
  [[nodiscard]] static shared<const table> sorted(std::vector<entry> entries,
                                                  std::optional<std::size_t>& repeated);

  shared<const table> table_;
};

/// The list as `sha256sum` writes it, and as `sha256sum -c` reads it.
[[nodiscard]] std::string to_string(const sha256_list& all);

/// Reads what `sha256sum` has written.
///
/// In: lines of 64 hexadecimal digits, a blank, a blank or '*', and a name; in a line that begins with a
/// backslash, \n, \r and \\ stand for the bytes that they mean in C. Lines may end in CRLF, and the last one
/// has an end as well.
/// Errors: errc::format with the offset for anything else, for a name that is there twice, and for a text of
/// nothing.
[[nodiscard]] sha256_list sha256_list_from_string(std::string_view text);

namespace detail {
/// All bytes of the one object of a storage; `called` is what it should be.
[[nodiscard]] buffer only_object(session_view session, storage_facts where, std::string_view called);
/// Reads a list; errors get the name.
[[nodiscard]] inline sha256_list sha256_list_of(bytes_view text, std::string_view name) {
  return detail::in_file(name, [&] { return sha256_list_from_string(text_of(text)); });
}
}  // namespace detail

/// Reads a list of hashes that is kept in a storage, such as beside the shards that it is about.
///
///     std::ofstream("train.sha256") << to_string(sha256_hash{}) << "  0.tar\n";
///     const sha256_list known = read_sha256_list(file("train.sha256"));
///
/// In: a storage of one object.
/// Errors: those of the storage; errc::argument for any other number of objects; errc::format with the name
/// and the offset.
template <storage Storage>
[[nodiscard]] sha256_list read_sha256_list(const Storage& where) {
  auto session = where.connect();
  const buffer text = detail::only_object(session, facts_of(where), "a list of hashes");
  return detail::sha256_list_of(text.view(), where.names()[0]);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/sha256_list.ipp>
#endif
