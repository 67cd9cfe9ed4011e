// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/encrypting_writer.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/crypto/segment_crypto.hpp>
#include <penstock/storage/crypto/segment_layout.hpp>
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

namespace detail {

/// The object that is written now, and what all objects have in common.
template <object_writer Writer, key_provider Keys>
class segment_writing {
 public:
  segment_writing(Writer to, Keys keys, encrypting_options options, const char* cipher)
      : to_(std::move(to)),
        keys_(std::move(keys)),
        associated_(std::move(options.associated)),
        layout_(options.segment_size),
        cipher_(cipher) {}
  segment_writing(const segment_writing&) = delete;
  segment_writing& operator=(const segment_writing&) = delete;
  ~segment_writing() { close(); }

  void open(std::string_view name) {
    abort();
    object_.emplace(begun(name));
    try {
      context_.encrypt_with(cipher_, object_->cipher.key);
      to_.open(name);
      to_.write(object_->header);
    } catch (...) {
      abort();
      throw;
    }
  }
  void write(bytes_view bytes) {
    opened();
    try {
      append(bytes);
    } catch (...) {
      abort();
      throw;
    }
  }
  object_version finish() {
    opened();
    try {
      seal(pending_.view(), true);
      const object_version made{object_->size, to_.finish().stamp};
      close();
      return made;
    } catch (...) {
      abort();
      throw;
    }
  }
  void abort() noexcept {
    if (!object_) return;
    close();
    to_.abort();
  }

 private:
  struct writing {
    object_cipher cipher;
    std::array<std::byte, segment_layout::header_size> header;
    std::uint64_t segment = 0;  // the next one
    std::uint64_t size = 0;     // of the plaintext so far
  };

  [[nodiscard]] writing begun(std::string_view name) {
    std::array<std::byte, segment_layout::header_size> header;
    header[0] = std::byte{segment_layout::header_size};
    fill_randomly(mutable_bytes(header).subspan(1));
    return {object_cipher(header, key_of(keys_, name), associated_), header};
  }

  /// Seals segments as they become full, except for one that may be the last.
  void append(bytes_view bytes) {
    while (!bytes.empty()) {
      const std::size_t room = to_size(layout_.room(object_->segment));
      if (pending_.size() == room) {
        seal(pending_.view(), false);
        pending_.clear();
      } else if (pending_.size() == 0 && bytes.size() > room) {
        seal(bytes.first(room), false);
        object_->size += room;
        bytes = bytes.subspan(room);
      } else {
        if (pending_.capacity() == 0) {
          pending_.resize_for_overwrite(to_size(layout_.room(1)));
          pending_.clear();
        }
        const std::size_t taken = std::min(room - pending_.size(), bytes.size());
        pending_.append(bytes.first(taken));
        object_->size += taken;
        bytes = bytes.subspan(taken);
      }
    }
  }
  void seal(bytes_view plain, bool last) {
    if (object_->segment == segment_layout::max_segments)
      throw error(errc::limit, {"an encrypted object has at most ", segment_layout::max_segments,
                                " segments: choose a segment_size above ", layout_.segment_size()});
    sealed_.resize_for_overwrite(plain.size() + segment_layout::tag_size);
    context_.seal(object_->cipher.nonce(object_->segment, last), plain, sealed_.data());
    to_.write(sealed_.view());
    ++object_->segment;
  }

  void opened() const {
    if (!object_)
      throw error(errc::state,
                  "no object is open in this encrypting_writer: call open(name) first, also after an error");
  }
  void close() noexcept {
    object_.reset();
    if (pending_.capacity() != 0) OPENSSL_cleanse(pending_.data(), pending_.capacity());
    pending_.clear();
  }

  Writer to_;
  Keys keys_;
  std::string associated_;
  segment_layout layout_;
  cipher_handle cipher_;
  segment_context context_;
  std::optional<writing> object_;
  buffer pending_, sealed_;
};

}  // namespace detail

/// See `encrypting`.
template <class Cipher, object_writer Writer, key_provider Keys>
class encrypting_writer {
 public:
  encrypting_writer(Writer to, Keys keys, encrypting_options options = {})
      : state_(std::make_unique<state>(std::move(to), std::move(keys), std::move(options), Cipher::name)) {}

  /// Begins an object; one that is unfinished is given up.
  void open(std::string_view name) { state_->open(name); }
  /// Appends bytes.
  void write(bytes_view bytes) { state_->write(bytes); }
  /// Makes the object appear. Returns the version that `decrypting` gives: the plaintext's size, and the
  /// stamp of what is stored.
  object_version finish() { return state_->finish(); }
  /// Gives an unfinished object up.
  void abort() noexcept {
    if (state_) state_->abort();
  }

 private:
  using state = detail::segment_writing<Writer, Keys>;
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
