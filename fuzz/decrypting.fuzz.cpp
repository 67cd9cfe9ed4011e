// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An encrypted object: [1][segment size, 2 bytes][object], with the key of the tests.
// One that is encrypted here and then harmed: [2][segment size, 2 bytes][changes][for each: place, 2 bytes,
// and what is changed][bytes cut off, 2 bytes][plaintext]

#include <penstock/storage/crypto/segment_crypto.hpp>
#include <penstock/storage/decrypting.hpp>
#include <penstock/storage/encryption.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;
using layout = ps::detail::segment_layout;

namespace {

ps::encryption_key key() { return ps::encryption_key(ps::bytes_of("take the bytes from your vault!!")); }

std::string encrypted(ps::bytes_view plain, std::size_t segment_size) {
  const layout places(segment_size);
  std::array<std::byte, layout::header_size> header{std::byte{layout::header_size}, std::byte{7}};
  const ps::detail::object_cipher cipher(header, key(), "");
  ps::detail::segment_context context;
  context.encrypt_with(ps::detail::cipher_handle(ps::aes_256_gcm::name), cipher.key);
  std::string made(ps::text_of(header));
  const std::uint64_t size = places.file_size(plain.size()), segments = places.segments(size).value();
  for (std::uint64_t i = 0; i < segments; ++i) {
    const ps::bytes_view rest = plain.subspan(places.plain_begin(i));
    const ps::bytes_view one = rest.first(std::min<std::size_t>(rest.size(), places.room(i)));
    std::string sealed(one.size() + layout::tag_size, ' ');
    context.seal(cipher.nonce(i, i + 1 == segments), one, reinterpret_cast<std::byte*>(sealed.data()));
    made += sealed;
  }
  must(made.size() == size, "an object has the size that its plaintext says");
  return made;
}

/// Reads an object in pieces of this size; what cannot be read is "?" in each byte.
template <class Session>
std::string pieces_of(const Session& session, std::size_t each, std::string& first_error) {
  std::string all;
  const std::string refused = outcome([&] { all.resize(session.size(0), '?'); });
  if (!refused.empty()) first_error = refused;
  std::size_t at = 0;
  do {  // also of an empty object, whose tag is verified by a read of nothing

    std::string piece(std::min(each, all.size() - at), '?');
    const std::string failed = outcome([&] {
      session.read(0, at, {reinterpret_cast<std::byte*>(piece.data()), piece.size()});
    });
    if (!failed.empty()) {
      if (first_error.empty()) first_error = failed;
      piece.assign(piece.size(), '?');
    }
    all.replace(at, piece.size(), piece);
    at += each;
  } while (at < all.size());
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory file;
  input in(data, size);
  const bool made_here = in.number() == 2;
  const std::size_t segment = layout::least + in.number<std::uint16_t>() % 1000;
  std::string object, plain;
  bool harmed = false;
  if (made_here) {
    struct change {
      std::uint16_t place;
      std::uint8_t bits;
    };
    std::vector<change> changes(in.number() % 4);
    for (change& one : changes) one = {in.number<std::uint16_t>(), in.number()};
    const std::size_t cut = in.number<std::uint16_t>();
    plain = ps::text_of(in.rest());
    const std::string good = encrypted(ps::bytes_of(plain), segment);
    object = good;
    for (const change& one : changes) {
      char& byte = object[one.place % object.size()];
      byte = static_cast<char>(byte ^ static_cast<char>(one.bits));
    }
    if (changes.size() == 3) object.resize(object.size() - cut % (object.size() + 1));
    harmed = object != good;
  } else {
    object = ps::text_of(in.rest());
  }

  const ps::decrypting_options options{.segment_size = segment};
  file.write(ps::bytes_of(object));
  const auto shown =
      ps::decrypting(ps::memory_files().add_view("a", ps::bytes_of(object)), key(), options).connect();
  const auto copied =
      ps::decrypting(ps::file(std::vector{file.path()}, {.access = ps::file_access::read}), key(), options)
          .connect();
  std::string error, other_error, whole_error;
  const std::string one = pieces_of(shown, 37, error), other = pieces_of(copied, 37, other_error);
  must(one == other, "both storages give the same bytes");
  must(error.empty() == other_error.empty(), "both storages give bytes, or both an error");
  const std::string whole = pieces_of(shown, std::max<std::size_t>(one.size(), 1), whole_error);
  must(error.empty() == whole_error.empty(), "a whole is read if and only if its parts are");
  if (error.empty()) must(whole == one, "a whole is its parts");
  if (made_here && !harmed) must(error.empty() && one == plain, "what was encrypted comes back");
  if (made_here && harmed) {
    must(!error.empty(), "harm is an error");
    for (std::size_t i = 0; i < one.size(); ++i)
      must(one[i] == '?' || one[i] == plain[i], "what is read of a harmed object is the plaintext");
  }
  touch(one);
  return 0;
}
