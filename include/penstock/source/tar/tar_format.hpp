// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/tar/tar_header.hpp>

#include <array>
#include <string_view>

/// Writes tar headers: ustar, and pax if ustar has no room.
namespace penstock::inline v0_1 {
namespace detail {

/// The zeros that fill the last block of a member.
[[nodiscard]] bytes_view tar_padding_after(std::uint64_t size) noexcept;

/// Two zero blocks, and padding to a multiple of twenty blocks, as all tar programs write by default.
[[nodiscard]] std::array<bytes_view, 2> end_of_tar(std::uint64_t size) noexcept;

/// The facts that all members have in common.
struct tar_member_facts {
  std::uint32_t mode = 0;
  std::uint64_t mtime = 0;
  std::string_view owner, group;
};

/// Appends the header of a regular file, after a pax header if the name or size needs one.
void append_tar_headers(buffer& out, std::string_view path, std::uint64_t size,
                        const tar_member_facts& facts);
}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/tar_format.ipp>
#endif
