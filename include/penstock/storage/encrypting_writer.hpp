// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/encrypting_writer.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/crypto/segment_crypto.hpp>
#include <penstock/storage/encryption.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// How objects are encrypted; the reader needs the same, see `decrypting_options`.
struct encrypting_options {
  /// The size of a segment as it is stored, with its tag: 57 bytes to 1 GiB.
  std::size_t segment_size = std::size_t{64} << 10;
  /// Data that must be the same for writer and reader, such as the name of a dataset; it is no secret.
  std::string associated{};
};

/// See `encrypting`.
template <class Cipher, object_writer Writer, key_provider Keys>
class encrypting_writer {
 public:
  encrypting_writer(Writer to, Keys keys, encrypting_options options = {})
      : state_(std::make_unique<state>(std::move(to), std::move(keys), std::move(options))) {}

  /// Begins an object; one that is unfinished is given up.
  void open(std::string_view name) {
    abort();
    state& all = *state_;
    all.begin(name);
    or_abort([&] {
      all.context.encrypt_with(all.cipher, all.object->cipher.key);
      all.to.open(name);
      all.to.write(all.object->header);
    });
  }
  /// Appends bytes.
  void write(bytes_view bytes) {
    or_abort([&] { state_->append(bytes); });
  }
  /// Makes the object appear. Returns the version that `decrypting` gives: the plaintext's size, and the
  /// stamp of what is stored.
  object_version finish() {
    return or_abort([this] {
      state_->seal(state_->pending.view(), true);
      const object_version made{state_->object->size, state_->to.finish().stamp};
      state_->close();
      return made;
    });
  }
  /// Gives an unfinished object up.
  void abort() noexcept {
    if (!state_ || !state_->object) return;
    state_->close();
    state_->to.abort();
  }

 private:
  using segment_layout = detail::segment_layout;
  /// The object that is written now, and what all objects have in common.
  struct state : detail::unmovable {
    struct writing {
      detail::object_cipher cipher;
      std::array<std::byte, segment_layout::header_size> header;
      std::uint64_t segment = 0;  // the next one
      std::uint64_t size = 0;     // of the plaintext so far
    };

    state(Writer given, Keys all_keys, encrypting_options options)
        : to(std::move(given)),
          keys(std::move(all_keys)),
          associated(std::move(options.associated)),
          layout(options.segment_size) {}
    ~state() { close(); }

    void begin(std::string_view name) {
      std::array<std::byte, segment_layout::header_size> header;
      header[0] = std::byte{segment_layout::header_size};
      detail::fill_randomly(mutable_bytes(header).subspan(1));
      object.emplace(writing{detail::object_cipher(header, detail::key_of(keys, name), associated), header});
    }
    /// Seals segments as they become full, except for one that may be the last.
    void append(bytes_view bytes) {
      while (!bytes.empty()) {
        const std::size_t room = detail::to_size(layout.room(object->segment));
        if (pending.size() == room) {
          seal(pending.view(), false);
          pending.clear();
        } else if (pending.size() == 0 && bytes.size() > room) {
          seal(bytes.first(room), false);
          object->size += room;
          bytes = bytes.subspan(room);
        } else {
          if (pending.capacity() == 0) {
            pending.resize_for_overwrite(detail::to_size(layout.room(1)));
            pending.clear();
          }
          const std::size_t taken = std::min(room - pending.size(), bytes.size());
          pending.append(bytes.first(taken));
          object->size += taken;
          bytes = bytes.subspan(taken);
        }
      }
    }
    void seal(bytes_view plain, bool last) {
      if (object->segment == segment_layout::max_segments)
        throw error(errc::limit, {"an encrypted object has at most ", segment_layout::max_segments,
                                  " segments: choose a segment_size above ", layout.segment_size()});
      sealed.resize_for_overwrite(plain.size() + segment_layout::tag_size);
      context.seal(object->cipher.nonce(object->segment, last), plain, sealed.data());
      to.write(sealed.view());
      ++object->segment;
    }
    void close() noexcept {
      object.reset();
      if (pending.capacity() != 0) OPENSSL_cleanse(pending.data(), pending.capacity());
      pending.clear();
    }

    Writer to;
    Keys keys;
    std::string associated;
    segment_layout layout;
    detail::cipher_handle cipher{Cipher::name};
    detail::segment_context context;
    std::optional<writing> object;
    buffer pending, sealed;
  };

  template <class Work>
  auto or_abort(Work&& work) {
    if (!state_->object)
      throw error(errc::state,
                  "no object is open in this encrypting_writer: call open(name) first, also after an error");
    try {
      return work();
    } catch (...) {
      abort();
      throw;
    }
  }

  std::unique_ptr<state> state_;  // a key provider need not be assignable
};

/// Encrypts the objects that go into a store, for `decrypting`, or for Tink's streaming AEAD
/// AES256_GCM_HKDF.
///
///     const encryption_key key(bytes_of("take the bytes from your vault!!"));
///     auto out = encrypting<aes_256_gcm>(file_writer(), key, {.associated = "photos"});
///     out.open("one.bin");
///     out.write(bytes_of("four"));
///     const std::uint64_t four = out.finish().size;
///
/// In: any `object_writer`, and one key or a `key_provider`, which is called once for each object. It is an
/// `object_writer`, so that `shard_writer("train-%06d.tar", encrypting<aes_256_gcm>(file_writer(), key))`
/// writes encrypted shards.
/// Each object has a random salt, from which its key is derived, so one key is good for any number of
/// objects.
/// Errors: those of the writer and of the key provider, after which the object is given up; errc::limit
/// beyond 2^32 segments; errc::state for `write` and `finish` without `open`; errc::argument for options that
/// make no sense.
/// Threads: one at a time.
/// Cost: a pass of AES-GCM, and a copy of what is written in parts of less than a segment; 40 bytes for each
/// object and 16 for each segment.
/// Source: Google Tink, "AES-GCM-HKDF Streaming AEAD".
template <class Cipher = aes_256_gcm, object_writer Writer, key_provider Keys>
[[nodiscard]] encrypting_writer<Cipher, Writer, Keys> encrypting(Writer to, Keys keys,
                                                                 encrypting_options options = {}) {
  return {std::move(to), std::move(keys), std::move(options)};
}
template <class Cipher = aes_256_gcm, object_writer Writer>
[[nodiscard]] encrypting_writer<Cipher, Writer, one_key> encrypting(Writer to, const encryption_key& key,
                                                                    encrypting_options options = {}) {
  return {std::move(to), one_key(key), std::move(options)};
}

}  // namespace penstock::inline v0_1
