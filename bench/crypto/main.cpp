// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 29: objects that are decrypted as they are read, against OpenSSL's AES-256-GCM in a loop, as
// `openssl speed -evp aes-256-gcm -decrypt` measures it, over a buffer of the same size in this program.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/core/random.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/decrypting.hpp>
#include <penstock/storage/encrypting_writer.hpp>
#include <penstock/storage/encryption.hpp>
#include <penstock/storage/memory_files.hpp>

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

ps::encryption_key key() { return ps::encryption_key(ps::bytes_of("take the bytes from your vault!!")); }

/// Keeps the object that was written last.
struct last_object {
  std::shared_ptr<std::string> bytes = std::make_shared<std::string>();
  void open(std::string_view) const { bytes->clear(); }
  void write(ps::bytes_view more) const { bytes->append(ps::text_of(more)); }
  [[nodiscard]] ps::object_version finish() const { return {bytes->size(), 0}; }
  void abort() const noexcept {}
};

/// The same `size` bytes, so many times.
ps::memory_files encrypted(std::size_t segment, ps::bytes_view bytes, std::uint64_t times) {
  const last_object into;
  auto out = ps::encrypting<ps::aes_256_gcm>(into, key(), {.segment_size = segment});
  out.open("one");
  for (std::uint64_t i = 0; i < times; ++i) out.write(bytes);
  (void)out.finish();
  return ps::memory_files().add("one", *into.bytes);
}

std::vector<std::byte> made_up(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t word = 1;
  for (std::byte& one : bytes) one = static_cast<std::byte>((word = ps::mix64(word)) >> 56);
  return bytes;
}

/// One buffer that OpenSSL has encrypted, and decrypts again and again.
class plain_evp {
 public:
  explicit plain_evp(ps::bytes_view plain) : context_(EVP_CIPHER_CTX_new()), sealed_(plain.size()) {
    int count = 0;
    check(EVP_EncryptInit_ex2(context_, EVP_aes_256_gcm(), secret_, nonce_, nullptr));
    check(EVP_EncryptUpdate(context_, sealed_.data(), &count,
                            reinterpret_cast<const unsigned char*>(plain.data()),
                            static_cast<int>(plain.size())));
    check(EVP_EncryptFinal_ex(context_, tag_ + 16, &count));
    check(EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, 16, tag_));
    check(EVP_DecryptInit_ex2(context_, EVP_aes_256_gcm(), secret_, nullptr, nullptr));
  }
  plain_evp(const plain_evp&) = delete;
  plain_evp& operator=(const plain_evp&) = delete;
  ~plain_evp() { EVP_CIPHER_CTX_free(context_); }

  void decrypt(std::byte* into) {
    auto* const bytes = reinterpret_cast<unsigned char*>(into);
    int count = 0;
    check(EVP_DecryptInit_ex2(context_, nullptr, nullptr, nonce_, nullptr));
    check(EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_SET_TAG, 16, tag_));
    check(EVP_DecryptUpdate(context_, bytes, &count, sealed_.data(), static_cast<int>(sealed_.size())));
    check(EVP_DecryptFinal_ex(context_, bytes + count, &count));
  }

 private:
  static void check(int done) {
    if (done != 1) throw std::runtime_error("OpenSSL does not encrypt");
  }

  EVP_CIPHER_CTX* context_;
  std::vector<unsigned char> sealed_;
  unsigned char secret_[32] = {1}, nonce_[12] = {2}, tag_[32] = {};
};

void in_order(const bench::options& o) {
  const bench::row r{
      "29a", "an encrypted object in memory, read in order in 1 MiB / OpenSSL on 1 MiB in a loop", 0.8};
  if (!o.wants(r.id)) return;
  const std::uint64_t rounds = o.quick ? 4 : 64;
  const std::vector<std::byte> plain = made_up(mebibyte);
  const auto session =
      ps::decrypting<ps::aes_256_gcm>(encrypted(std::size_t{64} << 10, plain, rounds), key()).connect();
  plain_evp evp(plain);
  ps::buffer into(mebibyte);
  const auto look = [&] { return bench::first_words(into.data(), 256, 4096); };
  bench::compare(
      o, r,
      [&] {
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < rounds; ++i) {
          session.read(0, i * mebibyte, into.span());
          sum += look();
        }
        return sum;
      },
      [&] {
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < rounds; ++i) {
          evp.decrypt(into.data());
          sum += look();
        }
        return sum;
      });
}

/// What a sample at random costs, by the size of a segment.
void at_random(const bench::options& o) {
  constexpr std::size_t sample = 110'000;
  const std::uint64_t samples = o.quick ? 40 : 600;
  const std::vector<std::byte> plain = made_up(sample);
  plain_evp evp(plain);
  ps::buffer into(sample);
  const auto row = [&](const char* id, const char* what, std::size_t segment) {
    const bench::row r{id, what, 0};
    if (!o.wants(r.id)) return;
    const auto session =
        ps::decrypting<ps::aes_256_gcm>(encrypted(segment, plain, samples), key(), {.segment_size = segment})
            .connect();
    bench::compare(
        o, r,
        [&] {
          std::uint64_t sum = 0;
          for (std::uint64_t i = 0; i < samples; ++i) {
            session.read(0, ps::mix64(i) % samples * sample, into.span());
            sum += bench::first_words(into.data(), 26, 4096);
          }
          return sum;
        },
        [&] {
          std::uint64_t sum = 0;
          for (std::uint64_t i = 0; i < samples; ++i) {
            evp.decrypt(into.data());
            sum += bench::first_words(into.data(), 26, 4096);
          }
          return sum;
        });
  };
  row("29b", "110 KB at random, segments of 4 KiB / OpenSSL on 110 KB in a loop", std::size_t{4} << 10);
  row("29c", "110 KB at random, segments of 16 KiB / OpenSSL on 110 KB in a loop", std::size_t{16} << 10);
  row("29d", "110 KB at random, segments of 64 KiB / OpenSSL on 110 KB in a loop", std::size_t{64} << 10);
  row("29e", "110 KB at random, segments of 1 MiB / OpenSSL on 110 KB in a loop", mebibyte);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_main(argc, argv, [](const bench::options& o) {
    in_order(o);
    at_random(o);
  });
}
