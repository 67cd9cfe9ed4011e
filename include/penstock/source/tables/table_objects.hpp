// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Opens the files of a table by their names, in a storage of any kind.
class table_objects {
 public:
  /// `like`: a storage of the kind, with the options.
  template <class Storage>
    requires(!std::same_as<Storage, table_objects>) && renaming_storage<Storage>
  explicit table_objects(Storage like)
      : local_(is_local(like)),
        storage_(std::make_shared<const Storage>(std::move(like))),
        open_([](const void* where, std::vector<std::string>&& names, void* what,
                 void (*work)(void*, session_view)) {
          const Storage opened = static_cast<const Storage*>(where)->with_names(std::move(names));
          auto session = opened.connect();
          work(what, session);
        }) {}

  /// Whether names are paths in the local file system.
  [[nodiscard]] bool local() const noexcept { return local_; }
  /// Calls `work(session)`; in the session, object i is the file of the i-th name.
  template <class Work>
  void open(std::vector<std::string> names, Work&& work) const {
    using type = std::remove_reference_t<Work>;
    open_(storage_.get(), std::move(names), const_cast<std::remove_const_t<type>*>(&work),
          [](void* what, session_view session) { (*static_cast<type*>(what))(session); });
  }
  /// Calls `work(i, bytes)` for what each file holds, in their order, until it returns false; returns whether
  /// it never did. 16 files are read at once. Those in memory have at most `held` bytes together, or are a
  /// single one. Throws errc::limit, with the file's name, for one of more than `limit` bytes.
  template <class Work>
  bool read_in_order(const std::vector<std::string>& names, std::uint64_t limit, Work&& work,
                     std::uint64_t held = max_held) const {
    using type = std::remove_reference_t<Work>;
    return read_some(names, limit, held, const_cast<std::remove_const_t<type>*>(&work),
                     [](void* what, std::size_t i, std::vector<std::byte>& bytes) {
                       return (*static_cast<type*>(what))(i, bytes_view(bytes));
                     });
  }
  /// What a file holds; see `read_in_order`.
  [[nodiscard]] std::vector<std::byte> read(const std::string& name, std::uint64_t limit) const;

  static constexpr std::size_t max_in_flight = 16;
  static constexpr std::uint64_t max_held = 256_MiB;

  /// How many of the first files of these sizes have at most `held` bytes together; at least one.
  [[nodiscard]] static std::size_t fitting(std::span<const std::uint64_t> sizes, std::uint64_t held) noexcept;

 private:
  bool read_some(const std::vector<std::string>& names, std::uint64_t limit, std::uint64_t held, void* what,
                 bool (*work)(void*, std::size_t, std::vector<std::byte>&)) const;

  bool local_;
  std::shared_ptr<const void> storage_;
  void (*open_)(const void*, std::vector<std::string>&&, void*, void (*)(void*, session_view));
};

/// Whether a name is a URL of HTTP, in which what no URL may have is percent-encoded.
[[nodiscard]] bool is_web_name(std::string_view name) noexcept;

/// A name in a folder; one in the folder "" stands alone. In a URL of HTTP the name is percent-encoded.
[[nodiscard]] std::string name_in_folder(std::string_view folder, std::string_view name);

/// The scheme of a URI, "s3" of "s3://bucket/key"; empty if it has none. A single letter is none, so that a
/// folder may be called "a:".
[[nodiscard]] std::string_view scheme_of_uri(std::string_view uri) noexcept;

/// A file's name, which may be a URI, as a storage has it: without `file:`, and with the scheme `s3` for
/// `s3a` and `s3n`, as Hadoop calls it.
[[nodiscard]] std::string name_of_uri(std::string_view uri);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/table_objects.ipp>
#endif
