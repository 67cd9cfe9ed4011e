// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks that apply to every unpacker, whatever its format.

#include "support/catch.hpp"

#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock_test {

/// Text that compresses, and some that does not.
inline std::string some_text(std::size_t size) {
  penstock::rng random(11, 0, size);
  std::string text;
  while (text.size() < size) {
    if (random.chance(0.3))
      text += static_cast<char>(random.below(256));
    else
      text += "the same words again and again ";
  }
  text.resize(size);
  return text;
}

/// Unpacks a text in pieces of these sizes.
template <penstock::unpacker U>
std::string unpack(typename U::stream& stream, const std::string& packed, std::size_t in, std::size_t out) {
  stream.begin();
  std::string text;
  std::vector<std::byte> room(out);
  std::size_t at = 0;
  for (int idle = 0; idle < 3;) {
    const std::size_t some = std::min(in, packed.size() - at);
    const bool last = at + some == packed.size();
    const auto step = stream.step(penstock::bytes_of(packed).subspan(at, some), room, last);
    at += step.taken;
    text.append(reinterpret_cast<const char*>(room.data()), step.made);
    if (at == packed.size() && step.made == 0) {
      if (step.whole) return text;
      ++idle;
    } else if (step.taken == 0 && step.made == 0) {
      ++idle;
    }
  }
  throw penstock::error(penstock::errc::format, "cut off");
}

template <penstock::unpacker U>
std::optional<penstock::error> unpack_failure(const std::string& packed) {
  typename U::stream stream;
  try {
    (void)unpack<U>(stream, packed, 1000, 1000);
  } catch (const penstock::error& e) {
    return e;
  }
  return std::nullopt;
}

/// `pack` makes one stream of a text. `Joined`: whether files may consist of several. `Noticed`: of some 200
/// damaged files, at least how many are errors.
template <penstock::unpacker U, bool Joined = true, int Noticed = 100, class Pack>
void check_unpacker(Pack&& pack) {
  typename U::stream stream;
  for (const std::size_t size : {0u, 1u, 1000u, 300'000u}) {
    const std::string text = some_text(size), packed = pack(text);
    for (const std::size_t in : {1u, 7u, 1u << 20}) {
      for (const std::size_t out : {1u, 4096u, 1u << 20}) {
        if (size > 1000 && in * out < 4096) continue;
        INFO(size << " bytes in pieces of " << in << " and " << out);
        CHECK(unpack<U>(stream, packed, in, out) == text);
      }
    }
  }
  const std::string text = some_text(5000), packed = pack(text);
  // several streams one after another, an empty one between them
  if (Joined) CHECK(unpack<U>(stream, packed + pack("") + packed, 13, 999) == text + text);
  // cut off anywhere
  for (std::size_t size = 1; size < packed.size(); size += 1 + packed.size() / 97) {
    INFO("cut off after " << size);
    CHECK(unpack_failure<U>(packed.substr(0, size)).has_value());
  }
  // something after the end
  CHECK(unpack_failure<U>(packed + "something").has_value());
  // a stream that failed, or was abandoned midway, can start again
  stream.begin();
  std::vector<std::byte> room(10);
  (void)stream.step(penstock::bytes_of(packed), room, false);
  CHECK(unpack<U>(stream, packed, 100, 100) == text);
  // damage is an error or different bytes, never anything worse
  int noticed = 0;
  for (std::size_t i = 0; i < packed.size(); i += 1 + packed.size() / 200) {
    std::string damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    if (const auto e = unpack_failure<U>(damaged)) {
      ++noticed;
      CHECK((e->code() == penstock::errc::format || e->code() == penstock::errc::checksum ||
             e->code() == penstock::errc::limit));
    }
  }
  CHECK(noticed > Noticed);
  typename U::stream moved = std::move(stream);
  CHECK(unpack<U>(moved, packed, 100, 100) == text);
}

}  // namespace penstock_test
