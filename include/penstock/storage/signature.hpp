// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/signature.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/ed25519.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sha256_list.hpp>
#include <penstock/storage/sidecar.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// See `require_signature`.
struct required_signature {
  verifying_key key;
};

/// An option of `read_sha256_list` and `read_manifest`: use a file only if it was signed with the private key
/// of this one.
///
///     const signing_key ours(bytes_of("take the bytes from your vault!!"));
///     const std::string text = to_string(sha256_hash{}) + "  0.tar\n";
///     std::ofstream("train.sha256") << text;
///     std::ofstream("train.sha256.sig") << text_of(ours.sign(bytes_of(text)).bytes);
///     const sha256_list known = read_sha256_list(file("train.sha256"), require_signature(ours.public_key()));
///
/// In: the signature is the object beside it with ".sig" at the end of its name: the 64 bytes that
/// `openssl pkeyutl -sign -rawin -inkey key.pem -in train.sha256 -out train.sha256.sig` writes.
/// Errors: errc::io if there is no signature, errc::checksum if it has another size, or is not that of the
/// file's bytes with this key; both say what to do. Nothing of the file is used then.
[[nodiscard]] inline required_signature require_signature(verifying_key key) { return {std::move(key)}; }

namespace detail {

/// The bytes of the one object of a storage, read through both sessions, if they were signed.
[[nodiscard]] inline buffer signed_bytes(session_view session, session_view beside, storage_facts where,
                                         const required_signature& rule, std::string_view called) {
  buffer bytes = only_object(session, where, called);
  const std::string name = sidecar{".sig"}.of(where.names[0]);
  ed25519_signature signature;
  try {
    const std::uint64_t size = beside.size(0);
    if (size != ed25519_signature::size)
      throw error(errc::checksum, {"a signature of Ed25519 has 64 bytes, and this file has ", size,
                                   "; sign again with 'openssl pkeyutl -sign -rawin'"});
    beside.read(0, 0, signature.bytes);
  } catch (error& e) {
    if (e.code() == errc::io)
      e.say_more(text({"which is the signature that is required of ", called, ": sign it, or put it there"}));
    e.in_file(name);
    throw;
  }
  if (!rule.key.verifies(bytes.view(), signature))
    throw error(errc::checksum, {called, " was not signed with this key, or it or ", name,
                                 " was changed since; fetch both again, and check the key"})
        .in_file(where.names[0]);
  return bytes;
}

/// The storage of the signature.
template <storage Storage>
[[nodiscard]] Storage signature_of(const Storage& where) {
  static_assert(has_sidecars<Storage>() || renaming_storage<Storage>,
                "penstock: a signature lies beside its object, which a storage with sidecars(which) or "
                "with_names(names) finds");
  const sidecar which{".sig"};
  if constexpr (!renaming_storage<Storage>) {
    return where.sidecars(which);
  } else {
    if constexpr (has_sidecars<Storage>())
      if (!is_local(where)) return where.sidecars(which);
    return where.with_names(which.of_each(where.names()));
  }
}

template <storage Storage>
[[nodiscard]] buffer signed_bytes_in(const Storage& where, const required_signature& rule,
                                     std::string_view called) {
  const Storage signature = signature_of(where);
  auto session = where.connect();
  auto beside = signature.connect();
  return signed_bytes(session, beside, facts_of(where), rule, called);
}

}  // namespace detail

/// Reads a signed list of hashes; see `require_signature`.
template <storage Storage>
[[nodiscard]] sha256_list read_sha256_list(const Storage& where, const required_signature& rule) {
  const buffer text = detail::signed_bytes_in(where, rule, "a list of hashes");
  return detail::sha256_list_of(text.view(), where.names()[0]);
}

}  // namespace penstock::inline v0_1
