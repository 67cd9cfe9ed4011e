// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/encrypting_writer.hpp>
#include <penstock/storage/encryption.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace penstock_test {

/// What a `memory_writer` has written, and how it fails.
struct written_objects {
  std::map<std::string, std::string, std::less<>> objects;
  std::size_t aborts = 0;
  std::size_t fails_after = ~std::size_t{0};  ///< calls of its members
};

/// Writes objects into memory.
class memory_writer {
 public:
  explicit memory_writer(std::shared_ptr<written_objects> to) : to_(std::move(to)) {}
  void open(std::string_view name) {
    attempt();
    name_ = name;
    bytes_.clear();
  }
  void write(penstock::bytes_view bytes) {
    attempt();
    bytes_ += penstock::text_of(bytes);
  }
  penstock::object_version finish() {
    attempt();
    to_->objects[name_] = bytes_;
    return {bytes_.size(), 77};
  }
  void abort() noexcept { ++to_->aborts; }

 private:
  void attempt() const {
    if (to_->fails_after != ~std::size_t{0} && to_->fails_after-- == 0)
      throw penstock::error(penstock::errc::io, "the store is full");
  }

  std::shared_ptr<written_objects> to_;
  std::string name_, bytes_;
};
static_assert(penstock::object_writer<memory_writer>);

/// The key of tools/crypto_oracles.py.
[[nodiscard]] inline penstock::encryption_key test_key() {
  return penstock::encryption_key(penstock::bytes_of("take the bytes from your vault!!"));
}
/// The plaintext of tools/crypto_oracles.py.
[[nodiscard]] inline std::string numbered_bytes(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 8));
  return text;
}
/// A text as an encrypted object.
[[nodiscard]] inline std::string encrypted(std::string_view text, penstock::encrypting_options options = {},
                                           const penstock::encryption_key& key = test_key()) {
  const auto all = std::make_shared<written_objects>();
  auto out = penstock::encrypting<penstock::aes_256_gcm>(memory_writer(all), key, std::move(options));
  out.open("one");
  out.write(penstock::bytes_of(text));
  (void)out.finish();
  return all->objects.at("one");
}

}  // namespace penstock_test
