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
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// ---- penstock/storage/crypto/pem.hpp

namespace penstock::inline v0_1 {
namespace detail {

[[noreturn, gnu::cold]] inline void no_ed25519() {
  throw error(errc::state, "OpenSSL has no Ed25519 here: is its default provider loaded?");
}

/// A key of OpenSSL, which copies share; OpenSSL wipes a private one when the last of them is destroyed.
class owned_key {
 public:
  owned_key() noexcept = default;
  explicit owned_key(EVP_PKEY* key) noexcept : key_(key) {}
  owned_key(const owned_key& other) noexcept : key_(other.key_) {
    if (key_ != nullptr) EVP_PKEY_up_ref(key_);
  }
  owned_key(owned_key&& other) noexcept : key_(std::exchange(other.key_, nullptr)) {}
  owned_key& operator=(owned_key other) noexcept {
    std::swap(key_, other.key_);
    return *this;
  }
  ~owned_key() { EVP_PKEY_free(key_); }
  [[nodiscard]] EVP_PKEY* get() const noexcept { return key_; }
  [[nodiscard]] explicit operator bool() const noexcept { return key_ != nullptr; }

 private:
  EVP_PKEY* key_ = nullptr;
};

/// What one signature is made or verified with.
class signing_context {
 public:
  signing_context() : context_(EVP_MD_CTX_new()) {
    if (!context_) throw std::bad_alloc();
  }
  [[nodiscard]] EVP_MD_CTX* get() const noexcept { return context_.get(); }

