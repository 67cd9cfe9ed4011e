// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What servers answer, as the exchange of http reads it: [what was asked for][bytes that arrive together]
// [answers, one after the other].

#include <penstock/storage/http_error.hpp>
#include <penstock/storage/web/web_call.hpp>

#include "support/fuzz.hpp"

#include <array>

using namespace penstock_fuzz;
namespace ps = penstock;
namespace web = ps::detail::web;
using state = web::answer_reader::state;

namespace {

/// A connection whose bytes are there already.
struct arriving {
  ps::bytes_view rest;
  std::size_t together;

  [[nodiscard]] bool next(web::answer_reader& reader) {
    const auto room = reader.room();
    const std::size_t size = std::min({room.size(), rest.size(), together});
    if (size == 0) return false;
    std::memcpy(room.data(), rest.data(), size);
    rest = rest.subspan(size);
    reader.arrived(size);
    return true;
  }
};

/// Reads one answer; whether another one may follow.
bool read(web::answer_reader& reader, arriving& from, web::call& what) {
  reader.begin(what.method == web::verb::head);
  state now = state::more;
  while (now == state::more) {
    if (reader.waiting() == 0 && !from.next(reader)) return false;
    now = reader.read_head();
    if (now == state::more && !from.next(reader)) return false;
  }
  if (now != state::done) {
    must(now == state::overflowing || reader.fault().failed(), "a fault says why");
    return false;
  }
  const bool done = reader.is_done(), keeps = reader.keeps();
  web::answer& reply = what.reply = {};
  const bool unknown = reader.take_head(reply);
  must(reply.status >= 100 && reply.status < 1000, "a status");
  for (const auto& field : reply.fields) touch(std::string_view(field.value().data(), field.value().size()));
  const auto wait = reply.retry_after();
  must(!wait || wait->count() >= 0, "nobody waits for what is over");
  const bool bytes = what.has_range() && (reply.status == 200 || reply.status == 206);
  if (bytes) {
    if (const auto fault = web::range_fault(what)) {
      must(!fault->message().empty(), "an error has a message");
      return false;
    }
    const auto total = web::total_length(reply);
    must(!total || what.offset + what.into.size() <= *total, "a range is in its object");
    if (!unknown) must(done || reply.length == what.into.size(), "an answer is as long as its range");
  } else if (reply.status != 200) {
    touch(std::string_view(ps::detail::answer_error(reply.status, wait).message()));
  }
  if (unknown) {
    const std::size_t maximum = bytes ? what.into.size() : what.max_body;
    reader.begin_body(maximum);
    for (;;) {
      now = reader.read_body();
      must(reader.body().size() <= maximum, "no more than was allowed");
      if (now != state::more) break;
      if (from.next(reader)) continue;
      if (reader.end_body()) touch(reader.body());
      return false;
    }
    if (now == state::done) touch(reader.body());
    return now == state::done && keeps;
  }
  if (done) return keeps;
  std::uint64_t left = *reply.length;
  std::array<std::byte, 512> place{};
  while (left != 0) {
    if (reader.waiting() == 0 && !from.next(reader)) return false;
    const std::size_t got =
        reader.take(std::span(place).first(static_cast<std::size_t>(std::min<std::uint64_t>(left, 512))));
    must(got != 0, "what has arrived can be taken");
    left -= got;
  }
  return keeps;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  const std::size_t together = in.number() + std::size_t{1};
  std::array<std::byte, 64> into{};
  web::call what;
  what.where = ps::parse_url("http://h/a?secret");
  if (how % 4 == 0) what.method = web::verb::head;
  if (how % 4 >= 2) {
    what.offset = how / 4 % 8 * 5;
    what.into = std::span(into).first(1 + how / 32 * 9);
    if (how % 4 == 3) what.size = 100;
  }
  what.max_body = 100;
  web::answer_reader reader;
  arriving from{in.rest(), together};
  while (read(reader, from, what)) {
  }
  return 0;
}
