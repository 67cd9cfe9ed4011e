// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/megatron_index.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/source/files/hash_bytes.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void refuse_tokens(std::initializer_list<piece> what, std::uint64_t offset) {
  throw error(errc::format, what).at_offset(offset);
}

PENSTOCK_INLINE token_type megatron_type(unsigned code) noexcept {
  constexpr token_type types[] = {{0, false}, {1, false}, {1, true},  {2, true}, {4, true},
                                  {8, true},  {0, false}, {0, false}, {2, false}};
  return types[code < std::size(types) ? code : 0];
}

PENSTOCK_INLINE std::string megatron_prefix(std::string_view name) {
  if (name.ends_with(".bin") || name.ends_with(".idx")) name.remove_suffix(4);
  return std::string(name);
}

PENSTOCK_INLINE megatron_index::megatron_index(bytes_view bytes) : bytes_(bytes) {
  if (bytes.size() < head || text_of(bytes.first(9)) != std::string_view("MMIDIDX\0\0", 9))
    throw not_a("the index of a Megatron dataset", bytes, {"it does not begin with MMIDIDX"});
  const auto version = number(9);
  if (version != 1) refuse_tokens({"version ", version, " of Megatron's indexes is not known, only 1"}, 9);
  code_ = std::to_integer<unsigned>(bytes[17]);
  sequences_ = number(18);
  bounds_ = number(26);
  const std::uint64_t room = bytes.size() - head;
  // divide rather than multiply: products of false lengths could wrap around
  const bool fits = sequences_ <= room / 12 && bounds_ <= (room - 12 * sequences_) / 8;
  const std::uint64_t rest = fits ? room - 12 * sequences_ - 8 * bounds_ : 0;
  if (!fits || (rest != 0 && rest != sequences_))  // multimodal datasets have one more byte per sequence
    refuse_tokens({"the index says ", sequences_, " sequences and ", bounds_,
                   " bounds of documents, which does not match its size of ", bytes.size(),
                   " bytes; copy it again if it was cut"},
                  18);
}

PENSTOCK_INLINE void megatron_index::check(token_type type) const {
  // Tokens are never negative, so a signed file can be read as unsigned of that width, but not the other way
  // round.
  if (const token_type stored = megatron_type(code_);
      stored.width != type.width || (type.is_signed && !stored.is_signed))
    refuse_tokens(
        {"the Megatron dataset holds tokens of type ",
         enum_name({"unknown", "uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16"},
                   code_),
         ", and another type was asked for"},
        17);
  if (bounds_ == 0 || bound(0) != 0 || bound(bounds_ - 1) != sequences_)
    refuse_tokens({"the bounds of documents do not go from 0 to the number of sequences, ", sequences_},
                  bounds_at());
}

PENSTOCK_INLINE std::uint64_t megatron_index::hash() const noexcept { return hash_bytes(0x4d4d4944, bytes_); }

}  // namespace penstock::inline v0_1::detail
