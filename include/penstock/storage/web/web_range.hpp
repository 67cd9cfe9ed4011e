// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/http_error.hpp>
#include <penstock/storage/web/web_call.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail::web {

/// Whether a 200 says that it is a range: older gateways of AIStore send 200 where 206 is meant. All facts
/// must agree; a server that ignores ranges has no Content-Range to give.
inline bool is_range_by_200(const answer& reply) {
  if (reply.status != 200 || !reply.length) return false;
  const auto range = parse_content_range(reply.header("Content-Range"));
  return range && range->has_bytes && range->total && *reply.length == range->last - range->first + 1;
}

/// The total length of the object, as an answer to a request for a range gives it.
inline std::optional<std::uint64_t> total_length(const answer& reply) {
  if (reply.status == 200 && !is_range_by_200(reply)) return reply.length;
  const auto range = parse_content_range(reply.header("Content-Range"));
  return range ? range->total : std::nullopt;
}

/// Why the answer 200 or 206 to a request for a range does not hold exactly its bytes; nothing if it does.
inline std::optional<error> range_fault(const call& what) {
  const answer& reply = what.reply;
  const std::uint64_t wanted = what.into.size(), end = what.offset + wanted;
  const auto lie = [&](std::initializer_list<piece> message) {
    return what.with_facts(error(errc::io, message)).recurring();
  };
  const std::string_view encoding = reply.header("Content-Encoding");
  if (!encoding.empty() && encoding != "identity" && !what.stored_encoded)
    return lie({"the server sends the object encoded (Content-Encoding: ", encoding,
                "), so ranges of it mean nothing; store it without, or switch the encoding off"});
  if (reply.status == 200 && !is_range_by_200(reply)) {
    if (what.offset == 0 && reply.length == wanted) return std::nullopt;
    return lie(
        {"the server ignores ranges: it answered 200 with the whole object; switch ranges on at the server "
         "(nginx: max_ranges), or use another one"});
  }
  const std::string_view text = reply.header("Content-Range");
  const auto range = parse_content_range(text);
  if (!range || !range->has_bytes)
    return what.failure(
        {"the server answered 206 without a Content-Range that makes sense: \"", text.substr(0, 80), "\""});
  if (what.size != call::no_range && range->total && *range->total != what.size)
    return lie({"the object was replaced while it was read: it had ", what.size, " bytes, and has ",
                *range->total, "; start again with the new one"});
  if (range->first == what.offset && range->last + 1 < end && range->total == range->last + 1)
    return what.with_facts(error(
        errc::format,
        {"the range of ", wanted, " bytes goes beyond the end of the object, which has ", *range->total}));
  if (range->first != what.offset || range->last + 1 != end)
    return what.failure({"the server sent another range than was asked for: bytes ", range->first, " to ",
                         range->last, ", not ", what.offset, " to ", end - 1});
  if (reply.length && *reply.length != wanted)
    return what.failure({"the server contradicts itself: Content-Length is ", *reply.length,
                         " for a range of ", wanted, " bytes"});
  return std::nullopt;
}

}  // namespace penstock::inline v0_1::detail::web
