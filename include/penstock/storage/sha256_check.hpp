// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/sha256_check.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/crypto/openssl.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sha256_list.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// The SHA-256 of bytes that come in pieces.
class sha256_hasher {
 public:
  sha256_hasher() { must(EVP_DigestInit_ex2(context_.get(), EVP_sha256(), nullptr)); }

  void add(bytes_view bytes) {
    if (!bytes.empty()) must(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
  }
  /// The hash of all that was added; nothing can be added afterwards.
  [[nodiscard]] sha256_hash finish() {
    sha256_hash made;
    must(EVP_DigestFinal_ex(context_.get(), openssl_bytes(made.bytes.data()), nullptr));
    return made;
  }

 private:
  static void must(int done) {
    if (done != 1) openssl_refuses("SHA-256");
  }

  digest_context context_ = openssl_made<EVP_MD_CTX_free>(EVP_MD_CTX_new());
};

}  // namespace detail

/// Compares whole objects with a list of their hashes as their bytes come.
///
///     const sha256_list known({{"0.tar", sha256_of(bytes_of("all the bytes"))}});
///     const sha256_check check(known);
///     auto state = check.begin("data/0.tar");
///     state.add(bytes_of("all the "));
///     state.add(bytes_of("bytes"));
///     state.finish();  // throws if they are other bytes
///
/// In: the bytes of an object from its first to its last, in pieces of any size.
/// Errors: `begin` throws errc::io that recurs if the list has no entry for the object. `finish` throws
/// errc::io if these are not the bytes of the list; it does not count as recurring, because the bytes may
/// have been harmed on their way. Both name the object.
/// Cost: a pass of SHA-256; no allocation but that of OpenSSL's context, once for each object.
/// Threads: any number may call `begin`; a state is for one thread at a time.
class sha256_check {
 public:
  /// What is known of an object whose bytes are coming.
  class state {
   public:
    void add(bytes_view bytes) { hasher_.add(bytes); }
    /// Once, after all bytes.
    void finish() {
      const sha256_hash found = hasher_.finish();
      if (found == wanted_) return;
      throw error(
          errc::io,
          {"the SHA-256 of the bytes is ", to_string(found), ", and that of the list is ", to_string(wanted_),
           "; fetch or write the object again, or the list if the object was meant to change"})
          .in_file(name_);
    }

   private:
    friend sha256_check;
    state(std::string_view name, const sha256_hash& wanted) : name_(name), wanted_(wanted) {}

    std::string name_;
    sha256_hash wanted_;
    detail::sha256_hasher hasher_;
  };

  explicit sha256_check(sha256_list list) : list_(std::move(list)) {}

  /// Whether the list has an entry for an object.
  [[nodiscard]] bool knows(std::string_view name) const noexcept { return list_.find(name).has_value(); }
  [[nodiscard]] state begin(std::string_view name) const {
    if (const std::optional<sha256_hash> wanted = list_.find(name)) return {name, *wanted};
    throw error(errc::io,
                {"the list of ", list_.size(),
                 " hashes has no entry for this object; write the list again with sha256sum, of all objects"})
        .in_file(name)
        .recurring();
  }
  [[nodiscard]] const sha256_list& list() const noexcept { return list_; }

 private:
  sha256_list list_;
};

/// The SHA-256 of some bytes.
[[nodiscard]] inline sha256_hash sha256_of(bytes_view bytes) {
  detail::sha256_hasher hasher;
  hasher.add(bytes);
  return hasher.finish();
}

namespace detail {

/// How many bytes of an object are read and hashed at a time.
inline constexpr std::uint64_t hash_chunk = std::uint64_t{4} << 20;

/// Calls `add` with the bytes of an object, piece by piece, and `go_on` before each.
template <class Add, class GoOn>
void in_pieces(session_view session, object_id id, std::uint64_t size, Add&& add, GoOn&& go_on) {
  object_bytes bytes;
  for (std::uint64_t at = 0; at < size;) {
    go_on();
    const std::uint64_t some = std::min(size - at, hash_chunk);
    bytes = session.range(id, at, some, std::move(bytes));
    add(bytes.view());
    at += some;
  }
  session.confirm(id);
}

}  // namespace detail

/// The list of all objects of a storage, under their names there. `to_string` makes of it what
/// `sha256sum -c` reads.
///
///     std::ofstream("0.tar") << "all the bytes";
///     std::ofstream("0.sha256") << to_string(sha256_of(file("0.tar")));
///
/// Errors: those of the storage; errc::argument if two objects have one name.
/// Cost: each object is read once from its beginning to its end, by one thread, in pieces of 4 MiB.
template <storage Storage>
[[nodiscard]] sha256_list sha256_of(const Storage& where) {
  auto session = where.connect();
  std::vector<sha256_list::entry> entries;
  object_id id = 0;
  for (const std::string& name : where.names()) {
    detail::sha256_hasher hasher;
    detail::in_pieces(
        session, id, session.size(id), [&](bytes_view bytes) { hasher.add(bytes); }, [] {});
    entries.push_back({name, hasher.finish()});
    ++id;
  }
  return sha256_list(std::move(entries));
}

}  // namespace penstock::inline v0_1
