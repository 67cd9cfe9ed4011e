// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/decrypting.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/crypto/decrypting_session.hpp>
#include <penstock/storage/detail/storage_around.hpp>
#include <penstock/storage/encryption.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// How objects were encrypted; the first two are as in `encrypting_options`.
struct decrypting_options {
  /// The size of a segment as it is stored, with its tag. Tink's templates have 4096 and 1 MiB.
  std::size_t segment_size = std::size_t{64} << 10;
  /// Data that must be the same for writer and reader, such as the name of a dataset; it is no secret.
  std::string associated{};
  /// How many reads in the background are in flight at most; each has a thread of the session.
  std::size_t max_in_flight = 64;
};

/// See `decrypting`. Names do not count as paths, so that nothing is kept beside the files in plaintext;
/// sidecars are encrypted as well.
template <class Cipher, storage Storage, key_provider Keys>
class decrypting_storage
    : public detail::storage_around<decrypting_storage<Cipher, Storage, Keys>, Storage, true> {
  using base = detail::storage_around<decrypting_storage, Storage, true>;

 public:
  using session = detail::decrypting_session<Storage, Keys>;

  decrypting_storage(Storage where, Keys keys, decrypting_options options = {})
      : base(std::move(where)),
        keys_(std::move(keys)),
        rules_{detail::segment_layout(options.segment_size), std::move(options.associated),
               options.max_in_flight, detail::cipher_handle(Cipher::name)} {
    if (options.max_in_flight == 0)
      throw error(errc::argument, "decrypting needs at least one read in the background: max_in_flight is 0");
  }

  [[nodiscard]] session connect() const { return session(this->inner(), keys_, rules_); }
  [[nodiscard]] std::string describe() const {
    return this->describe_as(
        "decrypting", detail::text({Cipher::name, ", segments of ", rules_.layout.segment_size(), " bytes"}));
  }

 private:
  Keys keys_;
  detail::decrypting_rules rules_;
};

/// Decrypts the objects of another storage, any range of them, and verifies every byte that it delivers.
///
///     const encryption_key key(bytes_of("take the bytes from your vault!!"));
///     const auto shards = decrypting<aes_256_gcm>(file("train-{0000..0127}.tar"), key);
///     const auto each_its_own = decrypting<aes_256_gcm>(
///         file("train-{0000..0127}.tar"), [](std::string_view name) { return key_from_vault(name); });
///
/// In: objects that `encrypting` or Tink's streaming AEAD AES256_GCM_HKDF has written, and one key, or a
/// `key_provider`, which is called once for each object of a session, at its first read.
/// An object is a header and segments of `segment_size` bytes, and a read decrypts the segments that it
/// touches. Sizes and offsets are those of the plaintext, the counters those of the storage inside. Names are
/// not bound to the bytes, so objects may be renamed.
/// Errors have the offset of the read, and say where in the stored object it failed: errc::checksum for a
/// wrong key, other associated data, another segment size, or a byte that was changed, moved or cut off: no
/// byte of such a segment is delivered. errc::format for an object of an impossible size or another first
/// byte, and for a range beyond the end. Those of the storage and of the key provider pass through; options
/// that make no sense are errc::argument. An object that was replaced by an older one with the same key is no
/// error.
/// Threads: any number of threads may use a session. It reads in the background if the session inside does,
/// with one thread per read in flight.
/// Cost: one more read of 40 bytes per object and session; a pass of AES-GCM over the segments that a read
/// touches; a copy of those that it touches in part, and of what the session inside does not show in place.
/// A read in flight has a buffer: of its part of the object, and at most 8 MiB, or 256 KiB if the storage is
/// near. No allocation in the steady state.
/// Source: Google Tink, "AES-GCM-HKDF Streaming AEAD".
template <class Cipher = aes_256_gcm, storage Storage, key_provider Keys>
[[nodiscard]] decrypting_storage<Cipher, Storage, Keys> decrypting(Storage where, Keys keys,
                                                                   decrypting_options options = {}) {
  return {std::move(where), std::move(keys), std::move(options)};
}
template <class Cipher = aes_256_gcm, storage Storage>
[[nodiscard]] decrypting_storage<Cipher, Storage, one_key> decrypting(Storage where,
                                                                      const encryption_key& key,
                                                                      decrypting_options options = {}) {
  return {std::move(where), one_key(key), std::move(options)};
}

}  // namespace penstock::inline v0_1
