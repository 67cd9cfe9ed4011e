// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component crypto. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock_crypto.hpp needs OpenSSL: link penstock::crypto"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// ---- penstock/storage/detail/awaited_read.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// Waits for one read in the background.
class awaited_read {
 public:
  [[nodiscard]] read_listener listener() noexcept {
    return {this, [](void* self, std::uint64_t, std::exception_ptr failed) noexcept {
              auto& read = *static_cast<awaited_read*>(self);
              const std::scoped_lock held(read.lock_);
              read.failed_ = std::move(failed);
              read.ended_ = true;
              read.changed_.notify_one();  // under the lock: `wait` destroys what is notified
            }};
  }
  void wait() {
    std::unique_lock held(lock_);
    changed_.wait(held, [this] { return ended_; });
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::exception_ptr failed_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/detail/segment_layout.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// Where the bytes of an encrypted object are: a header, then segments that each end with a tag. All segments
/// but the last have one size; the header is counted to the first.
class segment_layout {
 public:
  static constexpr std::size_t salt_size = 32, prefix_size = 7;
  static constexpr std::size_t header_size = 1 + salt_size + prefix_size;
  static constexpr std::size_t tag_size = 16;
  static constexpr std::size_t least = header_size + tag_size + 1, largest = std::size_t{1} << 30;
  static constexpr std::uint64_t most_segments = std::uint64_t{1} << 32;  // the nonce has 4 bytes for them

  /// Throws errc::argument for a size that makes no sense.
  explicit segment_layout(std::size_t segment_size) : segment_(segment_size), room_(segment_ - tag_size) {
    if (segment_size < least || segment_size > largest)
      throw error(errc::argument,
                  {"segments of ", segment_size, " bytes: segment_size is from ", least, " bytes to 1 GiB"});
  }

  [[nodiscard]] std::uint64_t segment_size() const noexcept { return segment_; }
  /// The plaintext that a segment can hold.
  [[nodiscard]] std::uint64_t room(std::uint64_t segment) const noexcept {
    return segment == 0 ? room_ - header_size : room_;
  }

  /// The segments of an object of this size; none if no object has this size.
  [[nodiscard]] std::optional<std::uint64_t> segments(std::uint64_t file_size) const noexcept {
    if (file_size < header_size + tag_size) return std::nullopt;
    const std::uint64_t rest = file_size % segment_, whole = file_size / segment_;
    // A segment that is a tag alone would never be read, so cutting there would go unnoticed; no writer makes
    // it.
    if ((rest != 0 && rest <= tag_size) || whole > most_segments || (whole == most_segments && rest != 0))
      return std::nullopt;
    return whole + (rest != 0 ? 1 : 0);
  }
  [[nodiscard]] static std::uint64_t plain_size(std::uint64_t file_size, std::uint64_t segments) noexcept {
    return file_size - header_size - segments * tag_size;
  }
  /// The size of the object that a plaintext of this size becomes.
  [[nodiscard]] std::uint64_t file_size(std::uint64_t plain_size) const noexcept {
    const std::uint64_t segments = plain_size == 0 ? 1 : segment_at(plain_size - 1) + 1;
    return plain_size + header_size + segments * tag_size;
  }

  /// The segment with this byte of the plaintext.
  [[nodiscard]] std::uint64_t segment_at(std::uint64_t plain) const noexcept {
    return (plain + header_size) / room_;
  }
  [[nodiscard]] std::uint64_t plain_begin(std::uint64_t segment) const noexcept {
    return segment == 0 ? 0 : segment * room_ - header_size;
  }
  [[nodiscard]] std::uint64_t file_begin(std::uint64_t segment) const noexcept {
    return segment == 0 ? header_size : segment * segment_;
  }
  [[nodiscard]] std::uint64_t file_end(std::uint64_t segment, std::uint64_t file_size) const noexcept {
    return std::min((segment + 1) * segment_, file_size);
  }
  /// Where a byte of the plaintext is in the file, and the reverse; of other bytes, the next one.
  [[nodiscard]] std::uint64_t file_at(std::uint64_t plain) const noexcept {
    return plain + header_size + segment_at(plain) * tag_size;
  }
  [[nodiscard]] std::uint64_t plain_at(std::uint64_t file) const noexcept {
    if (file < header_size) return 0;
    const std::uint64_t segment = file / segment_;
    return segment * room_ + std::min(file % segment_, room_) - header_size;
  }

 private:
  std::uint64_t segment_;
  std::uint64_t room_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/encryption.hpp

namespace penstock::inline v0_1 {

/// A key of 256 bits, for `decrypting` and `encrypting`.
///
///     const encryption_key key(bytes_of("take the bytes from your vault!!"));
///
/// In: exactly 32 bytes; errc::argument otherwise. It has no operator<<, no error or description shows a part
/// of it, and what is destroyed leaves nothing in its memory.
class encryption_key {
 public:
  static constexpr std::size_t size = 32;

  explicit encryption_key(bytes_view bytes) {
    if (bytes.size() != size)
      throw error(errc::argument, {"an encryption key has 32 bytes, not ", bytes.size()});
    std::memcpy(bytes_.data(), bytes.data(), size);
  }
  encryption_key(const encryption_key&) = default;
  encryption_key& operator=(const encryption_key&) = default;
  ~encryption_key() { OPENSSL_cleanse(bytes_.data(), size); }

  [[nodiscard]] bytes_view bytes() const noexcept { return bytes_; }

 private:
  std::array<std::byte, size> bytes_;
};

/// Finds the key of an object by its name: a function object that is a value, and that any number of threads
/// may call at once. An `error` that it throws gets the object's name, and everything passes through.
template <class F>
concept key_provider = std::copy_constructible<F> && requires(const F& f, std::string_view name) {
  { f(name) } -> std::convertible_to<encryption_key>;
};

/// One key for all objects.
class one_key {
 public:
  explicit one_key(const encryption_key& key) : key_(key) {}
  [[nodiscard]] const encryption_key& operator()(std::string_view) const noexcept { return key_; }

 private:
  encryption_key key_;
};

/// AES with a key of 256 bits in Galois/counter mode, as a policy of `decrypting` and `encrypting`.
struct aes_256_gcm {
  static constexpr const char* name = "AES-256-GCM";  ///< what OpenSSL calls it
};

/// The cipher of `decrypting` and `encrypting`: an authenticated one with keys of 32 bytes, nonces of 12 and
/// tags of 16.
template <class C>
concept segment_cipher = requires {
  { C::name } -> std::convertible_to<const char*>;
};

}  // namespace penstock::inline v0_1

// ---- penstock/storage/detail/segment_crypto.hpp

namespace penstock::inline v0_1 {
namespace detail {

[[noreturn, gnu::cold]] inline void openssl_refuses(const char* what) {
  throw error(errc::state,
              {"OpenSSL has no ", what, " here: is its default provider or FIPS provider loaded?"});
}

[[nodiscard]] inline unsigned char* openssl_bytes(std::byte* bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes);
}
[[nodiscard]] inline const unsigned char* openssl_bytes(const std::byte* bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes);
}

/// A cipher of OpenSSL, looked up once: it is slow to find.
class cipher_handle {
 public:
  explicit cipher_handle(const char* name) : found_(EVP_CIPHER_fetch(nullptr, name, nullptr)) {
    if (found_ == nullptr) openssl_refuses(name);
  }
  cipher_handle(const cipher_handle& other) noexcept : found_(other.found_) { EVP_CIPHER_up_ref(found_); }
  cipher_handle& operator=(cipher_handle other) noexcept {
    std::swap(found_, other.found_);
    return *this;
  }
  ~cipher_handle() { EVP_CIPHER_free(found_); }
  [[nodiscard]] const EVP_CIPHER* get() const noexcept { return found_; }

 private:
  EVP_CIPHER* found_;
};

/// HKDF with SHA-256: the key of one object.
[[nodiscard]] inline encryption_key derived_key(const encryption_key& key, bytes_view salt,
                                                std::string_view associated) {
  struct freed {
    void operator()(EVP_KDF* kdf) const noexcept { EVP_KDF_free(kdf); }
    void operator()(EVP_KDF_CTX* context) const noexcept { EVP_KDF_CTX_free(context); }
  };
  const std::unique_ptr<EVP_KDF, freed> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  if (!hkdf) openssl_refuses("HKDF");
  const std::unique_ptr<EVP_KDF_CTX, freed> context(EVP_KDF_CTX_new(hkdf.get()));
  if (!context) throw std::bad_alloc();
  char digest[] = "SHA256";
  const auto octets = [](const char* name, bytes_view bytes) {
    static std::byte nothing{};  // OpenSSL takes no null pointer
    return OSSL_PARAM_construct_octet_string(
        name, bytes.empty() ? &nothing : const_cast<std::byte*>(bytes.data()), bytes.size());
  };
  const OSSL_PARAM chosen[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                               octets(OSSL_KDF_PARAM_KEY, key.bytes()), octets(OSSL_KDF_PARAM_SALT, salt),
                               octets(OSSL_KDF_PARAM_INFO, bytes_of(associated)), OSSL_PARAM_construct_end()};
  std::array<std::byte, encryption_key::size> made;
  const int done = EVP_KDF_derive(context.get(), openssl_bytes(made.data()), made.size(), chosen);
  if (done != 1) openssl_refuses("HKDF with SHA-256");
  encryption_key derived{made};
  OPENSSL_cleanse(made.data(), made.size());
  return derived;
}

/// The key of an object; an error of the provider gets its name.
template <key_provider Keys>
[[nodiscard]] encryption_key key_of(const Keys& keys, std::string_view name) {
  try {
    return keys(name);
  } catch (error& failed) {
    failed.in_file(name);
    throw;
  }
}

/// What the segments of one object have in common.
struct object_cipher {
  object_cipher(const std::array<std::byte, segment_layout::header_size>& header, const encryption_key& from,
                std::string_view associated)
      : key(derived_key(from, bytes_view(header).subspan(1, segment_layout::salt_size), associated)) {
    std::memcpy(prefix.data(), header.data() + 1 + segment_layout::salt_size, prefix.size());
  }

  encryption_key key;
  std::array<std::byte, segment_layout::prefix_size> prefix;

  [[nodiscard]] std::array<std::byte, 12> nonce(std::uint64_t segment, bool last) const noexcept {
    std::array<std::byte, 12> made;
    std::memcpy(made.data(), prefix.data(), prefix.size());
    for (unsigned i = 0; i < 4; ++i) made[7 + i] = static_cast<std::byte>(segment >> (24 - 8 * i));
    made[11] = last ? std::byte{1} : std::byte{0};
    return made;
  }
};

/// A context of OpenSSL that seals or opens segments of one object at a time.
class segment_context {
 public:
  segment_context() : context_(EVP_CIPHER_CTX_new()) {
    if (!context_) throw std::bad_alloc();
  }

  void decrypt_with(const cipher_handle& cipher, const encryption_key& key) {
    const auto* const bytes = openssl_bytes(key.bytes().data());
    if (EVP_DecryptInit_ex2(context_.get(), cipher.get(), bytes, nullptr, nullptr) != 1) refused();
  }
  void encrypt_with(const cipher_handle& cipher, const encryption_key& key) {
    const auto* const bytes = openssl_bytes(key.bytes().data());
    if (EVP_EncryptInit_ex2(context_.get(), cipher.get(), bytes, nullptr, nullptr) != 1) refused();
  }

  /// Decrypts a segment, whose tag is at its end, to `into`, which has the other bytes' size. Whether the tag
  /// is right; if it is not, what is in `into` is worth nothing.
  [[nodiscard]] bool open(const std::array<std::byte, 12>& nonce, bytes_view sealed, std::byte* into) {
    EVP_CIPHER_CTX* const context = context_.get();
    const std::size_t size = sealed.size() - segment_layout::tag_size;
    auto* const tag = const_cast<std::byte*>(sealed.data() + size);
    std::byte unused[16];
    int count = 0;
    if (EVP_DecryptInit_ex2(context, nullptr, nullptr, openssl_bytes(nonce.data()), nullptr) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, int{segment_layout::tag_size}, tag) != 1)
      refused();
    if (size != 0 && EVP_DecryptUpdate(context, openssl_bytes(into), &count, openssl_bytes(sealed.data()),
                                       static_cast<int>(size)) != 1)
      refused();
    ERR_set_mark();  // a wrong tag is no news for what else uses OpenSSL in this thread
    const bool right = EVP_DecryptFinal_ex(context, openssl_bytes(unused), &count) == 1;
    ERR_pop_to_mark();
    return right;
  }

  /// Encrypts a segment to `into`, and puts its tag behind it.
  void seal(const std::array<std::byte, 12>& nonce, bytes_view plain, std::byte* into) {
    EVP_CIPHER_CTX* const context = context_.get();
    std::byte unused[16];
    int count = 0;
    if (EVP_EncryptInit_ex2(context, nullptr, nullptr, openssl_bytes(nonce.data()), nullptr) != 1) refused();
    if (!plain.empty() && EVP_EncryptUpdate(context, openssl_bytes(into), &count, openssl_bytes(plain.data()),
                                            static_cast<int>(plain.size())) != 1)
      refused();
    if (EVP_EncryptFinal_ex(context, openssl_bytes(unused), &count) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, int{segment_layout::tag_size},
                            into + plain.size()) != 1)
      refused();
  }

 private:
  struct freed {
    void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
  };
  [[noreturn, gnu::cold]] static void refused() {
    throw error(errc::state, "OpenSSL could not run the cipher of this object");
  }

  std::unique_ptr<EVP_CIPHER_CTX, freed> context_;
};

/// Fills with bytes that nobody can guess.
inline void fill_randomly(mutable_bytes into) {
  if (RAND_bytes(openssl_bytes(into.data()), static_cast<int>(into.size())) != 1)
    throw error(errc::state, "OpenSSL has no random numbers here");
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/detail/decrypted_objects.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// How objects of a session are decrypted.
struct decrypting_rules {
  segment_layout layout;
  std::string associated;
  std::size_t at_once;
  cipher_handle cipher;
};

/// An object whose header was read.
struct decrypted_object {
  object_cipher cipher;
  std::uint64_t file_size;
  std::uint64_t segments;
  std::uint64_t size;  // of the plaintext
};

/// The objects of a session that were opened; null for the others. They stay until the session ends.
class decrypted_objects {
 public:
  explicit decrypted_objects(std::size_t count)
      : count_(count), objects_(std::make_unique<std::atomic<const decrypted_object*>[]>(count)) {}
  decrypted_objects(const decrypted_objects&) = delete;
  decrypted_objects& operator=(const decrypted_objects&) = delete;
  ~decrypted_objects() {
    for (std::size_t i = 0; i < count_; ++i) delete objects_[i].load();
  }

  [[nodiscard]] const decrypted_object* find(object_id id) const noexcept {
    return id < count_ ? objects_[id].load(std::memory_order_acquire) : nullptr;
  }
  /// Opens an object unless another thread has done so.
  template <class Open>
  [[nodiscard, gnu::noinline]] const decrypted_object& open(object_id id, Open&& how) {
    const std::scoped_lock held(opening_[id % opening_.size()]);
    if (const decrypted_object* const known = find(id)) return *known;
    auto made = std::make_unique<const decrypted_object>(how());
    objects_[id].store(made.get(), std::memory_order_release);
    return *made.release();
  }

 private:
  std::size_t count_;
  std::unique_ptr<std::atomic<const decrypted_object*>[]> objects_;
  std::array<std::mutex, 64> opening_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/detail/decryption_rooms.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// What one read needs, kept for the next one.
struct decryption_room {
  segment_context context;
  const object_cipher* keyed_for = nullptr;  // whose key the context has
  buffer sealed, plain;
};

/// The rooms of a session that no read uses now. Threads take and return them without a lock, and mostly find
/// their own again.
class decryption_rooms {
 public:
  static constexpr std::size_t kept = 64;

  decryption_rooms() = default;
  decryption_rooms(const decryption_rooms&) = delete;
  decryption_rooms& operator=(const decryption_rooms&) = delete;
  ~decryption_rooms() {
    for (auto& one : rooms_) delete one.load();
  }

  /// A room, for as long as it lives.
  class lease {
   public:
    explicit lease(decryption_rooms& of) : of_(of), room_(of.take()) {}
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() { of_.give_back(std::move(room_)); }
    [[nodiscard]] decryption_room& operator*() const noexcept { return *room_; }
    [[nodiscard]] decryption_room* operator->() const noexcept { return room_.get(); }

   private:
    decryption_rooms& of_;
    std::unique_ptr<decryption_room> room_;
  };

 private:
  [[nodiscard]] static std::size_t first() noexcept {
    return std::hash<std::thread::id>{}(std::this_thread::get_id());
  }
  [[nodiscard]] std::unique_ptr<decryption_room> take() {
    for (std::size_t i = 0, begin = first(); i < kept; ++i) {
      auto& place = rooms_[(begin + i) % kept];
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (decryption_room* const found = place.exchange(nullptr, std::memory_order_acquire))
        return std::unique_ptr<decryption_room>(found);
    }
    return std::make_unique<decryption_room>();
  }
  void give_back(std::unique_ptr<decryption_room> room) noexcept {
    for (std::size_t i = 0, begin = first(); i < kept; ++i) {
      decryption_room* empty = nullptr;
      if (rooms_[(begin + i) % kept].compare_exchange_strong(empty, room.get(), std::memory_order_release,
                                                             std::memory_order_relaxed)) {
        (void)room.release();
        return;
      }
    }
  }

  std::array<std::atomic<decryption_room*>, kept> rooms_{};
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/detail/decrypting_session.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The session of `decrypting_storage`.
template <storage Storage, class Keys>
class decrypting_session {
  using inner = typename Storage::session;
  static constexpr bool in_background = background_session<inner>;
  /// The most ciphertext that is read at once: of what is near, as much as stays in the processor's cache.
  static constexpr std::uint64_t most =
      latent_session<inner> ? std::uint64_t{8} << 20 : std::uint64_t{256} << 10;

  struct state {
    state(const Storage& given, const Keys& all_keys, const decrypting_rules& chosen)
        : where(given),
          keys(all_keys),
          rules(chosen),
          objects(where.names().size()),
          session(where.connect()) {
      if constexpr (in_background) threads.emplace(session_view(waiting), where.names(), rules.at_once);
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
      if (!threads) return;
      threads->cancel();
      penstock::end_reads(session);
    }

    [[nodiscard]] std::uint64_t size(object_id id) {
      if (const decrypted_object* const known = objects.find(id)) return known->size;
      return plain_size(id, session.size(id));
    }
    [[nodiscard]] object_signature signature(object_id id) {
      const object_signature stored = session.signature(id);
      return {plain_size(id, stored.size), stored.stamp};
    }

    template <bool Waiting>
    void read(object_id id, std::uint64_t offset, mutable_bytes into) {
      const decrypted_object* known = objects.find(id);
      if (known == nullptr)
        in_plaintext(offset, [&] { known = &objects.open(id, [&] { return opened<Waiting>(id); }); });
      if (offset > known->size || into.size() > known->size - offset) refuse(id, offset, into.size());
      if (into.empty() && known->size != 0) return;
      in_plaintext(offset, [&] { deliver<Waiting>(id, *known, offset, into); });
    }
    /// Errors of what `work` does in the stored object get the offset of the read.
    template <class Work>
    static void in_plaintext(std::uint64_t offset, Work&& work) {
      try {
        work();
      } catch (error& failed) {
        failed.within("the stored object", offset);
        throw;
      }
    }

    template <bool Waiting>
    void deliver(object_id id, const decrypted_object& object, std::uint64_t offset, mutable_bytes into) {
      const decryption_rooms::lease room(rooms);
      if (room->keyed_for != &object.cipher) {
        room->keyed_for = nullptr;
        room->context.decrypt_with(rules.cipher, object.cipher.key);
        room->keyed_for = &object.cipher;
      }
      const segment_layout& layout = rules.layout;
      std::uint64_t segment = layout.segment_at(offset);
      std::uint64_t skipped = offset - layout.plain_begin(segment);
      do {  // once for an empty object, whose tag is checked too
        const std::uint64_t end = into.empty() ? 1 : layout.segment_at(offset + into.size() - 1) + 1;
        const std::uint64_t together = std::max<std::uint64_t>(most / layout.segment_size(), 1);
        const std::uint64_t stop = std::min(end, segment + together), begin = layout.file_begin(segment);
        bytes_view sealed =
            stored<Waiting>(id, begin, layout.file_end(stop - 1, object.file_size) - begin, *room);
        for (; segment < stop; ++segment) {
          const std::uint64_t at = layout.file_begin(segment);
          const bytes_view one = sealed.first(to_size(layout.file_end(segment, object.file_size) - at));
          sealed = sealed.subspan(one.size());
          const std::size_t taken = open(id, object, segment, one, to_size(skipped), into, *room);
          into = into.subspan(taken);
          offset += taken;
          skipped = 0;
        }
      } while (!into.empty());
    }

    /// Decrypts a segment, and delivers what is wanted of it; returns how much that is.
    std::size_t open(object_id id, const decrypted_object& object, std::uint64_t segment, bytes_view sealed,
                     std::size_t skipped, mutable_bytes into, decryption_room& room) {
      const std::size_t size = sealed.size() - segment_layout::tag_size;
      const std::size_t taken = std::min(size - skipped, into.size());
      std::byte* to = into.data();
      if (taken != size || size == 0) {
        room.plain.resize_for_overwrite(std::max<std::size_t>(size, 1));
        to = room.plain.data();
      }
      const auto nonce = object.cipher.nonce(segment, segment + 1 == object.segments);
      if (!room.context.open(nonce, sealed, to)) [[unlikely]] {
        if (size != 0) std::memset(to, 0, size);  // nobody gets what was not verified
        damaged(id, object, segment);
      }
      if (taken != size && taken != 0) std::memcpy(into.data(), to + skipped, taken);
      return taken;
    }

    /// Bytes of the object as it is stored: in place if the session shows them.
    template <bool Waiting>
    [[nodiscard]] bytes_view stored(object_id id, std::uint64_t offset, std::uint64_t size,
                                    decryption_room& room) {
      if constexpr (viewing_session<inner>) {
        return session.view(id, offset, size);
      } else {
        if constexpr (partly_viewing_session<inner>)
          if (std::as_const(session).shows(id)) return std::as_const(session).view(id, offset, size);
        room.sealed.resize_for_overwrite(to_size(size));
        load<Waiting>(id, offset, room.sealed.span());
        return room.sealed.view();
      }
    }
    /// A thread of `threads` waits for a read in the background, so that `cancel` ends it.
    template <bool Waiting>
    void load(object_id id, std::uint64_t offset, mutable_bytes into) {
      if constexpr (Waiting) {
        awaited_read one;
        const read_request request{id, offset, into, 0};
        {
          const std::scoped_lock held(starting);
          session.read_many(std::span<const read_request>(&request, 1), one.listener());
        }
        one.wait();
      } else {
        session.read(id, offset, into);
      }
    }

    template <bool Waiting>
    [[nodiscard]] decrypted_object opened(object_id id) {
      const std::uint64_t file_size = session.size(id);
      const std::uint64_t size = plain_size(id, file_size);
      std::array<std::byte, segment_layout::header_size> header;
      load<Waiting>(id, 0, header);
      if (header[0] != std::byte{segment_layout::header_size})
        throw error(errc::format, {"the object does not begin as an encrypted one does: with the byte ",
                                   segment_layout::header_size, ", not ", static_cast<unsigned>(header[0])})
            .in_file(name(id))
            .at_offset(0);
      return {object_cipher(header, key_of(keys, name(id)), rules.associated), file_size,
              *rules.layout.segments(file_size), size};
    }
    [[nodiscard]] std::uint64_t plain_size(object_id id, std::uint64_t file_size) const {
      const std::optional<std::uint64_t> segments = rules.layout.segments(file_size);
      if (!segments)
        throw error(errc::format, {"no encrypted object has ", file_size,
                                   " bytes with these segments: it was cut short, is not encrypted, or has "
                                   "another segment_size"})
            .in_file(name(id));
      return segment_layout::plain_size(file_size, *segments);
    }
    [[nodiscard]] std::string_view name(object_id id) const {
      const std::span<const std::string> names = where.names();
      return id < names.size() ? std::string_view(names[id]) : std::string_view();
    }

    [[noreturn, gnu::cold]] void refuse(object_id id, std::uint64_t offset, std::uint64_t size) {
      throw error(errc::format,
                  {"the decrypted object ends at ", this->size(id), ", but ", size, " bytes were requested"})
          .in_file(name(id))
          .at_offset(offset);
    }
    [[noreturn, gnu::cold]] void damaged(object_id id, const decrypted_object& object,
                                         std::uint64_t segment) {
      penstock::confirm(std::as_const(session), id);
      throw error(
          errc::checksum,
          {"segment ", segment, " of ", object.segments,
           " was not encrypted with this key, associated data and segment_size, or was changed or cut off "
           "since; check the key, then fetch or write the object again"})
          .in_file(name(id))
          .at_offset(rules.layout.file_begin(segment));
    }

    /// What `threads` read from.
    struct waiting_reader {
      static constexpr bool views = false;
      state& of;
      [[nodiscard]] std::uint64_t size(object_id id) const { return of.size(id); }
      [[nodiscard]] object_signature signature(object_id id) const { return of.signature(id); }
      void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
        of.template read<in_background>(id, offset, into);
      }
      static void will_need(object_id, std::uint64_t, std::uint64_t) noexcept {}
    };

    Storage where;
    Keys keys;
    decrypting_rules rules;
    decrypted_objects objects;
    decryption_rooms rooms;
    inner session;
    std::mutex starting;  // one thread at a time calls read_many
    waiting_reader waiting{*this};
    std::optional<threaded_reads> threads;  // end first
  };

 public:
  static constexpr bool views = false;
  static constexpr bool has_latency = latent_session<inner>;

  decrypting_session(const Storage& where, const Keys& keys, const decrypting_rules& rules)
      : state_(std::make_unique<state>(where, keys, rules)) {}

  /// Of the plaintext; reads none of it.
  [[nodiscard]] std::uint64_t size(object_id id) const { return state_->size(id); }
  /// The plaintext's size, and the stamp of the object as it is stored.
  [[nodiscard]] object_signature signature(object_id id) const { return state_->signature(id); }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    state_->template read<false>(id, offset, into);
  }
  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept
    requires in_background
  {
    state_->threads->read_many(requests, listener);
  }
  void cancel() const noexcept
    requires in_background
  {
    state_->threads->cancel();
    state_->session.cancel();
  }
  void cancel_waits() const noexcept
    requires(!in_background && requires(inner& s) { s.cancel_waits(); })
  {
    state_->session.cancel_waits();
  }
  void end_reads() const noexcept {
    if constexpr (in_background) state_->threads->cancel();
    penstock::end_reads(state_->session);
  }
  void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const {
    const auto [begin, end] = in_file(id, offset, size);
    if (begin < end) state_->session.will_need(id, begin, end - begin);
  }
  [[nodiscard]] read_foresight foresight() const
    requires foreseeing_session<inner>
  {
    return state_->session.foresight();
  }
  void foresee(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t turn) const
    requires foreseeing_session<inner>
  {
    const auto [begin, end] = in_file(id, offset, size);
    if (begin < end) state_->session.foresee(id, begin, end - begin, turn);
  }

  /// True if the session inside can tell by its answers; see `expecting_session`.
  [[nodiscard]] bool expect(object_id id, object_signature what) const
    requires expecting_session<inner>
  {
    return state_->session.expect(id, {state_->rules.layout.file_size(what.size), what.stamp});
  }
  [[nodiscard]] bool warm(object_id id) const
    requires warming_session<inner>
  {
    return state_->session.warm(id);
  }

  /// Those of the session inside: they count what is stored.
  [[nodiscard]] storage_counters counters() const
    requires counting_session<inner>
  {
    return std::as_const(state_->session).counters();
  }
  /// How many reads in the background are in flight at most.
  [[nodiscard]] std::size_t at_once() const
    requires(in_background || limiting_session<inner>)
  {
    std::size_t allowed = in_background ? state_->rules.at_once : 0;
    if constexpr (limiting_session<inner>) {
      const std::size_t inside = std::as_const(state_->session).at_once();
      if (inside != 0 && (allowed == 0 || inside < allowed)) allowed = inside;
    }
    return allowed;
  }
  /// The oldest of the session inside.
  [[nodiscard]] std::optional<open_read> oldest_read() const
    requires observant_session<inner>
  {
    std::optional<open_read> found = std::as_const(state_->session).oldest_read();
    if (found) found->offset = state_->rules.layout.plain_at(found->offset);
    return found;
  }
  [[nodiscard]] std::string name(object_id id) const { return std::string(state_->name(id)); }

 private:
  struct span_in_file {
    std::uint64_t begin, end;
  };
  /// Where the segments of a range are.
  [[nodiscard]] span_in_file in_file(object_id id, std::uint64_t offset, std::uint64_t size) const {
    if (size == 0) return {0, 0};
    const segment_layout& layout = state_->rules.layout;
    const std::uint64_t begin = layout.file_begin(layout.segment_at(offset));
    if (const decrypted_object* const known = state_->objects.find(id))
      return {begin, layout.file_end(layout.segment_at(offset + size - 1), known->file_size)};
    return {begin, layout.file_at(offset + size - 1) + 1};
  }

  std::unique_ptr<state> state_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/decrypting.hpp

namespace penstock::inline v0_1 {

/// How objects were encrypted; the first two are as in `encrypting_options`.
struct decrypting_options {
  /// The size of a segment as it is stored, with its tag. Tink's templates have 4096 and 1 MiB.
  std::size_t segment_size = std::size_t{64} << 10;
  /// Data that must be the same for writer and reader, such as the name of a dataset; it is no secret.
  std::string associated{};
  /// How many reads in the background are in flight at most; each has a thread of the session.
  std::size_t at_once = 64;
};

/// See `decrypting`.
template <segment_cipher Cipher, storage Storage, key_provider Keys>
class decrypting_storage {
 public:
  /// Not even if those inside are paths: then nothing is kept beside the files in plaintext.
  static constexpr bool names_are_paths = false;
  using session = detail::decrypting_session<Storage, Keys>;

  decrypting_storage(Storage where, Keys keys, decrypting_options options = {})
      : where_(std::move(where)),
        keys_(std::move(keys)),
        rules_{detail::segment_layout(options.segment_size), std::move(options.associated), options.at_once,
               detail::cipher_handle(Cipher::name)} {
    if (options.at_once == 0)
      throw error(errc::argument, "decrypting needs at least one read in the background: at_once is 0");
  }

  [[nodiscard]] std::span<const std::string> names() const { return where_.names(); }
  [[nodiscard]] session connect() const { return session(where_, keys_, rules_); }
  /// See `sibling_storage`: siblings are encrypted as well.
  [[nodiscard]] decrypting_storage beside(sibling which) const
    requires(sibling_storage<Storage> || renaming_storage<Storage>)
  {
    if constexpr (sibling_storage<Storage>) {
      return decrypting_storage(*this, where_.beside(which));
    } else {
      std::vector<std::string> beside_them;
      for (const std::string& name : names()) beside_them.push_back(which.of(name));
      return with_names(std::move(beside_them));
    }
  }
  /// See `renaming_storage`.
  [[nodiscard]] decrypting_storage with_names(std::vector<std::string> names) const
    requires renaming_storage<Storage>
  {
    return decrypting_storage(*this, where_.with_names(std::move(names)));
  }
  [[nodiscard]] std::string describe() const {
    return detail::describe_around(
        "decrypting", where_,
        detail::text({Cipher::name, ", segments of ", rules_.layout.segment_size(), " bytes"}));
  }

 private:
  decrypting_storage(const decrypting_storage& like, Storage where)
      : where_(std::move(where)), keys_(like.keys_), rules_(like.rules_) {}

  Storage where_;
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
template <segment_cipher Cipher = aes_256_gcm, storage Storage, key_provider Keys>
[[nodiscard]] decrypting_storage<Cipher, Storage, Keys> decrypting(Storage where, Keys keys,
                                                                   decrypting_options options = {}) {
  return {std::move(where), std::move(keys), std::move(options)};
}
template <segment_cipher Cipher = aes_256_gcm, storage Storage>
[[nodiscard]] decrypting_storage<Cipher, Storage, one_key> decrypting(Storage where,
                                                                      const encryption_key& key,
                                                                      decrypting_options options = {}) {
  return {std::move(where), one_key(key), std::move(options)};
}

}  // namespace penstock::inline v0_1

// ---- penstock/storage/encrypting_writer.hpp

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
  object_signature finish() {
    opened();
    try {
      seal(pending_.view(), true);
      const object_signature made{object_->size, to_.finish().stamp};
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
    if (object_->segment == segment_layout::most_segments)
      throw error(errc::limit, {"an encrypted object has at most ", segment_layout::most_segments,
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
template <segment_cipher Cipher, object_writer Writer, key_provider Keys>
class encrypting_writer {
 public:
  encrypting_writer(Writer to, Keys keys, encrypting_options options = {})
      : state_(std::make_unique<state>(std::move(to), std::move(keys), std::move(options), Cipher::name)) {}

  /// Begins an object; one that is unfinished is given up.
  void open(std::string_view name) { state_->open(name); }
  /// Appends bytes.
  void write(bytes_view bytes) { state_->write(bytes); }
  /// Makes the object appear. Returns the signature that `decrypting` gives: the plaintext's size, and the
  /// stamp of what is stored.
  object_signature finish() { return state_->finish(); }
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
template <segment_cipher Cipher = aes_256_gcm, object_writer Writer, key_provider Keys>
[[nodiscard]] encrypting_writer<Cipher, Writer, Keys> encrypting(Writer to, Keys keys,
                                                                 encrypting_options options = {}) {
  return {std::move(to), std::move(keys), std::move(options)};
}
template <segment_cipher Cipher = aes_256_gcm, object_writer Writer>
[[nodiscard]] encrypting_writer<Cipher, Writer, one_key> encrypting(Writer to, const encryption_key& key,
                                                                    encrypting_options options = {}) {
  return {std::move(to), one_key(key), std::move(options)};
}

}  // namespace penstock::inline v0_1