 private:
  struct freed {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, freed> context_;
};

/// Keeps failures that are expected from what else uses OpenSSL in this thread.
struct quiet_errors {
  quiet_errors() noexcept { ERR_set_mark(); }
  quiet_errors(const quiet_errors&) = delete;
  quiet_errors& operator=(const quiet_errors&) = delete;
  ~quiet_errors() { ERR_pop_to_mark(); }
};

/// OpenSSL takes no null pointer, even for nothing.
[[nodiscard]] inline const unsigned char* some_bytes(bytes_view bytes) noexcept {
  static constexpr unsigned char nothing{};
  return bytes.empty() ? &nothing : reinterpret_cast<const unsigned char*>(bytes.data());
}

/// A key out of a text, read by a function of OpenSSL; null if there is none.
template <class Read>
[[nodiscard]] owned_key read_pem(std::string_view text, Read&& read) {
  constexpr std::size_t maximum = 64 << 10;
  if (text.size() > maximum) return {};
  struct freed {
    void operator()(BIO* in) const noexcept { BIO_free(in); }
  };
  const quiet_errors quiet;
  const std::unique_ptr<BIO, freed> in(
      BIO_new_mem_buf(text.empty() ? "" : text.data(), static_cast<int>(text.size())));
  if (!in) throw std::bad_alloc();
  // Without this, OpenSSL would ask for a passphrase at the terminal, and wait.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  return owned_key(read(in.get(), nullptr, no_passphrase, nullptr));
}
[[nodiscard]] inline bool is_ed25519(const owned_key& key) noexcept {
  return EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_ED25519;
}

[[nodiscard]] inline owned_key public_key_of(std::string_view text) {
  owned_key key = read_pem(text, PEM_read_bio_PUBKEY);
  if (!key)
    throw error(errc::format,
                "this has no PUBLIC KEY in the PEM format; write it with 'openssl pkey -in key.pem -pubout'");
  if (!is_ed25519(key))
    throw error(errc::format,
                "this is the public key of another algorithm; make one of Ed25519 with 'openssl genpkey "
                "-algorithm ed25519', and write its public key");
  return key;
}
[[nodiscard]] inline owned_key private_key_of(std::string_view text) {
  owned_key key = read_pem(text, PEM_read_bio_PrivateKey);
  if (!key)
    throw error(
        errc::format,
        "this has no PRIVATE KEY in the PEM format, or one with a passphrase; take it off with 'openssl "
        "pkey -in key.pem', or make one with 'openssl genpkey -algorithm ed25519'");
  if (!is_ed25519(key))
    throw error(
        errc::format,
        "this is the private key of another algorithm; make one with 'openssl genpkey -algorithm ed25519'");
  return key;
}

/// What `read` makes of the text of a file, which is wiped afterwards.
template <class Read>
[[nodiscard]] auto key_file(const std::string& path, Read&& read) {
  struct wiped {
    std::string text;
    ~wiped() { OPENSSL_cleanse(text.data(), text.size()); }
  } all;
  const auto session = file(std::vector<std::string>{path}, {.access = file_access::read}).connect();
  const std::uint64_t size = session.size(0);
  constexpr std::uint64_t maximum = 64 << 10;
  if (size > maximum) throw error(errc::format, {"a key has at most ", maximum, " bytes"}).in_file(path);
  all.text.resize(to_size(size));
  session.read(0, 0, {reinterpret_cast<std::byte*>(all.text.data()), all.text.size()});
  try {
    return read(std::string_view(all.text));
  } catch (error& e) {
    e.in_file(path);
    throw;
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/ed25519.hpp

namespace penstock::inline v0_1 {

/// An Ed25519 signature, as RFC 8032 and `openssl pkeyutl -sign -rawin` write it.
struct ed25519_signature {
  static constexpr std::size_t size = 64;
  std::array<std::byte, size> bytes{};
  friend bool operator==(const ed25519_signature&, const ed25519_signature&) = default;
};

/// A public key of Ed25519, which tells whether bytes were signed with its private key.
///
///     const auto key = verifying_key::from_pem(
///         "-----BEGIN PUBLIC KEY-----\n"
///         "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
///         "-----END PUBLIC KEY-----\n");
///     const bool signed_by_it = key.verifies(bytes_of(""), ed25519_signature{});
///
/// In: 32 bytes, or "PUBLIC KEY" in the PEM format, a text or a file, as `openssl pkey -pubout` writes it.
/// Errors: errc::argument for another number of bytes; errc::format for what is no such key, errc::io for a
/// file that cannot be read, with its name and what to do.
/// Threads: any number may use a key; copies share it.
class verifying_key {
 public:
  static constexpr std::size_t size = 32;

  explicit verifying_key(bytes_view bytes) {
    if (bytes.size() != size)
      throw error(errc::argument, {"a public key of Ed25519 has 32 bytes, not ", bytes.size()});
    key_ = detail::owned_key(EVP_PKEY_new_raw_public_key(
        EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
    if (!key_) detail::no_ed25519();
  }
  [[nodiscard]] static verifying_key from_pem(std::string_view text) {
    return verifying_key(detail::public_key_of(text));
  }
  [[nodiscard]] static verifying_key from_file(const std::string& path) {
    return detail::key_file(path, [](std::string_view text) { return from_pem(text); });
  }

  /// Whether the signature is one of these bytes with the private key of this one.
  [[nodiscard]] bool verifies(bytes_view bytes, const ed25519_signature& signature) const {
    const detail::signing_context context;
    const detail::quiet_errors quiet;
    if (EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1) detail::no_ed25519();
    return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.bytes.data()),
                            signature.bytes.size(), detail::some_bytes(bytes), bytes.size()) == 1;
  }
  [[nodiscard]] std::array<std::byte, size> bytes() const {
    std::array<std::byte, size> made;
    std::size_t written = made.size();
    if (EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(made.data()), &written) != 1)
      detail::no_ed25519();
    return made;
  }

 private:
  explicit verifying_key(detail::owned_key key) noexcept : key_(std::move(key)) {}

  detail::owned_key key_;
};

/// A private key of Ed25519, to publish signed manifests and lists of hashes.
///
///     const signing_key key(bytes_of("take the bytes from your vault!!"));
///     const ed25519_signature made = key.sign(bytes_of("a manifest"));
///     const bool right = key.public_key().verifies(bytes_of("a manifest"), made);
///
/// In: the 32 bytes that RFC 8032 calls the private key, or "PRIVATE KEY" in the PEM format, a text or a
/// file, as `openssl genpkey -algorithm ed25519` writes it. One that is encrypted with a passphrase is
/// refused.
/// It has no operator<<, no error shows a part of it, and what is destroyed leaves nothing in its memory.
/// Errors, threads: as `verifying_key`.
class signing_key {
 public:
  static constexpr std::size_t size = 32;

  explicit signing_key(bytes_view bytes) {
    if (bytes.size() != size)
      throw error(errc::argument, {"a private key of Ed25519 has 32 bytes, not ", bytes.size()});
    key_ = detail::owned_key(EVP_PKEY_new_raw_private_key(
        EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
    if (!key_) detail::no_ed25519();
  }
  [[nodiscard]] static signing_key from_pem(std::string_view text) {
    return signing_key(detail::private_key_of(text));
  }
  [[nodiscard]] static signing_key from_file(const std::string& path) {
    return detail::key_file(path, [](std::string_view text) { return from_pem(text); });
  }

  [[nodiscard]] ed25519_signature sign(bytes_view bytes) const {
    const detail::signing_context context;
    const detail::quiet_errors quiet;
    ed25519_signature made;
    std::size_t written = made.bytes.size();
    if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(made.bytes.data()), &written,
                       detail::some_bytes(bytes), bytes.size()) != 1 ||
        written != made.bytes.size())
      detail::no_ed25519();
    return made;
  }
  [[nodiscard]] verifying_key public_key() const {
    std::array<std::byte, verifying_key::size> made;
    std::size_t written = made.size();
    if (EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(made.data()), &written) != 1)
      detail::no_ed25519();
    return verifying_key(made);
  }

 private:
  explicit signing_key(detail::owned_key key) noexcept : key_(std::move(key)) {}

  detail::owned_key key_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/storage/signature.hpp

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

/// A storage whose objects' signatures can be found: beside them, or by other names.
template <class S>
concept signed_storage = sidecar_storage<S> || renaming_storage<S>;

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
template <signed_storage Storage>
[[nodiscard]] Storage signature_of(const Storage& where) {
  const sidecar which{".sig"};
  if constexpr (!renaming_storage<Storage>) {
    return where.sidecars(which);
  } else {
    if constexpr (sidecar_storage<Storage>)
      if (!is_local(where)) return where.sidecars(which);
    std::vector<std::string> names;
    for (const std::string& name : where.names()) names.push_back(which.of(name));
    return where.with_names(std::move(names));
  }
}

template <signed_storage Storage>
[[nodiscard]] buffer signed_bytes_in(const Storage& where, const required_signature& rule,
                                     std::string_view called) {
  const Storage signature = signature_of(where);
  auto session = where.connect();
  auto beside = signature.connect();
  return signed_bytes(session, beside, facts_of(where), rule, called);
}

}  // namespace detail

/// Reads a signed list of hashes; see `require_signature`.
template <signed_storage Storage>
[[nodiscard]] sha256_list read_sha256_list(const Storage& where, const required_signature& rule) {
  const buffer text = detail::signed_bytes_in(where, rule, "a list of hashes");
  return detail::sha256_list_of(text.view(), where.names()[0]);
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/signed_manifest.hpp

namespace penstock::inline v0_1 {

/// Reads a manifest that is kept in a storage as text, if it was signed.
///
///     const signing_key ours(bytes_of("take the bytes from your vault!!"));
///     const std::string text = to_string(manifest());
///     std::ofstream("train.manifest") << text;
///     std::ofstream("train.manifest.sig") << text_of(ours.sign(bytes_of(text)).bytes);
///     const manifest known = read_manifest(file("train.manifest"), require_signature(ours.public_key()));
///
/// In: a storage of one object, beside which its signature lies; see `require_signature`.
/// Errors: those of `require_signature` and of `read_manifest` without it. A manifest knows the sizes of its
/// shards, and the places and keys of their samples, but no hash of their bytes: `checked` compares those.
template <signed_storage Storage>
[[nodiscard]] manifest read_manifest(const Storage& where, const required_signature& rule) {
  const buffer text = detail::signed_bytes_in(where, rule, "a manifest");
  try {
    return manifest_from_string(text_of(text.view()));
  } catch (error& e) {
    e.in_file(where.names()[0]);
    throw;
  }
}

}  // namespace penstock::inline v0_1

// ---- penstock/storage/crypto/sha256_hasher.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The SHA-256 of bytes that come in pieces.
class sha256_hasher {
 public:
  sha256_hasher() : context_(EVP_MD_CTX_new()) {
    if (!context_) throw std::bad_alloc();
    if (EVP_DigestInit_ex2(context_.get(), EVP_sha256(), nullptr) != 1) refused();
  }

  void add(bytes_view bytes) {
    if (bytes.empty()) return;
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) refused();
  }
  /// The hash of all that was added; nothing can be added afterwards.
  [[nodiscard]] sha256_hash finish() {
    sha256_hash made;
    if (EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(made.bytes.data()), nullptr) != 1)
      refused();
    return made;
  }

 private:
  struct freed {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  [[noreturn, gnu::cold]] static void refused() {
    throw error(errc::state, "OpenSSL has no SHA-256 here: is its default provider or FIPS provider loaded?");
  }

  std::unique_ptr<EVP_MD_CTX, freed> context_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/sha256_check.hpp

namespace penstock::inline v0_1 {

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

// ---- penstock/storage/crypto/object_checks.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// Which objects of a session were compared with the list, and who compares one now.
///
/// Threads: any number may call.
class object_checks {
 public:
  /// Refers to the names, and to the session that `use` gives it.
  object_checks(sha256_check check, std::span<const std::string> names, std::size_t maximum)
      : check_(std::move(check)), names_(names), limit_(maximum), objects_(names.size()) {
    for (std::size_t i = 0; i < names.size(); ++i) objects_[i].listed = check_.knows(names[i]);
  }

  /// Whether an object is the one of the list.
  [[nodiscard]] bool passed(object_id id) const noexcept {
    return id < names_.size() && objects_[id].passed.load(std::memory_order_acquire);
  }
  /// Throws if the list has no entry for an object.
  void must_be_listed(object_id id) const {
    if (id < names_.size() && !objects_[id].listed) [[unlikely]]
      (void)check_.begin(names_[id]);
  }
  /// Returns when an object was compared, by this thread or another one. Throws if it is not that of the
  /// list, or errc::stopped if it was not compared before `cancel`.
  void pass(session_view session, object_id id) {
    if (!passed(id)) [[unlikely]]
      compare(session, id);
  }
  /// The version of an object now; one that is no longer that of the comparison is compared again.
  [[nodiscard]] object_version version(session_view session, object_id id) {
    must_be_listed(id);
    const object_version now = session.version(id);
    if (passed(id)) {
      const std::scoped_lock held(lock_);
      if (objects_[id].version != now) objects_[id].passed.store(false, std::memory_order_release);
    }
    return now;
  }

  /// Ends the comparisons in progress, and the waits for them.
  void cancel() noexcept {
    {
      const std::scoped_lock held(lock_);
      stops_.fetch_add(1, std::memory_order_relaxed);
    }
    changed_.notify_all();
  }
  /// As `cancel`, and lets those that begin later end at once.
  void end() noexcept {
    ended_.store(true, std::memory_order_relaxed);
    cancel();
  }
  /// The bytes of memory that comparisons have now.
  [[nodiscard]] std::uint64_t held_bytes() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  struct object {
    std::atomic<bool> passed{false};
    bool listed = false;
    bool compared_now = false;  // under the lock, as what follows
    object_version version;     // when it passed
  };
  /// The right to compare an object, which one thread has.
  class lock {
   public:
    lock(object_checks& of, object& what) noexcept : of_(of), what_(what) {
      what_.compared_now = true;
      ++of_.running_;
    }
    lock(const lock&) = delete;
    lock& operator=(const lock&) = delete;
    ~lock() {
      {
        const std::scoped_lock held(of_.lock_);
        what_.compared_now = false;
        --of_.running_;
        if (done_) {
          what_.version = found_;
          what_.passed.store(true, std::memory_order_release);
        }
      }
      of_.changed_.notify_all();
    }
    void passes(object_version as) noexcept {
      found_ = as;
      done_ = true;
    }

   private:
    object_checks& of_;
    object& what_;
    object_version found_;
    bool done_ = false;
  };

  void compare(session_view session, object_id id) {
    if (id >= names_.size()) return;  // the session says what is wrong
    must_be_listed(id);
    object& what = objects_[id];
    std::unique_lock held(lock_);
    const std::uint64_t stops = stops_.load(std::memory_order_relaxed);
    for (;;) {
      if (what.passed.load(std::memory_order_relaxed)) return;
      go_on(id, stops);
      if (!what.compared_now && running_ < limit_) break;
      changed_.wait(held);
    }
    lock mine(*this, what);
    held.unlock();
    mine.passes(compared(session, id, stops));
  }
  [[nodiscard]] object_version compared(session_view session, object_id id, std::uint64_t stops) {
    const object_version before = session.version(id);
    sha256_check::state state = check_.begin(names_[id]);
    const counted memory(held_, session.views() ? 0 : std::min(before.size, hash_chunk));
    in_pieces(
        session, id, before.size, [&](bytes_view bytes) { state.add(bytes); }, [&] { go_on(id, stops); });
    if (session.version(id) != before)
      throw error(errc::io, "the object was replaced while its SHA-256 was computed; read it again")
          .in_file(names_[id]);
    state.finish();
    return before;
  }
  void go_on(object_id id, std::uint64_t stops) const {
    if (stops_.load(std::memory_order_relaxed) == stops && !ended_.load(std::memory_order_relaxed)) return;
    throw error(errc::stopped, "the read was cancelled before its object was compared with its SHA-256")
        .in_file(names_[id]);
  }

  class counted {
   public:
    counted(std::atomic<std::uint64_t>& all, std::uint64_t bytes) noexcept : all_(all), bytes_(bytes) {
      all_.fetch_add(bytes_, std::memory_order_relaxed);
    }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    ~counted() { all_.fetch_sub(bytes_, std::memory_order_relaxed); }

   private:
    std::atomic<std::uint64_t>& all_;
    std::uint64_t bytes_;
  };

  sha256_check check_;
  std::span<const std::string> names_;
  std::size_t limit_;
  fixed_array<object> objects_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::size_t running_ = 0;
  std::atomic<std::uint64_t> stops_{0}, held_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/crypto/checked_session.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The session of `checked`.
template <storage Far>
class checked_session : public session_adaptor<checked_session<Far>, typename Far::session> {
  using inner = typename Far::session;
  static constexpr bool in_background = background_session<inner>;
  static constexpr std::size_t max_threads = 64;

  struct state {
    state(const Far& given, const sha256_check& check, std::size_t max_checks_in_flight)
        : where(given), session(where.connect()), checks(check, where.names(), max_checks_in_flight) {
      if constexpr (in_background) threads.emplace(session_view(blocking), where.names(), max_threads);
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() { end(); }

    void read(object_id id, std::uint64_t offset, mutable_bytes into) {
      checks.pass(session, id);
      session.read(id, offset, into);
    }
    void cancel() noexcept {
      if (threads) threads->cancel();
      checks.cancel();
    }
    void end() noexcept {
      if (threads) threads->cancel();
      checks.end();
      penstock::end_reads(session);
    }

    /// What `threads` read from.
    struct blocking_reader {
      static constexpr bool views = false;
      state& of;
      [[nodiscard]] std::uint64_t size(object_id id) const { return of.session.size(id); }
      [[nodiscard]] object_version version(object_id id) const { return of.session.version(id); }
      void read(object_id id, std::uint64_t offset, mutable_bytes into) const { of.read(id, offset, into); }
      static void will_need(object_id, std::uint64_t, std::uint64_t) noexcept {}
    };

    Far where;  // whose names the others refer to
    inner session;
    object_checks checks;
    blocking_reader blocking{*this};
    std::optional<threaded_reads> threads;  // end first
  };

 public:
  checked_session(const Far& where, const sha256_check& check, std::size_t max_checks_in_flight)
      : state_(std::make_unique<state>(where, check, max_checks_in_flight)) {}

  /// Reads nothing.
  [[nodiscard]] std::uint64_t size(object_id id) const {
    state_->checks.must_be_listed(id);
    return state_->session.size(id);
  }
  /// Reads nothing. If it is not that of the object that was compared, the next read compares again.
  [[nodiscard]] object_version version(object_id id) const {
    return state_->checks.version(state_->session, id);
  }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const { state_->read(id, offset, into); }
  /// What was compared is read by the session inside; threads compare the rest, and read it then.
  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept
    requires in_background
  {
    while (!requests.empty()) {
      const bool passed = state_->checks.passed(requests[0].object);
      std::size_t alike = 1;
      while (alike < requests.size() && state_->checks.passed(requests[alike].object) == passed) ++alike;
      if (passed)
        state_->session.read_many(requests.first(alike), listener);
      else
        state_->threads->read_many(requests.first(alike), listener);
      requests = requests.subspan(alike);
    }
  }
  // A read that waits for a comparison is not the session's inside.
  void abandon(std::uint64_t) const = delete;
  void cancel() const noexcept
    requires in_background
  {
    state_->cancel();
    state_->session.cancel();
  }
  /// Ends comparisons and the waits for them, with errc::stopped.
  void cancel_waits() const noexcept
    requires(!in_background)
  {
    state_->cancel();
    if constexpr (requires(inner& s) { s.cancel_waits(); }) state_->session.cancel_waits();
  }
  void end_reads() const noexcept { state_->end(); }

  [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const
    requires viewing_session<inner> || mapped_session<inner>
  {
    state_->checks.pass(state_->session, id);
    return state_->session.view(id, offset, size);
  }

  /// That of the session inside, such as for a comparison, and the memory of comparisons.
  [[nodiscard]] session_report report() const {
    session_report all = report_of(state_->session);
    all.counters.held += state_->checks.held_bytes();
    all.names = state_->where.names();
    return all;
  }
  [[nodiscard]] session_report limits() const { return limits_of(state_->session); }
  /// What was compared is read through it.
  [[nodiscard]] inner& inside() const noexcept { return state_->session; }

 private:
  std::unique_ptr<state> state_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/checked.hpp

namespace penstock::inline v0_1 {

/// How `checked` compares objects.
struct checked_options {
  /// How many objects of a session are compared at the same time at most; each needs 4 MiB of memory, unless
  /// the storage inside shows its bytes in place.
  std::size_t max_checks_in_flight = 4;
};

/// Delivers bytes of an object only after all of it was compared with its SHA-256.
///
///     const auto shards = memory_files().add("a.tar", std::string(10'240, '\0'));
///     const checked safe(cached(shards, disk_cache("cache_folder", 64_MiB)), sha256_of(shards));
///     const std::uint64_t size = safe.connect().size(0);
///
/// In: any storage, and a list with an entry for each of its objects; see `sha256_list::find`.
/// The first read of an object in a session reads the whole object through the storage inside, in pieces of
/// 4 MiB; if the hash is that of the list, this and all later reads pass through. Threads that want the same
/// object meanwhile wait. Over `cached` the bytes that were compared are in the cache, so that each block is
/// fetched once; otherwise they are read again.
/// What is changed in place after that goes unnoticed until somebody asks for the version: if it is not
/// that of the object that was compared, the next read compares again.
/// Names do not count as paths, even if those inside do: an index beside a local file would decide what is
/// read without having been compared. Objects beside those of a store are compared with the list as well, and
/// one that it says nothing of counts as not there.
/// Errors: errc::io, with the object, if its bytes are not those of the list: no byte of it is delivered, and
/// the next read compares again. It may have been harmed on its way, so it does not count as recurring; but
/// what is in a cache stays as it is, so empty the cache before you try again. errc::io that recurs if the
/// list has no entry for the object, also from `size` and `version`. errc::stopped after `cancel`. Those of
/// the storage inside pass through; `max_checks_in_flight` of 0 is errc::argument.
/// Threads: any number of threads may use a session. It reads in the background if the session inside does;
/// up to 64 threads of the session make the reads of objects that were not compared yet.
/// Cost: each object is read once more in each session, and hashed by one thread. After that, a look at a
/// flag per read.
template <storage Far>
class checked {
 public:
  /// Not even if those inside are paths; see above.
  static constexpr bool names_are_paths = false;
  using session = detail::checked_session<Far>;

  checked(Far far, sha256_list list, checked_options options = {})
      : far_(std::move(far)), check_(std::move(list)), options_(options) {
    if (options.max_checks_in_flight == 0)
      throw error(errc::argument,
                  "checked needs to compare at least one object at a time: max_checks_in_flight is 0");
  }

  [[nodiscard]] std::span<const std::string> names() const { return far_.names(); }
  [[nodiscard]] session connect() const { return session(far_, check_, options_.max_checks_in_flight); }
  /// See `sidecar_storage`.
  [[nodiscard]] checked sidecars(sidecar which) const
    requires(sidecar_storage<Far> || renaming_storage<Far>)
  {
    if constexpr (sidecar_storage<Far>) {
      return checked(far_.sidecars(which), check_.list(), options_);
    } else {
      std::vector<std::string> sidecar_names;
      for (const std::string& name : names()) sidecar_names.push_back(which.of(name));
      return with_names(std::move(sidecar_names));
    }
  }
  /// See `renaming_storage`.
  [[nodiscard]] checked with_names(std::vector<std::string> names) const
    requires renaming_storage<Far>
  {
    return checked(far_.with_names(std::move(names)), check_.list(), options_);
  }
  [[nodiscard]] std::string describe() const {
    return detail::describe_around("checked", far_,
                                   detail::text({"SHA-256 of ", check_.list().size(), " objects"}));
  }

 private:
  Far far_;
  sha256_check check_;
  checked_options options_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/storage/crypto/segment_layout.hpp

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
  static constexpr std::uint64_t max_segments = std::uint64_t{1} << 32;  // the nonce has 4 bytes for them

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
    if ((rest != 0 && rest <= tag_size) || whole > max_segments || (whole == max_segments && rest != 0))
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

// ---- penstock/storage/crypto/segment_crypto.hpp

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

// ---- penstock/storage/crypto/decrypted_objects.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// How objects of a session are decrypted.
struct decrypting_rules {
  segment_layout layout;
  std::string associated;
  std::size_t max_in_flight;
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

// ---- penstock/storage/crypto/decryption_rooms.hpp

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

// ---- penstock/storage/reads/awaited_read.hpp

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

// ---- penstock/storage/crypto/decrypting_session.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The session of `decrypting_storage`.
template <storage Storage, class Keys>
class decrypting_session
    : public session_adaptor<decrypting_session<Storage, Keys>, typename Storage::session> {
  using inner = typename Storage::session;
  static constexpr bool in_background = background_session<inner>;
  /// The most ciphertext that is read at once: of what is near, as much as stays in the processor's cache.
  static constexpr std::uint64_t maximum =
      latent_session<inner> ? std::uint64_t{8} << 20 : std::uint64_t{256} << 10;

  struct state {
    state(const Storage& given, const Keys& all_keys, const decrypting_rules& chosen)
        : where(given),
          keys(all_keys),
          rules(chosen),
          objects(where.names().size()),
          session(where.connect()) {
      if constexpr (in_background) threads.emplace(session_view(waiting), where.names(), rules.max_in_flight);
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
    [[nodiscard]] object_version version(object_id id) {
      const object_version stored = session.version(id);
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
        const std::uint64_t together = std::max<std::uint64_t>(maximum / layout.segment_size(), 1);
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
        if constexpr (mapped_session<inner>)
          if (std::as_const(session).mapped(id)) return std::as_const(session).view(id, offset, size);
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
      [[nodiscard]] object_version version(object_id id) const { return of.version(id); }
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
  // Nobody gets what is stored.
  void mapped(object_id) const = delete;
  void view(object_id, std::uint64_t, std::uint64_t) const = delete;
  void prefetch(object_id, std::uint64_t, std::uint64_t) const = delete;
  void abandon(std::uint64_t) const = delete;

  decrypting_session(const Storage& where, const Keys& keys, const decrypting_rules& rules)
      : state_(std::make_unique<state>(where, keys, rules)) {}

  /// Of the plaintext; reads none of it.
  [[nodiscard]] std::uint64_t size(object_id id) const { return state_->size(id); }
  /// The plaintext's size, and the stamp of the object as it is stored.
  [[nodiscard]] object_version version(object_id id) const { return state_->version(id); }
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
  void end_reads() const noexcept {
    if constexpr (in_background) state_->threads->cancel();
    penstock::end_reads(state_->session);
  }
  void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const {
    const auto [begin, end] = in_file(id, offset, size);
    if (begin < end) state_->session.will_need(id, begin, end - begin);
  }
  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const
    requires planning_session<inner>
  {
    const auto [begin, end] = in_file(id, offset, size);
    if (begin < end) state_->session.plan_read(id, begin, end - begin, row);
  }

  /// True if the session inside can tell by its answers; see `expecting_session`.
  [[nodiscard]] bool expect(object_id id, object_version what) const
    requires expecting_session<inner>
  {
    return state_->session.expect(id, {state_->rules.layout.file_size(what.size), what.stamp});
  }

  /// That of the session inside, which counts what is stored; of its reads in the background as many as are
  /// allowed are in flight.
  [[nodiscard]] session_report report() const {
    session_report all = report_of(state_->session);
    if constexpr (in_background) all.limit(state_->rules.max_in_flight);
    if (all.oldest) all.oldest->offset = state_->rules.layout.plain_at(all.oldest->offset);
    all.names = state_->where.names();
    return all;
  }
  [[nodiscard]] session_report limits() const {
    session_report all = limits_of(state_->session);
    if constexpr (in_background) all.limit(state_->rules.max_in_flight);
    return all;
  }
  [[nodiscard]] inner& inside() const noexcept { return state_->session; }

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
  std::size_t max_in_flight = 64;
};

/// See `decrypting`.
template <segment_cipher Cipher, storage Storage, key_provider Keys>
class decrypting_storage {
 public:
  /// Not even if those inside are paths: then nothing is kept beside the files in plaintext.
  static constexpr bool names_are_paths = false;
  using session = detail::decrypting_session<Storage, Keys>;

  decrypting_storage(Storage where, Keys keys, decrypting_options options = {})
      : inner_(std::move(where)),
        keys_(std::move(keys)),
        rules_{detail::segment_layout(options.segment_size), std::move(options.associated),
               options.max_in_flight, detail::cipher_handle(Cipher::name)} {
    if (options.max_in_flight == 0)
      throw error(errc::argument, "decrypting needs at least one read in the background: max_in_flight is 0");
  }

  [[nodiscard]] std::span<const std::string> names() const { return inner_.names(); }
  [[nodiscard]] session connect() const { return session(inner_, keys_, rules_); }
  /// See `sidecar_storage`: sidecars are encrypted as well.
  [[nodiscard]] decrypting_storage sidecars(sidecar which) const
    requires(sidecar_storage<Storage> || renaming_storage<Storage>)
  {
    if constexpr (sidecar_storage<Storage>) {
      return decrypting_storage(*this, inner_.sidecars(which));
    } else {
      std::vector<std::string> sidecar_names;
      for (const std::string& name : names()) sidecar_names.push_back(which.of(name));
      return with_names(std::move(sidecar_names));
    }
  }
  /// See `renaming_storage`.
  [[nodiscard]] decrypting_storage with_names(std::vector<std::string> names) const
    requires renaming_storage<Storage>
  {
    return decrypting_storage(*this, inner_.with_names(std::move(names)));
  }
  [[nodiscard]] std::string describe() const {
    return detail::describe_around(
        "decrypting", inner_,
        detail::text({Cipher::name, ", segments of ", rules_.layout.segment_size(), " bytes"}));
  }

 private:
  decrypting_storage(const decrypting_storage& like, Storage where)
      : inner_(std::move(where)), keys_(like.keys_), rules_(like.rules_) {}

  Storage inner_;
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
template <segment_cipher Cipher, object_writer Writer, key_provider Keys>
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
